// Members of consumer groups in C.
#include <span>

#include "capi/handles.hpp"

namespace leat::capi {
namespace {

std::int32_t to_options(const leat_member_options* given, MemberOptions& options) {
  leat_member_options from = LEAT_MEMBER_OPTIONS_INIT;
  if (const std::int32_t wrong = read_options(given, from); wrong != LEAT_OK) return wrong;
  if (!are_flags(from.any_thread, from.interruptible) || from.reserved != 0 || from.spin_ns < 0 ||
      from.patience_ns < 0 || !read_text(from.name, options.name))
    return LEAT_ERR_INVALID_ARGUMENT;
  options.spin = std::chrono::nanoseconds{from.spin_ns};
  options.patience = std::chrono::nanoseconds{from.patience_ns};
  options.any_thread = from.any_thread != 0;
  options.interruptible = from.interruptible != 0;
  return LEAT_OK;
}

void put_delivery(leat_delivery& to, const Delivery& from) noexcept {
  const auto parts = leat::detail::DeliveryParts::of(from);
  put_record(to.record, from.record);
  to.deliveries = from.deliveries;
  to.reserved = 0;
  to.state = parts.state;
  to.position = parts.position;
  to.entry = parts.entry;
}

// Stores the first gaps that were found and not stored yet, and forgets them. Returns how many.
std::uint32_t put_gaps(leat_member& member, leat_delivery* into, std::size_t capacity) noexcept {
  const std::size_t count = std::min(member.gaps.size(), capacity);
  for (std::size_t i = 0; i < count; ++i) {
    into[i] = {};
    put_gap(into[i].record, member.gaps[i]);
  }
  if (count != 0)
    member.gaps.erase(member.gaps.begin(),
                      member.gaps.begin() + static_cast<std::ptrdiff_t>(count));
  return static_cast<std::uint32_t>(count);
}

// The same for records that were received.
std::uint32_t put_received(leat_member& member, leat_delivery* into,
                           std::size_t capacity) noexcept {
  const std::size_t count = std::min(member.received.size(), capacity);
  for (std::size_t i = 0; i < count; ++i) put_delivery(into[i], member.received[i]);
  member.received.erase(member.received.begin(),
                        member.received.begin() + static_cast<std::ptrdiff_t>(count));
  return static_cast<std::uint32_t>(count);
}

// Member::receive_copy() for the first record that was received and not stored.
Result<std::size_t> copy_received(leat_member& member, std::span<std::byte> room) {
  const Bytes value = member.received.front().record.value;
  if (value.size() > room.size())
    return Error{Errc::buffer_too_small, static_cast<std::int32_t>(value.size())};
  std::copy(value.begin(), value.end(), room.begin());
  const std::size_t size = value.size();
  auto done = member.member.acknowledge(member.received.front());
  member.received.erase(member.received.begin());
  if (!done) return done.error();
  return size;
}

bool is_gap(const leat_delivery& delivery) noexcept {
  return (delivery.record.flags & LEAT_RECORD_IS_GAP) != 0;
}

// What the library needs to know of a delivery to settle it. False: it cannot be one.
bool read_delivery(const leat_member& member, const leat_delivery& from, Delivery& into) noexcept {
  if (is_gap(from) || from.record.partition >= member.partitions) return false;
  into = leat::detail::DeliveryParts{.state = from.state,
                                     .position = from.position,
                                     .entry = from.entry,
                                     .partition = from.record.partition}
             .delivery();
  return true;
}

}  // namespace
}  // namespace leat::capi

using namespace leat;
using namespace leat::capi;

std::int32_t leat_group_join(leat_group* group, const leat_member_options* options,
                             leat_member** member, std::int32_t* detail) {
  if (member == nullptr) return LEAT_ERR_INVALID_ARGUMENT;
  *member = nullptr;
  if (group == nullptr) return LEAT_ERR_INVALID_ARGUMENT;
  if (is_forked(*group)) return LEAT_ERR_FORKED;
  return guarded(detail, [&] {
    MemberOptions wanted;
    if (const std::int32_t wrong = to_options(options, wanted); wrong != LEAT_OK) return wrong;
    auto joined = group->group.join(wanted);
    if (!joined) return failed(joined.error(), detail);
    auto made = std::make_unique<leat_member>(
        leat_member{.member = std::move(*joined), .partitions = group->partitions});
    made->member.on_event([gaps = &made->gaps](const Event& gap) { gaps->push_back(gap); });
    *member = made.release();
    return LEAT_OK;
  });
}

std::int32_t leat_member_close(leat_member** member) { return close(member); }

std::int32_t leat_member_receive(leat_member* member, leat_delivery* deliveries,
                                 std::uint32_t capacity, std::uint32_t* count,
                                 std::int64_t timeout_ns, std::int32_t* detail) {
  if (member == nullptr || deliveries == nullptr || capacity == 0 || count == nullptr ||
      !is_timeout(timeout_ns))
    return LEAT_ERR_INVALID_ARGUMENT;
  *count = 0;
  if (is_forked(*member)) return LEAT_ERR_FORKED;
  const std::uint32_t old_gaps = put_gaps(*member, deliveries, capacity);
  *count = old_gaps;
  if (old_gaps == capacity) return LEAT_OK;
  const std::int32_t code = guarded(detail, [&] {
    Error failure;
    if (member->received.empty()) {  // Otherwise the last call failed with them in its hands.
      auto received =
          member->member.receive(member->received, capacity - old_gaps,
                                 old_gaps != 0 ? Deadline::immediate() : deadline_of(timeout_ns));
      failure = received.error();
    }
    const std::size_t room = capacity - old_gaps;
    const std::size_t records = std::min(room, member->received.size());
    *count += put_gaps(*member, deliveries + *count, room - records);
    *count += put_received(*member, deliveries + *count, records);
    return *count != 0 ? LEAT_OK : failed(failure, detail);
  });
  return *count != 0 ? LEAT_OK : code;  // Without memory, what was found before is returned, too.
}

std::int32_t leat_member_receive_copy(leat_member* member, void* buffer, std::uint64_t capacity,
                                      std::uint64_t* size, std::int64_t timeout_ns,
                                      std::int32_t* detail) {
  if (member == nullptr || is_nowhere(buffer, capacity) || size == nullptr ||
      !is_timeout(timeout_ns))
    return LEAT_ERR_INVALID_ARGUMENT;
  *size = 0;
  return guarded(detail, [&] {
    const std::span<std::byte> room{static_cast<std::byte*>(buffer), capacity};
    auto copied = member->received.empty()
                      ? member->member.receive_copy(room, deadline_of(timeout_ns))
                      : copy_received(*member, room);
    if (copied.error() == Errc::buffer_too_small)
      *size = static_cast<std::uint32_t>(copied.error().system_error);
    return code_of(copied, size, detail);
  });
}

std::int32_t leat_member_acknowledge(leat_member* member, const leat_delivery* delivery) {
  if (member == nullptr || delivery == nullptr) return LEAT_ERR_INVALID_ARGUMENT;
  if (is_forked(*member)) return LEAT_ERR_FORKED;
  return guarded(nullptr, [&]() -> std::int32_t {
    Delivery named;
    if (!read_delivery(*member, *delivery, named)) return LEAT_ERR_NOT_IN_FLIGHT;
    return code_of(member->member.acknowledge(named), nullptr);
  });
}

std::int32_t leat_member_acknowledge_some(leat_member* member, const leat_delivery* deliveries,
                                          std::uint64_t count, std::uint64_t* acknowledged) {
  if (member == nullptr || is_nowhere(deliveries, count)) return LEAT_ERR_INVALID_ARGUMENT;
  if (acknowledged != nullptr) *acknowledged = 0;
  if (is_forked(*member)) return LEAT_ERR_FORKED;
  return guarded(nullptr, [&]() -> std::int32_t {
    member->named.clear();
    bool any_wrong = false;
    for (std::uint64_t i = 0; i < count; ++i) {
      if (is_gap(deliveries[i])) continue;
      if (!read_delivery(*member, deliveries[i], member->named.emplace_back())) {
        member->named.pop_back();
        any_wrong = true;
      }
    }
    if (any_wrong && member->named.empty()) return LEAT_ERR_NOT_IN_FLIGHT;
    return code_of(member->member.acknowledge(std::span<const Delivery>{member->named}),
                   acknowledged, nullptr);
  });
}

std::int32_t leat_member_acknowledge_up_to(leat_member* member, const leat_delivery* delivery,
                                           std::uint64_t* acknowledged) {
  if (member == nullptr || delivery == nullptr) return LEAT_ERR_INVALID_ARGUMENT;
  if (acknowledged != nullptr) *acknowledged = 0;
  if (is_forked(*member)) return LEAT_ERR_FORKED;
  return guarded(nullptr, [&]() -> std::int32_t {
    Delivery named;
    if (!read_delivery(*member, *delivery, named)) return LEAT_ERR_NOT_IN_FLIGHT;
    return code_of(member->member.acknowledge_up_to(named), acknowledged, nullptr);
  });
}

std::int32_t leat_member_acknowledge_all(leat_member* member, std::uint64_t* acknowledged) {
  if (member == nullptr) return LEAT_ERR_INVALID_ARGUMENT;
  if (acknowledged != nullptr) *acknowledged = 0;
  return guarded(nullptr,
                 [&] { return code_of(member->member.acknowledge_all(), acknowledged, nullptr); });
}

std::int32_t leat_member_requeue(leat_member* member, const leat_delivery* delivery,
                                 std::int64_t delay_ns) {
  if (member == nullptr || delivery == nullptr || delay_ns < 0) return LEAT_ERR_INVALID_ARGUMENT;
  if (is_forked(*member)) return LEAT_ERR_FORKED;
  return guarded(nullptr, [&]() -> std::int32_t {
    Delivery named;
    if (!read_delivery(*member, *delivery, named)) return LEAT_ERR_NOT_IN_FLIGHT;
    return code_of(member->member.requeue(named, std::chrono::nanoseconds{delay_ns}), nullptr);
  });
}

std::int32_t leat_member_wait(leat_member* member, std::int64_t timeout_ns) {
  if (member == nullptr || !is_timeout(timeout_ns)) return LEAT_ERR_INVALID_ARGUMENT;
  if (is_forked(*member)) return LEAT_ERR_FORKED;
  if (!member->gaps.empty() || !member->received.empty()) return LEAT_OK;
  return guarded(nullptr,
                 [&] { return code_of(member->member.wait(deadline_of(timeout_ns)), nullptr); });
}

std::int32_t leat_member_wait_fd(leat_member* member, std::int32_t* fd, std::int32_t* detail) {
  if (member == nullptr || fd == nullptr) return LEAT_ERR_INVALID_ARGUMENT;
  *fd = -1;
  return guarded(detail, [&] { return code_of(member->member.wait_fd(), fd, detail); });
}

std::int32_t leat_member_in_flight(leat_member* member, std::uint64_t* count) {
  if (member == nullptr || count == nullptr) return LEAT_ERR_INVALID_ARGUMENT;
  *count = 0;
  if (is_forked(*member)) return LEAT_ERR_FORKED;
  *count = member->member.in_flight();
  return LEAT_OK;
}

std::int32_t leat_member_stop(leat_member* member) {
  return stop_waits(member, &leat_member::member);
}
std::int32_t leat_member_resume(leat_member* member) {
  return resume_waits(member, &leat_member::member);
}
std::int32_t leat_member_is_stopped(leat_member* member, std::uint32_t* is_stopped) {
  return waits_are_stopped(member, &leat_member::member, is_stopped);
}
