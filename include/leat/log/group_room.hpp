// The segments of one partition that consumer groups need, for publishers that need room.
//
// To be asked after the participants: a process that creates or moves a group holds the room as a
// subscriber until the group holds it, and is called off if it does not. docs/internals/groups.md, "Room".
#pragma once

#include <optional>

#include "leat/log/participants.hpp"

namespace leat::inline v0::detail {

class GroupRoom {
 public:
  GroupRoom(MappedTopic& topic, std::uint32_t partition) noexcept
      : topic_{topic}, partition_{partition} {}

  // Whether a group needs `segment`: it has not taken all of it, or (unless `only_cursors`) a
  // member still has a record there. An error means that a group's file cannot be used.
  Result<bool> is_needed(std::uint64_t segment, bool only_cursors) {
    if (topic_.durable() != nullptr) return false;  // What a group has not read is on disk.
    bool needed = false;
    const std::uint64_t granules = topic_.geometry().segment_granules;
    auto checked = each_group([&](const GroupView& group) {
      if (needed) return;
      // The order matters. `closed` first: a group that closes later still holds all that its
      // cursor and entries say now. The cursor before the entries: records that the cursor has
      // passed have entries.
      const bool closed = group.is_closed();
      needed = !closed && group.needs(partition_, segment);
      if (needed || only_cursors) return;
      group.each_entry_in(partition_, segment * granules, granules, [&](std::uint64_t word) {
        needed = needed || !closed || has_reader(group, word);
      });
    });
    if (!checked) return checked.error();
    return needed;
  }

  // Calls visit(group) for each group that needs `segment` now. Leaves groups that are being made as they are: a
  // publisher would call their creation off.
  template <class Visit>
  void each_in_need(std::uint64_t segment, bool only_cursors, Visit&& visit) {
    if (topic_.durable() != nullptr) return;
    const std::uint64_t granules = topic_.geometry().segment_granules;
    (void)each_group([&](const GroupView& group) {
      const bool closed = group.is_closed();
      bool needs = group.is_there() && group.is_before(partition_, segment);
      if (!needs && !only_cursors) {
        group.each_entry_in(partition_, segment * granules, granules, [&](std::uint64_t word) {
          needs = needs || !closed || has_reader(group, word);
        });
      }
      if (needs) visit(group);
    });
  }

  // Who could make room in a full partition, as far as groups stand in the way.
  struct Holders {
    bool mine = false;      // members of the calling thread
    bool others = false;    // anybody else, including a member that has yet to join
    bool unpolled = false;  // a member that this thread made and nobody has used yet
  };
  Holders holders() {
    Holders found;
    // [retire] seq_cst: segments before it are kept by entries only.
    const std::uint64_t oldest =
        load_seq_cst<Edge::retire>(topic_.partition(partition_).control->oldest_segment);
    (void)each_group([&](const GroupView& group) {
      const bool closed = group.is_closed();
      if (!closed && group.is_before(partition_, oldest)) add_members(group, found);
      group.each_entry_in(partition_, 0, oldest * topic_.geometry().segment_granules,
                          [&](std::uint64_t word) {
                            const std::uint32_t owner = owner_of(word);
                            const bool known = owner != 0 && owner <= group.geometry().seat_count &&
                                               add_member(group.seat(owner - 1), found);
                            if (!known && !closed) add_members(group, found);
                          });
    });
    return found;
  }

 private:
  template <class Visit>
  Result<void> each_group(Visit&& visit) {
    std::optional<KnownGroups::LookupGuard> guard;  // Topics without groups do without.
    for (std::uint32_t slot = 0; slot < kMaxGroups; ++slot) {
      if (topic_.group_number(slot) == 0) continue;
      if (!guard) guard.emplace(topic_.known_groups());
      auto group = topic_.known_group_at(slot, *guard);
      if (!group) return group.error();
      if (*group != nullptr) visit(***group);
    }
    return {};
  }

  // For a deleted group: whether an entry's owner may still be reading the record. Once the owner
  // notices the deletion, it vacates its seat.
  bool has_reader(const GroupView& group, std::uint64_t word) const noexcept {
    const std::uint32_t owner = owner_of(word);
    if (owner == 0 || owner > group.geometry().seat_count) return false;
    // [in-flight] acquire: a member that vacated the seat has finished reading.
    const std::uint64_t identity = load_acquire<Edge::in_flight>(group.seat(owner - 1).identity);
    return identity != 0 && byte_is_locked(topic_.control_fd(), lock_offset(identity));
  }

  // Adds the members of a group; if none is alive, one that will join.
  void add_members(const GroupView& group, Holders& found) const noexcept {
    bool any = false;
    for (std::uint32_t i = 0; i < group.seat_high() && !found.others; ++i)
      any = add_member(group.seat(i), found) || any;
    if (!any) found.others = true;
  }

  // False if no living member has the seat.
  bool add_member(const GroupSeat& seat, Holders& found) const noexcept {
    const std::uint64_t identity = load_acquire<Edge::in_flight>(seat.identity);
    if (identity == 0) return false;
    // relaxed, all: only to detect a deadlock. A member that its slot does not identify
    // counts as another's.
    const std::uint32_t index = load_relaxed<Why::hint>(seat.participant);
    if (index < topic_.participant_high()) {
      const ParticipantSlot& slot = topic_.participant(index);
      const std::uint64_t thread = load_relaxed<Why::hint>(slot.thread);
      if (identity_of(load_acquire<Edge::slot>(slot.state)) == identity &&
          load_relaxed<Why::hint>(slot.process) == process_token() &&
          (thread & ~kNotPolledYet) == thread_token()) {
        found.mine = true;
        if ((thread & kNotPolledYet) != 0) found.unpolled = true;
        return true;
      }
    }
    if (!byte_is_locked(topic_.control_fd(), lock_offset(identity))) return false;
    found.others = true;
    return true;
  }

  MappedTopic& topic_;
  std::uint32_t partition_;
};

}  // namespace leat::inline v0::detail
