// If this failed, a member of a group with a lease that is stopped while it takes a record could,
// when it continues, hand out the bytes of another record.
#include <gtest/gtest.h>

#include <set>

#include "small_topic.hpp"

namespace leat {
namespace {

Member join() {
  const Topic topic =
      must(Topic::open("t", Deadline::immediate(), SmallTopic::directory()), "open");
  return must(must(topic.find_group("g"), "find group").join({.spin = 0ns, .patience = 0ns}),
              "join");
}

// A member stops while it takes a returned record, or parks one whose key another member holds. It
// resumes after others have acknowledged that record and its memory was reused.
void stop_in_take(model::Execution& run, bool by_key) {
  SmallTopic topic{{.capacity_bytes = 3 * kSegment}};
  (void)must(
      topic->group(
          "g",
          {.from = From::beginning, .by_key = by_key, .members = 3, .in_flight = 1, .lease = 1us}),
      "group");
  auto publisher = must(topic->publisher(), "publisher");
  constexpr std::uint32_t kLeased = 8;
  std::set<std::uint64_t> acknowledged;
  bool is_published = false;
  const auto publish_one = [&](std::uint32_t number) {
    const std::string payload = payload_of({0, number}, by_key ? kHalf - 64 : kHalf);
    NewRecord record{.value = payload};
    if (by_key) record.key = "k";
    (void)must(publisher.publish(record), "publish");
  };
  const auto take = [&](Member& member) {
    const std::set<std::uint64_t> before = acknowledged;
    auto one = member.receive(1ms);
    model::check(one || one.error().code == Errc::timeout, "take: " + describe(one.error()));
    if (!one) return false;
    const std::uint64_t offset = one->record.offset;
    const Mark mark = mark_of(std::string{one->record.text()}, false);
    model::check(mark.number == offset, "another record's bytes");
    model::check(!before.contains(offset), "delivered again after it was acknowledged");
    if (member.acknowledge(*one)) acknowledged.insert(offset);  // Fails if the lease has run out.
    return true;
  };
  Member slow = join();
  Member fast = join();
  publish_one(0);
  if (by_key) publish_one(1);
  const Delivery first = must(fast.receive(1ms), "take");
  if (!by_key) model::check(fast.requeue(first).has_value(), "requeue");

  const model::Thread stopped = run.thread("slow", [&] { take(slow); });
  run.suspend_at(stopped, model::random(by_key ? 120 : 60));
  run.thread("fast", [&] {
    if (by_key && fast.acknowledge(first)) acknowledged.insert(0);
    while (take(fast) || !is_published) {
    }
  });
  run.thread("publisher", [&] {
    for (std::uint32_t i = by_key ? 2 : 1; i < kLeased; ++i) publish_one(i);
    is_published = true;
  });
  if (!run.run()) return;
  model::resume(stopped);
  run.thread("last", [&] {
    while (take(fast)) {
    }
  });
  run.run();
}
TEST(Lease, WhoLosesARecordWhileTakingItSeesNoOtherBytes) {
  // By key, a member that stops in a take blocks others that need its key, and so the publisher.
  for (const bool by_key : {false, true}) {
    EXPECT_TRUE(
        model::holds(model::explore({.name = by_key ? "by key" : "retake",
                                     .executions = 300,
                                     .max_steps = 60'000,
                                     .abandoned_allowed = by_key ? 0.2 : 0},
                                    [&](model::Execution& run) { stop_in_take(run, by_key); })));
  }
}

}  // namespace
}  // namespace leat
