// The groups of a durable topic in its data directory: making, finding and deleting them, and what becomes
// of one in a new window. Called with the topic's group lock, unless it says otherwise.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "leat/group/key_slots.hpp"
#include "leat/log/mapped_topic.hpp"
#include "leat/store/manifest.hpp"
#include "leat/store/saved_groups.hpp"

namespace leat::inline v0::detail {

class StoredGroups {
 public:
  //   deleted   the path belongs to another topic by now
  static Result<StoredGroups> open(const MappedTopic& topic) {
    auto directory = open_directory_path(topic.durable()->data_path(), false, false);
    if (!directory) return directory.error();
    auto manifest = load_manifest(Disk::system(), directory->get());
    if (!manifest) return manifest.error();
    if (manifest->window.key != topic.geometry().key) return Errc::deleted;
    return StoredGroups{std::move(*directory), std::move(*manifest)};
  }

  // All of them, without the group lock.
  Result<std::vector<StoredGroup>> load_only() {
    return load_groups(Disk::system(), directory_.get(), manifest_.topic);
  }

  // All of them. Deletes what dead processes left of others.
  Result<std::vector<StoredGroup>> load() {
    std::vector<std::string> left_over;
    auto groups = load_groups(Disk::system(), directory_.get(), manifest_.topic, &left_over);
    if (!groups) return groups;
    for (const std::string& name : left_over)
      (void)Disk::system().delete_file(directory_.get(), name.c_str());
    return groups;
  }

  // The one with this name.
  //   not_found
  //   corrupt     none of those that can be read; it may be one that cannot (leat fsck)
  Result<SavedGroup> find(const std::string& name) {
    auto groups = load();
    if (!groups) return groups.error();
    bool is_damaged = false;
    for (StoredGroup& one : *groups) {
      if (!one.saved) is_damaged = true;
      if (one.saved && one.saved->name == name) return std::move(*one.saved);
    }
    return is_damaged ? Errc::corrupt : Errc::not_found;
  }

  // Errors as store_new_group(); too_many if there are as many as a topic may have.
  Result<void> make(const SavedGroup& group) {
    auto groups = load();
    if (!groups) return groups.error();
    if (groups->size() >= kMaxGroups) return Errc::too_many;
    return store_new_group(Disk::system(), directory_.get(), group, manifest_);
  }

  // Whether the file is there that says that the group exists.
  Result<bool> has(std::uint64_t id) const {
    auto names = names_in(directory_.get());
    if (!names) return names.error();
    return std::ranges::find(*names, saved_group_name(id)) != names->end();
  }

  Result<void> delete_group(std::uint64_t id) {
    return delete_stored_group(Disk::system(), directory_.get(), id);
  }

 private:
  StoredGroups(Fd directory, Manifest manifest) noexcept
      : directory_{std::move(directory)}, manifest_{std::move(manifest)} {}

  Fd directory_;
  Manifest manifest_;
};

// Whether a group whose deletion was begun can go on: not if what is saved of it is gone.
inline bool can_go_on(const MappedTopic& topic, const GroupView& view) {
  if (topic.durable() == nullptr) return true;
  auto groups = StoredGroups::open(topic);
  if (!groups) return groups.error() != Errc::not_found && groups.error() != Errc::deleted;
  auto has = groups->has(load_relaxed<Why::constant>(view.header().saved_id));
  return !has || *has;
}

// A process that died had begun to delete the group: decides it, or calls it off.
inline void settle_deletion(const MappedTopic& topic, const GroupView& view) {
  std::uint64_t closing = kGroupClosing;
  std::uint64_t& closed = view.header().closed;
  // [group] seq_cst, both. Nobody else changes it while this process has the lock.
  if (load_seq_cst<Edge::group>(closed) != closing) return;
  compare_exchange<Edge::group>(closed, closing,
                                can_go_on(topic, view) ? kGroupOpen : kGroupClosed);
}

// What is saved of a new group.
inline SavedGroup saved_group_of(const GroupGeometry& geometry, const std::string& name,
                                 const std::vector<CursorValue>& cursors) {
  SavedGroup group;
  group.facts = facts_of(geometry);
  group.facts.id = make_random();
  group.facts.created_ms = wall_clock_ms();
  group.name = name;
  for (const CursorValue& cursor : cursors) group.offsets.push_back(cursor.position());
  return group;
}

// Fills a new group's file, which nobody else can see yet, with what was saved: all its records are
// returned ones. False if there are more than the group can have.
inline bool restore_in_flight(std::byte* file, const GroupGeometry& geometry,
                              const SavedGroup& saved) noexcept {
  auto& header = *reinterpret_cast<GroupHeader*>(file);
  auto* const seats = reinterpret_cast<GroupSeat*>(file + geometry.seats_at());
  auto* const entries = reinterpret_cast<InFlightEntry*>(file + geometry.entries_at());
  auto* const slots = reinterpret_cast<std::uint64_t*>(file + geometry.slots_at());
  if (saved.in_flight.size() > geometry.all_entries()) return false;
  // relaxed, all: the group's number in the topic's header publishes them.
  store_relaxed<Why::published_later>(header.redelivered, saved.facts.redelivered);
  store_relaxed<Why::published_later>(header.dead_letters, saved.facts.dead_letters);
  const std::uint64_t in_rows = std::uint64_t{geometry.seat_count} * geometry.in_flight_limit;
  for (std::size_t i = 0; i < saved.in_flight.size(); ++i) {
    const SavedInFlight& one = saved.in_flight[i];
    // First the spare ones, which any member can use again.
    const bool is_spare = i < geometry.spare_count();
    const std::uint64_t at = is_spare ? in_rows + i : i - geometry.spare_count();
    if (is_spare) {
      store_relaxed<Why::published_later>(header.spare_high, static_cast<std::uint32_t>(i + 1));
    } else {
      const auto seat = static_cast<std::uint32_t>(at / geometry.in_flight_limit);
      store_relaxed<Why::published_later>(header.seat_high, seat + 1);
      store_relaxed<Why::published_later>(
          seats[seat].entry_high, static_cast<std::uint32_t>(at % geometry.in_flight_limit) + 1);
    }
    InFlightEntry& entry = entries[at];
    store_relaxed<Why::published_later>(entry.position, one.offset);
    store_relaxed<Why::published_later>(entry.offset, one.offset);
    store_relaxed<Why::published_later>(entry.where, InFlightPlace{0, one.partition, 0}.pack());
    store_relaxed<Why::published_later>(entry.key, one.key);
    store_relaxed<Why::published_later>(entry.visible_at_ns, ns_from_now(one.delay_ns));
    const InFlightState state{.phase = InFlightPhase::returned,
                              .deliveries = std::min(one.deliveries, InFlightState::kMaxDeliveries),
                              .delayed = one.delay_ns > 0};
    store_relaxed<Why::published_later>(entry.state, state.pack());
    if (geometry.by_key() && one.key != 0)
      store_relaxed<Why::published_later>(slots[one.key & (geometry.slot_count() - 1)],
                                          KeySlot{.marked = true}.pack());
  }
  return true;
}

}  // namespace leat::inline v0::detail
