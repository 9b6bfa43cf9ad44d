// A consumer group's file, from when it is made until the group is there for everybody.
//
//     auto group = NewGroup::make(topic, name, geometry);   // takes long if the file is large
//     group->set_cursors(cursors);                          // a subscriber keeps the room from here on
//     auto slot = group->enter(kGroupMaking);               // publishers find it
//     group->open();                                        // false: a publisher has called it off
//
// Until it is entered, the destructor deletes the file. The caller holds the topic's group lock.
// docs/internals/groups.md, "Groups come and go".
#pragma once

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "leat/group.hpp"
#include "leat/group/stored_group.hpp"
#include "leat/log/directory.hpp"

namespace leat::inline v0::detail {

inline GroupGeometry geometry_of(const GroupOptions& options) noexcept {
  GroupGeometry geometry;
  geometry.flags =
      (options.mode == GroupMode::at_most_once ? kAtMostOnce : 0U) | (options.by_key ? kByKey : 0U);
  if (options.on_expired == OnExpired::end) geometry.flags |= kExpiredToEnd;
  if (options.on_expired == OnExpired::stop) geometry.flags |= kExpiredStops;
  geometry.seat_count = options.members;
  geometry.in_flight_limit = options.in_flight;
  geometry.max_deliveries = options.max_deliveries;
  geometry.lease_ns = options.lease.count();
  return geometry;
}

inline GroupOptions options_of(const GroupGeometry& geometry) noexcept {
  GroupOptions options;
  options.mode = geometry.at_most_once() ? GroupMode::at_most_once : GroupMode::at_least_once;
  options.by_key = geometry.by_key();
  options.members = geometry.seat_count;
  options.in_flight = geometry.in_flight_limit;
  options.max_deliveries = geometry.max_deliveries;
  options.lease = std::chrono::nanoseconds{geometry.lease_ns};
  if (geometry.expired_to_end()) options.on_expired = OnExpired::end;
  if (geometry.expired_stops()) options.on_expired = OnExpired::stop;
  return options;
}

class NewGroup {
 public:
  NewGroup(NewGroup&& other) noexcept
      : topic_{other.topic_},
        file_{std::exchange(other.file_, {})},
        geometry_{other.geometry_},
        mapping_{std::move(other.mapping_)} {}
  NewGroup& operator=(NewGroup&&) = delete;
  ~NewGroup() {
    if (!file_.empty()) delete_file_at(topic_.directory_fd(), file_.c_str());
  }

  static Result<NewGroup> make(MappedTopic& topic, const std::string& name,
                               GroupGeometry geometry) {
    geometry.topic_key = topic.geometry().key;
    geometry.number = 1 + fetch_add<Edge::slot>(topic.header().next_identity, 1);
    geometry.partition_count = topic.geometry().partition_count;
    if (!geometry.is_valid()) return Errc::invalid_argument;
    std::string file = group_file_name(geometry.number);
    auto fd = open_file_at(topic.directory_fd(), file.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
    if (!fd) return fd.error();
    write_in_place(fd->get());
    NewGroup group{topic, std::move(file), geometry};
    if (auto sized = group.give_size_and_access(fd->get()); !sized) return sized.error();
    auto mapping = Mapping::map(fd->get(), geometry.file_size(), true);
    if (!mapping) return mapping.error();
    group.mapping_ = std::move(*mapping);
    group.fill(name);
    return group;
  }

  void set_cursors(const std::vector<CursorValue>& cursors) noexcept {
    auto* cursor = reinterpret_cast<GroupCursor*>(mapping_.data() + sizeof(GroupHeader));
    for (const CursorValue& value : cursors) {
      store_relaxed<Why::published_later>(cursor->place, value.place);
      store_relaxed<Why::published_later>(cursor->record, value.record);
      ++cursor;  // Its limit is 0: nothing may be handed out before the archiver has raised it.
    }
  }
  // Durable topics.
  Result<void> restore(const SavedGroup& saved) noexcept {
    store_relaxed<Why::published_later>(header().created_ms, saved.facts.created_ms);
    store_relaxed<Why::published_later>(header().saved_id, saved.facts.id);
    if (!restore_in_flight(mapping_.data(), geometry_, saved)) return Errc::corrupt;
    return {};
  }

  // Stores the group's number in the topic's header. Returns its slot there.
  Result<std::uint32_t> enter(GroupClosing state) noexcept {
    store_relaxed<Why::published_later>(header().closed, std::uint64_t{state});
    LEAT_CRASH_POINT("group:filled");
    for (std::uint32_t slot = 0; slot < kMaxGroups; ++slot) {
      if (topic_.group_number(slot) != 0) continue;
      // [group] seq_cst: after everything in the file, and before a check of whether the subscriber
      // that keeps the room was evicted, and before it leaves.
      (void)exchange<Edge::group>(topic_.header().groups[slot], geometry_.number);
      file_.clear();
      LEAT_CRASH_POINT("group:entered");
      return slot;
    }
    return Errc::too_many;
  }
  // From here on the group keeps its room itself. False if a publisher needed that room before.
  bool open() noexcept {
    std::uint64_t making = kGroupMaking;
    // [group] seq_cst: a publisher that finds nobody else in the segment swaps this word, too.
    if (!compare_exchange<Edge::group>(header().closed, making, std::uint64_t{kGroupOpen}))
      return false;
    LEAT_CRASH_POINT("group:opened");
    return true;
  }
  // A group that was entered and not opened: others take it out.
  void call_off() noexcept { (void)exchange<Edge::group>(header().closed, kGroupClosed); }

 private:
  NewGroup(MappedTopic& topic, std::string file, const GroupGeometry& geometry) noexcept
      : topic_{topic}, file_{std::move(file)}, geometry_{geometry} {}

  GroupHeader& header() noexcept { return *reinterpret_cast<GroupHeader*>(mapping_.data()); }

  Result<void> give_size_and_access(int fd) {
    struct stat status {};
    if (::fstat(topic_.control_fd(), &status) != 0) return last_system_error();
    if (auto made = allocate_file(fd, geometry_.file_size()); !made) return made;
    if (::geteuid() != status.st_uid && (status.st_mode & 0060) == 0)
      return Error{Errc::permission, EACCES};  // The topic's owner could not use it.
    const bool other_group = status.st_gid != ::getegid();
    return set_access_like_others(fd, status.st_mode & 0666,
                                  other_group ? std::int64_t{status.st_gid} : -1);
  }

  // The file is zero.
  void fill(const std::string& name) noexcept {
    GroupHeader& to = header();
    // relaxed, all: the group's number in the topic's header publishes them.
    store_relaxed<Why::published_later>(to.magic, kGroupMagic);
    store_relaxed<Why::published_later>(to.topic_key, geometry_.topic_key);
    store_relaxed<Why::published_later>(to.number, geometry_.number);
    store_relaxed<Why::published_later>(to.partition_count, geometry_.partition_count);
    store_relaxed<Why::published_later>(to.flags, geometry_.flags);
    store_relaxed<Why::published_later>(to.seat_count, geometry_.seat_count);
    store_relaxed<Why::published_later>(to.in_flight_limit, geometry_.in_flight_limit);
    store_relaxed<Why::published_later>(to.max_deliveries, geometry_.max_deliveries);
    store_relaxed<Why::published_later>(to.lease_ns, geometry_.lease_ns);
    store_relaxed<Why::published_later>(to.created_ms, wall_clock_ms());
    store_relaxed<Why::hint>(to.name_size, static_cast<std::uint32_t>(name.size()));
    std::memcpy(to.name, name.data(), name.size());
  }

  MappedTopic& topic_;
  std::string file_;  // Empty: entered.
  GroupGeometry geometry_;
  Mapping mapping_;
};

}  // namespace leat::inline v0::detail
