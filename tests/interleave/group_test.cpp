// Consumer groups: members share records, die at any operation, wait, hold room; groups come and go.
#include <gtest/gtest.h>

#include <set>

#include "small_topic.hpp"

namespace leat {
namespace {

// What came of the records, by offset. All members of an execution write it: they are fibers of one
// thread.
class Account {
 public:
  Account(model::Execution& run, const GroupOptions& options) : run_{&run}, options_{options} {}

  // With a lease, others may have taken and acknowledged it before its taker comes to this; but not
  // before its taker's call began.
  std::uint64_t now() const { return acknowledged_.size(); }
  void on_taken(model::Thread who, const Delivery& delivery, std::uint64_t call_began) {
    const Record& record = delivery.record;
    const bool in_place = options_.lease == 0ns;
    const std::string bytes = in_place
                                  ? model::read_checked(record.value.data(), record.value.size())
                                  : std::string{record.text()};
    const Mark mark = mark_of(bytes, in_place);
    const std::string at = "record " + std::to_string(record.offset);
    const auto [found, is_new] = marks_.try_emplace(record.offset, mark);
    model::check(is_new || found->second == mark, at + " is two");
    const std::uint32_t before = taken_[record.offset]++;
    const auto ended = acknowledged_.find(record.offset);
    model::check(is_lenient_ || ended == acknowledged_.end() ||
                     (options_.lease != 0ns && ended->second >= call_began),
                 at + " came again after its end");
    if (options_.mode == GroupMode::at_most_once) model::check(before == 0, at + " came twice");
    const bool is_first = delivery.deliveries == 1;
    model::check(is_lenient_ || !is_first || firsts_.insert(record.offset).second,
                 at + " came twice, and both times first");
    // One after the other, to each member; unless another had claimed it and did not move.
    if (is_first && is_ordered_) {
      auto& next = next_of_[who];
      model::check(record.offset >= next, "another order");
      next = record.offset + 1;
    }
    if (!record.has_key) return;
    const std::string key{record.key.text()};
    const auto holder = keys_.find(key);
    model::check(holder == keys_.end() || holder->second.first == who || run_->killed(holder->second.first),
                 "two have key " + key);
    auto& mine = keys_[key];
    mine.second = mine.first == who ? mine.second + 1 : 1;
    mine.first = who;
    if (is_first) {
      model::check(record.offset >= next_of_key_[key], "another order by key");
      next_of_key_[key] = record.offset + 1;
    }
  }
  // Before the member lets go of it.
  void on_release(const Delivery& delivery) {
    if (!delivery.record.has_key) return;
    const std::string key{delivery.record.key.text()};
    if (--keys_[key].second == 0) keys_.erase(key);
  }
  void on_acknowledged(const Delivery& delivery) {
    const bool is_new = acknowledged_.try_emplace(delivery.record.offset, now()).second;
    model::check(is_new || is_lenient_, "acknowledged twice");
  }
  void be_lenient() { is_lenient_ = true; }
  void expect_order() { is_ordered_ = true; }

  std::size_t acknowledged() const { return acknowledged_.size(); }
  std::size_t taken() const { return taken_.size(); }
  const std::map<std::uint64_t, Mark>& marks() const { return marks_; }
  const GroupOptions& options() const { return options_; }

 private:
  model::Execution* run_;
  GroupOptions options_;
  bool is_lenient_ = false;
  bool is_ordered_ = false;
  std::map<std::uint64_t, Mark> marks_;
  std::map<std::uint64_t, std::uint32_t> taken_;
  std::set<std::uint64_t> firsts_;
  std::map<std::uint64_t, std::uint64_t> acknowledged_;  // When: after how many others.
  std::map<model::Thread, std::uint64_t> next_of_;
  std::map<std::string, std::pair<model::Thread, std::uint32_t>> keys_;  // Who has how many.
  std::map<std::string, std::uint64_t> next_of_key_;
};

// Takes what comes within a millisecond; acknowledges some at once, some later. False: nothing came.
bool take_some(Member& member, Account& account, std::size_t at_once) {
  std::vector<Delivery> taken;
  const std::uint64_t began = account.now();
  if (at_once == 1) {
    auto one = member.take(1ms);
    if (one) taken.push_back(*one);
    model::check(one || one.error().code == Errc::timeout, "take: " + describe(one.error()));
  } else {
    auto some = member.take(taken, at_once, 1ms);
    model::check(some || some.error().code == Errc::timeout, "take: " + describe(some.error()));
  }
  for (const Delivery& one : taken) account.on_taken(model::current(), one, began);
  for (const Delivery& one : taken) {
    account.on_release(one);
    const auto done = member.acknowledge(one);
    if (done) account.on_acknowledged(one);
    // not_held: it lost the record, and took it again in the same call.
    const bool is_lost =
        done.error().code == Errc::lease_lost || done.error().code == Errc::not_held;
    model::check(done || (is_lost && account.options().lease != 0ns),
                 "acknowledge: " + describe(done.error()));
  }
  return !taken.empty();
}

// As another process has it: what a Topic keeps to itself is under a mutex, and fibers of one thread
// must not wait for each other there.
Group open_group() {
  const Topic topic = must(
      Topic::open("t", Deadline::immediate(), SmallTopic::directory()), "open");
  return must(topic.find_group("g"), "find group");
}

struct Case {
  GroupOptions group = {};
  std::uint32_t members = 2;
  std::uint32_t victims = 0;  // The first of the members.
  std::uint32_t records = 6;
  std::size_t size = kThird;
  std::uint32_t segments = 3;
  std::size_t at_once = 1;
  std::uint32_t keys = 0;
  std::uint64_t operations = 260;  // A victim dies at one of so many.
  bool batches = false;
  bool is_ordered = false;
};

void publish_some(Publisher& publisher, const Case& c) {
  for (std::uint32_t i = 0; i < c.records; ++i) {
    const std::string payload = payload_of({0, i}, c.size < 64 ? c.size + 16 * (i % 3) : c.size - 16 * (i % 3));
    NewRecord record{.value = payload};
    const std::string key = "key " + std::to_string(i % (c.keys + 1));
    if (c.keys != 0) record.key = key;
    if (!c.batches) {
      (void)must(publisher.publish(record), "publish");
      continue;
    }
    Batch batch = must(publisher.batch(), "batch");
    model::check(batch.add(record).has_value(), "add");
    if (++i < c.records)
      model::check(batch.add(payload_of({0, i}, c.size)).has_value(), "add");
    (void)must(batch.commit(), "commit");
  }
}

// One publisher, members of which some die; those who are left take everything.
void share(model::Execution& run, Case c) {
  SmallTopic topic{{.capacity_bytes = c.segments * kSegment}};
  c.group.from = From::beginning;
  c.group.members = c.members + 1;  // and one who comes last
  c.group.in_flight = 4;
  const Group group = must(topic->group("g", c.group), "group");
  Account account{run, c.group};
  auto publisher = must(topic->publisher(), "publisher");
  const auto is_done = [&, group = open_group()] {
    // Who dies over an acknowledgement may have made it, and not noted that.
    if (c.victims == 0) return account.acknowledged() >= c.records;
    const GroupInfo info = group.info();
    return info.offsets.at(0) >= c.records && info.in_flight == 0;
  };
  if (c.is_ordered) account.expect_order();
  std::vector<model::Thread> victims;
  for (std::uint32_t who = 0; who < c.members; ++who) {
    const bool is_victim = who < c.victims;
    const auto thread =
        run.thread((is_victim ? "victim " : "member ") + std::to_string(who),
                   [&, group = open_group()] {
          Member member = must(group.join({.spin = 0ns, .patience = 0ns}), "join");
          while (!is_done()) take_some(member, account, c.at_once);
        });
    if (!is_victim) continue;
    run.kill_at(thread, model::random(c.operations));
    victims.push_back(thread);
  }
  run.thread("publisher", [&] { publish_some(publisher, c); });
  if (!run.run()) return;
  run.thread("last", [&, group = open_group()] {  // Finds what those left who died last.
    Member member = must(group.join({.spin = 0ns, .patience = 0ns}), "join");
    while (take_some(member, account, c.at_once)) {
    }
  });
  if (!run.run()) return;
  std::size_t dead = 0;
  for (const model::Thread victim : victims) dead += run.killed(victim) ? 1 : 0;
  const GroupInfo info = group.info();
  model::check(info.lag == 0 && info.in_flight == 0,
               "left over: lag " + std::to_string(info.lag) + ", in flight " +
                   std::to_string(info.in_flight));
  model::check(account.taken() + dead * c.at_once >= c.records, "lost");
  model::check(account.acknowledged() + dead * c.at_once >= c.records, "not acknowledged");
  for (const auto& [offset, mark] : account.marks()) model::check(mark.number == offset, "offset");
}

testing::AssertionResult shares(const char* name, const Case& c, int executions = 1500) {
  return model::holds(
      model::explore({.name = name, .executions = executions, .max_steps = 60'000},
                     [&](model::Execution& run) { share(run, c); }));
}

TEST(Group, MembersShareRecords) {
  EXPECT_TRUE(shares("two", {.size = kSmall, .is_ordered = true}));
  EXPECT_TRUE(shares("three, several at once", {.members = 3, .size = kSmall, .at_once = 3}));
}

TEST(Group, MembersShareWhatGoesAroundTheTopic) {
  EXPECT_TRUE(shares("laps", {.records = 10, .segments = 2}));
  EXPECT_TRUE(shares("laps, at once", {.records = 10, .segments = 2, .at_once = 2}));
}

TEST(Group, MembersShareBatches) {
  EXPECT_TRUE(shares("batches", {.size = 200, .at_once = 2, .batches = true}));
}

TEST(Group, OthersGetWhatTheDeadHad) {
  EXPECT_TRUE(shares("one", {.victims = 1, .size = kSmall}));
  EXPECT_TRUE(shares("one, at once", {.victims = 1, .size = kSmall, .at_once = 3}));
  EXPECT_TRUE(shares("two", {.members = 3, .victims = 2, .size = kSmall, .at_once = 2}));
}

TEST(Group, OthersGetWhatTheDeadHadWhileTheTopicGoesRound) {
  EXPECT_TRUE(shares("one", {.victims = 1, .records = 9, .segments = 2, .operations = 400}));
}

TEST(Group, AtMostOnceNothingComesTwice) {
  const GroupOptions once{.mode = GroupMode::at_most_once};
  EXPECT_TRUE(shares("one", {.group = once, .victims = 1, .size = kSmall}));
  EXPECT_TRUE(shares("two", {.group = once, .members = 3, .victims = 2, .size = kSmall}));
}

TEST(Group, ByKeyOneMemberHasAKeyAtATime) {
  const GroupOptions by_key{.by_key = true};
  EXPECT_TRUE(shares("keys", {.group = by_key, .size = 64, .keys = 1}));
  EXPECT_TRUE(shares("keys, at once", {.group = by_key, .size = 64, .at_once = 2, .keys = 1}));
  EXPECT_TRUE(shares("keys, a death", {.group = by_key, .victims = 1, .size = 64, .keys = 1}));
}

// Leases run out all the time, also of members that just acknowledge.
TEST(Group, EitherTheAcknowledgementOrTheLeaseWins) {
  for (const auto us : {1, 100, 2000}) {
    const std::chrono::microseconds lease{us};
    EXPECT_TRUE(shares("leases", {.group = {.lease = lease}, .records = 4, .size = kSmall}, 500));
    EXPECT_TRUE(shares("leases, at once",
                       {.group = {.lease = lease}, .records = 4, .size = kSmall, .at_once = 2}, 500));
  }
}

}  // namespace
}  // namespace leat
