// One process's mapping of one consumer group's file, and what publishers read from it.
//
// What publishers check before they retire a segment, and again before they reuse its memory, is in
// group_room.hpp. docs/internals/groups.md, "Room", explains why nothing is missed in between.
#pragma once

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "leat/base/atomic.hpp"
#include "leat/base/crash_point.hpp"
#include "leat/format/group_layout.hpp"
#include "leat/os/directory.hpp"
#include "leat/os/file.hpp"
#include "leat/os/lock.hpp"

namespace leat::inline v0::detail {

inline std::string group_file_name(std::uint64_t number) {
  char name[32];
  std::snprintf(name, sizeof(name), "%s%016llx", kGroupPrefix,
                static_cast<unsigned long long>(number));
  return name;
}

// Names of topics and groups consist of these.
constexpr bool is_name_character(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

class GroupView {
 public:
  // Maps a group's file.
  //   not_found, wrong_format
  static Result<std::shared_ptr<GroupView>> attach(int topic_directory, std::uint64_t number,
                                                   const Geometry& topic) {
    auto fd = open_file_at(topic_directory, group_file_name(number).c_str(), O_RDWR);
    if (!fd) return fd.error();
    auto size = file_size(fd->get());
    if (!size) return size.error();
    // As in MappedTopic::attach(): first the checks, then the mapping.
    GroupHeader header;
    if (auto read = read_beginning(fd->get(), &header, sizeof(header)); !read) return read.error();
    const GroupGeometry geometry = read_geometry(header);
    if (header.magic != kGroupMagic || !geometry.is_valid() || geometry.number != number ||
        geometry.topic_key != topic.key || geometry.partition_count != topic.partition_count ||
        geometry.file_size() != *size || (geometry.expires() && (topic.flags & kDurable) == 0)) {
      return Errc::wrong_format;
    }
    auto populate = may_populate(fd->get(), *size);
    if (!populate) return populate.error();
    auto mapping = Mapping::map(fd->get(), *size, true, *populate);
    if (!mapping) return mapping.error();
    auto view = std::make_shared<GroupView>();
    view->header_ = reinterpret_cast<GroupHeader*>(mapping->data());
    view->geometry_ = geometry;
    view->segment_granules_ = topic.segment_granules;
    view->cursors_ = reinterpret_cast<GroupCursor*>(mapping->data() + sizeof(GroupHeader));
    view->seats_ = reinterpret_cast<GroupSeat*>(mapping->data() + geometry.seats_at());
    view->entries_ = reinterpret_cast<InFlightEntry*>(mapping->data() + geometry.entries_at());
    view->slots_ = reinterpret_cast<std::uint64_t*>(mapping->data() + geometry.slots_at());
    view->slot_mask_ = geometry.by_key() ? geometry.slot_count() - 1 : 0;
    view->mapping_ = std::move(*mapping);
    return view;
  }

  const GroupGeometry& geometry() const noexcept { return geometry_; }
  GroupHeader& header() const noexcept { return *header_; }
  GroupCursor& cursor(std::uint32_t partition) const noexcept { return cursors_[partition]; }
  GroupSeat& seat(std::uint32_t index) const noexcept { return seats_[index]; }
  // One row for each seat, then one row of all spare entries.
  InFlightEntry& entry(std::uint32_t row, std::uint32_t index) const noexcept {
    return entries_[std::uint64_t{row} * geometry_.in_flight_limit + index];
  }
  // The word of a key's slot, by key or by slot number. Only in groups that go by key.
  std::uint64_t& key_slot(std::uint64_t key) const noexcept { return slots_[key & slot_mask_]; }
  std::uint64_t slot_of(std::uint64_t key) const noexcept { return key & slot_mask_; }
  // With ? for what no name has: any process may write here, and people print names and paste them into shells.
  std::string name() const {
    const std::uint32_t size = load_relaxed<Why::constant>(header_->name_size);
    std::string copy{header_->name, size <= kMaxGroupName ? size : 0};
    for (char& c : copy)
      if (!is_name_character(c)) c = '?';
    return copy;
  }

  // Number of seats, spare entries, and entries of a row that a scan must visit.
  std::uint32_t seat_high() const noexcept {
    // [in-flight] acquire: raised before the seat was taken.
    const std::uint32_t high = load_acquire<Edge::in_flight>(header_->seat_high);
    return high < geometry_.seat_count ? high : geometry_.seat_count;
  }
  std::uint32_t spare_high() const noexcept {
    // [in-flight] acquire: raised before the entry was used.
    const std::uint32_t high = load_acquire<Edge::in_flight>(header_->spare_high);
    return high < geometry_.spare_count() ? high : geometry_.spare_count();
  }
  std::uint32_t entry_high(std::uint32_t seat) const noexcept {
    // [in-flight] acquire: raised before the entry was used.
    return std::min(load_acquire<Edge::in_flight>(seats_[seat].entry_high),
                    geometry_.in_flight_limit);
  }

  CursorValue load_cursor(std::uint32_t partition) const noexcept {
    const GroupCursor& cursor = cursors_[partition];
    CursorValue value;
    // Both words are of one moment if `place` has not changed: a take that leaves `place`
    // unchanged continues inside a batch, and then either value of `record` was true. Bounded,
    // because the words may be corrupted.
    for (int attempt = 0; attempt < 1000; ++attempt) {
      // [group-cursor] acquire: a thread that sees the cursor sees the entries of the
      // records before it.
      value.place = load_acquire<Edge::group_cursor>(cursor.place);
      value.record = load_acquire<Edge::group_cursor>(cursor.record);
      if (load_acquire<Edge::group_cursor>(cursor.place) == value.place) break;
    }
    return value;
  }
  // The position, for an archiver of a durable topic that has just cleared the news of groups.
  std::uint64_t load_position(std::uint32_t partition) const noexcept {
    // [group-cursor] seq_cst: a member that found the news not cleared yet had moved the cursor before.
    return CursorValue{load_seq_cst<Edge::group_cursor>(cursors_[partition].place), 0}.position();
  }
  bool swap_cursor(std::uint32_t partition, const CursorValue& from,
                   const CursorValue& to) const noexcept {
    // [group-cursor] seq_cst, 16 bytes: the entries of the records that it passes were stored before.
    return compare_exchange_pair<Edge::group_cursor>(
        &cursors_[partition].place, {from.place, from.record}, {to.place, to.record});
  }

  // Calls visit(row, index, entry, state) for every entry that is neither free nor just reserved.
  template <class Visit>
  void each_entry(Visit&& visit) const {
    each_used_entry(
        [&](std::uint32_t row, std::uint32_t index, InFlightEntry& one, std::uint64_t state) {
          if (!InFlightState::is_reserved(state)) visit(row, index, one, state);
        });
  }
  // As above, for every entry that is not free.
  template <class Visit>
  void each_used_entry(Visit&& visit) const {
    const std::uint32_t seats = seat_high();
    for (std::uint32_t seat = 0; seat < seats; ++seat) each_entry_of(seat, entry_high(seat), visit);
    each_entry_of(geometry_.seat_count, spare_high(), visit);
  }

  // Whether the group has not yet taken everything up to the end of this segment.
  bool is_before(std::uint32_t partition, std::uint64_t segment) const noexcept {
    // [retire] seq_cst: oldest_segment was moved before, or is moved if this returns false.
    return load_seq_cst<Edge::retire>(cursors_[partition].place) >> kSeatBits <
           (segment + 1) * segment_granules_;
  }
  // The same, for a publisher that has found no participant in the segment and concludes from false that
  // the group does not need it. A process that creates or moves the group there has lost the subscriber
  // that kept the room for it: the creation, or any move, is called off.
  bool needs(std::uint32_t partition, std::uint64_t segment) const noexcept {
    const GroupCursor& cursor = cursors_[partition];
    for (int attempt = 0; attempt < 1000; ++attempt) {
      if (is_before(partition, segment)) return !call_off();
      // [retire] seq_cst, both: a mover stores its mark, then checks whether it was evicted.
      const CursorValue value{load_seq_cst<Edge::retire>(cursor.place),
                              load_seq_cst<Edge::retire>(cursor.record)};
      if (!value.is_marked()) {
        if (load_seq_cst<Edge::retire>(cursor.place) == value.place) return false;
      } else if (swap_cursor(partition, value, value.unmarked())) {
        return false;
      }
    }
    return true;  // It changes all the time.
  }
  // Calls the creation of the group off. False if the group is there.
  bool call_off() const noexcept {
    // [group] seq_cst, both: the maker swaps the same word when it opens the group.
    std::uint64_t making = load_seq_cst<Edge::group>(header_->closed);
    if (making != kGroupMaking) return making == kGroupClosed;
    return compare_exchange<Edge::group>(header_->closed, making, std::uint64_t{kGroupClosed}) ||
           making == kGroupClosed;
  }
  // Calls visit(state) for every entry of a record of this partition whose position is one of the
  // `count` positions from `first` on; perhaps also for entries that have ended meanwhile.
  template <class Visit>
  void each_entry_in(std::uint32_t partition, std::uint64_t first, std::uint64_t count,
                     Visit&& visit) const {
    each_entry([&](std::uint32_t, std::uint32_t, const InFlightEntry& one, std::uint64_t word) {
      // [in-flight-place] acquire, both: if the place is already another record's, the former owner is
      // done with its record, just as if the state were free.
      const std::uint64_t position = load_acquire<Edge::in_flight_place>(one.position);
      const InFlightPlace place =
          InFlightPlace::unpack(load_acquire<Edge::in_flight_place>(one.where));
      if (position - first < count && place.partition == partition) visit(word);
    });
  }

  // Whether the group is deleted; see GroupClosing. Publishers ask before they read its entries.
  bool is_closed() const noexcept {
    // [group] seq_cst: a member stores its entry, then reads `closed`, and only then the record.
    return load_seq_cst<Edge::group>(header_->closed) == kGroupClosed;
  }
  // Calls visit(seat) for each living member. Costs a system call for each member.
  template <class Visit>
  void each_living_member(int control_fd, Visit&& visit) const {
    for (std::uint32_t i = 0; i < seat_high(); ++i) {
      const std::uint64_t identity = load_acquire<Edge::in_flight>(seats_[i].identity);
      if (identity != 0 && byte_is_locked(control_fd, lock_offset(identity))) visit(seats_[i]);
    }
  }

  // Whether the group is there, or somebody may only be about to delete it.
  bool is_there() const noexcept {
    const std::uint64_t closed = load_seq_cst<Edge::group>(header_->closed);
    return closed != kGroupClosed && closed != kGroupMaking;
  }

 private:
  template <class Visit>
  void each_entry_of(std::uint32_t row, std::uint32_t count, Visit& visit) const {
    for (std::uint32_t index = 0; index < count; ++index) {
      InFlightEntry& one = entry(row, index);
      // [in-flight] seq_cst: the fields of this state, or of a later one, in which case this one is over.
      // A caller that has read `closed` before sees what members did before they read it.
      const std::uint64_t state = load_seq_cst<Edge::in_flight>(one.state);
      if (phase_of(state) != InFlightPhase::free) visit(row, index, one, state);
    }
  }
  // `header` is a copy, made before the file is mapped.
  static GroupGeometry read_geometry(const GroupHeader& header) noexcept {
    GroupGeometry geometry;
    geometry.topic_key = header.topic_key;
    geometry.number = header.number;
    geometry.partition_count = header.partition_count;
    geometry.flags = header.flags;
    geometry.seat_count = header.seat_count;
    geometry.in_flight_limit = header.in_flight_limit;
    geometry.max_deliveries = header.max_deliveries;
    geometry.lease_ns = header.lease_ns;
    return geometry;
  }

  GroupGeometry geometry_;         // Constant after attach.
  GroupHeader* header_ = nullptr;  // This and the next four point into mapping_.
  GroupCursor* cursors_ = nullptr;
  GroupSeat* seats_ = nullptr;
  InFlightEntry* entries_ = nullptr;
  std::uint64_t* slots_ = nullptr;
  std::uint64_t slot_mask_ = 0;
  std::uint64_t segment_granules_ = 0;
  Mapping mapping_;
};

}  // namespace leat::inline v0::detail
