// Durable topics whose next records are only on disk, and a disk that fails or takes its time. If these failed, all
// topics of a broker would wait for the disk of one, or records would be lost or change their order on the way.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "broker/delivery/broadcaster.hpp"
#include "broker/fake_consumer.hpp"
#include "support/process.hpp"
#include "support/switch_disk.hpp"

namespace leat::broker {
namespace {

using namespace std::chrono_literals;

constexpr int kMany = 400;  // More than the window has.

class SlowDisk : public ::testing::Test {
 protected:
  SlowDisk() {
    std::filesystem::create_directories(temp_.path() + "/data");
    auto topic = Topic::create("work", {.capacity_bytes = 64 << 10,
                                        .segment_bytes = 8 << 10,
                                        .directory = temp_.path(),
                                        .durable = Durability::os,
                                        .file_bytes = 64 << 10,
                                        .data_directory = temp_.path() + "/data"});
    EXPECT_TRUE(topic) << describe(topic.error());
    topic_ = std::move(*topic);
    auto publisher = topic_->publisher();
    EXPECT_TRUE(publisher);
    publisher_.emplace(std::move(*publisher));
  }
  ~SlowDisk() override { disk_.hold_reads(false); }

  static std::string text(int number) {
    std::string made = std::to_string(number) + ' ';
    made.resize(500, 'x');
    return made;
  }
  void publish(int count) {
    for (int i = 0; i < count; ++i)
      ASSERT_TRUE(publisher_->publish(text(published_++), std::chrono::seconds{20}));
    for (const Deadline deadline{20s};
         topic_->info().partitions[0].written != topic_->end_offset(0);)
      ASSERT_FALSE(deadline.passed());
  }
  // What is there to do now; the disk's thread may have more later.
  void turn() {
    loop_.restart();
    while (loop_.poll() != 0) {
    }
  }
  template <class Condition>
  void wait_until(const Condition& condition) {
    for (const Deadline deadline{20s}; !condition();) {
      if (deadline.passed()) FAIL() << "it did not happen";
      loop_.restart();
      loop_.run_one_for(10ms);
    }
  }
  // Until the disk's thread waits for what this has begun.
  template <class Begin>
  void hold_read_of(const Begin& begin) {
    disk_.hold_reads(true);
    begin();
    wait_until([&] { return disk_.is_holding(); });
  }
  auto on_failure() {
    return [this](Error error) {
      ++failures_;
      failure_ = error.code;
    };
  }
  // The numbers of records, one in each line.
  static std::vector<int> numbers(const std::string& lines) {
    std::vector<int> found;
    for (std::size_t at = 0; at < lines.size(); at = lines.find('\n', at) + 1)
      found.push_back(std::stoi(lines.substr(at, 12)));
    return found;
  }
  static std::vector<int> all(int end, int begin = 0) {
    std::vector<int> made;
    for (int i = begin; i < end; ++i) made.push_back(i);
    return made;
  }

  testing::TemporaryDirectory temp_;
  testing::SwitchDisk disk_;
  boost::asio::io_context loop_;
  BlockingWorker worker_{loop_};
  std::optional<Topic> topic_;
  std::optional<Publisher> publisher_;
  int published_ = 0;
  int failures_ = 0;
  Errc failure_ = Errc::ok;
};

class DispatcherOnDisk : public SlowDisk {
 protected:
  void open(const GroupOptions& options = {.from = From::beginning, .in_flight = 1024}) {
    auto group = topic_->group("work", options);
    ASSERT_TRUE(group) << describe(group.error());
    group_ = std::move(*group);
    auto reader = GroupReader::open(*group_);
    ASSERT_TRUE(reader) << reader.problem().sentence;
    dispatcher_ = std::make_unique<GroupDispatcher>(loop_, worker_, *topic_, std::move(*reader),
                                                    unsent_, on_failure(), [] {});
  }
  // Until a member of its own has had so many.
  std::set<int> drain(std::size_t count) {
    std::set<int> found;
    auto member = group_->join();
    EXPECT_TRUE(member);
    for (const Deadline deadline{20s}; found.size() < count && !deadline.passed();) {
      auto one = member->receive(10ms);
      turn();
      if (!one) continue;
      found.insert(std::stoi(std::string{one->record.text()}));
      EXPECT_TRUE(member->acknowledge(*one));
    }
    return found;
  }

  LargeMessages unsent_{loop_, 1 << 20};
  std::optional<Group> group_;
  std::unique_ptr<GroupDispatcher> dispatcher_;
};

TEST_F(DispatcherOnDisk, TheLoopReadsNothing) {
  open();
  publish(kMany);
  const std::uint64_t reads = disk_.own_reads();
  FakeConsumer consumer{*dispatcher_, true};
  disk_.hold_reads(true);
  dispatcher_->add(consumer);
  turn();
  EXPECT_TRUE(dispatcher_->is_reading());
  EXPECT_EQ(consumer.received, "");
  dispatcher_->poll();
  disk_.hold_reads(false);
  wait_until([&] { return consumer.appended_records == kMany; });
  EXPECT_EQ(numbers(consumer.received), all(kMany));
  EXPECT_EQ(disk_.own_reads(), reads);
}

TEST_F(DispatcherOnDisk, TheOrderStaysWhereverTheRecordsAre) {
  std::mt19937 random{20261130};
  open();
  FakeConsumer consumer{*dispatcher_, true};
  dispatcher_->add(consumer);
  for (int round = 0; round < 60; ++round) {
    publish(static_cast<int>(random() % 150));
    const std::uint64_t reads = disk_.own_reads();
    dispatcher_->poll();
    if (round % 3 == 0) turn();
    EXPECT_EQ(disk_.own_reads(), reads);
  }
  wait_until([&] { return consumer.appended_records == published_; });
  EXPECT_EQ(numbers(consumer.received), all(published_));
  wait_until([&] { return group_->info().in_flight == 0; });
}

TEST_F(DispatcherOnDisk, WhatIsAcknowledgedAndRequeuedMeanwhileWaits) {
  open();
  FakeConsumer acknowledges{*dispatcher_, true, true};
  FakeConsumer leaves{*dispatcher_};
  dispatcher_->add(acknowledges);
  dispatcher_->add(leaves);
  publish(20);
  dispatcher_->poll();
  const int held = acknowledges.appended_records;
  ASSERT_GT(held, 0);
  ASSERT_GT(leaves.appended_records, 0);
  publish(kMany);
  hold_read_of([&] { dispatcher_->poll(); });
  EXPECT_TRUE(dispatcher_->on_done(acknowledges, static_cast<std::uint64_t>(held)));
  dispatcher_->remove(leaves);
  EXPECT_TRUE(dispatcher_->is_reading());
  EXPECT_EQ(acknowledges.in_flight(), 0U);
  disk_.hold_reads(false);

  wait_until([&] {
    if (acknowledges.in_flight() != 0) dispatcher_->on_done(acknowledges, acknowledges.in_flight());
    return acknowledges.appended_records == kMany + 20;
  });
  if (acknowledges.in_flight() != 0) dispatcher_->on_done(acknowledges, acknowledges.in_flight());
  wait_until([&] { return !dispatcher_->is_reading(); });
  auto got = numbers(acknowledges.received);
  std::sort(got.begin(), got.end());
  EXPECT_EQ(got, all(kMany + 20));
  EXPECT_EQ(group_->info().in_flight, 0U);
}

TEST_F(DispatcherOnDisk, WithoutConsumersOthersGetWhatWasRead) {
  open();
  publish(kMany);
  FakeConsumer consumer{*dispatcher_};
  hold_read_of([&] { dispatcher_->add(consumer); });
  dispatcher_->remove(consumer);
  disk_.hold_reads(false);
  const auto found = drain(kMany);
  EXPECT_EQ(found.size(), static_cast<std::size_t>(kMany));
  wait_until([&] { return !dispatcher_->is_reading(); });
}

TEST_F(DispatcherOnDisk, ItsEndWaitsForNoRead) {
  open();
  publish(kMany);
  FakeConsumer consumer{*dispatcher_};
  hold_read_of([&] { dispatcher_->add(consumer); });
  dispatcher_.reset();
  EXPECT_TRUE(disk_.is_holding());
  turn();
  disk_.hold_reads(false);
  const auto found = drain(kMany);
  EXPECT_EQ(found.size(), static_cast<std::size_t>(kMany));
  wait_until([&] { return group_->info().members.empty(); });
}

TEST_F(DispatcherOnDisk, ADiskThatFailsEndsIt) {
  open();
  publish(kMany);
  FakeConsumer consumer{*dispatcher_};
  disk_.fail_opens(EACCES);
  dispatcher_->add(consumer);
  wait_until([&] { return failures_ != 0; });
  EXPECT_EQ(failure_, Errc::permission);
  EXPECT_EQ(consumer.appended_records, 0);
  dispatcher_->remove(consumer);
  turn();
  EXPECT_EQ(failures_, 1);
  disk_.mend();
}

TEST_F(DispatcherOnDisk, AGroupThatIsDeletedMeanwhileEndsIt) {
  open();
  publish(kMany);
  FakeConsumer consumer{*dispatcher_};
  hold_read_of([&] { dispatcher_->add(consumer); });
  ASSERT_TRUE(topic_->delete_group("work", true));
  disk_.hold_reads(false);
  wait_until([&] { return failures_ != 0; });
  EXPECT_EQ(failure_, Errc::closed);
  dispatcher_->remove(consumer);
}

TEST_F(DispatcherOnDisk, ALeaseMayRunOutMeanwhile) {
  open({.from = From::beginning, .in_flight = 1024, .lease = 30ms});
  FakeConsumer consumer{*dispatcher_, true, true};
  dispatcher_->add(consumer);
  publish(20);
  dispatcher_->poll();
  const auto held = static_cast<std::uint64_t>(consumer.appended_records);
  ASSERT_GT(held, 0U);
  publish(kMany);
  hold_read_of([&] { dispatcher_->poll(); });
  std::this_thread::sleep_for(60ms);
  EXPECT_TRUE(dispatcher_->on_done(consumer, held));
  disk_.hold_reads(false);
  std::set<int> seen;
  wait_until([&] {
    if (consumer.in_flight() != 0) dispatcher_->on_done(consumer, consumer.in_flight());
    dispatcher_->poll();
    const auto got = numbers(consumer.received);
    seen = {got.begin(), got.end()};
    return seen.size() == kMany + 20U;
  });
  EXPECT_EQ(failures_, 0);
}

class FakeSink final : public SubscriberSink {
 public:
  void take(const std::shared_ptr<const Chunk>& chunk) override { received += chunk->bytes; }
  void lose(std::uint64_t records) override { lost += records; }
  bool holds_up() const override { return false; }

  std::string received;
  std::uint64_t lost = 0;
};

class BroadcasterOnDisk : public SlowDisk {
 protected:
  void open() {
    auto reader = SubscriberReader::open(*topic_, [](std::string& out, const Record& record) {
      out += std::string{record.text()} + '\n';
    });
    ASSERT_TRUE(reader) << reader.problem().sentence;
    broadcaster_ = std::make_unique<Broadcaster>(loop_, worker_, *topic_, backlog_,
                                                 std::move(*reader), on_failure());
  }

  Backlog backlog_;
  std::unique_ptr<Broadcaster> broadcaster_;
};

TEST_F(BroadcasterOnDisk, TheLoopReadsNothing) {
  open();
  FakeSink sink;
  broadcaster_->add(sink);
  publish(kMany);
  const std::uint64_t reads = disk_.own_reads();
  disk_.hold_reads(true);
  broadcaster_->poll();
  turn();
  EXPECT_TRUE(broadcaster_->is_reading());
  EXPECT_EQ(sink.received, "");
  disk_.hold_reads(false);
  wait_until([&] { return numbers(sink.received).size() == kMany; });
  EXPECT_EQ(numbers(sink.received), all(kMany));
  EXPECT_EQ(disk_.own_reads(), reads);
}

TEST_F(BroadcasterOnDisk, EachSinkGetsWhatCameAfterIt) {
  std::mt19937 random{20261130};
  open();
  std::vector<std::unique_ptr<FakeSink>> sinks;
  std::vector<int> begins;
  const auto add = [&] {
    sinks.push_back(std::make_unique<FakeSink>());
    begins.push_back(published_);
    broadcaster_->add(*sinks.back());
  };
  add();
  for (int round = 0; round < 60; ++round) {
    publish(static_cast<int>(random() % 150));
    if (random() % 2 == 0) broadcaster_->poll();
    if (random() % 4 == 0) add();
    if (random() % 3 == 0) turn();
  }
  broadcaster_->poll();
  for (std::size_t i = 0; i < sinks.size(); ++i) {
    wait_until([&] {
      return numbers(sinks[i]->received).size() == static_cast<std::size_t>(published_ - begins[i]);
    });
    EXPECT_EQ(numbers(sinks[i]->received), all(published_, begins[i]));
  }
  EXPECT_GT(sinks.size(), 5U);
}

TEST_F(BroadcasterOnDisk, OneThatComesWhileItReadsGetsNothingOfThat) {
  constexpr int kMore = 20;
  open();
  FakeSink sink;
  broadcaster_->add(sink);
  publish(kMany);
  hold_read_of([&] { broadcaster_->poll(); });
  FakeSink late;
  broadcaster_->add(late);
  FakeSink gone;
  broadcaster_->add(gone);
  for (int i = 0; i < kMore; ++i) ASSERT_TRUE(publisher_->publish(text(published_++)));
  broadcaster_->remove(gone);
  disk_.hold_reads(false);
  wait_until([&] { return numbers(sink.received).size() == kMany + kMore; });
  wait_until([&] { return numbers(late.received).size() == kMore; });
  EXPECT_EQ(numbers(sink.received), all(kMany + kMore));
  EXPECT_EQ(numbers(late.received), all(kMany + kMore, kMany));
  EXPECT_EQ(gone.received, "");
}

TEST_F(BroadcasterOnDisk, ItsEndWaitsForNoRead) {
  open();
  FakeSink sink;
  broadcaster_->add(sink);
  publish(kMany);
  hold_read_of([&] { broadcaster_->poll(); });
  broadcaster_.reset();
  EXPECT_TRUE(disk_.is_holding());
  disk_.hold_reads(false);
  turn();
  EXPECT_EQ(sink.received, "");
}

TEST_F(BroadcasterOnDisk, ADiskThatFailsEndsIt) {
  open();
  FakeSink sink;
  broadcaster_->add(sink);
  publish(kMany);
  disk_.fail_opens(EACCES);
  broadcaster_->poll();
  wait_until([&] { return failures_ != 0; });
  EXPECT_EQ(failure_, Errc::permission);
  EXPECT_EQ(sink.received, "");
  disk_.mend();
}

}  // namespace
}  // namespace leat::broker
