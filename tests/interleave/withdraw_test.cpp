// If this failed, a publisher could write into room that readers have already passed as a gap, and
// its caller would get `revoked` from a topic without `revoke_after`.
//
// A living publisher has announced a claim and not marked it, and a dead one has announced the same
// claim, so nobody can tell which of the two made it. The repairer that withdraws the claim and the
// living publisher must see each other.
#include <gtest/gtest.h>

#include "leat/log/repair.hpp"
#include "small_topic.hpp"

namespace leat {
namespace {

std::uint64_t withdrawn = 0;  // Withdrawn claims, in all executions of a test.

// Makes the slot of a publisher that announced a claim, did not get it, and died at once. Nobody
// holds the lock of its identity.
void announce_and_die(const detail::MappedTopic& shared, std::uint64_t granules) {
  using namespace detail;
  const std::uint64_t identity = 1 + fetch_add<Edge::slot>(shared.header().next_identity, 1);
  const std::uint32_t index = 0;
  const PartitionView view = shared.partition(0);
  PartitionSlot& line = view.slots[index];
  store_relaxed(line.claim_word, load_relaxed(view.control->claim));
  store_relaxed(line.claim_increment, shared.geometry().claim_layout.increment(1, granules));
  store_relaxed(line.claim_segment, load_relaxed(view.control->current));
  store_relaxed(line.phase, std::uint64_t{4} | kClaiming);
  store_relaxed(shared.participant(index).state, make_state(identity, ParticipantRole::publisher));
  store_relaxed(shared.header().participant_high, index + 1);
}

// Two repairers examine the hole all the time, even while its publisher is stopped. The publisher
// must never notice, and a reader must get everything.
void withdraw_beside_a_death(model::Execution& run) {
  SmallTopic topic;
  auto directory = must(detail::open_directory(SmallTopic::directory(), false), "directory");
  auto topic_directory = must(detail::open_topic_directory(directory, "t"), "topic directory");
  const std::shared_ptr<detail::MappedTopic> shared =
      must(detail::MappedTopic::attach(topic_directory), "attach");
  announce_and_die(*shared, detail::granules_for(kSmall));
  std::map<std::uint64_t, Mark> published;
  Ledger ledger;
  auto subscriber = must(topic->subscriber(from_beginning()), "subscriber");
  auto publisher = must(topic->publisher(), "publisher");
  const model::Thread living = run.thread("publisher", [&] {
    model::suspend(model::current());
    model::count_operations();
    publish(publisher, 1, 1, kSmall, published);
  });
  if (!run.run()) return;
  run.may_stop(living, 40);
  model::resume(living);
  for (int who = 0; who < 2; ++who) {
    auto me = must(
        detail::Participant::join(shared, detail::ParticipantRole::repairer, [](std::uint32_t) {}),
        "join");
    run.thread("repairer", [&, me = std::make_shared<detail::Participant>(std::move(me))] {
      for (int i = 0; i < 3; ++i) {
        detail::Repair repair{*shared, 0, me->index()};
        (void)must(repair.fill_hole({1, 0, 0}, false), "fill_hole");
      }
    });
  }
  if (!run.run()) return;
  const std::uint64_t end = topic->info().partitions.at(0).end;
  run.thread("last", [&] { read_until(subscriber, ledger, end); });
  if (!run.run()) return;
  ledger.check_published(published);
  model::check(ledger.gaps().size() <= 1, "more than the one claim that was withdrawn");
  withdrawn += ledger.gaps().size();
}

TEST(Withdraw, ALivingPublisherNeverNotices) {
  withdrawn = 0;
  EXPECT_TRUE(model::holds(
      model::explore({.name = "withdraw", .executions = 4000}, withdraw_beside_a_death)));
  EXPECT_GT(withdrawn, 50U);
}

// ---- Why the edge is needed ---------------------------------------------------------------------

// A publisher's mark and its look at `withdrawn`, written out by hand, run beside withdraw(). Only
// the membarrier orders them. The test uses a slot without a topic, because in a whole topic the
// model rarely reaches the few operations in between.
void mark_beside_withdraw(model::Execution& run) {
  using namespace detail;
  constexpr std::uint64_t kNumber = kPhaseMask + 1;
  PartitionSlot slot{};
  std::uint64_t claim_word = 0;
  store_relaxed(slot.phase, kNumber | kClaiming);
  bool finds_withdrawal = false;
  bool was_made = false;
  Withdrawal withdrawal = Withdrawal::is_over;
  run.thread("publisher", [&] {
    std::uint64_t seen = 0;
    was_made = compare_exchange<Edge::claim>(claim_word, seen, 1);
    store_release<Edge::withdraw>(slot.phase, kNumber | kClaimed);
    finds_withdrawal = load_acquire<Edge::withdraw>(slot.withdrawn) == kNumber;
  });
  run.thread("repairer", [&] {
    if (load_acquire<Edge::claim>(claim_word) == 1)
      withdrawal = withdraw(slot, {.phase = kNumber | kClaiming});
  });
  if (!run.run()) return;
  model::check(was_made && (withdrawal != Withdrawal::done || finds_withdrawal),
               "a claim was withdrawn without its publisher noticing");
}

TEST(WithdrawEdges, EitherTheMarkOrTheWithdrawalIsSeen) {
  EXPECT_TRUE(model::holds(model::explore({.name = "mark"}, mark_beside_withdraw)));
  EXPECT_TRUE(model::breaks(model::explore({.name = "no membarrier"}, [](model::Execution& run) {
    model::drop_membarriers();
    mark_beside_withdraw(run);
  })));
}

// If the membarrier is refused, a repairer must not treat the claim as withdrawn.
TEST(WithdrawEdges, WithoutMembarrierNothingIsWithdrawn) {
  EXPECT_TRUE(model::holds(model::explore({.name = "refused"}, [](model::Execution& run) {
    model::refuse_membarriers();
    mark_beside_withdraw(run);
  })));
}

}  // namespace
}  // namespace leat
