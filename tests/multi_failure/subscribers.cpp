// The subscribers of a multi-failure test: one that reads everything and compares it
// with the ledger, and victims.
#include <vector>

#include "world.hpp"

namespace leat::testing {
namespace {

std::vector<Trail> trails(const World& world, const std::string& name) {
  std::vector<Trail> all;
  for (std::uint32_t i = 0; i < world.options.partitions; ++i)
    all.emplace_back(name + ", partition " + std::to_string(i));
  return all;
}

int report(const std::vector<std::string>& complaints) {
  for (const std::string& complaint : complaints) std::fprintf(stderr, "%s\n", complaint.c_str());
  return complaints.empty() ? 0 : 1;
}

// What is wrong with what was read from a partition.
std::vector<std::string> judge(const World& world, const Trail& trail, std::uint32_t partition) {
  std::vector<std::string> complaints =
      compare(world.shared->ledger, trail,
              [&](std::uint32_t number) { return number % kMaxPartitions == partition; });
  if (trail.first() != 0) complaints.push_back(trail.name() + " did not begin at 0");
  if (trail.gaps(GapReason::overwritten) != 0)
    complaints.push_back(trail.name() + " lost records although it is gating");
  if (world.options.revoke_after == 0ns && trail.gaps(GapReason::revoked) != 0)
    complaints.push_back(trail.name() + " saw a claim revoked");
  const std::uint64_t end = world.shared->end[partition];
  if (trail.next() != end) {
    complaints.push_back(trail.name() + " is stuck at " + std::to_string(trail.next()) + " of " +
                         std::to_string(end));
  }
  return complaints;
}

}  // namespace

int read_everything(Actor& self) {
  World& world = self.world;
  const Topic topic = world.open();
  auto subscriber = topic.subscriber({.from = From::beginning});
  CHILD_CHECK_OK(subscriber);
  ++world.shared->joined;
  std::vector<Trail> all = trails(world, "reader");
  subscriber->on_event([&](const Event& event) { all[event.partition].on_event(event); });
  const auto read_some = [&] {
    (void)subscriber->wait(5ms);
    auto count = subscriber->poll(
        100, [&](const Record& record) { all[record.partition].on_record(record); });
    CHILD_CHECK_OK(count);
    if (*count != 0) self.goes_on();
  };
  while (!world.shared->all_stop) read_some();
  const Deadline late{kPatience};
  const auto is_done = [&] {
    for (std::uint32_t i = 0; i < world.options.partitions; ++i) {
      if (all[i].next() < world.shared->end[i]) return false;
    }
    return true;
  };
  while (!is_done() && !late.passed()) read_some();
  int status = 0;
  for (std::uint32_t i = 0; i < world.options.partitions; ++i)
    status |= report(judge(world, all[i], i));
  return status;
}

int subscribe(Actor& self) {
  World& world = self.world;
  const Topic topic = world.open();
  while (!self.must_end()) {
    const bool is_lossy = self.below(2) == 0;
    const SubscriberOptions options{.from = self.below(2) == 0 ? From::beginning : From::end,
                                    .gating = !is_lossy,
                                    .in_place = is_lossy && self.below(2) == 0,
                                    .spin = std::chrono::microseconds{self.below(2) * 20}};
    auto subscriber = join_at_last([&] { return topic.subscriber(options); });
    std::vector<Trail> all = trails(world, is_lossy ? "lossy victim" : "gating victim");
    subscriber->on_event([&](const Event& event) { all[event.partition].on_event(event); });
    for (std::uint64_t left = 20 + self.below(500); left != 0 && !self.must_end(); --left) {
      (void)subscriber->wait(std::chrono::microseconds{self.below(5000)});
      CHILD_CHECK_OK(subscriber->poll(1 + self.below(100), [&](const Record& record) {
        all[record.partition].on_record(record);
      }));
      if (self.below(500) == 0) fork_a_child(self);
    }
    for (const Trail& trail : all) {
      if (report(trail.complaints()) != 0) return 1;
    }
  }
  return 0;
}

}  // namespace leat::testing
