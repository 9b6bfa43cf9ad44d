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
  const std::string names[] = {directory->name(), file->name()};
  for (const std::string& name : names) EXPECT_FALSE(is_left_over(name.c_str()));
  directory.reset();
  file.reset();
  for (const std::string& name : names) EXPECT_TRUE(is_left_over(name.c_str()));
  EXPECT_FALSE(is_left_over("not there"));
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
  std::optional<BeingMade> made{must(make())};
  const std::string name = made->name();
  int pipe[2];
  ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
  Child child{[&] {
    char end = 0;
    return static_cast<int>(::read(pipe[0], &end, 1)) - 1;
  }};
  made.reset();
  EXPECT_TRUE(is_left_over(name.c_str()));
  EXPECT_EQ(::write(pipe[1], "x", 1), 1);
  EXPECT_EQ(child.join(), 0);
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

}  // namespace
}  // namespace leat::detail
