// Liveness of participants.
#pragma once

#include "leat/log/mapped_topic.hpp"
#include "leat/log/participant.hpp"

namespace leat::inline v0::detail {

// Whether the owner of a slot with this state is dead: true only if the kernel has dropped its
// lock. About 0.6 us.
inline bool is_dead(const MappedTopic& topic, std::uint64_t state) noexcept {
  return !byte_is_locked(topic.control_fd(), lock_offset(identity_of(state)));
}

}  // namespace leat::inline v0::detail
