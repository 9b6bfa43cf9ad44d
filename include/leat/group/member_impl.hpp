// The functions of Member, which call its MemberCore.
#pragma once

#include <span>
#include <utility>

#include "leat/base/config.hpp"
#include "leat/group/member_session.hpp"
#include "leat/member.hpp"

namespace leat::inline v0 {

LEAT_INLINE void detail::LeaveGroup::operator()(MemberCore* core) const noexcept {
  core->destroy();
}

LEAT_INLINE Member::Member(Core core) noexcept : core_{std::move(core)} {}
LEAT_INLINE Member::Member(Member&&) noexcept = default;
LEAT_INLINE Member& Member::operator=(Member&&) noexcept = default;
LEAT_INLINE Member::~Member() = default;

LEAT_INLINE Result<Delivery> Member::receive(const Deadline& deadline,
                                             const std::stop_token& stop) {
  return core_->receive(deadline, stop);
}
LEAT_INLINE Result<std::size_t> Member::receive(std::vector<Delivery>& into, std::size_t limit,
                                                const Deadline& deadline,
                                                const std::stop_token& stop) {
  return core_->receive(into, limit, deadline, stop);
}
LEAT_INLINE Result<std::size_t> Member::receive_copy(std::span<std::byte> buffer,
                                                     const Deadline& deadline,
                                                     const std::stop_token& stop) {
  return core_->receive_copy(buffer, deadline, stop);
}
LEAT_INLINE Result<std::size_t> Member::poll(std::size_t limit, void* context,
                                             void (*on_delivery)(void*, const Delivery&)) {
  return core_->poll(limit, context, on_delivery);
}
LEAT_INLINE Result<void> Member::acknowledge(const Delivery& delivery) {
  return core_->acknowledge(delivery);
}
LEAT_INLINE Result<std::size_t> Member::acknowledge(std::span<const Delivery> deliveries) {
  return core_->acknowledge(deliveries);
}
LEAT_INLINE Result<std::size_t> Member::acknowledge_up_to(const Delivery& delivery) {
  return core_->acknowledge_up_to(delivery);
}
LEAT_INLINE Result<std::size_t> Member::acknowledge_all() { return core_->acknowledge_all(); }
LEAT_INLINE Result<void> Member::requeue(const Delivery& delivery, std::chrono::nanoseconds delay) {
  return core_->requeue(delivery, delay);
}
LEAT_INLINE Result<void> Member::wait(const Deadline& deadline, const std::stop_token& stop) {
  return core_->wait(deadline, stop);
}
LEAT_INLINE Result<void> Member::wait(const Deadline& deadline, int stop_fd) {
  return core_->wait(deadline, stop_fd);
}
LEAT_INLINE Result<int> Member::wait_fd(const std::stop_token& stop) {
  return core_->wait_fd(stop);
}
LEAT_INLINE void Member::stop_waits() noexcept { core_->stop_waits(); }
LEAT_INLINE void Member::resume_waits() noexcept { core_->resume_waits(); }
LEAT_INLINE bool Member::waits_are_stopped() const noexcept { return core_->waits_are_stopped(); }
LEAT_INLINE void Member::on_event(Callback<void(const Event&)> on_event) {
  core_->on_event(std::move(on_event));
}
LEAT_INLINE void Member::read_memory_only(bool is_on) noexcept { core_->read_memory_only(is_on); }
LEAT_INLINE bool Member::next_is_on_disk() const noexcept { return core_->next_is_on_disk(); }
LEAT_INLINE std::size_t Member::in_flight() const noexcept { return core_->in_flight(); }
LEAT_INLINE void Member::set_spin(std::chrono::nanoseconds spin) noexcept { core_->set_spin(spin); }

}  // namespace leat::inline v0
