// How a consumer group that was deleted leaves its topic.
//
// By force it is closed while members live. It holds no more room then but that of the records which
// they have in hand, until their next call tells them (or they die): what is read in place stays. The
// last one to let go takes the group out; if it dies over that, whoever next makes, opens or deletes a
// group of the topic does. docs/internals/groups.md, "Groups come and go".
#pragma once

#include <new>
#include <string>
#include <utility>

#include "leat/log/participants.hpp"

namespace leat::inline v0::detail {

inline bool has_living_members(const SharedTopic& topic, const GroupView& group) noexcept {
  for (std::uint32_t i = 0; i < group.seat_high(); ++i) {
    // [group] seq_cst: `closed` was set before; a member takes its seat, then looks at it.
    const std::uint64_t identity = load_seq_cst<Edge::group>(group.seat(i).identity);
    if (identity != 0 && byte_is_locked(topic.control_fd(), lock_offset(identity))) return true;
  }
  return false;
}

// Publishers do not look at it any more. Under the topic's group lock, as the next one.
inline void take_group_out(SharedTopic& topic, std::uint32_t slot) {
  const std::uint64_t number = exchange<Edge::group>(topic.header().groups[slot], 0);
  LEAT_CRASH_POINT("group:out");
  delete_file_at(topic.directory_fd(), group_file_name(number).c_str());
  topic.wake_everybody();
}

// Closed, and nobody alive has a seat.
inline bool is_left(SharedTopic& topic, std::uint32_t slot) {
  if (topic.group_number(slot) == 0) return false;
  auto group = topic.group(slot);
  return group && *group != nullptr && (*group)->is_closed() && !has_living_members(topic, **group);
}

inline void take_closed_groups_out(SharedTopic& topic) {
  for (std::uint32_t slot = 0; slot < kMaxGroups; ++slot) {
    if (is_left(topic, slot)) take_group_out(topic, slot);
  }
}

inline bool has_group_to_take_out(SharedTopic& topic) {
  for (std::uint32_t slot = 0; slot < kMaxGroups; ++slot) {
    if (is_left(topic, slot)) return true;
  }
  return false;
}

// Called by a member that has let go of a closed group, and by whoever has let go of the group lock: a
// member that could not get it has let go of its group before.
inline void finish_closing(SharedTopic& topic) noexcept {
  try {
    while (has_group_to_take_out(topic)) {
      auto file = topic.open_control_to_lock();
      if (!file) return;
      auto locked = file->try_lock(kGroupLock);
      if (!locked || !*locked) return;  // Whoever has it looks after that.
      take_closed_groups_out(topic);
    }
  } catch (const std::bad_alloc&) {  // Left to who takes the lock next.
  }
}

// The topic's group lock, as long as this lives.
class GroupLock {
 public:
  GroupLock(SharedTopic& topic, LockFile file) noexcept : topic_{&topic}, file_{std::move(file)} {}
  GroupLock(GroupLock&& other) noexcept
      : topic_{std::exchange(other.topic_, nullptr)}, file_{std::move(other.file_)} {}
  GroupLock& operator=(GroupLock&&) = delete;
  ~GroupLock() {
    if (topic_ == nullptr) return;
    file_.close();
    LEAT_CRASH_POINT("group:unlocked");
    finish_closing(*topic_);
  }

 private:
  SharedTopic* topic_;
  LockFile file_;
};

}  // namespace leat::inline v0::detail
