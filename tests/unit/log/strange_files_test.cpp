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

// Somebody made a file that is huge and has no pages. Opening it must not take the memory that its size
// promises, nor be a SIGBUS where there is none. The test counts the pages.
class SparseFiles : public ::testing::Test {
 protected:
  static constexpr std::uintmax_t kHuge = 1 << 28;

  std::filesystem::path file(const std::string& beginning) const {
    for (const auto& entry : std::filesystem::directory_iterator{
             std::filesystem::path{topic_.directory()} / kTopicName}) {
      if (entry.path().filename().string().starts_with(beginning)) return entry.path();
    }
    throw std::runtime_error{"there is no " + beginning};
  }
  static std::uintmax_t memory(const std::filesystem::path& path) {
    struct ::stat status {};
    return ::stat(path.c_str(), &status) == 0 ? 512ULL * static_cast<unsigned>(status.st_blocks)
                                              : kHuge;
  }
  // The file keeps its content and loses all pages that are zero.
  static void make_sparse(const std::filesystem::path& path, std::uintmax_t size) {
    const auto copy = path.string() + ".new";
    ASSERT_EQ(std::system(("cp --sparse=always " + path.string() + ' ' + copy).c_str()), 0);
    std::filesystem::resize_file(copy, size);
    std::filesystem::rename(copy, path);
  }

  const TestTopic topic_{{.policy = Policy::block}};
};

TEST_F(SparseFiles, ControlOfZeros) {
  std::filesystem::resize_file(file("control"), 0);
  std::filesystem::resize_file(file("control"), kHuge);
  EXPECT_EQ(code(Topic::open(kTopicName, 0s, topic_.directory())), Errc::wrong_format);
  EXPECT_EQ(memory(file("control")), 0U);
}

TEST_F(SparseFiles, ControlWithHoles) {
  const auto before = std::filesystem::file_size(file("control"));
  make_sparse(file("control"), before);
  ASSERT_LT(memory(file("control")), before);
  EXPECT_EQ(code(Topic::open(kTopicName, 0s, topic_.directory())), Errc::wrong_format);
  EXPECT_LT(memory(file("control")), before);
}

TEST_F(SparseFiles, Records) {
  make_sparse(file("records"), std::filesystem::file_size(file("records")));
  ASSERT_EQ(memory(file("records")), 0U);
  const Topic opened = topic_.open_again();
  EXPECT_EQ(code(opened.subscriber()), Errc::wrong_format);
  EXPECT_EQ(code(opened.publisher()), Errc::wrong_format);
  EXPECT_EQ(memory(file("records")), 0U);
}

TEST_F(SparseFiles, RecordsOfSegmentsThatOnlySayTheyHaveMemory) {
  const TestTopic grows{{.policy = Policy::grow, .max_capacity_bytes = 64 * kSegment}};
  const detail::PartitionView words = grows.shared().partition(0);
  for (std::uint32_t i = 0; i < grows.shared().geometry().segment_count; ++i)
    detail::store_relaxed(words.physical[i].last_segment, std::uint64_t{1});
  const auto records = grows.directory() + "/topic/records";
  const auto before = memory(records);
  const Topic opened = grows.open_again();
  (void)must(opened.subscriber());
  (void)must(opened.publisher());
  EXPECT_EQ(memory(records), before);
}

TEST_F(SparseFiles, Durable) {
  const TestDirectory topics;
  const TestDirectory data;
  const auto made = must(Topic::create(kTopicName, {.capacity_bytes = 4 * kSegment,
                                                    .partitions = 64,
                                                    .directory = topics.path(),
                                                    .durable = Durability::os,
                                                    .data_directory = data.path()}));
  const auto path = topics / kTopicName / "durable";
  const auto size = std::filesystem::file_size(path);
  // A copy, because the topic that is open uses the file.
  std::filesystem::rename(path, topics / kTopicName / "other");
  std::filesystem::copy_file(topics / kTopicName / "other", path);
  std::filesystem::resize_file(path, 1);
  std::filesystem::resize_file(path, size);
  EXPECT_EQ(code(Topic::open(kTopicName, 0s, topics.path(), {}, data.path())), Errc::wrong_format);
}

TEST_F(SparseFiles, Group) {
  (void)must(topic_->group("g"));
  make_sparse(file(detail::kGroupPrefix), std::filesystem::file_size(file(detail::kGroupPrefix)));
  const auto before = memory(file(detail::kGroupPrefix));
  EXPECT_EQ(code(topic_.open_again().find_group("g")), Errc::wrong_format);
  EXPECT_EQ(memory(file(detail::kGroupPrefix)), before);
  std::filesystem::resize_file(file(detail::kGroupPrefix), kHuge);
  EXPECT_EQ(code(topic_.open_again().find_group("g")), Errc::wrong_format);
  EXPECT_EQ(memory(file(detail::kGroupPrefix)), before);
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
