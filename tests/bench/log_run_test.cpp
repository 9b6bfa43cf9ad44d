// If this failed, `leat bench log` would run on other CPUs, or at another rate, than it prints.
#include "bench/log_run.hpp"

#include <gtest/gtest.h>

#include "bench/crash_run.hpp"
#include "bench/floor.hpp"
#include "bench/log_round_trip.hpp"

namespace leat::bench {
namespace {

using Cpus = std::vector<int>;

TEST(PlaceLog, PutsPublishersFirstAndSubscribersOnTheRest) {
  const auto check = [](const Cpus& cpus, std::uint32_t publishers, std::uint32_t subscribers,
                        const Cpus& of_publishers, const Cpus& of_subscribers) {
    const LogPlacement placement = place_log(cpus, publishers, subscribers);
    EXPECT_EQ(placement.publishers.cpus, of_publishers);
    EXPECT_EQ(placement.subscribers.cpus, of_subscribers);
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

TEST(PublisherBits, TellSeveralPublishersApart) {
  EXPECT_EQ(publisher_bits(1), 0u);
  EXPECT_EQ(publisher_bits(2), 1u);
  EXPECT_EQ(publisher_bits(3), 2u);
  EXPECT_EQ(publisher_bits(4), 2u);
  EXPECT_EQ(publisher_bits(200), 8u);
}

// measure_log() throws if a record is wrong.
TEST(MeasureLog, DeliversEveryRecordWhateverTheSettings) {
  const auto check = [](const LogOptions& options) {
    const LogCost cost = measure_log(options, usable_cpus());
    EXPECT_GT(cost.ns_per_record, 0);
    EXPECT_GT(cost.records_per_second(), 0);
    EXPECT_GT(cost.publisher_cpu_ns_per_record, 0);
    EXPECT_GT(cost.subscriber_cpu_ns_per_record, 0);
    EXPECT_GE(cost.publisher_wait_ns_per_record, 0);
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

// At 1000 records per second, 50 records take 50 ms on any machine.
TEST(MeasureLog, KeepsToTheRate) {
  const LogCost cost = measure_log({.size = 8, .records = 50, .rate = 1000}, usable_cpus());
  EXPECT_GE(cost.ns_per_record, 1e6);
}

TEST(LogRoundTrip, ComesBackWithTheRightContent) {
  for (const Waiting waiting : {Waiting::polling, Waiting::sleeping}) {
    for (const std::size_t size : {std::size_t{8}, std::size_t{1024}}) {
      const RoundTrip trip = log_round_trip({.size = size, .count = 200, .verify = Verify::full},
                                            waiting, Placement{usable_cpus()});
      EXPECT_GT(trip.round_trip_ns, 0);
      EXPECT_GE(trip.percentiles.max_ns, trip.percentiles.p50_ns);
      EXPECT_GT(trip.percentiles.p50_ns, 0);
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
  EXPECT_GT(
      slot_round_trip({.size = 100, .count = 100, .verify = Verify::full}, placement).round_trip_ns,
      0);
}

// measure_kill() itself checks that the gap is reported and that the survivor continues.
TEST(MeasureKill, EverySurvivorGoesOn) {
  for (const Survivor survivor :
       {Survivor::asleep, Survivor::polling, Survivor::beside_publisher, Survivor::publisher}) {
    const Recovery recovery =
        measure_kill({.survivor = survivor, .resident_bytes = 1u << 20}, usable_cpus());
    EXPECT_GT(recovery.kill_to_release_us, 0);
    EXPECT_GE(recovery.release_to_progress_us, 0);
  }
}

}  // namespace
}  // namespace leat::bench
