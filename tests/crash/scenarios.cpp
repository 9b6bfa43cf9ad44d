// The operations on a log during which a process is killed or stopped, and
// how each world is prepared.
#include "scenarios.hpp"

namespace leat::testing {

namespace {

constexpr std::size_t kThirdOfSegment = 1300;

Waits nobody(std::string_view) { return Waits::nobody; }
Waits at_hole(std::string_view step) {
  return is_open_claim(step) ? Waits::readers : Waits::nobody;
}
Waits at_cursor(std::string_view) { return Waits::publishers; }
Waits while_joined(std::string_view step) {
  return step == "join:active" ? Waits::publishers : Waits::nobody;
}

// ---- Before the victim ----------------------------------------------------------------------------

void some_records(World& world) { EXPECT_TRUE(world.publish_and_read(5)); }

// Segments full of records that only the lossy subscriber has read.
void full_topic(World& world) {
  while (world.publish(world.publisher(), kSurvivor, kThirdOfSegment)) {
  }
}

// The topic has grown to its maximum, and everything was read.
void grown_topic(World& world) {
  full_topic(world);
  EXPECT_TRUE(world.read_to_end());
}

// A publisher dies at this step, with an open claim.
void leave_hole(World& world, const char* step) {
  Child earlier = world.start(
      [&]() -> int {
        Topic topic = world.open();
        auto publisher = topic.publisher();
        CHILD_CHECK_OK(publisher);
        (void)world.publish(*publisher, kEarlierVictim, 100);
        return 0;
      },
      {step, 1, SIGKILL});
  earlier.wait();
  EXPECT_TRUE(earlier.was_killed()) << earlier.describe();
}
void hole(World& world) {
  some_records(world);
  leave_hole(world, "claim:won");
  EXPECT_TRUE(world.publish(world.publisher(), kSurvivor, 50));
  EXPECT_TRUE(world.publish(world.publisher(), kSurvivor, 60));
}
void marked_hole(World& world) {
  some_records(world);
  leave_hole(world, "claim:marked");
  EXPECT_TRUE(world.publish(world.publisher(), kSurvivor, 50));
}
// A stopped publisher has announced the same claim as a dead one, so nobody
// can tell whose the hole is.
void hole_of_two(World& world) {
  some_records(world);
  Child stopped = world.start(
      [&]() -> int {
        Topic topic = world.open();
        auto publisher = topic.publisher();
        CHILD_CHECK_OK(publisher);
        (void)world.publish(*publisher, kStopped, 100);
        return 0;
      },
      {"claim:announced", 1, SIGSTOP});
  EXPECT_EQ(stopped.wait(), Child::State::stopped) << stopped.describe();
  world.keep(std::move(stopped));
  leave_hole(world, "claim:won");
  EXPECT_TRUE(world.publish(world.publisher(), kSurvivor, 50));
}
// Dead publishers occupy all slots that the survivors do not use, with holes of both kinds.
void slots_of_the_dead(World& world) {
  leave_hole(world, "claim:won");
  leave_hole(world, "claim:marked");
  leave_hole(world, "commit:done");
}

// ---- Victims --------------------------------------------------------------------------------------

int publish_some(World& world, bool exclusive, int count, std::size_t size) {
  Topic topic = world.open();
  auto publisher = topic.publisher({.exclusive = exclusive});
  CHILD_CHECK_OK(publisher);
  for (int i = 0; i < count; ++i) {
    auto offset = world.publish(*publisher, kVictim, size + static_cast<std::size_t>(i) * 13);
    // Others may have filled the topic, or revoked the claim, while this one was stopped.
    CHILD_CHECK(offset || offset.error().code == Errc::full ||
                offset.error().code == Errc::revoked);
  }
  return 0;
}
int publish_shared(World& world) { return publish_some(world, false, 3, 40); }
int publish_exclusive(World& world) { return publish_some(world, true, 3, 40); }
int publish_laps(World& world) { return publish_some(world, false, 40, kThirdOfSegment); }
int publish_laps_exclusive(World& world) { return publish_some(world, true, 40, kThirdOfSegment); }

int publish_batches(World& world) {
  Topic topic = world.open();
  auto publisher = topic.publisher();
  CHILD_CHECK_OK(publisher);
  for (int i = 0; i < 3; ++i) {
    auto first = world.publish_batch(*publisher, kVictim, {16, 70, 33});
    CHILD_CHECK(first || first.error().code == Errc::full || first.error().code == Errc::revoked);
  }
  return 0;
}

// Makes claims: committed in full, committed shorter, aborted, dropped.
int claim_some(World& world) {
  Topic topic = world.open();
  auto publisher = topic.publisher();
  CHILD_CHECK_OK(publisher);
  for (int i = 0; i < 4; ++i) {
    const Mark mark = world.ledger().begin(kVictim);
    auto claim = publisher->try_claim(200);
    if (!claim) {
      CHILD_CHECK(claim.error().code == Errc::full || claim.error().code == Errc::revoked);
      world.ledger().end(mark, Result<std::uint64_t>{claim.error()});
      continue;
    }
    const std::uint64_t offset = claim->offset();
    const std::size_t size = i == 1 ? 150 : 200;
    write_message(claim->payload().first(size), mark);
    if (i < 2) {
      world.ledger().end(mark, claim->commit(size));
      continue;
    }
    Result<std::uint64_t> aborted = offset;
    if (i == 2) {
      aborted = claim->abort();
    } else {
      const Claim dropped = std::move(*claim);
    }
    // A dropped claim cannot report whether it was revoked before.
    const bool sure = i == 2 && aborted && world.options().revoke_after == 0ns;
    world.ledger().end(mark, sure ? Fate::aborted : Fate::refused, offset);
  }
  return 0;
}

int join_publisher(World& world) {
  Topic topic = world.open();
  for (int i = 0; i < 3; ++i) CHILD_CHECK_OK(topic.publisher());
  return 0;
}

int shrink_some(World& world) {
  Topic topic = world.open();
  for (int i = 0; i < 3; ++i) CHILD_CHECK_OK(topic.shrink());
  return 0;
}

// Reads everything in the log, repairs holes, and leaves.
int read_all(World& world, bool gating) {
  Topic topic = world.open();
  for (int i = 0; i < 3; ++i) {
    auto reader = topic.subscriber({.from = From::beginning, .gating = gating});
    CHILD_CHECK_OK(reader);
    Trail trail{"victim"};
    reader->on_event([&](const Event& event) { trail.on_event(event); });
    const std::uint64_t end = world.end();
    const Deadline late{kPatience};
    while (trail.next() < end) {
      CHILD_CHECK(!late.passed());
      (void)reader->wait(3ms);
      CHILD_CHECK_OK(reader->poll(1000, [&](const Record& record) { trail.on_record(record); }));
    }
    const auto complaints = compare(world.ledger(), trail);
    for (const std::string& complaint : complaints) std::fprintf(stderr, "%s\n", complaint.c_str());
    CHILD_CHECK(complaints.empty());
  }
  return 0;
}
int read_gating(World& world) { return read_all(world, true); }
int read_lossy(World& world) { return read_all(world, false); }

// Three times, the subscriber is overtaken by records that it published
// itself, and continues at the oldest segment.
int read_overtaken(World& world) {
  Topic topic = world.open();
  for (int i = 0; i < 3; ++i) {
    auto reader = topic.subscriber({.from = From::beginning, .gating = false});
    CHILD_CHECK_OK(reader);
    CHILD_CHECK(publish_laps(world) == 0);
    CHILD_CHECK_OK(reader->poll(1, [](const Record&) {}));
  }
  return 0;
}

int sleep_for_records(World& world) {
  Topic topic = world.open();
  auto reader = topic.subscriber({.spin = 0ns});
  CHILD_CHECK_OK(reader);
  for (int i = 0; i < 3; ++i) {
    auto ready = reader->wait(5ms);
    CHILD_CHECK(ready || ready.error().code == Errc::timeout);
  }
  return 0;
}

int sleep_for_room(World& world) {
  Topic topic = world.open();
  auto publisher = topic.publisher();
  CHILD_CHECK_OK(publisher);
  for (int i = 0; i < 3; ++i) {
    auto offset = world.publish(*publisher, kVictim, kThirdOfSegment, 10ms);
    CHILD_CHECK(offset || offset.error().code == Errc::timeout);
  }
  return 0;
}

}  // namespace

const std::vector<Scenario>& scenarios() {
  static const std::vector<const char*> kShared = {"claim:announced", "claim:won",
                                                   "claim:marked",    "commit:before",
                                                   "commit:swapped",  "commit:done"};
  static const std::vector<const char*> kExclusive = {"claim:announced", "claim:won",
                                                      "commit:before", "commit:done"};
  static const std::vector<const char*> kRoll = {"roll:begun",  "roll:closed",   "roll:base",
                                                 "roll:mapped", "roll:recorded", "roll:opened"};
  static const std::vector<const char*> kRollAndRetire = {
      "roll:begun",    "roll:closed", "roll:base",   "roll:mapped",
      "roll:recorded", "roll:opened", "roll:retired"};
  static const std::vector<const char*> kJoin = {"join:locked", "join:reserved", "join:active",
                                                 "leave:free"};
  static const std::vector<const char*> kFill = {"announcement:read", "repair:header",
                                                 "repair:filled"};
  static const std::vector<const char*> kReap = {"repair:pinned", "repair:header", "repair:filled",
                                                 "reap:freed"};
  static const std::vector<const char*> kGrow = {"grow:chosen",   "grow:locked",   "grow:allocated",
                                                 "grow:supplied", "roll:closed",   "roll:base",
                                                 "roll:mapped",   "roll:recorded", "roll:opened"};
  static const std::vector<const char*> kShrink = {"shrink:locked", "shrink:retired",
                                                   "shrink:marked", "shrink:punched"};
  static const WorldOptions kGrowing{.segments = 2, .grow_to = 8};
  static const WorldOptions kGatingLater{.gating_from_start = false};
  static const WorldOptions kExclusiveWorld{.exclusive = true};
  static const WorldOptions kExclusiveLaps{.exclusive = true, .gating_from_start = false};
  static const WorldOptions kTwoSegments{.segments = 2, .gating_from_start = false};
  // The survivors use three slots, the dead the other three.
  static const WorldOptions kCrowded{.participants = 6};
  static const std::vector<Scenario> all = {
      {"publish", {}, some_records, publish_shared, kShared, at_hole},
      {"batch", {}, some_records, publish_batches, kShared, at_hole},
      {"claim", {}, some_records, claim_some, kShared, at_hole},
      {"exclusive", kExclusiveWorld, nullptr, publish_exclusive, kExclusive, at_hole},
      {"exclusive_laps", kExclusiveLaps, nullptr, publish_laps_exclusive, kRollAndRetire, nobody},
      {"roll_until_full", {}, some_records, publish_laps, kRoll, nobody},
      {"roll_laps", kGatingLater, some_records, publish_laps, kRollAndRetire, nobody},
      {"roll_two_segments", kTwoSegments, some_records, publish_laps, kRollAndRetire, nobody},
      {"publisher_joins", {}, some_records, join_publisher, kJoin, nobody},
      {"subscriber_joins", {}, some_records, read_gating, kJoin, while_joined},
      {"subscriber_moves", {}, full_topic, read_gating, {"cursor:moved"}, at_cursor},
      {"subscriber_sleeps", {}, some_records, sleep_for_records, {"sleep:announced"}, at_cursor},
      {"publisher_sleeps", {}, full_topic, sleep_for_room, {"space:sleeping"}, nobody},
      {"gating_repairs", {}, hole, read_gating, kFill, at_cursor, 1},
      {"gating_withdraws", {}, hole_of_two, read_gating, {"withdraw:barrier"}, at_cursor, 1},
      {"lossy_repairs", {}, hole, read_lossy, kFill, nobody, 1},
      {"lossy_is_overtaken", kGatingLater, some_records, read_overtaken, {"skip:looked"}, nobody},
      {"roll_repairs",
       kGatingLater,
       marked_hole,
       publish_laps,
       {"repair:pinned", "reap:freed"},
       nobody,
       1},
      {"publisher_grows", kGrowing, some_records, publish_laps, kGrow, nobody},
      {"topic_shrinks", kGrowing, grown_topic, shrink_some, kShrink, nobody},
      {"joiner_reaps", kCrowded, slots_of_the_dead, join_publisher, kReap, nobody, 2},
  };
  return all;
}

}  // namespace leat::testing
