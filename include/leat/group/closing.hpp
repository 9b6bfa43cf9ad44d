// Taking a deleted consumer group out of its topic.
//
// A group that is deleted by force is closed while members are alive. From then on it holds only
// the room of records in their hands, so that what they read in place stays valid, until they
// notice with their next call, or die. The last member to let go takes the group out; if it dies
// before that is done, the next process that creates, opens or deletes a group of the topic does
// it. docs/internals/groups.md, "Groups come and go".
#pragma once

#include <new>
#include <string>
#include <utility>

#include "leat/log/participants.hpp"

namespace leat::inline v0::detail {

inline bool has_living_members(const MappedTopic& topic, const GroupView& group) noexcept {
  for (std::uint32_t i = 0; i < group.seat_high(); ++i) {
    // [group] seq_cst: `closed` was stored before. A member takes its seat, then reads `closed`.
    const std::uint64_t identity = load_seq_cst<Edge::group>(group.seat(i).identity);
    if (identity != 0 && byte_is_locked(topic.control_fd(), lock_offset(identity))) return true;
  }
  return false;
}

// Takes the group out of the topic's header, where publishers find it, and deletes its file. The
// caller holds the topic's group lock.
inline void take_group_out(MappedTopic& topic, std::uint32_t slot) {
  const std::uint64_t number = exchange<Edge::group>(topic.header().groups[slot], 0);
  LEAT_CRASH_POINT("group:out");
  delete_file_at(topic.directory_fd(), group_file_name(number).c_str());
  topic.wake_everybody();
}

// Whether the group in this slot is closed and has no living members.
inline bool is_left(MappedTopic& topic, std::uint32_t slot) {
  if (topic.group_number(slot) == 0) return false;
  auto group = topic.group(slot);
  return group && *group != nullptr && (*group)->is_closed() && !has_living_members(topic, **group);
}

// The caller holds the topic's group lock.
inline void take_closed_groups_out(MappedTopic& topic) {
  for (std::uint32_t slot = 0; slot < kMaxGroups; ++slot) {
    if (is_left(topic, slot)) take_group_out(topic, slot);
  }
}

inline bool has_group_to_take_out(MappedTopic& topic) {
  for (std::uint32_t slot = 0; slot < kMaxGroups; ++slot) {
    if (is_left(topic, slot)) return true;
  }
  return false;
}

// Takes out closed groups without living members. Called by each member that left a closed group,
// and after each release of the group lock, on behalf of members that could not get it.
inline void finish_closing(MappedTopic& topic) noexcept {
  try {
    while (has_group_to_take_out(topic)) {
      auto file = topic.open_control_to_lock();
      if (!file) return;
      auto locked = file->try_lock(kGroupLock);
      if (!locked || !*locked) return;  // Its owner does this after releasing it.
      take_closed_groups_out(topic);
    }
  } catch (const std::bad_alloc&) {  // Left to the next owner of the lock.
  }
}

// Holds the topic's group lock during its lifetime.
class GroupLock {
 public:
  GroupLock(MappedTopic& topic, LockFile file) noexcept : topic_{&topic}, file_{std::move(file)} {}
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
  MappedTopic* topic_;
  LockFile file_;
};

}  // namespace leat::inline v0::detail
