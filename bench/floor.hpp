// The bare floors: what two processes on this machine need at the least, without names, recovery,
// several readers or waiting. The log is measured in turns with them and judged by the ratio.
//
//     const Placement placement{{0, 1}};
//     double ns = ring_ns_per_record({.size = 100, .records = 5'000'000}, placement);
//     RoundTrip trip = slot_round_trip({.size = 100, .count = 500'000}, placement);
//
// Each call forks two processes, measures once, checks every payload and throws Failure if one was
// wrong. Memory is mapped and touched, and a warm-up has passed, before the time starts.
#pragma once

#include <cstddef>
#include <cstdint>

#include "payload.hpp"
#include "processes.hpp"
#include "round_trip.hpp"

namespace leat::bench {

// One word in one cache line, changed by either side in turn.
double cache_line_round_trip_ns(std::uint64_t count, const Placement& placement);

// How the receiver of a slot maps it. The log's subscribers map records read-only, and some
// processors hand a cache line over in another way then.
enum class SlotMapping { writable, read_only };

// One slot per direction: an 8-byte sequence number and the payload. The peer copies the payload
// out and sends the whole of it back.
RoundTrip slot_round_trip(const RoundTripOptions& options, const Placement& placement,
                          SlotMapping mapping = SlotMapping::writable);

// Where the writer of the ring has its payload from.
enum class PayloadSource {
  in_place,  // Written straight into the slot, as into a claim.
  copied,    // Copied from memory of the writer's, as publish(bytes) does.
};

struct RingOptions {
  std::size_t size = 8;
  std::uint64_t records = 10'000'000;
  Verify verify = Verify::ends;
  PayloadSource source = PayloadSource::in_place;
  // How long the reader pauses after it found nothing. One pause is the bare ring. With more of
  // them it falls behind, then reads many records in a row: dearer in latency, cheaper per record,
  // because the two no longer fight for the line that is being written.
  std::uint32_t pauses_when_empty = 1;
};

// One writer, one reader: slots of an 8-byte sequence number and the payload, rounded to 8 bytes,
// the largest power of two of them within 8 MiB. The reader reports its progress every eighth.
double ring_ns_per_record(const RingOptions& options, const Placement& placement);

}  // namespace leat::bench
