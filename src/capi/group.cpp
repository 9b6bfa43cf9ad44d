// Consumer groups in C.
#include "capi/handles.hpp"

namespace leat::capi {
namespace {

std::int32_t to_options(const leat_group_options* given, GroupOptions& options) {
  leat_group_options from = LEAT_GROUP_OPTIONS_INIT;
  if (const std::int32_t wrong = read_options(given, from); wrong != LEAT_OK) return wrong;
  const auto begin = from_of(from.from, from.from_value);
  if (!begin || from.mode > LEAT_GROUP_AT_MOST_ONCE || !are_flags(from.by_key) ||
      from.on_expired > LEAT_EXPIRED_STOP || from.lease_ns < 0)
    return LEAT_ERR_INVALID_ARGUMENT;
  options.from = *begin;
  options.mode = static_cast<GroupMode>(from.mode);
  options.by_key = from.by_key != 0;
  options.members = from.members;
  options.in_flight = from.in_flight;
  options.max_deliveries = from.max_deliveries;
  options.lease = std::chrono::nanoseconds{from.lease_ns};
  options.on_expired = static_cast<OnExpired>(from.on_expired);
  return LEAT_OK;
}

std::int32_t keep(const leat_topic& topic, Result<Group> found, leat_group** group,
                  std::uint32_t* was_created, std::int32_t* detail) {
  if (!found) return failed(found.error(), detail);
  if (was_created != nullptr) *was_created = found->was_created() ? 1 : 0;
  *group = new leat_group{.group = std::move(*found), .partitions = topic.topic.partitions()};
  return LEAT_OK;
}

leat_group_info to_info(const GroupInfo& from) {
  leat_group_info to{};
  to.mode = static_cast<std::uint32_t>(from.mode);
  to.by_key = from.by_key ? 1 : 0;
  to.max_deliveries = from.max_deliveries;
  to.lease_ns = from.lease.count();
  to.on_expired = static_cast<std::uint32_t>(from.on_expired);
  to.in_flight_limit = from.in_flight_limit;
  to.lag = from.lag;
  to.in_flight = from.in_flight;
  to.redelivered = from.redelivered;
  to.returned = from.returned;
  to.returned_limit = from.returned_limit;
  to.dead_letters = from.dead_letters;
  to.taking = static_cast<std::int32_t>(from.taking);
  to.member_count = static_cast<std::uint32_t>(from.members.size());
  to.partition_count = static_cast<std::uint32_t>(from.offsets.size());
  return to;
}

leat_member_info to_member(const MemberInfo& from) {
  leat_member_info to{};
  std::memcpy(to.name, from.name.data(), std::min(from.name.size(), sizeof(to.name) - 1));
  to.in_flight = from.in_flight;
  to.pid = from.pid;
  return to;
}

}  // namespace
}  // namespace leat::capi

using namespace leat;
using namespace leat::capi;

std::int32_t leat_topic_group(leat_topic* topic, const char* name, std::uint64_t name_size,
                              const leat_group_options* options, leat_group** group,
                              std::uint32_t* was_created, std::int32_t* detail) {
  if (group == nullptr) return LEAT_ERR_INVALID_ARGUMENT;
  *group = nullptr;
  if (topic == nullptr) return LEAT_ERR_INVALID_ARGUMENT;
  if (is_forked(*topic)) return LEAT_ERR_FORKED;
  return guarded(detail, [&] {
    std::string text;
    GroupOptions wanted;
    std::int32_t wrong = read_name(name, name_size, text);
    if (wrong == LEAT_OK) wrong = to_options(options, wanted);
    if (wrong != LEAT_OK) return wrong;
    return keep(*topic, topic->topic.group(text, wanted), group, was_created, detail);
  });
}

std::int32_t leat_topic_find_group(leat_topic* topic, const char* name, std::uint64_t name_size,
                                   leat_group** group, std::int32_t* detail) {
  if (group == nullptr) return LEAT_ERR_INVALID_ARGUMENT;
  *group = nullptr;
  if (topic == nullptr) return LEAT_ERR_INVALID_ARGUMENT;
  if (is_forked(*topic)) return LEAT_ERR_FORKED;
  return guarded(detail, [&] {
    std::string text;
    if (const std::int32_t wrong = read_name(name, name_size, text); wrong != LEAT_OK) return wrong;
    return keep(*topic, topic->topic.find_group(text), group, nullptr, detail);
  });
}

std::int32_t leat_group_close(leat_group** group) { return close(group); }

std::int32_t leat_topic_delete_group(leat_topic* topic, const char* name, std::uint64_t name_size,
                                     std::uint32_t force, std::int32_t* detail) {
  if (topic == nullptr || !are_flags(force)) return LEAT_ERR_INVALID_ARGUMENT;
  if (is_forked(*topic)) return LEAT_ERR_FORKED;
  return guarded(detail, [&] {
    std::string text;
    if (const std::int32_t wrong = read_name(name, name_size, text); wrong != LEAT_OK) return wrong;
    return code_of(topic->topic.delete_group(text, force != 0), detail);
  });
}

std::int32_t leat_topic_group_names(leat_topic* topic, char* buffer, std::uint64_t capacity,
                                    std::uint64_t* size, std::int32_t* detail) {
  if (topic == nullptr || !is_text_room(buffer, capacity, size)) return LEAT_ERR_INVALID_ARGUMENT;
  *size = 0;
  if (is_forked(*topic)) return LEAT_ERR_FORKED;
  return guarded(detail, [&] {
    auto names = topic->topic.group_names();
    if (!names) return failed(names.error(), detail);
    return write_text(lines_of(*names), buffer, capacity, size);
  });
}

std::int32_t leat_group_name(leat_group* group, char* buffer, std::uint64_t capacity,
                             std::uint64_t* size) {
  if (group == nullptr || !is_text_room(buffer, capacity, size)) return LEAT_ERR_INVALID_ARGUMENT;
  *size = 0;
  if (is_forked(*group)) return LEAT_ERR_FORKED;
  return write_text(group->group.name(), buffer, capacity, size);
}

std::int32_t leat_group_get_info(leat_group* group, leat_group_info* info,
                                 leat_member_info* members, std::uint32_t member_capacity,
                                 std::uint64_t* offsets, std::uint32_t offset_capacity,
                                 std::int32_t* detail) {
  if (group == nullptr || info == nullptr || info->size < sizeof(info->size) ||
      is_nowhere(members, member_capacity) || is_nowhere(offsets, offset_capacity))
    return LEAT_ERR_INVALID_ARGUMENT;
  if (is_forked(*group)) return LEAT_ERR_FORKED;
  return guarded(detail, [&] {
    const GroupInfo found = group->group.info();
    write_info(to_info(found), info);
    for (std::size_t i = 0; i < found.members.size() && i < member_capacity; ++i)
      members[i] = to_member(found.members[i]);
    for (std::size_t i = 0; i < found.offsets.size() && i < offset_capacity; ++i)
      offsets[i] = found.offsets[i];
    return LEAT_OK;
  });
}

std::int32_t leat_group_dead_letter_topic(leat_group* group, char* buffer, std::uint64_t capacity,
                                          std::uint64_t* size) {
  if (group == nullptr || !is_text_room(buffer, capacity, size)) return LEAT_ERR_INVALID_ARGUMENT;
  *size = 0;
  if (is_forked(*group)) return LEAT_ERR_FORKED;
  return guarded(nullptr, [&] {
    return write_text(group->group.info().dead_letter_topic, buffer, capacity, size);
  });
}

std::int32_t leat_group_seek(leat_group* group, std::uint32_t from, std::uint64_t from_value,
                             std::uint32_t partition, std::int32_t* detail) {
  const auto to = from_of(from, from_value);
  if (group == nullptr || !to) return LEAT_ERR_INVALID_ARGUMENT;
  if (is_forked(*group)) return LEAT_ERR_FORKED;
  return guarded(detail,
                 [&] { return code_of(group->group.seek(*to, partition_of(partition)), detail); });
}

std::int32_t leat_group_position(leat_group* group, std::uint32_t partition,
                                 std::uint64_t* offset) {
  if (group == nullptr || offset == nullptr) return LEAT_ERR_INVALID_ARGUMENT;
  *offset = 0;
  if (is_forked(*group)) return LEAT_ERR_FORKED;
  if (partition >= group->partitions) return LEAT_ERR_INVALID_ARGUMENT;
  *offset = group->group.position(partition);
  return LEAT_OK;
}

std::int32_t leat_group_released(leat_group* group, std::uint32_t partition, std::uint64_t* count) {
  if (group == nullptr || count == nullptr) return LEAT_ERR_INVALID_ARGUMENT;
  *count = 0;
  if (is_forked(*group)) return LEAT_ERR_FORKED;
  if (partition >= group->partitions) return LEAT_ERR_INVALID_ARGUMENT;
  *count = group->group.released(partition);
  return LEAT_OK;
}
