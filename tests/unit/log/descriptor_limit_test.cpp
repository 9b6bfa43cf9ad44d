// If this failed, a program at its limit of open files could fill /dev/shm with topics that no process can use.
#include <sys/resource.h>

#include <filesystem>

#include "support/process.hpp"
#include "testing.hpp"

namespace leat {
namespace {

using testing::Child;

constexpr int kEnough = 24;  // Descriptors that any of the calls below needs at once, and more.

class DescriptorLimit : public ::testing::TestWithParam<Durability> {
 protected:
  void SetUp() override {
#if LEAT_TEST_SANITIZED
    GTEST_SKIP() << "the sanitizer opens pipes to look whether memory can be read";
#endif
  }
  TopicOptions options(bool delete_when_unused = false) const {
    TopicOptions made{.capacity_bytes = 16384, .segment_bytes = 4096, .directory = topics_};
    made.durable = GetParam();
    made.delete_when_unused = delete_when_unused;
    made.data_directory = data_;
    return made;
  }
  DeleteOptions deletion() const { return {.directory = topics_, .data_directory = data_}; }

  // Runs the call in a process that may open `more` files, then `check` without that limit.
  static void with_descriptors(int more, const std::function<void()>& call,
                               const std::function<bool()>& check) {
    Child child{[&] {
      const int next = ::dup(0);
      ::close(next);
      ::rlimit limit{};
      CHILD_CHECK(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
      const ::rlimit few{static_cast<::rlim_t>(next + more), limit.rlim_max};
      CHILD_CHECK(::setrlimit(RLIMIT_NOFILE, &few) == 0);
      call();
      CHILD_CHECK(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
      CHILD_CHECK(check());
      return 0;
    }};
    child.wait();
    EXPECT_TRUE(child.succeeded()) << more << " descriptors: " << child.describe();
  }
  // Names in both directories, except `+lock`.
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const std::string& place : {topics_, data_}) {
      for (const auto& one : std::filesystem::directory_iterator{place}) {
        const std::string name = one.path().filename();
        if (name != "+lock") found.push_back(place + ": " + name);
      }
    }
    return found;
  }
  bool is_empty() const {
    for (const std::string& name : names()) std::fprintf(stderr, "left: %s\n", name.c_str());
    return names().empty();
  }

  const testing::TemporaryDirectory directory_;
  const std::string topics_ = make(directory_.path() + "/topics");
  const std::string data_ = make(directory_.path() + "/data");

 private:
  static std::string make(const std::string& path) {
    std::filesystem::create_directory(path);
    return path;
  }
};

TEST_P(DescriptorLimit, ATopicThatCannotBeMadeLeavesNothing) {
  for (const bool delete_when_unused : {false, true}) {
    if (delete_when_unused && GetParam() != Durability::none) continue;
    for (int more = 0; more < kEnough; ++more) {
      std::optional<Result<Topic>> made;
      with_descriptors(
          more, [&] { made.emplace(Topic::create("topic", options(delete_when_unused))); },
          [&] {
            if (!*made) return made->error().system_error == EMFILE && is_empty();
            made.reset();
            const auto deleted = Topic::delete_topic("topic", deletion());
            if (!deleted) std::fprintf(stderr, "%s\n", describe(deleted.error()).c_str());
            return deleted && is_empty();
          });
    }
  }
}

TEST_P(DescriptorLimit, ATopicThatCannotBeDeletedKeepsItsName) {
  for (int more = 0; more < kEnough; ++more) {
    ASSERT_TRUE(Topic::create("topic", options()));
    Result<void> deleted;
    with_descriptors(
        more, [&] { deleted = Topic::delete_topic("topic", deletion()); },
        [&] {
          if (!deleted) deleted = Topic::delete_topic("topic", deletion());
          return deleted && is_empty();
        });
    ASSERT_TRUE(names().empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Memory, DescriptorLimit, ::testing::Values(Durability::none));
INSTANTIATE_TEST_SUITE_P(Durable, DescriptorLimit, ::testing::Values(Durability::os));

}  // namespace
}  // namespace leat
