// A durable topic whose files are damaged, deleted or replaced while it is open. If these failed, a subscriber
// would wait for ever beside records that it could have, take what was lost for something else, or read another
// topic's records.
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>

#include "durable_testing.hpp"
#include "leat/log/disk_reader.hpp"
#include "testing.hpp"

namespace leat::testing {
namespace {

class DurableDamage : public DurableSync {
 protected:
  // Records of 1,000 bytes, most of them on disk only.
  static constexpr std::uint64_t kOneFile = 700;
  static constexpr std::uint64_t kTwoFiles = 1500;
  Topic create_full(Durability durable = Durability::os, std::uint64_t records = kOneFile) const {
    TopicOptions wanted = options(durable);
    wanted.file_bytes = 1 << 20;
    Topic topic = create(wanted);
    Publisher publisher = publisher_of(topic, {.acknowledge = Stage::committed});
    for (std::uint64_t i = 0; i < records; ++i) EXPECT_TRUE(publisher.publish(text(i)));
    EXPECT_TRUE(publisher.flush(kPatience));
    return topic;
  }
  static std::string text(std::uint64_t offset) {
    std::string made = std::to_string(offset) + ' ';
    made.resize(1000, 'x');
    return made;
  }
  std::string last_file() const {
    std::string last;
    for (const auto& one : std::filesystem::directory_iterator{temp_.path() + "/data/d"}) {
      const std::string path = one.path().string();
      if (path.find("/segment-") != std::string::npos) last = std::max(last, path);
    }
    return last;
  }
  static void overwrite(const std::string& path, std::uint64_t from, char with) {
    std::fstream file{path, std::ios::in | std::ios::out | std::ios::binary};
    file.seekp(static_cast<std::streamoff>(from));
    const std::string bytes(std::filesystem::file_size(path) - from, with);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  // All ways of damaging the last file that a test tries.
  static std::vector<std::function<void(const std::string&)>> damages() {
    return {[](const std::string& path) { std::filesystem::remove(path); },
            [](const std::string& path) { std::filesystem::resize_file(path, 200'000); },
            [](const std::string& path) { std::filesystem::resize_file(path, 0); },
            [](const std::string& path) { overwrite(path, 300'000, '\0'); },
            [](const std::string& path) { overwrite(path, 100, '\x5a'); }};
  }

  // What a reader got. Records and gaps follow each other without an offset between them.
  struct Seen {
    std::uint64_t next = 0;
    std::uint64_t records = 0;
    std::map<GapReason, std::uint64_t> gaps;
  };
  static void see(Seen& seen, const Record& record) {
    EXPECT_EQ(record.offset, seen.next);
    EXPECT_EQ(record.text(), text(record.offset));
    seen.next = record.offset + 1;
    ++seen.records;
  }
  static void see(Seen& seen, const Event& gap) {
    EXPECT_EQ(gap.first, seen.next);
    seen.next = gap.first + gap.count;
    seen.gaps[gap.reason] += gap.count;
  }
  static Subscriber subscriber_of(const Topic& topic, Seen& seen) {
    auto made = topic.subscriber({.from = From::beginning, .read = Stage::durable});
    EXPECT_TRUE(made) << describe(made.error());
    made->on_event([&seen](const Event& gap) { see(seen, gap); });
    return std::move(*made);
  }
  // Up to `end`; there it waits for more.
  static Seen read_all(const Topic& topic, std::uint64_t end) {
    Seen seen;
    Subscriber subscriber = subscriber_of(topic, seen);
    while (seen.next < end) {
      auto polled = subscriber.poll(100, [&](const Record& record) { see(seen, record); });
      EXPECT_TRUE(polled) << describe(polled.error());
      if (!polled || (seen.next < end && !subscriber.wait(kPatience))) break;
    }
    EXPECT_EQ(subscriber.receive(10ms).error(), Errc::timeout);
    return seen;
  }
  // A member may tell of a gap before it hands out records that it claimed earlier.
  static Seen receive_all(const Topic& topic, std::uint64_t end) {
    Seen seen;
    auto group = topic.group("g", {.from = From::beginning});
    EXPECT_TRUE(group) << describe(group.error());
    auto member = group->join();
    EXPECT_TRUE(member) << describe(member.error());
    member->on_event([&seen](const Event& gap) {
      seen.next += gap.count;
      seen.gaps[gap.reason] += gap.count;
    });
    while (seen.next < end) {
      auto delivery = member->receive(1s);
      if (!delivery && delivery.error() == Errc::timeout) continue;  // A gap may be all that comes.
      EXPECT_TRUE(delivery) << describe(delivery.error());
      if (!delivery) break;
      EXPECT_EQ(delivery->record.text(), text(delivery->record.offset));
      ++seen.next;
      ++seen.records;
      EXPECT_TRUE(member->acknowledge(*delivery));
    }
    EXPECT_EQ(member->receive(10ms).error(), Errc::timeout);
    return seen;
  }
};

TEST_F(DurableDamage, ReadersPassWhatTheLastFileHasLost) {
  for (const Durability durable : {Durability::os, Durability::fsync}) {
    for (const std::uint64_t records : {kOneFile, kTwoFiles}) {
      for (const auto& damage : damages()) {
        const Topic topic = create_full(durable, records);
        const std::string file = last_file();
        damage(file);
        for (const Seen& seen : {read_all(topic, records), receive_all(topic, records)}) {
          EXPECT_EQ(seen.next, records);
          EXPECT_GT(seen.gaps.at(GapReason::damaged), 0U);
          EXPECT_EQ(seen.gaps.size(), 1U);
          // What memory has behind the damage is not lost.
          EXPECT_GT(seen.records, 30U);
        }
        Publisher publisher = publisher_of(topic);
        const bool has_written = publisher.publish(text(records)) && publisher.flush(kPatience);
        // What is written to a file without a name is not on disk: the archiver reports that.
        ASSERT_EQ(has_written, std::filesystem::exists(file));
        if (!has_written) {
          delete_topic();
          continue;
        }
        EXPECT_EQ(read_all(topic, records + 1).next, records + 1);
        delete_topic();
      }
    }
  }
}

// What the last file has lost is damaged, not lost, before anything is written behind it and afterwards.
TEST_F(DurableDamage, DurableRecordsAreDamagedAndNotLostAfterOpening) {
  for (const std::uint64_t records : {kOneFile, kTwoFiles}) {
    for (const auto& damage : damages()) {
      {
        create_full(Durability::fsync, records);
      }
      damage(last_file());
      const bool has_files = !last_file().empty();
      auto topic = open();
      ASSERT_TRUE(topic) << describe(topic.error());
      const Seen seen = read_all(*topic, topic->info().partitions[0].end);
      EXPECT_EQ(seen.records + seen.gaps.at(GapReason::damaged), records);
      auto published = publisher_of(*topic).publish(text(seen.next));
      ASSERT_TRUE(published);
      EXPECT_EQ(*published, seen.next);
      if (has_files) {  // Else the topic begins with this record.
        const Seen later = read_all(*topic, *published + 1);
        EXPECT_EQ(later.gaps, seen.gaps);
        EXPECT_EQ(later.records, seen.records + 1);
      }
      topic = Errc::not_found;
      delete_topic();
    }
  }
}

// The damage begins before what is durable, and ends behind it.
TEST_F(DurableDamage, AGapThatReachesBeyondWhatIsDurableIsToldInTwoPieces) {
  const Topic topic = create_full(Durability::fsync);
  Publisher publisher = publisher_of(topic, {.acknowledge = Stage::committed});
  disk_.hold_syncs(true);
  constexpr std::uint64_t kMore = 500;
  for (std::uint64_t i = kOneFile; i < kOneFile + kMore; ++i) {
    auto published = publisher.publish(text(i), 10ms);
    if (!published) break;  // The window is full.
  }
  ASSERT_TRUE(wait_until([&] { return topic.info().partitions[0].written > kOneFile; }));
  const std::string path = last_file();
  overwrite(path, 300'000, '\0');
  Seen seen;
  Subscriber subscriber = subscriber_of(topic, seen);
  while (auto record = subscriber.receive(50ms)) see(seen, *record);
  EXPECT_EQ(seen.next, durable_of(topic));
  disk_.hold_syncs(false);
  ASSERT_TRUE(publisher.flush(kPatience));
  const std::uint64_t end = topic.info().partitions[0].end;
  while (seen.next < end) {
    auto record = subscriber.receive(kPatience);
    ASSERT_TRUE(record) << describe(record.error());
    see(seen, *record);
  }
  EXPECT_EQ(seen.gaps.size(), 1U);
}

// Calls a function once, when a file is opened.
class MomentDisk : public detail::Disk {
 public:
  MomentDisk(std::string name, std::function<void()> then)
      : name_{std::move(name)}, then_{std::move(then)} {
    Disk::replace_system(this);
  }
  ~MomentDisk() override { Disk::replace_system(nullptr); }
  MomentDisk(const MomentDisk&) = delete;
  MomentDisk& operator=(const MomentDisk&) = delete;
  Result<detail::Fd> open(int directory, const char* name, int flags,
                          ::mode_t mode) noexcept override {
    if (name == name_ && then_) std::exchange(then_, nullptr)();
    return Disk::open(directory, name, flags, mode);
  }
  bool was_there() const noexcept { return then_ == nullptr; }

 private:
  std::string name_;
  std::function<void()> then_;
};

// An archiver takes over, sets `written` back, and makes its first file. A reader that read `written` just
// before, and sees the file, must not take what will be written again for lost.
TEST(DurableReader, WhatASuccessorWritesAgainIsNotMissing) {
  TemporaryDirectory temp;
  auto topic = Topic::create("d", {.directory = temp.path() + "/topics",
                                   .durable = Durability::os,
                                   .data_directory = temp.path() + "/data"});
  ASSERT_TRUE(topic) << describe(topic.error());
  auto publisher = topic->publisher();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(publisher->publish("x"));
  ASSERT_TRUE(publisher->flush(kPatience));
  const detail::DurableWindow& window = *TopicTesting::shared(*topic).durable();
  auto reader = detail::DiskReader::open(window, 0);
  ASSERT_TRUE(reader && (*reader)->seek(2));

  const std::uint64_t epoch = (window.epoch() >> 1) + 1;
  detail::OwnedWord& written = window.partition(0).written;
  ASSERT_TRUE(detail::take_owned(written, epoch));
  detail::exchange<detail::Edge::archiver>(window.header().epoch, epoch << 1);
  const std::string name = detail::SegmentName{0, 2, epoch}.text();
  std::ofstream{temp.path() + "/data/d/" + name};
  const MomentDisk disk{name, [&] { EXPECT_TRUE(detail::set_owned(written, epoch, 2)); }};
  detail::StoredEntry entry;
  auto more = (*reader)->next(entry, 3);
  ASSERT_TRUE(more) << describe(more.error());
  EXPECT_FALSE((*reader)->misses_records());
  // Unless the topic's own archiver has taken over and written it again by now.
  EXPECT_TRUE(!*more || (entry.is_record && entry.record.offset == 2));
  EXPECT_TRUE(disk.was_there());
}

// One partition has nothing to tell but that the topic is deleted, while another one still delivers.
TEST_F(DurableDamage, DeletedStaysTrueForEveryPartition) {
  TopicOptions wanted = options(Durability::os);
  wanted.partitions = 2;
  const Topic topic = create(wanted);
  for (std::uint32_t partition : {0U, 1U}) {
    Publisher publisher = publisher_of(topic, {.partition = partition});
    for (std::uint64_t i = 0; i < 2 * kOneFile; ++i) ASSERT_TRUE(publisher.publish(text(i)));
    ASSERT_TRUE(publisher.flush(kPatience));
  }
  bool has_gap = false;
  Error error;
  {
    auto subscriber = topic.subscriber({.from = From::beginning});
    ASSERT_TRUE(subscriber) << describe(subscriber.error());
    subscriber->on_event([&](const Event&) { has_gap = true; });
    std::uint64_t next[2] = {};
    const auto read = [&] {
      auto polled = subscriber->poll(
          20, [&](const Record& record) { EXPECT_EQ(record.offset, next[record.partition]++); });
      error = polled.error();
      return polled.has_value();
    };
    ASSERT_TRUE(read());
    delete_topic();
    for (int polls = 0; polls < 1000 && (read() || polls < 20); ++polls) {
    }
  }
  EXPECT_EQ(error, Errc::deleted);
  EXPECT_FALSE(has_gap);
}

// A reader that is behind when the topic is deleted has its files open, or not; and the name may have a new topic.
TEST_F(DurableDamage, ReadersOfADeletedTopicGetNoGapAndNoOtherTopicsRecords) {
  for (const bool is_made_anew : {false, true}) {
    const Topic topic = create_full();
    Seen seen;
    Seen of_member;
    Subscriber begun = subscriber_of(topic, seen);
    auto record = begun.receive(kPatience);
    ASSERT_TRUE(record);
    see(seen, *record);
    auto group = topic.group("g", {.from = From::beginning});
    auto member = group->join();
    auto other = topic.group("h", {.from = From::beginning})->join();
    ASSERT_TRUE(member && other);
    member->on_event([&](const Event& gap) { see(of_member, gap); });
    auto delivery = member->receive(kPatience);
    ASSERT_TRUE(delivery);
    see(of_member, delivery->record);
    delete_topic();
    std::optional<Topic> anew;
    if (is_made_anew) anew.emplace(create_full(Durability::fsync));
    for (;;) {
      record = begun.receive(kPatience);
      if (!record) break;
      see(seen, *record);
    }
    EXPECT_EQ(record.error(), Errc::deleted);
    for (;;) {
      delivery = member->receive(kPatience);
      if (!delivery) break;
      see(of_member, delivery->record);
    }
    EXPECT_EQ(delivery.error(), Errc::deleted);
    EXPECT_EQ(other->receive(kPatience).error(), Errc::deleted);
    EXPECT_EQ(topic.subscriber({.from = From::beginning}).error(), Errc::deleted);
    EXPECT_TRUE(seen.gaps.empty());
    EXPECT_TRUE(of_member.gaps.empty());
    if (is_made_anew) {
      EXPECT_EQ(topic.group("late", {.from = From::beginning}).error(), Errc::deleted);
      EXPECT_EQ(read_all(*anew, kOneFile).records, kOneFile);
      EXPECT_TRUE(anew->group_names()->empty());
      anew.reset();
      delete_topic();
    }
  }
}

TEST_F(DurableDamage, OpeningSaysAtOnceThatTheDataDirectoryIsGone) {
  const Topic topic = create_full();
  const std::string path = temp_.path() + "/data/d";
  std::filesystem::rename(path, path + "-away");
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(open().error(), Errc::wrong_format);
  EXPECT_LT(std::chrono::steady_clock::now() - before, 4s);  // busy: after 5 s
  std::filesystem::rename(path + "-away", path);
  EXPECT_TRUE(open());
}

}  // namespace
}  // namespace leat::testing
