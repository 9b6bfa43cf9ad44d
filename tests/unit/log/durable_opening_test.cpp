// Opening durable topics whose directory is not as it should be, or that cannot be opened just now. If these failed, a
// topic would lose offsets each time a process cannot open it, or be "in use" although it is not.
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <map>

#include "durable_testing.hpp"
#include "leat/store/store.hpp"
#include "support/bad_sector_disk.hpp"

namespace leat::testing {
namespace {

class DurableOpening : public DurableSync {
 protected:
  std::string files() const { return temp_.path() + "/data/d"; }
  void publish(const std::vector<std::string>& texts) const {
    const Topic topic = create(Durability::fsync);
    Publisher publisher = publisher_of(topic);
    for (const std::string& text : texts) ASSERT_TRUE(publisher.publish(text));
  }
  detail::Fd directory() const {
    auto opened = detail::open_directory_path(files(), false, false);
    EXPECT_TRUE(opened);
    return std::move(*opened);
  }
};

// Without room for the memory of the topic.
TEST_F(DurableOpening, AnOpenThatFailsLeavesTheTopicClosed) {
  publish({"a", "b", "c"});
  Child child{[this]() -> int {
    const ::rlimit limit{40'000, 40'000};
    CHILD_CHECK(::setrlimit(RLIMIT_FSIZE, &limit) == 0);
    for (int i = 0; i < 3; ++i) CHILD_CHECK(open().error() == Errc::no_space);
    return 0;
  }};
  child.wait();
  ASSERT_TRUE(child.succeeded()) << child.describe();
  auto topic = open();
  ASSERT_TRUE(topic) << describe(topic.error());
  const auto offset = publisher_of(*topic).publish("d");
  ASSERT_TRUE(offset);
  EXPECT_EQ(*offset, 3U);
  EXPECT_EQ(read(*topic, 4), (std::vector<std::string>{"a", "b", "c", "d"}));
}

TEST_F(DurableOpening, ALinkOrAFileWithTheNameIsNoTopic) {
  publish({"a"});
  std::filesystem::rename(files(), temp_.path() + "/elsewhere");
  std::filesystem::create_directory_symlink(temp_.path() + "/elsewhere", files());
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(open().error(), Errc::wrong_format);
  std::filesystem::remove(files());
  std::ofstream{files()} << "text";
  EXPECT_EQ(open().error(), Errc::wrong_format);
  EXPECT_EQ(Topic::delete_topic("d", {.directory = temp_.path() + "/topics",
                                      .data_directory = temp_.path() + "/data"})
                .error(),
            Errc::wrong_format);
  // As for something that is not there, without waiting for anybody.
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
}

TEST_F(DurableOpening, AMissingLockIsFound) {
  publish({"a"});
  std::filesystem::remove(files() + "/lock");
  EXPECT_EQ(open().error(), Errc::wrong_format);
  auto report = detail::check_store(detail::Disk::system(), directory().get());
  ASSERT_TRUE(report);
  ASSERT_TRUE(report->is_damaged());
  EXPECT_EQ(report->findings.front().file, "lock");
}

TEST_F(DurableOpening, ALockThatIsNoFileIsFound) {
  publish({"a"});
  const std::string lock = files() + "/lock";
  const std::string moved = temp_.path() + "/moved";
  std::filesystem::rename(lock, moved);
  for (const auto& make : std::vector<std::function<bool()>>{
           [&] { return std::filesystem::create_directory(lock); },
           [&] { return ::mkfifo(lock.c_str(), 0600) == 0; },
           [&] { return ::symlink(moved.c_str(), lock.c_str()) == 0; }}) {
    ASSERT_TRUE(make());
    EXPECT_EQ(open().error(), Errc::wrong_format);
    auto report = detail::check_store(detail::Disk::system(), directory().get());
    ASSERT_TRUE(report && report->is_damaged());
    EXPECT_EQ(report->findings.front().file, "lock");
    std::filesystem::remove(lock);
  }
}

// Its checksums are right, but no topic, and no group, can have such offsets.
TEST_F(DurableOpening, ImpossibleOffsetsInACheckpointOrAGroupAreDamage) {
  {
    const Topic topic = create(Durability::os);
    ASSERT_TRUE(topic.group("g", {.from = From::beginning}));
    Publisher publisher = publisher_of(topic);
    for (const char* const text : {"a", "b"}) ASSERT_TRUE(publisher.publish(text));
  }
  const detail::Fd place = directory();
  detail::Disk& disk = detail::Disk::system();
  auto manifest = detail::load_manifest(disk, place.get());
  ASSERT_TRUE(manifest);
  for (int copy = 0; copy < 2; ++copy) {
    auto file = detail::CheckpointFile::load(disk, place.get(), *manifest);
    ASSERT_TRUE(file);
    detail::Checkpoint forged = file->value();
    forged.partitions[0].durable_offset = forged.partitions[0].reserved_offset = 1ULL << 63;
    ASSERT_TRUE(file->store(disk, place.get(), std::move(forged)));
  }
  auto topic = open();
  ASSERT_TRUE(topic) << describe(topic.error());
  EXPECT_LT(topic->end_offset(0), 1U << 30);
  auto group = topic->group("g");
  ASSERT_TRUE(group) << describe(group.error());
  auto member = group->join();
  ASSERT_TRUE(member) << describe(member.error());
  std::uint64_t events = 0;
  member->on_event([&](const Event&) { ++events; });
  for (const char* const text : {"a", "b"}) {
    auto delivery = member->receive(kPatience);
    ASSERT_TRUE(delivery) << describe(delivery.error());
    EXPECT_EQ(delivery->record.text(), text);
    EXPECT_TRUE(member->acknowledge(*delivery));
  }
  EXPECT_EQ(member->receive(20ms).error(), Errc::timeout);
  EXPECT_LE(events, 1U);

  auto groups = detail::load_groups(disk, place.get(), manifest->topic);
  ASSERT_TRUE(groups && groups->size() == 1 && groups->front().saved);
  detail::SavedGroup saved = *groups->front().saved;
  EXPECT_TRUE(saved.is_valid());
  saved.offsets[0] = 1ULL << 63;
  EXPECT_FALSE(saved.is_valid());
}

// ---- Blocks that cannot be read -----------------------------------------------------------------

class DurableUnreadable : public ::testing::Test {
 protected:
  DurableUnreadable() {
    std::filesystem::create_directories(temp_.path() + "/topics");
    std::filesystem::create_directories(temp_.path() + "/data");
    detail::Disk::replace_system(&disk_);
  }
  ~DurableUnreadable() override { detail::Disk::replace_system(nullptr); }
  static std::string text(std::uint64_t offset) {
    std::string made = std::to_string(offset) + ' ';
    made.resize(1000, 'x');
    return made;
  }
  Topic create_full() const {
    auto topic = Topic::create("d", {.capacity_bytes = 64 << 10,
                                     .segment_bytes = 8 << 10,
                                     .directory = temp_.path() + "/topics",
                                     .durable = Durability::os,
                                     .file_bytes = 256 << 10,
                                     .data_directory = temp_.path() + "/data"});
    EXPECT_TRUE(topic) << describe(topic.error());
    auto publisher = topic->publisher();
    EXPECT_TRUE(publisher);
    for (std::uint64_t i = 0; i < kRecords; ++i)
      EXPECT_TRUE(publisher->publish(text(i), kPatience));
    EXPECT_TRUE(publisher->flush(kPatience));
    return std::move(*topic);
  }
  Result<Topic> open() const {
    return Topic::open("d", Deadline::immediate(), temp_.path() + "/topics", {},
                       temp_.path() + "/data");
  }
  // A block in the middle of the file with this index; from the end: negative.
  void spoil(int index) {
    auto directory = detail::open_directory_path(temp_.path() + "/data/d", false, false);
    ASSERT_TRUE(directory);
    auto lists = detail::list_segments(directory->get(), 1);
    ASSERT_TRUE(lists);
    const auto& live = lists->front().live;
    const auto& name = index < 0 ? live[live.size() - 1] : live[static_cast<std::size_t>(index)];
    disk_.spoil(directory->get(), name.text(), 5 * 4096, 6 * 4096);
  }
  struct Seen {
    std::uint64_t records = 0;
    std::map<GapReason, std::uint64_t> gaps;
  };
  static Seen read_all(const Topic& topic) {
    Seen seen;
    auto subscriber = topic.subscriber({.from = From::beginning});
    EXPECT_TRUE(subscriber);
    subscriber->on_event([&](const Event& event) { seen.gaps[event.reason] += event.count; });
    while (subscriber->offset() < topic.end_offset(0)) {
      auto polled = subscriber->poll(100, [&](const Record& record) {
        EXPECT_EQ(record.text(), text(record.offset));
        ++seen.records;
      });
      EXPECT_TRUE(polled) << describe(polled.error());
      if (!polled) break;
    }
    return seen;
  }

  static constexpr std::uint64_t kRecords = 1100;
  BadSectorDisk disk_;
  TemporaryDirectory temp_;
};

TEST_F(DurableUnreadable, SubscribersAndMembersPassABlock) {
  const Topic topic = create_full();
  spoil(1);
  const Seen seen = read_all(topic);
  ASSERT_EQ(seen.gaps.size(), 1U);
  const std::uint64_t damaged = seen.gaps.at(GapReason::damaged);
  EXPECT_GT(damaged, 0U);
  EXPECT_EQ(seen.records + damaged, kRecords);
  auto group = topic.group("g", {.from = From::beginning});
  ASSERT_TRUE(group);
  auto member = group->join();
  ASSERT_TRUE(member);
  std::uint64_t told = 0;
  member->on_event([&](const Event& event) { told += event.count; });
  for (std::uint64_t i = 0; i < seen.records; ++i) {
    auto delivery = member->receive(kPatience);
    ASSERT_TRUE(delivery) << describe(delivery.error());
    EXPECT_TRUE(member->acknowledge(*delivery));
  }
  EXPECT_EQ(told, damaged);
}

// The machine fails, and the last file has a block that it does not return.
TEST_F(DurableUnreadable, ATopicCanBeOpenedAndWritten) {
  Child child{[this]() -> int {
    const Topic topic = create_full();
    ::_exit(0);  // Without closing it.
  }};
  child.wait();
  std::filesystem::remove_all(temp_.path() + "/topics/d");
  spoil(-1);
  for (int i = 0; i < 2; ++i) {
    auto topic = open();
    ASSERT_TRUE(topic) << describe(topic.error());
    const Seen seen = read_all(*topic);
    EXPECT_GT(seen.gaps.at(GapReason::damaged), 0U);
    EXPECT_EQ(seen.records + seen.gaps.at(GapReason::damaged), kRecords);
  }
  disk_.mend();
  auto topic = open();
  ASSERT_TRUE(topic) << describe(topic.error());
  auto publisher = topic->publisher();
  ASSERT_TRUE(publisher);
  const auto offset = publisher->publish("new", kPatience);
  ASSERT_TRUE(offset);
  EXPECT_GT(*offset, kRecords);
  EXPECT_TRUE(publisher->flush(kPatience));
}

}  // namespace
}  // namespace leat::testing
