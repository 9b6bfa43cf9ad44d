// If this failed, members of a consumer group could lose records or process one twice, sleep
// forever, or read memory that publishers overwrite; or a publisher could wait forever for a group.
#include <gtest/gtest.h>

#include <set>

#include "small_topic.hpp"

namespace leat {
namespace {

// What happened to each record, by offset. All members of an execution write to it without locks,
// because they are fibers of one thread.
class Account {
 public:
  Account(model::Execution& run, const GroupOptions& options) : run_{&run}, options_{options} {}

  // With a lease, others may have taken and acknowledged the record before its taker notes it here,
  // but not before the taker's call began (`call_began`, from now()).
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
    model::check(is_new || found->second == mark, at + " came with another content");
    const std::uint32_t before = taken_[record.offset]++;
    const auto ended = acknowledged_.find(record.offset);
    model::check(is_lenient_ || ended == acknowledged_.end() ||
                     (options_.lease != 0ns && ended->second >= call_began),
                 at + " came again after it was acknowledged");
    if (options_.mode == GroupMode::at_most_once) model::check(before == 0, at + " came twice");
    const bool is_first = delivery.deliveries == 1;
    model::check(is_lenient_ || !is_first || firsts_.insert(record.offset).second,
                 at + " had two first deliveries");
    // First deliveries to one member are in order, unless it took the record
    // over from a slow member.
    if (is_first && is_ordered_) {
      auto& next = next_of_[who];
      model::check(record.offset >= next, "out of order");
      next = record.offset + 1;
    }
    if (!record.has_key) return;
    const std::string key{record.key.text()};
    const auto holder = keys_.find(key);
    model::check(
        holder == keys_.end() || holder->second.first == who || run_->killed(holder->second.first),
        "two have key " + key);
    auto& mine = keys_[key];
    mine.second = mine.first == who ? mine.second + 1 : 1;
    mine.first = who;
    if (is_first) {
      model::check(record.offset >= next_of_key_[key], "out of order by key");
      next_of_key_[key] = record.offset + 1;
    }
  }
  // Call it before the member lets go of the record.
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
  std::map<std::uint64_t, std::uint64_t> acknowledged_;  // How many were acknowledged before.
  std::map<model::Thread, std::uint64_t> next_of_;
  std::map<std::string, std::pair<model::Thread, std::uint32_t>> keys_;  // Holder, and its records.
  std::map<std::string, std::uint64_t> next_of_key_;
};

// Takes what comes within a millisecond and acknowledges it. False if nothing came.
bool take_some(Member& member, Account& account, std::size_t at_once) {
  std::vector<Delivery> taken;
  const std::uint64_t began = account.now();
  if (at_once == 1) {
    auto one = member.receive(1ms);
    if (one) taken.push_back(*one);
    model::check(one || one.error().code == Errc::timeout, "take: " + describe(one.error()));
  } else {
    auto some = member.receive(taken, at_once, 1ms);
    model::check(some || some.error().code == Errc::timeout, "take: " + describe(some.error()));
  }
  for (const Delivery& one : taken) account.on_taken(model::current(), one, began);
  for (const Delivery& one : taken) {
    account.on_release(one);
    const auto done = member.acknowledge(one);
    if (done) account.on_acknowledged(one);
    // not_in_flight: it lost the record and took it again in the same call.
    const bool is_lost =
        done.error().code == Errc::lease_lost || done.error().code == Errc::not_in_flight;
    model::check(done || (is_lost && account.options().lease != 0ns),
                 "acknowledge: " + describe(done.error()));
  }
  return !taken.empty();
}

// A Topic of its own, as in another process: a Topic has a mutex, and fibers
// of one thread must not block on it.
Group open_group() {
  const Topic topic =
      must(Topic::open("t", Deadline::immediate(), SmallTopic::directory()), "open");
  return must(topic.find_group("g"), "find group");
}

struct Case {
  GroupOptions group = {};
  std::uint32_t members = 2;
  std::uint32_t victims = 0;  // This many of the members may die.
  std::uint32_t records = 6;
  std::size_t size = kThird;
  std::uint32_t segments = 3;
  std::size_t at_once = 1;
  std::uint32_t keys = 0;
  std::uint64_t operations = 260;  // A victim dies at one of its first operations, up to this many.
  bool batches = false;
  bool is_ordered = false;
};

void publish_some(Publisher& publisher, const Case& c) {
  for (std::uint32_t i = 0; i < c.records; ++i) {
    const std::string payload =
        payload_of({0, i}, c.size < 64 ? c.size + 16 * (i % 3) : c.size - 16 * (i % 3));
    NewRecord record{.value = payload};
    const std::string key = "key " + std::to_string(i % (c.keys + 1));
    if (c.keys != 0) record.key = key;
    if (!c.batches) {
      (void)must(publisher.publish(record), "publish");
      continue;
    }
    Batch batch = must(publisher.batch(), "batch");
    model::check(batch.add(record).has_value(), "add");
    if (++i < c.records) model::check(batch.add(payload_of({0, i}, c.size)).has_value(), "add");
    (void)must(batch.commit(), "commit");
  }
}

// A publisher, and members of which some die. The others must take everything.
void share(model::Execution& run, Case c) {
  SmallTopic topic{{.capacity_bytes = c.segments * kSegment}};
  c.group.from = From::beginning;
  c.group.members = c.members + 1;  // One more joins at the end.
  c.group.in_flight = 4;
  const Group group = must(topic->group("g", c.group), "group");
  Account account{run, c.group};
  auto publisher = must(topic->publisher(), "publisher");
  const auto is_done = [&, group = open_group()] {
    // A member that dies may have acknowledged a record without noting that.
    if (c.victims == 0) return account.acknowledged() >= c.records;
    const GroupInfo info = group.info();
    return info.offsets.at(0) >= c.records && info.in_flight == 0;
  };
  if (c.is_ordered) account.expect_order();
  std::vector<model::Thread> victims;
  for (std::uint32_t who = 0; who < c.members; ++who) {
    const bool is_victim = who < c.victims;
    const auto thread = run.thread(
        (is_victim ? "victim " : "member ") + std::to_string(who), [&, group = open_group()] {
          Member member = must(group.join({.spin = 0ns, .patience = 0ns}), "join");
          while (!is_done()) take_some(member, account, c.at_once);
        });
    if (!is_victim) continue;
    run.kill_at(thread, model::random(c.operations));
    victims.push_back(thread);
  }
  run.thread("publisher", [&] { publish_some(publisher, c); });
  if (!run.run()) return;
  run.thread("last", [&, group = open_group()] {  // Takes what the last members to die have left.
    Member member = must(group.join({.spin = 0ns, .patience = 0ns}), "join");
    while (take_some(member, account, c.at_once)) {
    }
  });
  if (!run.run()) return;
  std::size_t dead = 0;
  for (const model::Thread victim : victims) dead += run.killed(victim) ? 1 : 0;
  const GroupInfo info = group.info();
  model::check(info.lag == 0 && info.in_flight == 0, "left over: lag " + std::to_string(info.lag) +
                                                         ", in flight " +
                                                         std::to_string(info.in_flight));
  model::check(account.taken() + dead * c.at_once >= c.records, "lost");
  model::check(account.acknowledged() + dead * c.at_once >= c.records, "not acknowledged");
  for (const auto& [offset, mark] : account.marks()) model::check(mark.number == offset, "offset");
}

testing::AssertionResult shares(const char* name, const Case& c, int executions = 1000) {
  return model::holds(model::explore({.name = name, .executions = executions, .max_steps = 60'000},
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

// Leases run out all the time, even while members acknowledge.
TEST(Group, EitherTheAcknowledgementOrTheLeaseWins) {
  for (const auto us : {1, 100, 2000}) {
    const std::chrono::microseconds lease{us};
    EXPECT_TRUE(shares("leases", {.group = {.lease = lease}, .records = 4, .size = kSmall}, 500));
    EXPECT_TRUE(shares("leases, at once",
                       {.group = {.lease = lease}, .records = 4, .size = kSmall, .at_once = 2},
                       500));
  }
}

// ---- Room ---------------------------------------------------------------------------------------

// A member keeps its first record while publishers publish several laps, and requeues others.
void keep_one(model::Execution& run) {
  SmallTopic topic{{.capacity_bytes = 2 * kSegment}};
  (void)must(topic->group("g", {.from = From::beginning, .members = 3, .in_flight = 4}), "group");
  auto publisher = must(topic->publisher(), "publisher");
  constexpr std::uint32_t kRecords = 7;
  std::set<std::uint64_t> seen;
  for (int who = 0; who < 2; ++who) {
    run.thread("member " + std::to_string(who), [&, group = open_group()] {
      Member member = must(group.join({.spin = 0ns, .patience = 0ns}), "join");
      const auto take = [&] { return member.receive(1ms); };
      const auto touch = [&](const Delivery& one) {
        const Mark mark =
            mark_of(model::read_checked(one.record.value.data(), one.record.value.size()), true);
        model::check(mark.number == one.record.offset, "another record's bytes");
      };
      auto first = take();
      if (first) {
        touch(*first);
        for (int i = 0; i < 3; ++i) model::yield();
        touch(*first);
        // Either member may take it next.
        model::check(member.requeue(*first).has_value(), "requeue");
      }
      while (seen.size() < kRecords) {
        auto one = take();
        if (!one) continue;
        touch(*one);
        seen.insert(one->record.offset);
        model::check(member.acknowledge(*one).has_value(), "acknowledge");
      }
    });
  }
  run.thread("publisher", [&] {
    for (std::uint32_t i = 0; i < kRecords; ++i)
      (void)must(publisher.publish(payload_of({0, i}, kHalf)), "publish");
  });
  run.run();
}

// A member keeps records that fill a segment and were taken in one step, while a publisher
// publishes several laps.
void keep_segment(model::Execution& run) {
  SmallTopic topic{{.capacity_bytes = 2 * kSegment}};
  (void)must(topic->group("g", {.from = From::beginning, .members = 2, .in_flight = 4}), "group");
  auto publisher = must(topic->publisher(), "publisher");
  for (std::uint32_t i = 0; i < 2; ++i)
    (void)must(publisher.publish(payload_of({0, i}, kHalf)), "publish");
  Member member = must(open_group().join({.spin = 0ns, .patience = 0ns}), "join");
  run.thread("member", [&] {
    std::vector<Delivery> taken;
    (void)must(member.receive(taken, 2, 1ms), "take");
    for (int i = 0; i < 30; ++i) model::yield();
    for (const Delivery& one : taken) {
      const Mark mark =
          mark_of(model::read_checked(one.record.value.data(), one.record.value.size()), true);
      model::check(mark.number == one.record.offset, "another record's bytes");
      model::check(member.acknowledge(one).has_value(), "acknowledge");
    }
  });
  run.thread("publisher", [&] {
    for (std::uint32_t i = 2; i < 6; ++i) {
      if (!publisher.publish(payload_of({0, i}, kHalf), Deadline{1us})) break;
    }
  });
  run.run();
}

TEST(Group, MemoryOfHeldRecordsIsNotReused) {
  EXPECT_TRUE(model::holds(model::explore({.name = "segment"}, keep_segment)));
  EXPECT_TRUE(model::holds(model::explore({.name = "keep", .max_steps = 60'000}, keep_one)));
}

// The group is moved back while members take records and publishers need the room.
TEST(Group, MovedBackWhileSegmentsAreRetired) {
  EXPECT_TRUE(model::holds(model::explore(
      {.name = "seek", .executions = 300, .max_steps = 60'000}, [](model::Execution& run) {
        SmallTopic topic{{.capacity_bytes = 3 * kSegment}};
        const GroupOptions options{.from = From::beginning, .members = 3, .in_flight = 4};
        const Group group = must(topic->group("g", options), "group");
        Account account{run, options};
        account.be_lenient();
        auto publisher = must(topic->publisher(), "publisher");
        for (int who = 0; who < 2; ++who) {
          run.thread("member " + std::to_string(who), [&, group = open_group()] {
            Member member = must(group.join({.spin = 0ns, .patience = 0ns}), "join");
            while (account.acknowledged() < 8 || take_some(member, account, 1)) {
              take_some(member, account, 1);
            }
          });
        }
        run.thread("publisher", [&] { publish_some(publisher, {.records = 8, .size = kHalf}); });
        run.thread("mover", [&, group = open_group()] {
          for (int i = 0; i < 2; ++i) model::check(group.seek(From::beginning).has_value(), "seek");
        });
        if (!run.run()) return;
        run.thread("last", [&, group = open_group()] {  // The group may have been moved at the end.
          Member member = must(group.join({.spin = 0ns, .patience = 0ns}), "join");
          while (take_some(member, account, 1)) {
          }
        });
        if (!run.run()) return;
        const GroupInfo info = group.info();
        model::check(info.lag == 0 && info.in_flight == 0, "left over");
        for (const auto& [offset, mark] : account.marks())
          model::check(mark.number == offset, "offset");
      })));
}

// ---- Groups come and go -------------------------------------------------------------------------

// A group is made from the beginning while a publisher publishes several laps. Every record from
// where the group begins must be there.
void create_while_publishing(model::Execution& run) {
  SmallTopic topic{{.capacity_bytes = 2 * kSegment}};
  auto publisher = must(topic->publisher(), "publisher");
  run.thread("publisher", [&] {
    for (std::uint32_t i = 0; i < 7; ++i) {
      auto offset = publisher.publish(payload_of({0, i}, kHalf), Deadline{5ms});
      if (!offset) break;  // From now on the group holds the room.
    }
  });
  run.thread(
      "founder",
      [&, topic = must(Topic::open("t", Deadline::immediate(), SmallTopic::directory()), "open")] {
        const Group group =
            must(topic.group("g", {.from = From::beginning, .in_flight = 8}), "group");
        Member member = must(group.join({.spin = 0ns, .patience = 0ns}), "join");
        std::optional<std::uint64_t> next;
        for (auto one = member.receive(1ms); one; one = member.receive(1ms)) {
          const Mark mark = mark_of(
              model::read_checked(one->record.value.data(), one->record.value.size()), true);
          model::check(mark.number == one->record.offset, "another record's bytes");
          model::check(!next || one->record.offset == *next, "records are missing");
          next = one->record.offset + 1;
          model::check(member.acknowledge(*one).has_value(), "acknowledge");
        }
      });
  run.run();
}

TEST(Group, MadeWhilePublishersGoAround) {
  EXPECT_TRUE(model::holds(
      model::explore({.name = "create", .max_steps = 60'000}, create_while_publishing)));
}

// One thread joins while another deletes the group: one of them must get an error.
void delete_while_joining(model::Execution& run, bool may_die) {
  SmallTopic topic;
  (void)must(topic->group("g", {.from = From::beginning, .members = 2, .in_flight = 4}), "group");
  bool deleted = false;
  std::optional<Member> member;
  run.thread("joiner", [&, group = open_group()] {
    auto joined = group.join({.spin = 0ns, .patience = 0ns});
    if (joined) {
      member.emplace(std::move(*joined));
    } else {
      model::check(joined.error().code == Errc::closed, "join: " + describe(joined.error()));
    }
  });
  const auto deleter = run.thread(
      "deleter",
      [&, topic = must(Topic::open("t", Deadline::immediate(), SmallTopic::directory()), "open")] {
        const auto removed = topic.delete_group("g");
        deleted = removed.has_value();
        model::check(removed || removed.error().code == Errc::busy,
                     "delete: " + describe(removed.error()));
      });
  if (may_die) run.kill_at(deleter, model::random(60));
  if (!run.run()) return;
  model::check(!(deleted && member), "deleted under a member");
  // Publishing works: a member takes the records, or there is no group.
  auto publisher = must(topic->publisher(), "publisher");
  run.thread("publisher", [&] {
    (void)must(publisher.publish(payload_of({0, 0}, kSmall)), "publish");
    if (!member) return;
    const auto one = member->receive(Deadline::immediate());
    model::check(one.has_value(), "take: " + describe(one.error()));
  });
  run.run();
}

TEST(Group, EitherTheJoinerOrTheDeleterIsTold) {
  for (const bool may_die : {false, true}) {
    EXPECT_TRUE(model::holds(
        model::explore({.name = "delete", .executions = 4000},
                       [&](model::Execution& run) { delete_while_joining(run, may_die); })));
  }
}

// ---- Sleeping -----------------------------------------------------------------------------------

// Two members sleep; each record wakes one that takes it. The last record ends both waits.
void wake_members(model::Execution& run) {
  SmallTopic topic;
  (void)must(topic->group("g", {.from = From::beginning, .members = 2, .in_flight = 4}), "group");
  auto publisher = must(topic->publisher(), "publisher");
  constexpr std::uint32_t kRecords = 4;
  std::uint32_t done = 0;
  std::vector<Member> members;
  members.reserve(2);
  for (int who = 0; who < 2; ++who)
    members.push_back(must(open_group().join({.spin = 0ns, .patience = 0ns}), "join"));
  for (Member& member : members) {
    run.thread("member", [&] {
      while (done < kRecords) {
        const auto one = member.receive();
        if (!one) {
          model::check(one.error().code == Errc::stopped, "take: " + describe(one.error()));
          continue;
        }
        // The first record is requeued once: a sleeping member must be woken for it.
        if (one->record.offset == 0 && one->deliveries == 1) {
          model::check(member.requeue(*one).has_value(), "requeue");
          continue;
        }
        model::check(member.acknowledge(*one).has_value(), "acknowledge");
        if (++done < kRecords) continue;
        for (Member& other : members) other.stop_waits();
      }
    });
  }
  run.thread("publisher", [&] { publish_some(publisher, {.records = kRecords, .size = kSmall}); });
  run.run();
}

TEST(Group, NobodySleepsThroughARecord) {
  EXPECT_TRUE(model::holds(model::explore({.name = "wake"}, wake_members)));
}

// A publisher waits for room that an acknowledgement frees.
void wake_publisher(model::Execution& run) {
  SmallTopic topic{{.capacity_bytes = 2 * kSegment}};
  (void)must(topic->group("g", {.from = From::beginning, .members = 2, .in_flight = 4}), "group");
  auto publisher = must(topic->publisher(), "publisher");
  Member member = must(open_group().join({.spin = 0ns, .patience = 0ns}), "join");
  constexpr std::uint32_t kRecords = 7;
  run.thread("publisher", [&] {
    for (std::uint32_t i = 0; i < kRecords; ++i)
      (void)must(publisher.publish(payload_of({0, i}, kHalf)), "publish");
  });
  run.thread("member", [&] {
    for (std::uint32_t i = 0; i < kRecords; ++i) {
      const auto one = must(member.receive(), "take");
      model::check(one.record.offset == i, "another order");
      model::check(member.acknowledge(one).has_value(), "acknowledge");
    }
  });
  run.run();
}

TEST(Group, AcknowledgementsWakePublishers) {
  EXPECT_TRUE(model::holds(
      model::explore({.name = "room", .needless_timeouts_fail = true}, wake_publisher)));
}

// ---- Why the edges are needed -------------------------------------------------------------------

testing::AssertionResult breaks_weakened(Edge edge, const model::Body& body) {
  return model::breaks(model::explore(
      {.name = "weakened", .executions = 20'000, .max_steps = 60'000, .abandoned_allowed = 1},
      [&](model::Execution& run) {
        model::weaken(edge);
        body(run);
      }));
}

TEST(GroupEdges, EntriesAreThereBeforeTheCursorPassesThem) {
  EXPECT_TRUE(breaks_weakened(Edge::group_cursor, keep_segment));
}

TEST(GroupEdges, AnEntrysFieldsAreOfItsState) {
  EXPECT_TRUE(breaks_weakened(Edge::in_flight, keep_one));
}

TEST(GroupEdges, TheJoinerAndTheDeleterSeeEachOther) {
  EXPECT_TRUE(breaks_weakened(Edge::group,
                              [](model::Execution& run) { delete_while_joining(run, false); }));
}

}  // namespace
}  // namespace leat
