// Topics in memory, and closed ones, as leat/admin.hpp shows them.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "leat/admin.hpp"
#include "leat/log/directory.hpp"
#include "leat/log/durable_topic.hpp"
#include "leat/store/saved_groups.hpp"

namespace leat::inline v0 {

namespace detail {

inline void add_participants(TopicMemory& memory, const MappedTopic& topic) {
  for (std::uint32_t i = 0; i < topic.participant_high(); ++i) {
    const ParticipantSlot& slot = topic.participant(i);
    const std::uint64_t state = load_acquire<Edge::slot>(slot.state);
    if (state == 0) continue;
    auto& list = is_dead(topic, state) ? memory.dead : memory.living;
    list.push_back(load_relaxed<Why::stored_before>(slot.pid));
  }
}

// Whether the files that a window names are gone, or name another window.
inline bool has_lost_files(const MappedTopic& topic) {
  auto directory = open_directory_path(topic.durable()->data_path(), false, false);
  if (!directory) return directory.error() == Errc::not_found;
  auto manifest = load_manifest(Disk::system(), directory->get());
  return manifest && manifest->window.key != topic.geometry().key;
}

// What is saved of a closed topic's groups, by name; without groups of which nothing can be read.
inline std::vector<GroupInfo> saved_groups_of(const TopicInfo& info) {
  std::vector<GroupInfo> groups;
  auto directory = open_directory_path(info.durable->directory, false, false);
  if (!directory) return groups;
  Disk& disk = Disk::system();
  auto manifest = load_manifest(disk, directory->get());
  if (!manifest || manifest->topic.partition_count != info.partitions.size()) return groups;
  auto stored = load_groups(disk, directory->get(), manifest->topic);
  if (!stored) return groups;
  for (StoredGroup& one : *stored) {
    if (!one.saved) continue;
    GroupInfo& group = groups.emplace_back();
    group.name = std::move(one.saved->name);
    group.in_flight = one.saved->in_flight.size();
    for (std::size_t i = 0; i < info.partitions.size(); ++i) {
      const std::uint64_t end = info.partitions[i].end;
      group.offsets.push_back(std::min(one.saved->offsets[i], end));
      group.lag += info.partitions[i].count_from(group.offsets.back());
    }
  }
  std::ranges::sort(groups, {}, &GroupInfo::name);
  return groups;
}

}  // namespace detail

LEAT_INLINE Result<TopicMemory> inspect_memory(const std::string& name, std::string_view directory,
                                               std::string_view data_directory) {
  // Whoever owns it: what is found in it is checked.
  auto topics = detail::open_directory_path(topics_directory(directory), false, false);
  if (!topics) return topics.error();
  auto found = detail::open_topic_directory(*topics, name);
  if (!found) return found.error();
  auto topic = detail::MappedTopic::attach(*found);
  if (!topic) return topic.error();
  struct stat file {};
  if (::fstat((*topic)->control_fd(), &file) != 0) return last_system_error();
  TopicMemory memory;
  memory.owner = file.st_uid;
  memory.mode = file.st_mode & 07777;
  memory.is_deleted = (*topic)->is_deleted();
  detail::add_participants(memory, **topic);
  detail::find_files(**topic, std::string{data_directory}, name);
  const detail::DurableWindow* const window = (*topic)->durable();
  if (window == nullptr) return memory;
  memory.is_durable = true;
  memory.files = window->data_path();
  memory.is_stray = detail::has_lost_files(**topic);
  memory.state = window->trouble();
  memory.reason = memory.state == Errc::ok ? 0 : window->reason();
  return memory;
}

LEAT_INLINE Result<ClosedTopic> inspect_closed(const std::string& name,
                                               std::string_view data_directory) {
  auto info = detail::info_of_closed(std::string{data_directory}, name);
  if (!info) return info.error();
  ClosedTopic closed;
  closed.groups = detail::saved_groups_of(*info);
  closed.info = std::move(*info);
  return closed;
}

}  // namespace leat::inline v0
