#include "group_reader.hpp"

#include <algorithm>

#include "broker/net/large_messages.hpp"

namespace leat::broker {

Outcome<GroupReader> GroupReader::open(const Group& group) {
  const auto problem = [](Error error) {
    return Problem{error.code, "cannot join the consumer group: " + describe(error)};
  };
  auto member = group.join({.name = "leat-serve", .spin = {}, .patience = {}});
  if (!member) return problem(member.error());
  member->read_memory_only(true);
  auto fd = member->wait_fd();
  if (!fd) return problem(fd.error());
  return GroupReader{std::move(*member), *fd, group.options()};
}

void GroupReader::receive(const Limits& limits) {
  static constexpr std::atomic<bool> kNever = false;
  receive(limits, kNever);
}

void GroupReader::receive_from_disk(const Limits& limits, const std::atomic<bool>& is_over) {
  member.read_memory_only(false);
  receive(limits, is_over);
  member.read_memory_only(true);
}

// Few large ones: those of a durable topic are copies.
void GroupReader::receive(const Limits& limits, const std::atomic<bool>& is_over) {
  constexpr std::size_t kStep = 64;
  received.clear();
  is_full = false;
  failure = {};
  std::size_t bytes = 0;
  while (received.size() < limits.records && bytes < limits.bytes && !is_over) {
    const std::size_t step =
        std::min(std::clamp<std::size_t>(LargeMessages::kSmall / record_bytes, 1, kStep),
                 limits.records - received.size());
    auto count = member.receive(received, step, Deadline::immediate());
    if (!count) {
      is_full = count.error() == Errc::in_flight_full;
      if (!is_full && count.error() != Errc::timeout) failure = count.error();
      return;
    }
    if (*count == 0) return;
    std::size_t of_step = 0;
    for (std::size_t i = received.size() - *count; i < received.size(); ++i)
      of_step += received[i].record.value.size();
    bytes += of_step;
    record_bytes = std::max<std::size_t>({1, of_step / *count, record_bytes / 2});
    if (*count < step || has_lease) return;  // With a lease, the next call overwrites these.
  }
}

}  // namespace leat::broker
