// Topics in C: create, open, delete, list, and what one can do with an open one.
#include "capi/handles.hpp"

namespace leat::capi {
namespace {

// UNSUPPORTED, INVALID_ARGUMENT, or OK.
std::int32_t to_options(const leat_topic_options* given, TopicOptions& options) {
  leat_topic_options from = LEAT_TOPIC_OPTIONS_INIT;
  if (const std::int32_t wrong = read_options(given, from); wrong != LEAT_OK) return wrong;
  if (from.policy > LEAT_POLICY_GROW || from.durable > LEAT_DURABILITY_FSYNC ||
      !are_flags(from.retain_all, from.single_writer, from.timestamps, from.delete_when_unused) ||
      !read_text(from.file_group, options.file_group) ||
      !read_text(from.directory, options.directory) ||
      !read_text(from.data_directory, options.data_directory))
    return LEAT_ERR_INVALID_ARGUMENT;
  options.capacity_bytes = from.capacity_bytes;
  options.segment_bytes = from.segment_bytes;
  options.policy = static_cast<Policy>(from.policy);
  options.max_capacity_bytes = from.max_capacity_bytes;
  options.grow_below_bytes = from.grow_below_bytes;
  options.retain_all = from.retain_all != 0;
  options.partitions = from.partitions;
  options.single_writer = from.single_writer != 0;
  options.timestamps = from.timestamps != 0;
  options.delete_when_unused = from.delete_when_unused != 0;
  options.revoke_after = std::chrono::nanoseconds{from.revoke_after_ns};
  options.evict_after = std::chrono::nanoseconds{from.evict_after_ns};
  options.participants = from.participants;
  options.mode = from.mode;
  options.durable = static_cast<Durability>(from.durable);
  options.sync_interval = std::chrono::nanoseconds{from.sync_interval_ns};
  options.file_bytes = from.file_bytes;
  options.retention_bytes = from.retention_bytes;
  options.retention = std::chrono::milliseconds{from.retention_ms};
  return LEAT_OK;
}

struct Place : DeleteOptions {
  bool interruptible = false;
};
std::int32_t to_place(const leat_place* given, Place& place) {
  leat_place from = LEAT_PLACE_INIT;
  if (const std::int32_t wrong = read_options(given, from); wrong != LEAT_OK) return wrong;
  if (!are_flags(from.force, from.interruptible) || from.reserved != 0 ||
      !read_text(from.directory, place.directory) ||
      !read_text(from.data_directory, place.data_directory))
    return LEAT_ERR_INVALID_ARGUMENT;
  place.force = from.force != 0;
  place.interruptible = from.interruptible != 0;
  return LEAT_OK;
}

std::int32_t keep(Result<Topic> made, leat_topic** topic, std::int32_t* detail) {
  if (!made) return failed(made.error(), detail);
  *topic = new leat_topic{.topic = std::move(*made)};
  return LEAT_OK;
}

// Creates a topic, with Topic::create or Topic::open_or_create.
using Create = Result<Topic> (*)(const std::string& name, const TopicOptions& options);
std::int32_t create(Create how, const char* name, std::uint64_t name_size,
                    const leat_topic_options* options, leat_topic** topic, std::int32_t* detail) {
  if (topic == nullptr) return LEAT_ERR_INVALID_ARGUMENT;
  *topic = nullptr;
  return guarded(detail, [&] {
    std::string text;
    TopicOptions wanted;
    std::int32_t wrong = read_name(name, name_size, text);
    if (wrong == LEAT_OK) wrong = to_options(options, wanted);
    return wrong == LEAT_OK ? keep(how(text, wanted), topic, detail) : wrong;
  });
}

std::int32_t repair(leat_topic* topic, std::int64_t timeout_ns, bool interruptible,
                    std::int32_t* detail) {
  if (topic == nullptr || !is_timeout(timeout_ns)) return LEAT_ERR_INVALID_ARGUMENT;
  if (is_forked(*topic)) return LEAT_ERR_FORKED;
  return guarded(detail, [&] {
    return code_of(topic->topic.repair(deadline_of(timeout_ns), interruptible), detail);
  });
}

}  // namespace
}  // namespace leat::capi

using namespace leat;
using namespace leat::capi;

std::int32_t leat_topic_create(const char* name, std::uint64_t name_size,
                               const leat_topic_options* options, leat_topic** topic,
                               std::int32_t* detail) {
  return create(&Topic::create, name, name_size, options, topic, detail);
}

std::int32_t leat_topic_open_or_create(const char* name, std::uint64_t name_size,
                                       const leat_topic_options* options, leat_topic** topic,
                                       std::int32_t* detail) {
  return create(&Topic::open_or_create, name, name_size, options, topic, detail);
}

std::int32_t leat_topic_open(const char* name, std::uint64_t name_size, std::int64_t timeout_ns,
                             const leat_place* place, leat_topic** topic, std::int32_t* detail) {
  if (topic == nullptr) return LEAT_ERR_INVALID_ARGUMENT;
  *topic = nullptr;
  if (!is_timeout(timeout_ns)) return LEAT_ERR_INVALID_ARGUMENT;
  return guarded(detail, [&] {
    std::string text;
    Place where;
    std::int32_t wrong = read_name(name, name_size, text);
    if (wrong == LEAT_OK) wrong = to_place(place, where);
    if (wrong != LEAT_OK) return wrong;
    return keep(Topic::open(text, deadline_of(timeout_ns), where.directory, {},
                            where.data_directory, where.interruptible),
                topic, detail);
  });
}

std::int32_t leat_topic_close(leat_topic** topic) { return close(topic); }

std::int32_t leat_topic_delete(const char* name, std::uint64_t name_size, const leat_place* place,
                               std::int32_t* detail) {
  return guarded(detail, [&] {
    std::string text;
    Place where;
    std::int32_t wrong = read_name(name, name_size, text);
    if (wrong == LEAT_OK) wrong = to_place(place, where);
    return wrong == LEAT_OK ? code_of(Topic::delete_topic(text, where), detail) : wrong;
  });
}

std::int32_t leat_topic_list(const leat_place* place, char* buffer, std::uint64_t capacity,
                             std::uint64_t* size, std::int32_t* detail) {
  if (!is_text_room(buffer, capacity, size)) return LEAT_ERR_INVALID_ARGUMENT;
  *size = 0;
  return guarded(detail, [&] {
    Place where;
    if (const std::int32_t wrong = to_place(place, where); wrong != LEAT_OK) return wrong;
    auto names = Topic::list(where.directory, where.data_directory);
    if (!names) return failed(names.error(), detail);
    return write_text(lines_of(*names), buffer, capacity, size);
  });
}

std::int32_t leat_topic_name(leat_topic* topic, char* buffer, std::uint64_t capacity,
                             std::uint64_t* size) {
  if (topic == nullptr || !is_text_room(buffer, capacity, size)) return LEAT_ERR_INVALID_ARGUMENT;
  if (is_forked(*topic)) return LEAT_ERR_FORKED;
  return write_text(topic->topic.name(), buffer, capacity, size);
}

std::int32_t leat_topic_max_record_size(leat_topic* topic, std::uint64_t* bytes) {
  if (topic == nullptr || bytes == nullptr) return LEAT_ERR_INVALID_ARGUMENT;
  if (is_forked(*topic)) return LEAT_ERR_FORKED;
  *bytes = topic->topic.max_record_size();
  return LEAT_OK;
}

std::int32_t leat_topic_partitions(leat_topic* topic, std::uint32_t* count) {
  if (topic == nullptr || count == nullptr) return LEAT_ERR_INVALID_ARGUMENT;
  if (is_forked(*topic)) return LEAT_ERR_FORKED;
  *count = topic->topic.partitions();
  return LEAT_OK;
}

std::int32_t leat_topic_set_max_capacity(leat_topic* topic, std::uint64_t bytes,
                                         std::int32_t* detail) {
  if (topic == nullptr) return LEAT_ERR_INVALID_ARGUMENT;
  if (is_forked(*topic)) return LEAT_ERR_FORKED;
  return guarded(detail, [&] { return code_of(topic->topic.set_max_capacity(bytes), detail); });
}

std::int32_t leat_topic_shrink(leat_topic* topic, std::uint64_t* freed_bytes,
                               std::int32_t* detail) {
  if (topic == nullptr) return LEAT_ERR_INVALID_ARGUMENT;
  if (is_forked(*topic)) return LEAT_ERR_FORKED;
  return guarded(detail, [&] { return code_of(topic->topic.shrink(), freed_bytes, detail); });
}

std::int32_t leat_topic_repair(leat_topic* topic, std::int64_t timeout_ns, std::int32_t* detail) {
  return repair(topic, timeout_ns, false, detail);
}

std::int32_t leat_topic_repair_interruptible(leat_topic* topic, std::int64_t timeout_ns,
                                             std::int32_t* detail) {
  return repair(topic, timeout_ns, true, detail);
}
