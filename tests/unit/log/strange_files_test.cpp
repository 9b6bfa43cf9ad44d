// If this failed, a FIFO in the place of a topic's file could make a process hang, or a limit of
// file sizes could end it.
#include <sys/resource.h>
#include <sys/stat.h>

#include "testing.hpp"

namespace leat {
namespace {

void put_fifo(const std::filesystem::path& path) {
  std::filesystem::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
}

// Runs `body` in a child that is killed if it hangs.
int in_time(const std::function<int()>& body) {
  Child child{[&] {
    ::alarm(10);
    return body();
  }};
  return child.join();
}

TEST(StrangeFiles, FifoInPlaceOfControl) {
  const TestTopic topic;
  put_fifo(std::filesystem::path{topic.directory()} / kTopicName / "control");
  EXPECT_EQ(in_time([&] {
              const auto opened = Topic::open(kTopicName, 0s, topic.directory());
              if (code(opened) != Errc::wrong_format) return 1;
              return code(topic->publisher()) == Errc::wrong_format ? 0 : 2;
            }),
            0);
}

TEST(StrangeFiles, FifoInPlaceOfRecords) {
  const TestTopic topic{{.policy = Policy::grow}};
  put_fifo(std::filesystem::path{topic.directory()} / kTopicName / "records");
  EXPECT_EQ(in_time([&] {
              const Topic opened = topic.open_again();
              if (code(opened.subscriber()) != Errc::wrong_format) return 1;
              if (code(opened.publisher()) != Errc::wrong_format) return 2;
              return code(opened.shrink()) == Errc::wrong_format ? 0 : 3;
            }),
            0);
}

TEST(StrangeFiles, FifoInPlaceOfAGroup) {
  const TestTopic topic;
  (void)must(topic->group("g"));
  for (const auto& entry :
       std::filesystem::directory_iterator{std::filesystem::path{topic.directory()} / kTopicName}) {
    if (entry.path().filename().string().starts_with(detail::kGroupPrefix)) put_fifo(entry.path());
  }
  EXPECT_EQ(in_time([&] {
              return code(topic.open_again().find_group("g")) == Errc::wrong_format ? 0 : 1;
            }),
            0);
}

TEST(StrangeFiles, FifoInPlaceOfTheDirectorysLock) {
  const TestTopic topic;
  put_fifo(std::filesystem::path{topic.directory()} / detail::kDirectoryLock);
  EXPECT_EQ(in_time([&] {
              const auto removed =
                  Topic::delete_topic(kTopicName, {.directory = topic.directory()});
              return code(removed) == Errc::wrong_format ? 0 : 1;
            }),
            0);
}

// With `ulimit -f`, the program is not ended by a signal, and nothing is left behind.
TEST(StrangeFiles, LimitOfFileSizes) {
  const TestDirectory directory;
  for (const Policy policy : {Policy::block, Policy::grow}) {
    EXPECT_EQ(in_time([&] {
                const rlimit limit{2 * kSegment, 2 * kSegment};
                if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
                const auto made = Topic::create("t", {.capacity_bytes = 8 * kSegment,
                                                      .segment_bytes = kSegment,
                                                      .policy = policy,
                                                      .directory = directory.path()});
                const Error error = made.error();
                return error == Errc::no_space && error.system_error == EFBIG ? 0 : 2;
              }),
              0);
    EXPECT_TRUE(directory.is_empty());
  }
}

}  // namespace
}  // namespace leat
