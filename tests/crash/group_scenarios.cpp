// The group operations during which a process is killed or stopped, and how each world is prepared.
#include "group_scenarios.hpp"

namespace leat::testing {

namespace {

constexpr std::uint32_t kBatch = 5;

// ---- Before the victim ----------------------------------------------------------------------------

// Three segments of records, some of them in batches; the first are acknowledged.
void some_records(GroupWorld& world) {
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(world.publish(200));
  EXPECT_TRUE(world.take_some(world.member()));
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(world.publish(1000));
    EXPECT_TRUE(world.publish_batch({16, 200, 40}));
  }
}
// The same, with two of the records returned.
void returned_records(GroupWorld& world) {
  some_records(world);
  std::vector<Delivery> taken;
  EXPECT_TRUE(world.member().receive(taken, 2));
  for (const Delivery& one : taken) {
    world.note_taken(one);
    EXPECT_TRUE(world.requeue(world.member(), one));
  }
}
void some_keyed_records(GroupWorld& world) {
  for (std::size_t i = 0; i < 24; ++i) EXPECT_TRUE(world.publish(100 + 30 * (i % 5)));
}

// A member loses records when its lease runs out and never notices; their
// keys become available to others.
void lost_keys(GroupWorld& world) {
  some_keyed_records(world);
  for (int i = 0; i < 3; ++i) {
    auto taken = world.idler().receive(Deadline::immediate());
    EXPECT_TRUE(taken) << describe(taken.error());
    world.account().taken(*taken, world.mode());
  }
}
// The survivor holds a key; the victim will find more records with that key.
void held_key(GroupWorld& world) {
  some_keyed_records(world);
  world.take_and_keep();
}
// The same, but another member has parked the records with that key, and then
// the survivor lets go of it.
void parked_records(GroupWorld& world) {
  held_key(world);
  {
    Member other = world.join();
    while (world.take_some(other)) {
    }
  }
  world.let_go_of_kept();
}

// A member takes records and dies without acknowledging them.
void leave_dead_member(GroupWorld& world) {
  Child earlier = world.start(
      [&]() -> int {
        Member member = world.open_member();
        for (int i = 0; i < 3; ++i) {
          auto one = member.receive(Deadline::immediate());
          CHILD_CHECK_OK(one);
          world.note_taken(*one);
        }
        ::raise(SIGKILL);
        return 0;
      },
      {"", 1, SIGKILL});
  earlier.wait();
  EXPECT_TRUE(earlier.was_killed()) << earlier.describe();
}
void dead_member(GroupWorld& world) {
  some_records(world);
  leave_dead_member(world);
}
void dead_keyed_member(GroupWorld& world) {
  some_keyed_records(world);
  leave_dead_member(world);
}
// The survivor takes records in advance, and then does nothing.
void slow_member(GroupWorld& world) {
  some_records(world);
  world.take_and_keep();
}
// Members that died before their take was made, and one that died right after it.
void dead_members(GroupWorld& world) {
  some_records(world);
  for (const char* step : {"take:entered", "take:noting", "take:moved"}) {
    Child earlier = world.start(
        [&]() -> int {
          Member member = world.open_member();
          (void)member.receive(Deadline::immediate());
          return 0;
        },
        {step, 1, SIGKILL});
    earlier.wait();
    EXPECT_TRUE(earlier.was_killed()) << earlier.describe();
  }
}

// ---- Victims --------------------------------------------------------------------------------------

// Whether a call may return this to a member that was stopped for a while.
template <class T>
bool is_usual(const Result<T>& result) {
  return result || result.error().code == Errc::timeout || result.error().code == Errc::lease_lost;
}

// Takes records one by one; acknowledges some, requeues some, and leaves the group with two.
int take_one_by_one(GroupWorld& world) {
  Member member = world.open_member();
  std::vector<Delivery> kept;
  for (int i = 0; i < 8; ++i) {
    auto taken = member.receive(5ms);
    CHILD_CHECK(is_usual(taken));
    if (!taken) continue;
    world.note_taken(*taken);
    switch (i % 4) {
      case 0:
      case 1: CHILD_CHECK(is_usual(world.acknowledge(member, *taken))); break;
      case 2: CHILD_CHECK(is_usual(world.requeue(member, *taken))); break;
      default: kept.push_back(*taken); break;
    }
  }
  if (world.options().group.by_key) {
    for (const Delivery& one : kept) world.account().let_go_of_key(one);
  }
  return 0;
}

// Takes several at once, acknowledges all but the last, and leaves the group with the rest.
int take_several(GroupWorld& world) {
  Member member = world.open_member();
  for (int i = 0; i < 3; ++i) {
    std::vector<Delivery> taken;
    CHILD_CHECK(is_usual(member.receive(taken, kBatch, 5ms)));
    for (const Delivery& one : taken) world.note_taken(one);
    for (std::size_t k = 0; k + 1 < taken.size(); ++k)
      CHILD_CHECK(is_usual(world.acknowledge(member, taken[k])));
  }
  return 0;
}

int poll_some(GroupWorld& world) {
  Member member = world.open_member();
  for (int i = 0; i < 3; ++i) {
    (void)member.wait(5ms);
    CHILD_CHECK(is_usual(member.poll(kBatch, [&](const Delivery& one) {
      world.note_taken(one);
      world.account().acknowledge_later(one);
    })));
  }
  return 0;
}

// The callback throws: its record and those taken with it are returned.
int poll_and_throw(GroupWorld& world) {
  struct Thrown {};
  Member member = world.open_member();
  for (int i = 0; i < 3; ++i) {
    (void)member.wait(5ms);
    try {
      (void)member.poll(kBatch, [&](const Delivery& one) {
        world.note_taken(one);
        throw Thrown{};
      });
    } catch (const Thrown&) {
    }
  }
  return 0;
}

// Takes records and requeues them until its row of entries is full of them.
int requeue_all(GroupWorld& world) {
  Member member = world.open_member();
  for (int i = 0; i < 14; ++i) {
    auto taken = member.receive(5ms);
    CHILD_CHECK(is_usual(taken));
    if (!taken) continue;
    world.note_taken(*taken);
    CHILD_CHECK(is_usual(world.requeue(member, *taken, 20ms)));
  }
  return 0;
}

// Like poll_some(), by key.
int poll_keyed(GroupWorld& world) {
  Member member = world.open_member();
  for (int i = 0; i < 4; ++i) {
    (void)member.wait(5ms);
    CHILD_CHECK(is_usual(member.poll(kBatch, [&](const Delivery& one) {
      world.note_taken(one);
      world.account().let_go_of_key(one);
      world.account().acknowledge_later(one);
    })));
  }
  return 0;
}

// Takes records until nothing is left; while it waits, it looks after dead members.
int check_others(GroupWorld& world) {
  Member member = world.open_member();
  const Deadline end{200ms};
  for (int i = 0; i < 40 && !end.passed(); ++i) {
    auto taken = member.receive(10ms);
    CHILD_CHECK(is_usual(taken));
    if (!taken) continue;
    world.note_taken(*taken);
    CHILD_CHECK(is_usual(world.acknowledge(member, *taken)));
  }
  return 0;
}

int seek_to(GroupWorld& world, From from) {
  const Group group = world.open();
  world.account().be_lenient();
  for (int i = 0; i < 3; ++i) CHILD_CHECK_OK(group.seek(from));
  world.account().be_lenient();  // Others may have continued while it was stopped.
  return 0;
}
int seek_to_beginning(GroupWorld& world) { return seek_to(world, From::beginning); }
int seek_to_end(GroupWorld& world) { return seek_to(world, From::end); }

}  // namespace

const std::vector<GroupScenario>& group_scenarios() {
  static const std::vector<const char*> kOneTake = {"take:entered", "take:noting", "take:moved",
                                                    "take:noted"};
  static const std::vector<const char*> kTake = {
      "seat:taken",  "take:entered",  "take:noting", "take:moved",     "take:noted",
      "take:handed", "settle:before", "settle:done", "leave:returned", "leave:vacated"};
  static const std::vector<const char*> kTakeSeveral = {
      "take:entered",  "take:noting", "take:moved",     "take:noted",
      "settle:before", "settle:done", "leave:returned", "leave:vacated"};
  static const std::vector<const char*> kPoll = {"take:entered", "take:noting", "take:moved",
                                                 "take:noted",   "take:handed", "settle:before",
                                                 "settle:done"};
  static const std::vector<const char*> kPollKeyed = {
      "take:entered", "take:noting", "take:moved",    "take:noted", "park:returned",
      "take:handed",  "settle:done", "settle:before", "leave:freed"};
  static const std::vector<const char*> kRetakeKeyed = {
      "retake:found", "retake:slots",  "retake:taken", "retake:settling",
      "take:handed",  "settle:before", "settle:done"};
  static const std::vector<const char*> kSettleKeyed = {"settle:begun", "settle:returned",
                                                        "settle:freed", "settle:vacated"};
  static const std::vector<const char*> kIdleKeys = {"lease:over", "keys:asked", "keys:freed"};
  static const std::vector<const char*> kRetake = {"retake:found", "retake:taken", "settle:before",
                                                   "settle:done"};
  static const std::vector<const char*> kTakeKeyed = {
      "take:entered", "take:noting",    "take:moved",  "take:noted",    "settle:before",
      "settle:done",  "leave:returned", "leave:freed", "leave:vacated", "retake:taken"};
  static const std::vector<const char*> kSettle = {"settle:begun", "settle:returned",
                                                   "settle:vacated", "retake:taken", "settle:done"};
  static const std::vector<const char*> kSeek = {"seek:noted", "seek:marked", "seek:moved"};
  static const GroupWorldOptions kOnce{.group = {.mode = GroupMode::at_most_once}};
  static const GroupWorldOptions kPartitions{.group = {}, .partitions = 3};
  static const GroupWorldOptions kByKey{.group = {.by_key = true}};
  static const GroupWorldOptions kByKeyLease{.group = {.by_key = true, .lease = 30ms}};
  static const GroupWorldOptions kLease{.group = {.lease = 30ms}};
  static const std::vector<GroupScenario> all = {
      {"take", {}, some_records, take_one_by_one, kTake},
      {"take_several", {}, some_records, take_several, kTakeSeveral, kBatch},
      {"take_once", kOnce, some_records, take_one_by_one, kTake},
      {"take_several_once", kOnce, some_records, take_several, kTakeSeveral, kBatch},
      {"take_leased", kLease, some_records, take_one_by_one, kTake},
      {"take_several_leased", kLease, some_records, take_several, kTakeSeveral, kBatch},
      {"take_by_key", kByKey, some_keyed_records, take_one_by_one, kTakeKeyed, 1, 12},
      {"take_from_partitions", kPartitions, some_records, take_one_by_one, kOneTake},
      {"retake", {}, returned_records, take_one_by_one, kRetake},
      {"retake_once", kOnce, returned_records, take_one_by_one, kRetake},
      {"retake_leased", kLease, returned_records, take_one_by_one, kRetake},
      {"poll", {}, some_records, poll_some, kPoll, kBatch},
      {"poll_throws", {}, some_records, poll_and_throw, {"ready:returned"}},
      {"poll_by_key", kByKey, held_key, poll_keyed, kPollKeyed, 1, 23},
      {"retake_by_key", kByKey, parked_records, poll_keyed, kRetakeKeyed, 1, 12},
      {"requeue_all", {}, some_records, requeue_all, kTake},
      {"take_spare", {}, some_records, requeue_all, {"take:spare"}},
      {"settle_by_key", kByKey, dead_keyed_member, check_others, kSettleKeyed, 1, 12},
      {"lease_over_by_key", kByKeyLease, lost_keys, check_others, kIdleKeys},
      {"settle", {}, dead_member, check_others, kSettle},
      {"settle_once", kOnce, dead_member, check_others, kSettle},
      {"settle_several", {}, dead_members, check_others, kSettle},
      {"take_over", {}, slow_member, check_others, {"others:looking", "take:over"}},
      {"take_over_once", kOnce, slow_member, check_others, {"take:over"}},
      {"lease_over", kLease, slow_member, check_others, {"lease:over"}},
      {"seek_back", {}, some_records, seek_to_beginning, kSeek},
      {"seek_to_end", {}, some_records, seek_to_end, kSeek},
  };
  return all;
}

}  // namespace leat::testing
