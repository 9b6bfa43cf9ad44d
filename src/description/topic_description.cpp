#include "description/topic_description.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>

#include "leat/log/directory.hpp"
#include "leat/log/durable_topic.hpp"

namespace leat::description {
namespace {

using Json = nlohmann::ordered_json;

// When its control file was made.
std::optional<std::int64_t> creation_time_ms(const Topic& topic) {
  const std::string path =
      detail::directory_path(topic.directory()) + '/' + topic.name() + '/' + detail::kControlFile;
  struct statx status {};
  if (::statx(AT_FDCWD, path.c_str(), 0, STATX_BTIME, &status) != 0 ||
      (status.stx_mask & STATX_BTIME) == 0) {
    return std::nullopt;
  }
  return status.stx_btime.tv_sec * 1000 + status.stx_btime.tv_nsec / 1'000'000;
}

// Without those that can't be opened.
std::vector<GroupInfo> groups_of(const Topic& topic) {
  std::vector<GroupInfo> groups;
  auto names = topic.group_names();
  if (!names) return groups;
  std::sort(names->begin(), names->end());
  for (const std::string& name : *names) {
    if (auto group = topic.find_group(name)) groups.push_back(group->info());
  }
  return groups;
}

template <class Value>
std::uint64_t sum(const TopicInfo& info, Value&& value) {
  return std::accumulate(info.partitions.begin(), info.partitions.end(), std::uint64_t{0},
                         [&](std::uint64_t total, const PartitionInfo& partition) {
                           return total + value(partition);
                         });
}

// null where there is no value.
template <class Value>
Json or_null(bool is_there, Value value) {
  return is_there ? Json(value) : Json(nullptr);
}
Json duration_json(std::chrono::nanoseconds duration) {
  return or_null(duration.count() != 0, duration.count());
}

Json partitions_json(const TopicInfo& info) {
  Json partitions = Json::array();
  for (const PartitionInfo& partition : info.partitions) {
    Json& one = partitions.emplace_back(Json{{"start", partition.start}, {"end", partition.end}});
    one["used_bytes"] = partition.used_bytes;
    if (info.policy == Policy::grow) one["capacity_bytes"] = partition.capacity_bytes;
    if (info.durable) {
      one["written"] = partition.written;
      one["durable"] = partition.durable;
    }
  }
  return partitions;
}

Json durable_json(const TopicInfo& info) {
  if (!info.durable) return nullptr;
  const DurableInfo& durable = *info.durable;
  const bool is_ok = durable.state == Errc::ok;
  return {{"durability", name_of(durable.durability)},
          {"sync_interval_ns", duration_json(durable.sync_interval)},
          {"directory", durable.directory},
          {"file_bytes", durable.file_bytes},
          {"retention_bytes", or_null(durable.retention_bytes != 0, durable.retention_bytes)},
          {"retention_ms", or_null(durable.retention.count() != 0, durable.retention.count())},
          {"disk_bytes", durable.disk_bytes},
          {"state", is_ok                             ? "ok"
                    : durable.state == Errc::no_space ? "no_space"
                                                      : "read_only"},
          {"reason", is_ok ? Json(nullptr) : Json(std::strerror(durable.reason))},
          {"archiver_pid", or_null(durable.archiver_pid != 0, durable.archiver_pid)},
          {"recovered",
           {{"cut_bytes", durable.cut_bytes},
            {"cut_records", durable.cut_records},
            {"damaged", durable.damaged}}}};
}

Json participants_json(const TopicInfo& info) {
  Json participants = Json::array();
  for (const ParticipantInfo& one : info.participants) {
    const bool can_block = has_offset(one) || is_publisher(one);
    participants.push_back({{"pid", one.pid},
                            {"role", one.role},
                            {"offset", or_null(has_offset(one), one.offset)},
                            {"lag", or_null(has_offset(one), one.lag)},
                            {"blocking", or_null(can_block, one.blocking)}});
  }
  return participants;
}

const char* name_of(RoomHolder::Kind kind) noexcept {
  switch (kind) {
    case RoomHolder::Kind::subscriber: return "subscriber";
    case RoomHolder::Kind::group: return "group";
    case RoomHolder::Kind::publisher: return "publisher";
    case RoomHolder::Kind::archiver: return "archiver";
  }
  return "unknown";
}

Json room_holders_json(const TopicInfo& info) {
  Json holders = Json::array();
  for (const RoomHolder& one : info.room_holders)
    holders.push_back({{"partition", one.partition},
                       {"kind", name_of(one.kind)},
                       {"pids", one.pids},
                       {"group", or_null(!one.group.empty(), one.group)}});
  return holders;
}

}  // namespace

TopicDescription describe_topic(const Topic& topic) {
  TopicDescription description{.name = topic.name(),
                               .info = topic.info(),
                               .groups = groups_of(topic),
                               .max_record_bytes = topic.max_record_size(),
                               .created_ms = creation_time_ms(topic)};
  if (description.info.durable) description.created_ms = description.info.durable->created_ms;
  return description;
}

std::uint64_t total_capacity(const TopicInfo& info) {
  return sum(info, [](const PartitionInfo& one) { return one.capacity_bytes; });
}
std::uint64_t total_used(const TopicInfo& info) {
  return sum(info, [](const PartitionInfo& one) { return one.used_bytes; });
}
std::uint64_t total_published(const TopicInfo& info) {
  return sum(info, [](const PartitionInfo& one) { return one.end; });
}
std::uint64_t total_records(const TopicInfo& info) {
  return sum(info, [](const PartitionInfo& one) { return one.count_from(one.start); });
}

bool is_publisher(const ParticipantInfo& participant) {
  return participant.role.ends_with("publisher");
}
bool has_offset(const ParticipantInfo& participant) {
  return participant.role.ends_with("subscriber");
}

Json to_json(const TopicDescription& description) {
  const TopicInfo& info = description.info;
  if (description.error.code != Errc::ok)
    return {{"name", description.name}, {"error", error_text(description.error)}};
  Json json = {{"name", info.name},
               {"id", or_null(info.id.is_known(), info.id.text())},
               {"policy", name_of(info.policy)},
               {"capacity_bytes", info.capacity_bytes},
               {"total_capacity_bytes", total_capacity(info)}};
  if (info.policy == Policy::grow) json["max_capacity_bytes"] = info.max_capacity_bytes;
  json["used_bytes"] = total_used(info);
  json["segment_bytes"] = info.segment_bytes;
  json["max_record_bytes"] = description.max_record_bytes;
  json["retain_all"] = info.retain_all;
  json["single_writer"] = info.single_writer;
  json["timestamps"] = info.timestamps;
  json["delete_when_unused"] = info.delete_when_unused;
  json["revoke_after_ns"] = duration_json(info.revoke_after);
  json["evict_after_ns"] = duration_json(info.evict_after);
  json["created_ms"] =
      or_null(description.created_ms.has_value(), description.created_ms.value_or(0));
  json["durable"] = durable_json(info);
  json["partitions"] = partitions_json(info);
  json["participants"] = participants_json(info);
  json["room_holders"] = room_holders_json(info);
  json["groups"] = Json::array();
  for (const GroupInfo& group : description.groups) {
    json["groups"].push_back(
        {{"name", group.name}, {"lag", group.lag}, {"members", group.members.size()}});
  }
  return json;
}

std::string json_text(const TopicDescription& description) {
  return to_json(description).dump(2, ' ', false, Json::error_handler_t::replace);
}

const char* name_of(Policy policy) noexcept {
  switch (policy) {
    case Policy::block: return "block";
    case Policy::fail: return "fail";
    case Policy::overwrite: return "overwrite";
    case Policy::grow: return "grow";
  }
  return "unknown";
}

const char* name_of(Durability durability) noexcept {
  switch (durability) {
    case Durability::none: return "none";
    case Durability::os: return "os";
    case Durability::interval: return "interval";
    case Durability::fsync: return "fsync";
  }
  return "unknown";
}

std::string error_text(Error error) {
  return error.code == Errc::permission ? "permission" : describe(error);
}

}  // namespace leat::description
