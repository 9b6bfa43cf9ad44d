// If this failed, what a killed process was making could stay for ever, or a cleaner could remove what a living one makes.
#include "leat/os/being_made.hpp"

#include <sys/stat.h>

#include <ctime>
#include <optional>

#include "testing.hpp"

namespace leat::detail {
namespace {

class BeingMadeTest : public ::testing::Test {
 protected:
  Result<BeingMade> make(const std::function<void(const char*)>& after = [](const char*) {}) const {
    return BeingMade::directory(place_.get(), [&](const char* name) {
      auto made = make_directory_at(place_.get(), name);
      after(name);
      return made;
    });
  }
  bool is_left_over(const char* name) const {
    return static_cast<bool>(lock_left_over(place_.get(), name));
  }
  std::vector<std::string> names() const { return must(names_in(place_.get())); }

  const TestDirectory directory_;
  const Fd place_ = must(open_directory_path(directory_.path(), false, false));
};

TEST_F(BeingMadeTest, BelongsToItsMakerUntilThatHasIt) {
  std::optional<BeingMade> directory{must(make())};
  std::optional<BeingMade> file{must(BeingMade::file(place_.get()))};
  for (const char* name : {directory->name(), file->name()}) EXPECT_FALSE(is_left_over(name));
  EXPECT_FALSE(is_left_over("not there"));
  must(rename_at(place_.get(), directory->name(), "directory"));
  directory->note_named();
  must(rename_at(place_.get(), file->name(), "file"));
  file->note_named();
  directory.reset();
  file.reset();
  for (const char* name : {"directory", "file"}) EXPECT_TRUE(is_left_over(name));
}

// Also by what throws, for lack of memory, say.
TEST_F(BeingMadeTest, LeavesNothingIfItIsGivenUp) {
  struct Lack {};
  const auto give_up = [&] {
    const BeingMade directory = must(make());
    const BeingMade file = must(BeingMade::file(place_.get()));
    for (int i = 0; i < 500; ++i) {
      const std::string name = "file-with-a-long-name-" + std::to_string(i);
      must(open_file_at(directory.fd(), name.c_str(), O_RDWR | O_CREAT, 0600));
    }
    EXPECT_EQ(names().size(), 2U);
    throw Lack{};
  };
  EXPECT_THROW(give_up(), Lack);
  EXPECT_EQ(names(), std::vector<std::string>{});
}

TEST_F(BeingMadeTest, IsNotRemovedByAForkedChild) {
  std::optional<BeingMade> made{must(make())};
  Child child{[&] {
    made.reset();
    return 0;
  }};
  EXPECT_EQ(child.join(), 0);
  EXPECT_EQ(names(), std::vector<std::string>{made->name()});
}

// As process 1 of a container, say: the number in the name is also that of a living process.
TEST_F(BeingMadeTest, IsLeftOverOnceItsMakerIsDeadWhateverTheClockSays) {
  for (const std::time_t at : {std::time_t{0}, std::time(nullptr) + 100'000'000}) {
    Child maker{[&] {
      const auto made = make();
      const ::timespec times[2] = {{at, 0}, {at, 0}};
      if (!made || ::futimens(made->fd(), times) != 0) return 1;
      ::raise(SIGKILL);
      return 2;
    }};
    maker.join();
  }
  ASSERT_EQ(names().size(), 2U);
  for (const std::string& name : names()) EXPECT_TRUE(is_left_over(name.c_str()));
}

// Otherwise it would stay as long as the child runs.
TEST_F(BeingMadeTest, AForkedChildDoesNotKeepIt) {
  int lives[2];
  ASSERT_EQ(::pipe2(lives, O_CLOEXEC), 0);
  Child maker{[&] {
    const auto made = make();
    if (!made) return 1;
    const pid_t child = calm_fork();
    if (child == 0) {
      (void)::close(lives[1]);
      char end = 0;
      (void)::read(lives[0], &end, 1);
      ::_exit(0);
    }
    ::raise(SIGKILL);
    return 2;
  }};
  maker.join();
  ASSERT_EQ(names().size(), 1U);
  // The child has closed its copy before the call returned there; it may not have come that far.
  const Deadline deadline{10s};
  while (!is_left_over(names()[0].c_str()) && !deadline.passed()) std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(is_left_over(names()[0].c_str()));
  EXPECT_EQ(::write(lives[1], "x", 1), 1);
}

// A cleaner that comes before the maker has its lock.
TEST_F(BeingMadeTest, IsMadeAnewIfACleanerComesFirst) {
  Fd cleaner;
  std::string first;
  for (const bool removes : {false, true}) {
    first.clear();
    const BeingMade made = must(make([&](const char* name) {
      if (!first.empty()) return;
      first = name;
      cleaner = lock_left_over(place_.get(), name);
      EXPECT_TRUE(cleaner);
      if (removes) must(delete_directory_at(place_.get(), name));
    }));
    EXPECT_NE(made.name(), first);
    EXPECT_FALSE(has_name(place_.get(), first.c_str()));
    EXPECT_FALSE(is_left_over(made.name()));
  }
}

TEST_F(BeingMadeTest, AFailureIsReportedAtOnce) {
  int calls = 0;
  const auto made = BeingMade::directory(place_.get(), [&](const char*) -> Result<void> {
    ++calls;
    return Errc::not_found;  // The parent was removed, say.
  });
  EXPECT_EQ(code(made), Errc::not_found);
  EXPECT_EQ(calls, 1);
}

// Else a topic that cannot be looked at would pass for a deleted one.
TEST(IsSameFile, AFailureIsNoAnswer) {
  const TestDirectory directory;
  const Fd file = directory.open_file("file");
  EXPECT_TRUE(must(is_same_file(file.get(), file.get())));
  EXPECT_FALSE(must(is_same_file(file.get(), directory.open_file("other").get())));
  EXPECT_FALSE(is_same_file(file.get(), -1));
  EXPECT_FALSE(is_same_file(-1, file.get()));
}

}  // namespace
}  // namespace leat::detail
