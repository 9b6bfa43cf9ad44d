// If this failed, `leat bench log` would measure other processes, or another rate, than it says.
#include "bench/leat/log.hpp"

#include <gtest/gtest.h>

#include <set>

#include "bench/floors/floors.hpp"
#include "bench/leat/crash.hpp"
#include "bench/leat/idle.hpp"

namespace leat::bench {
namespace {

using Cpus = std::vector<int>;

TEST(PlaceOn, PutsSendersFirstAndReceiversOnTheRest) {
  const auto check = [](const Cpus& cpus, std::uint32_t senders, std::uint32_t receivers,
                        const Cpus& of_senders, const Cpus& of_receivers) {
    const RolePlacement placement = place_on(cpus, senders, receivers);
    EXPECT_EQ(placement.senders.cpus, of_senders);
    EXPECT_EQ(placement.receivers.cpus, of_receivers);
  };
  check({0, 1}, 1, 1, {0}, {1});
  check({0, 1}, 2, 1, {0}, {1});
  check({0, 1}, 1, 8, {0}, {1});
  check({5}, 1, 1, {5}, {5});
  check({0, 1, 2}, 2, 1, {0, 1}, {2});
  check({0, 1, 2, 3}, 1, 8, {0}, {1, 2, 3});
  check({0, 1, 2, 3}, 8, 1, {0, 1, 2}, {3});
  check({0, 1, 2, 3}, 8, 8, {0, 1}, {2, 3});
}

TEST(Numbering, TellsWhoSentAMessageAndWhichItIs) {
  for (const std::uint32_t senders : {1u, 2u, 3u, 4u, 200u}) {
    const Numbering numbering(senders);
    std::set<std::uint64_t> seen{0};  // What untouched memory holds is no message's number.
    for (std::uint32_t sender = 0; sender < senders; ++sender) {
      for (std::uint64_t index = 0; index < 3; ++index) {
        const std::uint64_t sequence = numbering.first(sender) + index * numbering.step();
        EXPECT_TRUE(seen.insert(sequence).second);
        EXPECT_EQ(numbering.sender_of(sequence), sender);
        EXPECT_EQ(numbering.index_of(sequence), index);
      }
    }
  }
}

// A wrong record would throw.
TEST(MeasureLog, DeliversEveryRecordWhateverTheSettings) {
  const auto check = [](const LogOptions& options) {
    const MessageCost cost = measure_log(options, usable_cpus());
    EXPECT_GT(cost.ns, 0);
    EXPECT_GT(cost.per_second(), 0);
    EXPECT_GT(cost.sender_cpu_ns, 0);
    EXPECT_GT(cost.receiver_cpu_ns, 0);
    EXPECT_GE(cost.sender_wait_ns, 0);
  };
  check({.size = 0, .records = 1000});
  check({.size = 5, .records = 1000, .verify = Verify::full});
  check({.size = 100, .records = 1001, .batch = 16, .verify = Verify::full});
  check({.size = 8, .records = 1000, .publishers = 3, .subscribers = 2, .mode = Mode::shared});
  check({.size = 100,
         .records = 1000,
         .publishers = 2,
         .mode = Mode::shared,
         .batch = 3,
         .verify = Verify::full});
  check({.size = 100, .records = 100, .subscribers = 2, .rate = 100'000});
}

// At 1000 records per second 50 of them take 50 ms, whatever the machine.
TEST(MeasureLog, KeepsToTheRate) {
  const MessageCost cost = measure_log({.size = 8, .records = 50, .rate = 1000}, usable_cpus());
  EXPECT_GE(cost.ns, 1e6);
}

TEST(LogRoundTrip, ComesBackWithTheRightContent) {
  for (const Variant variant : {Variant::spinning, Variant::blocking}) {
    for (const std::size_t size : {8u, 1024u, (1u << 19) - 16}) {  // The last one is the largest.
      Load load = round_trips(size, 200, Verify::full);
      load.variant = variant;
      const RoundTrip trip = log_round_trip(load, Placement{usable_cpus()});
      EXPECT_GT(trip.round_trip_ns, 0);
      EXPECT_GE(trip.latency.max, trip.latency.p50);
      EXPECT_GT(trip.latency.p50, 0);
    }
  }
}

TEST(Floors, DeliverEveryRecord) {
  const Placement placement{usable_cpus()};
  for (const PayloadSource source : {PayloadSource::in_place, PayloadSource::copied}) {
    EXPECT_GT(
        ring_ns_per_record({.size = 100, .records = 1000, .verify = Verify::full, .source = source},
                           placement),
        0);
  }
  for (const std::size_t size : {0u, 1u, 100u, 100'000u}) {
    for (const SlotMapping mapping : {SlotMapping::writable, SlotMapping::read_only}) {
      const Load load = round_trips(size, 100, Verify::full);
      EXPECT_GT(slot_round_trip(load, placement, mapping).round_trip_ns, 0);
    }
  }
  EXPECT_GT(cache_line_round_trip_ns(100, placement), 0);
  EXPECT_GT(futex_round_trip_ns(100, placement), 0);
}

// That the gap is reported and the survivor goes on is checked inside.
TEST(MeasureKill, EverySurvivorGoesOn) {
  for (const Survivor survivor :
       {Survivor::asleep, Survivor::polling, Survivor::beside_publisher, Survivor::publisher}) {
    const Recovery recovery =
        measure_kill({.survivor = survivor, .resident_bytes = 1u << 20}, usable_cpus());
    EXPECT_GT(recovery.kill_to_release_us, 0);
    EXPECT_GE(recovery.release_to_progress_us, 0);
  }
}

// That all were waiting, and get the record in the end, is checked inside.
TEST(MeasureIdle, SubscribersWaitForARecordThatComesAtTheEnd) {
  const SignalScope signals;
  EXPECT_LT(measure_idle({.subscribers = 2, .seconds = 0.2}, usable_cpus(), signals), 200'000'000u);
}

}  // namespace
}  // namespace leat::bench
