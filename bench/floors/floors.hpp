// The floors: the least that two processes on this machine need, without names, recovery, several
// readers or waiting. Leat is measured in turns with them; its ratio to them is what counts.
//
//     const Placement placement{{0, 1}};
//     double ns = ring_ns_per_record({.size = 100, .records = 5'000'000}, placement);
//     RoundTrip trip = slot_round_trip(round_trips(100, 500'000), placement);
//
// Each call measures once, by the same harness as everything else: it forks two processes, checks
// every payload and throws Failure if one was wrong. Memory is mapped and touched, and a warm-up has
// passed, before the time starts.
#pragma once

#include <cstddef>
#include <cstdint>

#include "bench/harness/round_trip.hpp"

namespace leat::bench {

inline constexpr std::uint64_t kCacheLineTrips = 20'000;  // Enough beside another measurement.
// One word in one cache line, changed by each side in turn.
double cache_line_round_trip_ns(std::uint64_t count, const Placement& placement);

// Two processes that put each other to sleep and wake each other, by a word each.
double futex_round_trip_ns(std::uint64_t count, const Placement& placement);

// How the receiver of a slot maps it. The log's subscribers map records read-only, and some processors
// then transfer a cache line in a different way.
enum class SlotMapping { writable, read_only };

// One slot in each direction: an 8-byte sequence number and the payload. Each side copies the payload
// out; the answerer sends the whole of it back.
RoundTrip slot_round_trip(const Load& load, const Placement& placement,
                          SlotMapping mapping = SlotMapping::writable);

// Where the ring's writer has its payload from.
enum class PayloadSource {
  in_place,  // Written straight into the slot, as into a claim.
  copied,    // Copied from the writer's own memory, as publish(bytes) does.
};

struct RingOptions {
  std::size_t size = 8;
  std::uint64_t records = 10'000'000;
  Verify verify = Verify::ends;
  PayloadSource source = PayloadSource::in_place;
  // How often the reader pauses after it has found nothing. The bare ring pauses once. With many
  // pauses it falls behind, then reads many records in a row: a higher latency, but less time per
  // record, because reader and writer no longer compete for the cache line that is being written.
  std::uint32_t pauses_when_empty = 1;
};

// One writer, one reader: slots of an 8-byte sequence number and the payload, rounded up to 8 bytes;
// as many as fit into 8 MiB, rounded down to a power of two. The reader reports its progress every
// eighth of the ring.
double ring_ns_per_record(const RingOptions& options, const Placement& placement);

}  // namespace leat::bench
