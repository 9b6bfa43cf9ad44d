// If this failed, in a group by key two members could process records with the same key at the same
// time, or a key's records out of order, or a record could be lost.
//
// Key slots are gained, released, settled and taken from stopped members, at any operation.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "small_topic.hpp"

namespace leat {
namespace {

Group open_group() {
  const Topic topic =
      must(Topic::open("t", Deadline::immediate(), SmallTopic::directory()), "open");
  return must(topic.find_group("g"), "find group");
}
Member join(const Group& group) { return must(group.join({.spin = 0ns, .patience = 0ns}), "join"); }

// Which member holds which key. All members of an execution write to it without locks, because they
// are fibers of one thread.
class Keys {
 public:
  explicit Keys(model::Execution& run) : run_{&run} {}

  void take(const Delivery& one) {
    const std::string key{one.record.key.text()};
    Holder& holder = holders_[key];
    const model::Thread self = model::current();
    model::check(holder.count == 0 || holder.who == self || run_->killed(holder.who) || may_lose_,
                 "two have key " + key);
    holder.count = holder.who == self ? holder.count + 1 : 1;
    holder.who = self;
    // No record comes after a later one of its key.
    model::check(lenient_ || one.record.offset >= holder.next, "out of order: key " + key);
    if (one.deliveries == 1) holder.next = one.record.offset;
  }
  void let_go(const Delivery& one) { --holders_[std::string{one.record.key.text()}].count; }
  void done(const Delivery& one) {
    model::check(done_.insert(one.record.offset).second || lenient_, "acknowledged twice");
  }
  void be_lenient() { lenient_ = true; }
  void may_lose_leases() { may_lose_ = true; }
  std::size_t count() const { return done_.size(); }

 private:
  struct Holder {
    model::Thread who = {};
    std::uint32_t count = 0;
    std::uint64_t next = 0;
  };
  model::Execution* run_;
  bool lenient_ = false;
  bool may_lose_ = false;
  std::map<std::string, Holder> holders_;
  std::set<std::uint64_t> done_;
};

struct Case {
  std::uint32_t members = 2;
  std::uint32_t records = 5;
  std::uint32_t in_flight = 2;  // Also the limit of a poll.
  bool dies = false;
  bool stops = false;  // In a callback, until the others can do nothing more.
  bool seeks = false;
  std::chrono::nanoseconds lease{0};
};

// Gives the record with offset 1 back on its first delivery. False if it is another one.
bool requeue_once(Member& member, const Delivery& one) {
  if (one.deliveries != 1 || one.record.offset != 1) return false;
  const auto given = member.requeue(one);
  model::check(given || given.error().code == Errc::lease_lost, "requeue");
  return true;
}

void work(Member& member, Keys& keys, bool polls, std::uint32_t limit) {
  if (polls) {
    const auto count = member.poll(limit, [&](const Delivery& one) {
      keys.take(one);
      model::yield();
      keys.let_go(one);
      if (!requeue_once(member, one)) keys.done(one);
    });
    model::check(count.has_value(), "poll: " + describe(count.error()));
    if (count && *count == 0) (void)member.wait(1ms);
    return;
  }
  std::vector<Delivery> taken;
  const auto count = member.receive(taken, 2, 1ms);
  model::check(count || count.error().code == Errc::timeout, "take: " + describe(count.error()));
  for (const Delivery& one : taken) keys.take(one);
  for (const Delivery& one : taken) {
    keys.let_go(one);
    // Not if the member has also taken a later one of its key, which would then come first.
    if (taken.size() == 1 && requeue_once(member, one)) continue;
    if (member.acknowledge(one)) keys.done(one);
  }
}

void share_keys(model::Execution& run, const Case& c) {
  SmallTopic topic;
  const Group group = must(topic->group("g", {.from = From::beginning,
                                              .by_key = true,
                                              .members = c.members + 1,
                                              .in_flight = c.in_flight,
                                              .lease = c.lease}),
                           "group");
  auto publisher = must(topic->publisher(), "publisher");
  for (std::uint32_t i = 0; i < c.records; ++i) {
    const std::string key = "key " + std::to_string(i % 2);
    (void)must(publisher.publish({.key = key, .value = payload_of({0, i}, 32)}), "publish");
  }
  Keys keys{run};
  if (c.seeks || c.dies || c.lease != 0ns) keys.be_lenient();
  if (c.lease != 0ns) keys.may_lose_leases();
  const auto is_done = [group = open_group()] {
    const GroupInfo info = group.info();
    return info.lag == 0 && info.in_flight == 0;
  };
  std::vector<model::Thread> threads;
  for (std::uint32_t who = 0; who < c.members; ++who) {
    const int turns = !c.stops ? 1 << 20 : who == 0 ? 2 : 30;
    threads.push_back(
        run.thread("member " + std::to_string(who), [&, who, turns, group = open_group()] {
          Member member = join(group);
          for (int i = 0; i < turns && !is_done(); ++i)
            work(member, keys, (who + i) % 2 == 0, c.in_flight);
        }));
  }
  if (c.dies) run.kill_at(threads[0], model::random(500));
  if (c.stops) run.suspend_at(threads[0], model::random(400));
  if (c.seeks) {
    run.thread("mover", [&, group = open_group()] {
      model::check(group.seek(From::beginning).has_value(), "seek");
    });
  }
  if (!run.run()) return;
  if (c.stops) {
    model::resume(threads[0]);
    if (!run.run()) return;
  }
  run.thread("last", [&, group = open_group()] {  // Takes what the last members have left.
    Member member = join(group);
    for (int i = 0; !is_done(); ++i) work(member, keys, i % 2 == 0, c.in_flight);
  });
  if (!run.run()) return;
  model::check(keys.count() + (c.dies ? 2 : 0) >= c.records, "lost");
}

testing::AssertionResult shares_keys(const char* name, const Case& c, int executions = 500,
                                     double abandoned = 0) {
  return model::holds(model::explore(
      {.name = name, .executions = executions, .max_steps = 60'000, .abandoned_allowed = abandoned},
      [&](model::Execution& run) { share_keys(run, c); }));
}

TEST(Keys, AreWithOneMemberAtATimeAndInOrder) {
  EXPECT_TRUE(shares_keys("two", {}));
  EXPECT_TRUE(shares_keys("three", {.members = 3}));
}
TEST(Keys, RequeuedOnesComeBeforeWhatIsReady) {
  EXPECT_TRUE(shares_keys("requeue", {.records = 8, .in_flight = 8}));
}
TEST(Keys, AreSettledWhenTheirMemberDies) { EXPECT_TRUE(shares_keys("death", {.dies = true})); }
TEST(Keys, AreHeldAlsoAfterASeekBack) { EXPECT_TRUE(shares_keys("seek", {.seeks = true})); }

// Others take what they can meanwhile, and then the stopped member continues.
TEST(Keys, OfWhoStandsStillAreTaken) {
  EXPECT_TRUE(shares_keys("stop", {.members = 3, .stops = true}));
  EXPECT_TRUE(shares_keys("stop, with a lease", {.members = 3, .stops = true, .lease = 1us}));
}

// ---- Why the edge is needed ---------------------------------------------------------------------

testing::AssertionResult breaks_weakened(const Case& c) {
  return model::breaks(model::explore(
      {.name = "weakened", .executions = 80'000, .max_steps = 60'000, .abandoned_allowed = 1},
      [&](model::Execution& run) {
        model::weaken(Edge::key_slot, Side::rmw);
        share_keys(run, c);
      }));
}

TEST(KeyEdges, AnEntryIsThereBeforeItsSlotIsGained) {
  EXPECT_TRUE(breaks_weakened({.members = 3, .records = 8, .in_flight = 8}));
}

}  // namespace
}  // namespace leat
