// If this failed, a process could be ended by SIGBUS on a full file system, because it touched
// memory that `shrink` has freed; or records could be lost while a topic grows or shrinks.
//
// Publishers open segments and readers read while memory is added and freed. The model fails
// at once if a page of a file without memory is touched.
#include <gtest/gtest.h>

#include "leat/log/directory.hpp"
#include "small_topic.hpp"

namespace leat::inline v0 {
namespace {

// A topic that grows from two segments to `maximum`. It describes no more segments than that, so
// that a check of all of them takes few steps.
class GrowingTopic {
 public:
  explicit GrowingTopic(std::uint32_t maximum) {
    auto plan = must(TopicTesting::new_topic({.capacity_bytes = 2 * kSegment,
                                              .segment_bytes = kSegment,
                                              .policy = Policy::grow,
                                              .max_capacity_bytes = maximum * kSegment,
                                              .participants = 8}),
                     "options");
    plan.geometry.segment_count = maximum;
    plan.geometry.derive();
    topic_.emplace(must(TopicTesting::create("t", plan, SmallTopic::fresh_directory()), "create"));
  }
  ~GrowingTopic() {
    topic_.reset();
    std::filesystem::remove_all(SmallTopic::directory());
  }
  Topic* operator->() { return &*topic_; }

 private:
  std::optional<Topic> topic_;
};

void shrink(GrowingTopic& topic, int times) {
  for (int i = 0; i < times; ++i) {
    const auto freed = topic->shrink();
    model::check(freed || freed.error().code == Errc::busy, "shrink: " + describe(freed.error()));
  }
}

struct Case {
  std::uint32_t maximum = 4;
  std::uint32_t publishers = 2;
  std::uint32_t shrinkers = 1;
  bool lossy = false;
  bool exclusive = false;
};

// Publishers fill several segments each, a gating subscriber follows at its own pace, and memory is
// freed again and again.
void grow_and_shrink(model::Execution& run, const Case& c) {
  GrowingTopic topic{c.maximum};
  constexpr std::uint32_t kRecords = 20;
  const std::uint32_t each = kRecords / c.publishers;
  std::map<std::uint64_t, Mark> published;
  Ledger ledger;
  auto subscriber = must(topic->subscriber(from_beginning()), "subscriber");
  std::optional<Subscriber> lossy;
  Ledger lossy_ledger;
  if (c.lossy) {
    lossy.emplace(
        must(topic->subscriber({.from = From::beginning, .gating = false, .spin = 0ns}), "lossy"));
  }
  for (std::uint32_t who = 0; who < c.publishers; ++who) {
    run.thread("publisher " + std::to_string(who), [&, who] {
      auto publisher = must(topic->publisher({.exclusive = c.exclusive}), "publisher");
      publish(publisher, who, each, kThird, published);
    });
  }
  run.thread("subscriber", [&] { read_until(subscriber, ledger, c.publishers * each); });
  if (c.lossy) {
    run.thread("lossy", [&] { read_until(*lossy, lossy_ledger, c.publishers * each, false); });
  }
  for (std::uint32_t i = 0; i < c.shrinkers; ++i)
    run.thread("shrinker " + std::to_string(i), [&] { shrink(topic, 3); });
  if (!run.run()) return;
  ledger.check_published(published);
  model::check(topic->info().capacity_bytes <= c.maximum * kSegment, "larger than its maximum");
}

model::Options options(const char* name) { return {.name = name, .max_steps = 60'000}; }

TEST(Grow, WhileSomebodyFreesMemory) {
  EXPECT_TRUE(model::holds(
      model::explore(options("grow"), [](model::Execution& run) { grow_and_shrink(run, {}); })));
}

TEST(Grow, TwoFreeMemory) {
  EXPECT_TRUE(model::holds(model::explore(options("two shrink"), [](model::Execution& run) {
    grow_and_shrink(run, {.maximum = 3, .publishers = 1, .shrinkers = 2});
  })));
}

TEST(Grow, LossyReadersTouchOnlyWhatIsThere) {
  EXPECT_TRUE(model::holds(model::explore(options("lossy"), [](model::Execution& run) {
    grow_and_shrink(run, {.publishers = 1, .lossy = true});
  })));
}

TEST(Grow, WhoLooksForGapsTouchesOnlyWhatIsThere) {
  std::size_t found = 0;
  EXPECT_TRUE(model::holds(model::explore(options("gaps"), [&](model::Execution& run) {
    GrowingTopic topic{4};
    {
      auto subscriber = must(topic->subscriber(from_beginning()), "subscriber");
      auto publisher = must(topic->publisher(), "publisher");
      for (int i = 0; i < 9; ++i) {
        auto claim = must(publisher.try_claim(kThird), "claim");
        model::check(claim.abort().has_value(), "abort");
      }
    }
    run.thread("looker", [&] {
      for (int i = 0; i < 2; ++i) found += topic->info().partitions[0].gaps.size();
    });
    run.thread("shrinker", [&] { shrink(topic, 1); });
    run.run();
  })));
  EXPECT_GT(found, 100U);
}

TEST(Grow, AnExclusivePublisherGrows) {
  EXPECT_TRUE(model::holds(model::explore(options("exclusive"), [](model::Execution& run) {
    grow_and_shrink(run, {.publishers = 1, .exclusive = true});
  })));
}

// Which thread is killed at any of its operations.
enum class Victim { publisher, shrinker };

void with_victim(model::Execution& run, Victim who) {
  GrowingTopic topic{4};
  std::map<std::uint64_t, Mark> published;
  std::map<std::uint64_t, Mark> of_victim;
  Ledger ledger;
  auto subscriber = must(topic->subscriber(from_beginning()), "subscriber");
  const model::Thread victim = run.thread("victim", [&] {
    if (who == Victim::shrinker) {
      model::count_operations();
      shrink(topic, 1);
      return;
    }
    auto publisher = must(topic->publisher(), "publisher");
    model::count_operations();
    publish_revocable(publisher, 7, 6, kThird, of_victim);
  });
  const std::uint64_t when = model::random(who == Victim::shrinker ? 150 : 400);
  run.kill_at(victim, when);
  constexpr std::uint32_t kRecords = 12;
  run.thread("publisher", [&] {
    auto publisher = must(topic->publisher(), "publisher");
    publish(publisher, 0, kRecords, kThird, published);
  });
  bool done = false;
  run.thread("subscriber", [&] {
    while (ledger.records().size() < kRecords || !done) {
      done = published.size() == kRecords && ledger.next() >= topic->info().partitions[0].end;
      if (!done) read_some(subscriber, ledger, 100, Deadline{3ms});
    }
  });
  run.thread("shrinker", [&] { shrink(topic, 2); });
  if (!run.run()) return;
  while (ledger.next() < topic->info().partitions[0].end)
    read_some(subscriber, ledger, 100, Deadline{3ms});
  ledger.check_published(published);
  ledger.check_published(of_victim);
}

TEST(Grow, APublisherIsKilled) {
  EXPECT_TRUE(model::holds(model::explore(options("publisher killed"), [](model::Execution& run) {
    with_victim(run, Victim::publisher);
  })));
}
TEST(Grow, AShrinkerIsKilled) {
  EXPECT_TRUE(model::holds(model::explore(options("shrinker killed"), [](model::Execution& run) {
    with_victim(run, Victim::shrinker);
  })));
}

// Three segments are full, and only the oldest one is available: to the publisher that needs it, or
// to the thread that frees it.
void meet(model::Execution& run) {
  GrowingTopic topic{3};
  std::map<std::uint64_t, Mark> published;
  auto publisher = must(topic->publisher(), "publisher");
  {
    auto subscriber = must(topic->subscriber(from_beginning()), "subscriber");
    publish(publisher, 0, 9, kThird, published);
  }
  run.thread("publisher", [&] { publish(publisher, 0, 3, kThird, published, 9); });
  run.thread("shrinker", [&] { shrink(topic, 1); });
  if (!run.run()) return;
  Ledger ledger;
  run.thread("reader", [&] {
    auto subscriber = must(topic->subscriber(from_beginning()), "subscriber");
    ledger = Ledger{subscriber.offset()};
    read_until(subscriber, ledger, 12);
  });
  if (!run.run()) return;
  for (const auto& [offset, mark] : ledger.records())
    model::check(published.at(offset) == mark, "another record");
}

TEST(Grow, AChoiceMeetsAMark) { EXPECT_TRUE(model::holds(model::explore(options("meet"), meet))); }

// The publisher dies or stops on the way. The segment that it prepared must still have memory when
// somebody else opens it.
void meet_and_leave(model::Execution& run, bool stops) {
  GrowingTopic topic{3};
  std::map<std::uint64_t, Mark> published;
  std::map<std::uint64_t, Mark> of_victim;
  {
    auto publisher = must(topic->publisher(), "publisher");
    auto subscriber = must(topic->subscriber(from_beginning()), "subscriber");
    publish(publisher, 0, 9, kThird, published);
  }
  const model::Thread victim = run.thread("victim", [&] {
    auto publisher = must(topic->publisher(), "publisher");
    model::count_operations();
    // While it was stopped, others may have published a whole lap.
    publish_revocable(publisher, 7, 2, kThird, of_victim);
  });
  const std::uint64_t when = model::random(90);
  if (stops)
    run.suspend_at(victim, when);
  else
    run.kill_at(victim, when);
  if (!run.run()) return;
  run.thread("shrinker", [&] { shrink(topic, 1); });
  run.thread("publisher", [&] {
    auto publisher = must(topic->publisher(), "publisher");
    publish_revocable(publisher, 0, 3, kThird, published, 9);
  });
  if (!run.run() || !stops) return;
  model::resume(victim);
  (void)run.run();
}

TEST(Grow, AChoiceOfTheDeadMeetsAMark) {
  EXPECT_TRUE(model::holds(model::explore(
      options("meet and die"), [](model::Execution& run) { meet_and_leave(run, false); })));
}
TEST(Grow, AChoiceOfTheStoppedMeetsAMark) {
  EXPECT_TRUE(model::holds(model::explore(
      options("meet and stop"), [](model::Execution& run) { meet_and_leave(run, true); })));
}

// Most of what a lossy reader still has to read is freed while it moves
// from segment to segment.
TEST(Grow, ALossyReaderIsOvertakenByWhoFreesMemory) {
  EXPECT_TRUE(model::holds(model::explore(options("behind"), [](model::Execution& run) {
    GrowingTopic topic{6};
    std::map<std::uint64_t, Mark> published;
    {
      auto publisher = must(topic->publisher(), "publisher");
      auto subscriber = must(topic->subscriber(from_beginning()), "subscriber");
      publish(publisher, 0, 18, kThird, published);
    }
    auto lossy =
        must(topic->subscriber({.from = From::beginning, .gating = false, .spin = 0ns}), "lossy");
    Ledger ledger;
    run.thread("lossy", [&] { read_until(lossy, ledger, 18, false); });
    run.thread("shrinker", [&] { shrink(topic, 1); });
    if (!run.run()) return;
    for (const auto& [offset, mark] : ledger.records())
      model::check(published.at(offset) == mark, "another record");
  })));
}

// A member of a group with leases stops while it takes a record, until others have processed that
// record and its memory is freed.
void stop_in_take(model::Execution& run, bool is_retake) {
  GrowingTopic topic{4};
  (void)must(
      topic->group(
          "g",
          {.from = From::beginning, .members = 3, .in_flight = is_retake ? 1U : 4U, .lease = 1us}),
      "group");
  auto publisher = must(topic->publisher(), "publisher");
  const auto join = [&] {
    const Topic opened =
        must(Topic::open("t", Deadline::immediate(), SmallTopic::directory()), "open");
    return must(must(opened.find_group("g"), "group").join({.spin = 0ns, .patience = 0ns}), "join");
  };
  const auto take = [](Member& member) {
    auto one = member.receive(1ms);
    model::check(one || one.error().code == Errc::timeout, "take: " + describe(one.error()));
    if (!one) return false;
    const Mark mark = mark_of(std::string{one->record.text()}, false);
    model::check(mark.number == one->record.offset, "another record's bytes");
    (void)member.acknowledge(*one);  // Fails if the lease has run out.
    return true;
  };
  Member slow = join();
  Member fast = join();
  std::map<std::uint64_t, Mark> published;
  publish(publisher, 0, 8, kHalf, published);  // Four segments, of which two will be freed.
  if (is_retake) {
    const Delivery first = must(fast.receive(1ms), "take");
    model::check(fast.requeue(first).has_value(), "requeue");
  }
  const model::Thread stopped = run.thread("slow", [&] { take(slow); });
  run.suspend_at(stopped, model::random(is_retake ? 60 : 400));
  run.thread("fast", [&] {
    while (take(fast)) {
    }
    shrink(topic, 1);
  });
  if (!run.run()) return;
  model::resume(stopped);
  (void)run.run();
}
TEST(Grow, LeasesRunOutWhileSomebodyShrinks) {
  for (const bool is_retake : {false, true}) {
    EXPECT_TRUE(model::holds(model::explore(
        {.name = is_retake ? "retake" : "take", .executions = 500, .max_steps = 60'000},
        [&](model::Execution& run) { stop_in_take(run, is_retake); })));
  }
}

// ---- Why the edge is needed ---------------------------------------------------------------------

testing::AssertionResult breaks_weakened(Side side) {
  model::Options weakened = options("weakened");
  weakened.executions = 10'000;
  return model::breaks(model::explore(weakened, [&](model::Execution& run) {
    model::weaken(Edge::segment_memory, side);
    meet(run);
  }));
}

TEST(GrowEdges, AMarkMeetsAChoice) { EXPECT_TRUE(breaks_weakened(Side::rmw)); }

}  // namespace
}  // namespace leat::inline v0
