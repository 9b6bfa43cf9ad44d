// Snapshots of topics in C: as structs, and as the JSON text of `leat topic info`.
#include <span>

#include "capi/handles.hpp"
#include "description/topic_description.hpp"

namespace leat::capi {
namespace {

struct Role {
  std::string_view name;
  std::uint32_t number;
};
constexpr Role kRoles[] = {{"publisher", LEAT_ROLE_PUBLISHER},
                           {"exclusive-publisher", LEAT_ROLE_EXCLUSIVE_PUBLISHER},
                           {"subscriber", LEAT_ROLE_SUBSCRIBER},
                           {"lossy-subscriber", LEAT_ROLE_LOSSY_SUBSCRIBER},
                           {"member", LEAT_ROLE_MEMBER}};

std::uint32_t role_of(std::string_view name) {
  for (const Role& role : kRoles) {
    if (role.name == name) return role.number;
  }
  return 0;
}

void put_durable(leat_topic_info& to, const DurableInfo& from) {
  to.durable = static_cast<std::uint32_t>(from.durability);
  to.state = static_cast<std::int32_t>(from.state);
  to.state_detail = from.reason;
  to.archiver_pid = from.archiver_pid;
  to.sync_interval_ns = from.sync_interval.count();
  to.created_ms = from.created_ms;
  to.file_bytes = from.file_bytes;
  to.retention_bytes = from.retention_bytes;
  to.retention_ms = from.retention.count();
  to.disk_bytes = from.disk_bytes;
  to.cut_bytes = from.cut_bytes;
  to.cut_records = from.cut_records;
  to.damaged = from.damaged;
}

leat_topic_info to_info(const Topic& topic, const TopicInfo& from) {
  leat_topic_info to{};
  to.policy = static_cast<std::uint32_t>(from.policy);
  to.capacity_bytes = from.capacity_bytes;
  to.max_capacity_bytes = from.max_capacity_bytes;
  to.min_capacity_bytes = topic.min_capacity();
  to.max_capacity_limit = topic.max_capacity_limit();
  to.segment_bytes = from.segment_bytes;
  to.max_record_bytes = topic.max_record_size();
  to.retain_all = from.retain_all ? 1 : 0;
  to.single_writer = from.single_writer ? 1 : 0;
  to.timestamps = from.timestamps ? 1 : 0;
  to.delete_when_unused = from.delete_when_unused ? 1 : 0;
  to.revoke_after_ns = from.revoke_after.count();
  to.evict_after_ns = from.evict_after.count();
  to.partition_count = static_cast<std::uint32_t>(from.partitions.size());
  to.participant_count = static_cast<std::uint32_t>(from.participants.size());
  if (from.durable) put_durable(to, *from.durable);
  std::memcpy(to.id, from.id.bytes.data(), sizeof(to.id));
  return to;
}

leat_partition_info to_partition(const PartitionInfo& from) {
  return {.start = from.start,
          .end = from.end,
          .capacity_bytes = from.capacity_bytes,
          .used_bytes = from.used_bytes,
          .written = from.written,
          .durable = from.durable};
}

leat_participant_info to_participant(const ParticipantInfo& from) {
  return {.pid = from.pid,
          .role = role_of(from.role),
          .offset = from.offset,
          .lag = from.lag,
          .blocking = from.blocking ? 1U : 0U,
          .reserved = 0};
}

}  // namespace
}  // namespace leat::capi

using namespace leat;
using namespace leat::capi;

std::int32_t leat_topic_get_info(leat_topic* topic, leat_topic_info* info,
                                 leat_partition_info* partitions, std::uint32_t partition_capacity,
                                 leat_participant_info* participants,
                                 std::uint32_t participant_capacity, std::int32_t* detail) {
  if (topic == nullptr || info == nullptr || info->size < sizeof(info->size) ||
      is_nowhere(partitions, partition_capacity) || is_nowhere(participants, participant_capacity))
    return LEAT_ERR_INVALID_ARGUMENT;
  if (is_forked(*topic)) return LEAT_ERR_FORKED;
  return guarded(detail, [&] {
    const TopicInfo found = topic->topic.info();
    write_info(to_info(topic->topic, found), info);
    for (std::size_t i = 0; i < found.partitions.size() && i < partition_capacity; ++i)
      partitions[i] = to_partition(found.partitions[i]);
    for (std::size_t i = 0; i < found.participants.size() && i < participant_capacity; ++i)
      participants[i] = to_participant(found.participants[i]);
    return LEAT_OK;
  });
}

std::int32_t leat_topic_get_json(leat_topic* topic, char* buffer, std::uint64_t capacity,
                                 std::uint64_t* size, std::int32_t* detail) {
  if (topic == nullptr || !is_text_room(buffer, capacity, size)) return LEAT_ERR_INVALID_ARGUMENT;
  *size = 0;
  if (is_forked(*topic)) return LEAT_ERR_FORKED;
  return guarded(detail, [&] {
    return write_text(description::json_text(description::describe_topic(topic->topic)), buffer,
                      capacity, size);
  });
}
