// How a dispatcher receives records: on the loop only those in memory, on the thread of a BlockingWorker all.
//
//     reader.receive({.records = 512, .bytes = 65536}, is_over);
//     deal(reader.received);
//
// Used by one thread at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <utility>
#include <vector>

#include "leat/leat.hpp"
#include "outcome/outcome.hpp"

namespace leat::broker {

struct GroupReader {
  // What is enough. The last record may exceed the bytes.
  struct Limits {
    std::size_t records = 0;
    std::size_t bytes = 0;
  };

  // Joins the group. On any thread: it may block.
  static Outcome<GroupReader> open(const Group& group);

  // Receives what is in memory.
  void receive(const Limits& limits);
  // Receives what is in memory or on disk; ends early once `is_over`.
  void receive_from_disk(const Limits& limits, const std::atomic<bool>& is_over);

  Member member;
  int fd;                 // Readable when there may be something to receive.
  std::size_t in_flight;  // Records that the group allows it.
  bool has_lease;
  // Outcome of the last receive.
  std::vector<Delivery> received;
  bool is_full = false;  // The member holds as many records as it may.
  Error failure;
  std::size_t record_bytes = 1u << 20;  // As large as records were lately; at first, who knows.

 private:
  GroupReader(Member joined, int wait_fd, const GroupOptions& options)
      : member{std::move(joined)},
        fd{wait_fd},
        in_flight{options.in_flight},
        has_lease{options.lease.count() != 0} {}
  void receive(const Limits& limits, const std::atomic<bool>& is_over);
};

}  // namespace leat::broker
