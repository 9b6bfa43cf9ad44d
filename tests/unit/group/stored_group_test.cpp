// Groups of durable topics, where they differ from others: they hold up nobody, and their position outlives
// the topic's memory. If these failed, a restart would lose what nobody had acknowledged, or do work twice.
#include <sys/resource.h>

#include <atomic>
#include <filesystem>
#include <set>
#include <thread>

#include "leat/log/durable_topic.hpp"
#include "leat/store/saved_groups.hpp"
#include "support/process.hpp"
#include "unit/group/group_testing.hpp"

namespace leat {
namespace {

class GroupOnDisk : public ::testing::Test {
 protected:
  GroupOnDisk() { ::unsetenv("LEAT_TEST_DURABLE"); }

  // A window of 64 KiB.
  TopicOptions options(Durability durable = Durability::os) const {
    return {.capacity_bytes = 64 << 10,
            .segment_bytes = 8 << 10,
            .directory = topics_.path(),
            .durable = durable,
            .sync_interval = durable == Durability::interval ? 5ms : 0ms,
            .file_bytes = 64 << 10,
            .data_directory = data_.path()};
  }
  Topic open(const TopicOptions& wanted) const {
    return must(Topic::open_or_create(kTopicName, wanted));
  }
  Topic open() const { return open(options()); }
  static Group group(const Topic& topic, const GroupOptions& options = {}) {
    return group_of(topic, options);
  }
  static void publish(const Topic& topic, std::uint64_t count, std::uint64_t first = 0) {
    auto publisher = must(topic.publisher());
    publish_numbers(publisher, count, first);
  }
  // What a restart of the machine does. Nobody has the topic open.
  void lose_window() const {
    for (const auto& one : std::filesystem::directory_iterator{topics_.path()})
      std::filesystem::remove_all(one.path());
  }
  // In another process, which is killed at its end.
  template <class Work>
  static void and_die(const Work& work) {
    testing::Child child{[&] {
      work();
      ::kill(::getpid(), SIGKILL);
      return 0;
    }};
    child.wait();
    EXPECT_TRUE(child.was_killed()) << child.describe();
  }
  std::size_t group_files() const {
    std::size_t count = 0;
    for (const auto& one : std::filesystem::directory_iterator{data_ / kTopicName})
      count += one.path().filename().string().starts_with("group-") ? 1U : 0U;
    return count;
  }
  // Until everything that happened so far is saved.
  static void wait_until_saved() { std::this_thread::sleep_for(2500ms); }

  TestDirectory topics_;
  TestDirectory data_;
};

TEST_F(GroupOnDisk, GoesOnWhereItWasWhenTheTopicIsOpenedAgain) {
  {
    const Topic topic = open();
    publish(topic, 10);
    Member member = join(group(topic));
    EXPECT_EQ(drain(member, 4), numbers(4));
    const Delivery held = take(member);
    EXPECT_EQ(held.record.offset, 4U);
    must(member.requeue(take(member), 1h));
  }
  const Topic topic = open();
  EXPECT_EQ(must(topic.group_names()), std::vector<std::string>{kGroupName});
  const Group again = must(topic.find_group(kGroupName));
  const GroupInfo info = again.info();
  EXPECT_EQ(info.lag + info.in_flight, 6U);  // Some were taken, and not handed out.
  Member member = join(again);
  const Delivery first = take(member);
  EXPECT_EQ(to_text(first), "4 4");
  EXPECT_EQ(first.deliveries, 2U);
  EXPECT_EQ(drain(member, 4), numbers(4, 6));
  EXPECT_EQ(code(member.receive(kNothingFor)), Errc::timeout);  // The delay has not passed.
}

// Memory says that the topic goes on at an offset that no cursor can have. What it skips is a gap that
// a cursor would be moved past again and again.
TEST_F(GroupOnDisk, AnOffsetThatNoCursorCanHaveIsCorrupt) {
  {
    const Topic topic = open();
    (void)group(topic);
    publish(topic, 2);
  }
  detail::Disk& disk = detail::Disk::system();
  const std::string path = (data_ / kTopicName).string();
  auto directory = must(detail::open_directory_path(path, false, false));
  auto manifest = must(detail::load_manifest(disk, directory.get()));
  const auto recovered = must(detail::recover(disk, directory.get(), manifest));
  detail::NewTopic window = detail::window_of(manifest.topic);
  window.id = manifest.id;
  detail::NewWindow start;
  start.data_path = path;
  start.durability = detail::StoredDurability{manifest.topic.durability};
  start.sync_interval_ns = manifest.topic.sync_interval_ns;
  start.epoch = recovered.generation;
  start.partitions.push_back({.next_offset = 1ULL << 63, .frames_end = 2});
  window.window = &start;
  manifest.window.key = window.geometry.key;
  must(detail::store_manifest(disk, directory.get(), manifest));
  auto topics = must(detail::open_directory_path(topics_.path(), false, false));
  must(detail::create_topic(topics, kTopicName, window));
  const Topic topic = open();
  Member member = join(must(topic.find_group(kGroupName)));
  int gaps = 0;
  member.on_event([&](const Event&) { ++gaps; });
  EXPECT_EQ(drain(member, 2), numbers(2));
  EXPECT_EQ(code(member.receive(kPatience)), Errc::corrupt);
  EXPECT_EQ(gaps, 0);
  EXPECT_EQ(code(topic.group("end", {.from = From::end})), Errc::corrupt);
}

TEST_F(GroupOnDisk, KeepsItsOptions) {
  const GroupOptions wanted{.mode = GroupMode::at_most_once,
                            .by_key = true,
                            .members = 3,
                            .in_flight = 7,
                            .lease = 5s,
                            .on_expired = OnExpired::stop};
  { group(open(), wanted); }
  const Topic topic = open();
  const Group again = must(topic.find_group(kGroupName));
  const GroupOptions found = again.options();
  EXPECT_EQ(found.mode, wanted.mode);
  EXPECT_EQ(found.by_key, wanted.by_key);
  EXPECT_EQ(found.members, wanted.members);
  EXPECT_EQ(found.in_flight, wanted.in_flight);
  EXPECT_EQ(found.lease, wanted.lease);
  EXPECT_EQ(found.on_expired, wanted.on_expired);
  EXPECT_EQ(again.info().in_flight_limit, wanted.in_flight);
}

TEST_F(GroupOnDisk, HoldsUpNobodyAndReadsWhatIsOnDisk) {
  const Topic topic = open();
  const Group slow = group(topic);
  Member member = join(slow);
  constexpr std::uint64_t kMany = 20'000;  // Many times the window.
  publish(topic, kMany / 2);
  EXPECT_EQ(drain(member, 10), numbers(10));
  const Delivery held = take(member);
  publish(topic, kMany / 2, kMany / 2);
  EXPECT_EQ(to_text(held), "10 10");  // A copy: what it was read from is overwritten.
  must(member.requeue(held));
  EXPECT_EQ(sorted(drain(member, kMany - 10)), sorted(numbers(kMany - 10, 10)));
  EXPECT_EQ(slow.info().lag, 0U);
}

TEST_F(GroupOnDisk, MembersShareWhatIsOnDisk) {
  const Topic topic = open();
  constexpr std::uint64_t kMany = 20'000;
  publish(topic, kMany);
  const Group shared = group(topic);
  std::vector<std::atomic<int>> seen(kMany);
  std::vector<std::jthread> members;
  std::atomic<std::uint64_t> count = 0;
  for (int i = 0; i < 3; ++i) {
    members.emplace_back([&] {
      Member member = join(shared);
      while (count < kMany) {
        must(member.poll(100, [&](const Delivery& one) {
          EXPECT_EQ(one.record.text(), std::to_string(one.record.offset));
          ++seen[one.record.offset];
          ++count;
        }));
      }
    });
  }
  members.clear();
  for (std::uint64_t i = 0; i < kMany; ++i) ASSERT_EQ(seen[i], 1) << i;
}

TEST_F(GroupOnDisk, ByKeyTheOrderHoldsAfterARestart) {
  constexpr int kKeys = 5;
  {
    const Topic topic = open();
    auto publisher = must(topic.publisher());
    for (int i = 0; i < 100; ++i)
      must(publisher.publish({.key = std::to_string(i % kKeys), .value = std::to_string(i)}));
    Member member = join(group(topic, {.by_key = true}));
    std::vector<Delivery> taken;
    must(member.receive(taken, 37, kPatience));
    for (std::size_t i = 0; i < taken.size(); i += 3) must(member.acknowledge(taken[i]));
  }
  const Topic topic = open();
  const Group again = must(topic.find_group(kGroupName));
  std::vector<int> last(kKeys, -1);
  std::vector<Member> members;
  for (int i = 0; i < 3; ++i) members.push_back(join(again));
  std::uint64_t left = again.info().lag + again.info().in_flight;
  for (const Deadline deadline{kPatience}; left != 0 && !deadline.passed();) {
    for (Member& member : members) {
      auto one = member.receive(Deadline::immediate());
      if (!one) continue;
      const int number = std::stoi(std::string{one->record.text()});
      EXPECT_GT(number, last[static_cast<std::size_t>(number % kKeys)]);
      last[static_cast<std::size_t>(number % kKeys)] = number;
      must(member.acknowledge(*one));
      --left;
    }
  }
  EXPECT_EQ(left, 0U);
}

// The window survives, and knows everything.
TEST_F(GroupOnDisk, KnowsEverythingAfterTheDeathOfAllProcesses) {
  { publish(open(), 10); }
  and_die([&] {
    const Topic topic = open();
    Member member = join(group(topic));
    EXPECT_EQ(drain(member, 3), numbers(3));
    (void)take(member);
  });
  const Topic topic = open();
  Member member = join(must(topic.find_group(kGroupName)));
  EXPECT_EQ(sorted(drain(member, 7)), sorted(numbers(7, 3)));
}

TEST_F(GroupOnDisk, IsSavedWithinASecondOrTwo) {
  { publish(open(), 10); }
  and_die([&] {
    const Topic topic = open();
    Member member = join(group(topic));
    const std::vector<Delivery> taken = [&] {
      std::vector<Delivery> all;
      must(member.receive(all, 6, kPatience));
      return all;
    }();
    wait_until_saved();
    // The archiver learns of these only because it checks while records are held.
    for (const std::size_t i : {0U, 1U, 3U, 5U}) must(member.acknowledge(taken[i]));
    wait_until_saved();
    ::kill(::getpid(), SIGKILL);  // Before the topic is closed.
  });
  lose_window();
  const Topic topic = open();
  const Group again = must(topic.find_group(kGroupName));
  EXPECT_EQ(again.position(), 6U);
  Member member = join(again);
  EXPECT_EQ(sorted(drain(member, 6)), sorted(numbers(1, 2) + numbers(1, 4) + numbers(4, 6)));
  EXPECT_EQ(code(member.receive(kNothingFor)), Errc::timeout);
}

// Whatever happens, and whenever: nothing is delivered twice.
TEST_F(GroupOnDisk, AtMostOnceDeliversNothingTwice) {
  constexpr std::uint64_t kMany = 40'000;
  auto* const seen = static_cast<std::atomic<std::uint8_t>*>(
      ::mmap(nullptr, kMany, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(seen, MAP_FAILED);
  const GroupOptions once{.mode = GroupMode::at_most_once};
  { group(open(), once); }
  for (std::uint64_t round = 0; round < 8; ++round) {
    publish(open(), kMany / 8, round * kMany / 8);
    testing::Child child{[&] {
      const Topic topic = open();
      Member member = join(must(topic.find_group(kGroupName)));
      for (;;) {
        const Delivery one = take(member);
        if (seen[std::stoul(std::string{one.record.text()})]++ != 0) return 1;
        must(member.acknowledge(one));
      }
    }};
    std::this_thread::sleep_for(20ms + round * 60ms);
    child.signal(SIGKILL);
    child.wait();
    EXPECT_TRUE(child.was_killed()) << child.describe();
    if (round % 2 == 0) lose_window();
  }
  std::uint64_t all = 0;
  for (std::uint64_t i = 0; i < kMany; ++i) all += seen[i];
  EXPECT_GT(all, 0U);
  ::munmap(seen, kMany);
}

TEST_F(GroupOnDisk, AtMostOnceSkipsNothingWhenTheTopicIsClosed) {
  std::vector<int> seen(30);
  { group(open(), {.mode = GroupMode::at_most_once}); }
  for (int round = 0; round < 3; ++round) {
    const Topic topic = open();
    publish(topic, 10, topic.info().partitions[0].end);
    Member member = join(must(topic.find_group(kGroupName)));
    // What was taken and not handed out comes again, sooner or later.
    const int count = round < 2 ? 7 : 16;
    for (int i = 0; i < count; ++i) ++seen[take(member).record.offset];
    if (round == 2) {
      EXPECT_EQ(code(member.receive(kNothingFor)), Errc::timeout);
    }
  }
  EXPECT_EQ(seen, std::vector<int>(30, 1));
}

// Every process looks after it: the position is told by whoever keeps the topic.
TEST_F(GroupOnDisk, AnotherArchiverSavesItToo) {
  { publish(open(), 100); }
  testing::Child archiver{[&] {
    const Topic topic = open();
    for (;;) ::pause();
    return 0;
  }};
  std::this_thread::sleep_for(100ms);
  and_die([&] {
    const Topic topic = open();
    Member member = join(group(topic));
    EXPECT_EQ(drain(member, 40), numbers(40));
    archiver.signal(SIGKILL);
    EXPECT_EQ(drain(member, 20), numbers(20, 40));
    wait_until_saved();
    ::kill(::getpid(), SIGKILL);  // Before the topic is closed.
  });
  archiver.wait();
  lose_window();
  const Topic topic = open();
  Member member = join(must(topic.find_group(kGroupName)));
  EXPECT_EQ(sorted(drain(member, 40)), sorted(numbers(40, 60)));
  EXPECT_EQ(code(member.receive(kNothingFor)), Errc::timeout);
}

// The archiver dies or stops when it has saved everything, and then records are acknowledged, which wakes nobody.
TEST_F(GroupOnDisk, ASuccessorSavesWhatIsOnlyAcknowledged) {
  for (const int signal : {SIGKILL, SIGSTOP}) {
    const testing::Shared<std::uint32_t> is_archiver;
    testing::Child archiver{[&] {
      const Topic topic = open();
      publish(topic, 10);
      std::atomic_ref{* is_archiver} = 1;
      for (;;) ::pause();
      return 0;
    }};
    while (std::atomic_ref{*is_archiver} == 0) std::this_thread::sleep_for(1ms);
    and_die([&] {
      const Topic topic = open();
      Member member = join(group(topic));
      std::vector<Delivery> taken;
      for (int i = 0; i < 6; ++i) taken.push_back(take(member));
      wait_until_saved();
      archiver.signal(signal);
      std::this_thread::sleep_for(50ms);
      for (const Delivery& one : taken) must(member.acknowledge(one));
      if (signal == SIGSTOP) std::this_thread::sleep_for(3s);  // It is not known to be dead.
      wait_until_saved();
      ::kill(::getpid(), SIGKILL);  // Before the topic is closed.
    });
    archiver.signal(SIGKILL);
    archiver.wait();
    lose_window();
    {
      const Topic topic = open();
      Member member = join(must(topic.find_group(kGroupName)));
      EXPECT_EQ(drain(member, 4), numbers(4, 6));
      EXPECT_EQ(code(member.receive(kNothingFor)), Errc::timeout);
    }
    must(Topic::delete_topic(
        kTopicName, {.force = true, .directory = topics_.path(), .data_directory = data_.path()}));
  }
}

// A record may be held for hours, and nobody is to burn processor time meanwhile.
TEST_F(GroupOnDisk, WhileARecordIsHeldNobodyWakesOften) {
  const testing::Shared<std::uint32_t> is_open;
  testing::Child stands_by{[&]() -> int {
    while (std::atomic_ref{*is_open} == 0) std::this_thread::sleep_for(1ms);
    const Topic topic = open();
    wait_until_saved();
    ::rusage before{};
    ::rusage after{};
    ::getrusage(RUSAGE_SELF, &before);
    std::this_thread::sleep_for(3s);
    ::getrusage(RUSAGE_SELF, &after);
    // The thread sanitizer has a thread of its own, which wakes twenty times a second.
    const int most = LEAT_TEST_SANITIZED ? 100 : 15;
    return after.ru_nvcsw - before.ru_nvcsw < most ? 0 : 1;
  }};
  const Topic topic = open();
  publish(topic, 1);
  Member member = join(group(topic));
  [[maybe_unused]] const Delivery held = take(member);
  std::atomic_ref{* is_open} = 1;
  wait_until_saved();
  auto topics = detail::open_directory_path(topics_.path(), false, false);
  ASSERT_TRUE(topics);
  auto shared = detail::attach_files(*topics, kTopicName);
  ASSERT_TRUE(shared);
  const auto beats = [&] {
    return detail::load_relaxed<detail::Why::test>((*shared)->durable()->header().beats);
  };
  const std::uint32_t before = beats();
  stands_by.wait();
  EXPECT_TRUE(stands_by.succeeded()) << stands_by.describe();
  EXPECT_LT(beats() - before, 8U);
}

// Of the only one.
std::uint64_t lag_of_subscriber(const TopicInfo& info) {
  for (const ParticipantInfo& one : info.participants)
    if (one.role.ends_with("subscriber")) return one.lag;
  return ~std::uint64_t{0};
}

// Numbering goes on far behind what was there. Nobody waits for the offsets in between.
TEST_F(GroupOnDisk, OffsetsThatAFailureTookAreNotCounted) {
  and_die([&] {
    const Topic topic = open();
    (void)group(topic);
    auto publisher = must(topic.publisher());
    publish_numbers(publisher, 10);
    must(publisher.flush());
    ::kill(::getpid(), SIGKILL);  // Before the topic is closed.
  });
  lose_window();
  const auto count = [](const TopicInfo& info) { return info.partitions[0].count_from(0); };
  std::uint64_t end = 0;
  {
    const Topic topic = open();
    end = topic.info().partitions[0].end;
    EXPECT_GE(end, 1U << 24);
    EXPECT_EQ(count(topic.info()), 10U);
    EXPECT_EQ(must(topic.find_group(kGroupName)).info().lag, 10U);
    EXPECT_EQ(must(topic.subscriber({.from = From::last(3)})).offset(), 7U);
    for (const bool is_gating : {true, false}) {
      const auto subscriber =
          must(topic.subscriber({.from = From::beginning, .gating = is_gating}));
      EXPECT_EQ(lag_of_subscriber(topic.info()), 10U);
    }
  }
  EXPECT_EQ(count(must(detail::info_of_closed(data_.path(), kTopicName))), 10U);
  const Topic topic = open();
  publish(topic, 2, end);
  EXPECT_EQ(count(topic.info()), 12U);
  {
    const auto subscriber = must(topic.subscriber({.from = From::beginning, .gating = false}));
    EXPECT_EQ(lag_of_subscriber(topic.info()), 12U);
  }
  EXPECT_EQ(must(topic.find_group(kGroupName)).info().lag, 12U);
  EXPECT_EQ(must(topic.subscriber({.from = From::last(5)})).offset(), 7U);
  EXPECT_EQ(must(topic.subscriber({.from = From::last(2)})).offset(), end);
  EXPECT_EQ(must(topic.subscriber({.from = From::last(100)})).offset(), 0U);
  EXPECT_EQ(must(topic.group("last", {.from = From::last(5)})).position(), 7U);
  {
    auto publisher = must(topic.publisher());
    for (int i = 0; i < 3; ++i) must(must(publisher.try_claim(1)).abort());
    must(publisher.publish("after the gap"));
  }
  EXPECT_EQ(count(topic.info()), 13U);
  EXPECT_EQ(must(topic.find_group(kGroupName)).info().lag, 13U);
  EXPECT_EQ(must(topic.subscriber({.from = From::last(3)})).offset(), end);
  EXPECT_EQ(must(topic.subscriber({.from = From::last(4)})).offset(), 9U);
}

TEST_F(GroupOnDisk, SeveralPartitions) {
  TopicOptions wanted = options();
  wanted.partitions = 3;
  {
    const Topic topic = open(wanted);
    auto publisher = must(topic.publisher());
    for (std::uint32_t i = 0; i < 30; ++i)
      must(publisher.publish({.value = std::to_string(i), .partition = i % 3}));
    Member member = join(group(topic));
    must(topic.find_group(kGroupName)->seek(From::offset(5), 1U));
    EXPECT_EQ(drain(member, 10).size(), 10U);
  }
  const Topic topic = open(wanted);
  Member member = join(must(topic.find_group(kGroupName)));
  EXPECT_EQ(drain(member, 15).size(), 15U);
  EXPECT_EQ(code(member.receive(kNothingFor)), Errc::timeout);
}

TEST_F(GroupOnDisk, IsGoneForGoodOnceItIsDeleted) {
  {
    const Topic topic = open();
    publish(topic, 10);
    Member member = join(group(topic));
    EXPECT_EQ(drain(member, 5), numbers(5));
    must(topic.delete_group(kGroupName, true));
    wait_until_saved();
    EXPECT_EQ(group_files(), 0U);
    EXPECT_EQ(group(topic).position(), 0U);  // Another one of that name.
  }
  {
    const Topic topic = open();
    must(topic.delete_group(kGroupName));  // Nobody has used it since.
  }
  EXPECT_EQ(group_files(), 0U);
  EXPECT_EQ(code(open().find_group(kGroupName)), Errc::not_found);
}

TEST_F(GroupOnDisk, AsManyAsATopicMayHave) {
  const auto name = [](int i) { return "g" + std::to_string(i); };
  {
    const Topic topic = open();
    for (int i = 0; i < 40; ++i) group_of(topic, {.in_flight = 4}, name(i));
  }
  const Topic topic = open();  // Has only saved ones.
  for (int i = 40; i < 64; ++i) group_of(topic, {.in_flight = 4}, name(i));
  EXPECT_EQ(code(topic.group("one_more")), Errc::too_many);
  for (int i = 0; i < 64; ++i) EXPECT_TRUE(topic.find_group(name(i))) << i;
  EXPECT_EQ(must(topic.group_names()).size(), 64U);
}

// ---- What retention deletes ---------------------------------------------------------------------

class ExpiredGroup : public GroupOnDisk {
 protected:
  // Publishes until the first records are gone. Returns where the rest begins.
  std::uint64_t expire(const Topic& topic) const {
    auto publisher = must(topic.publisher());
    const std::string large(1000, 'x');
    while (topic.info().partitions[0].start == 0) must(publisher.publish(large));
    // Else the archiver still has full files to end, and deletes more then.
    must(publisher.flush());
    return topic.info().partitions[0].start;
  }
  Topic open_small() const {
    TopicOptions wanted = options();
    wanted.retention_bytes = 64 << 10;
    return open(wanted);
  }
  std::vector<std::string> events_;
  void listen(Member& member) {
    member.on_event([this](const Event& event) { events_.push_back(to_text(event)); });
  }
};

TEST_F(ExpiredGroup, GoesOnAtTheStartAndSaysSo) {
  const Topic topic = open_small();
  Member member = join(group(topic));
  listen(member);
  const std::uint64_t start = expire(topic);
  EXPECT_EQ(take(member).record.offset, start);
  EXPECT_EQ(events_, std::vector<std::string>{"0+" + std::to_string(start) + " overwritten"});
}

TEST_F(ExpiredGroup, GoesOnAtTheEndIfToldTo) {
  const Topic topic = open_small();
  const Group at_end = group(topic, {.on_expired = OnExpired::end});
  Member member = join(at_end);
  listen(member);
  expire(topic);
  const std::uint64_t end = topic.info().partitions[0].end;
  EXPECT_EQ(code(member.receive(kNothingFor)), Errc::timeout);
  EXPECT_EQ(events_, std::vector<std::string>{"0+" + std::to_string(end) + " overwritten"});
  EXPECT_EQ(at_end.info().lag, 0U);
  publish(topic, 1, end);
  EXPECT_EQ(take(member).record.offset, end);
}

TEST_F(ExpiredGroup, StopsIfToldToUntilItIsMoved) {
  const Topic topic = open_small();
  const Group stops = group(topic, {.on_expired = OnExpired::stop});
  Member member = join(stops);
  const std::uint64_t start = expire(topic);
  EXPECT_EQ(stops.info().lag, topic.info().partitions[0].end - start);  // What is gone is nobody's.
  for (int i = 0; i < 3; ++i) EXPECT_EQ(code(member.receive(kPatience)), Errc::expired);
  EXPECT_EQ(stops.position(), 0U);
  must(stops.seek(From::beginning));
  EXPECT_EQ(take(member).record.offset, start);
}

TEST_F(ExpiredGroup, WhatIsGoneBeforeItIsHandedOutIsAGap) {
  const Topic topic = open_small();
  publish(topic, 10);
  Member member = join(group(topic));
  listen(member);
  EXPECT_EQ(drain(member, 1), numbers(1));  // It has taken the others, too.
  EXPECT_EQ(member.in_flight(), 9U);
  const std::uint64_t start = expire(topic);
  EXPECT_EQ(take(member).record.offset, start);
  Log gaps;
  for (std::uint64_t i = 1; i < 10; ++i) gaps.push_back(std::to_string(i) + "+1 overwritten");
  gaps.push_back("10+" + std::to_string(start - 10) + " overwritten");
  EXPECT_EQ(events_, gaps);
}

TEST_F(ExpiredGroup, OnlyOfDurableTopics) {
  const TestTopic memory;
  EXPECT_EQ(code(memory->group("g", {.on_expired = OnExpired::end})), Errc::needs_durable);
}

}  // namespace
}  // namespace leat
