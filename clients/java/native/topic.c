// Topics, and what is made from them.
#include "leat_jni.h"

NATIVE(jlong, topicCreate)
(JNIEnv *env, jclass type, jbyteArray name, jlongArray given, jbyteArray file_group,
 jbyteArray directory, jbyteArray data_directory, jboolean may_exist) {
  text texts[] = {copy_text(env, name), copy_text(env, file_group), copy_text(env, directory),
                  copy_text(env, data_directory)};
  leat_topic_options options = LEAT_TOPIC_OPTIONS_INIT;
  leat_topic *topic = NULL;
  int32_t detail = 0;
  jlong values[kMaxOptions];
  (void)type;
  copy_options(env, given, values);
  // In the order of io.leat.TopicOptions.
  SET(options.policy, values[0]);
  SET(options.capacity_bytes, values[1]);
  SET(options.segment_bytes, values[2]);
  SET(options.max_capacity_bytes, values[3]);
  SET(options.grow_below_bytes, values[4]);
  SET(options.partitions, values[5]);
  SET(options.participants, values[6]);
  SET(options.retain_all, values[7]);
  SET(options.single_writer, values[8]);
  SET(options.timestamps, values[9]);
  SET(options.delete_when_unused, values[10]);
  SET(options.revoke_after_ns, values[11]);
  SET(options.evict_after_ns, values[12]);
  SET(options.mode, values[13]);
  SET(options.durable, values[14]);
  SET(options.sync_interval_ns, values[15]);
  SET(options.file_bytes, values[16]);
  SET(options.retention_bytes, values[17]);
  SET(options.retention_ms, values[18]);
  options.file_group = bytes_of(&texts[1]);
  options.directory = bytes_of(&texts[2]);
  options.data_directory = bytes_of(&texts[3]);
  const int32_t code = (may_exist ? leat_topic_open_or_create : leat_topic_create)(
      texts[0].data, texts[0].size, &options, &topic, &detail);
  for (int i = 0; i < 4; ++i) free_text(&texts[i]);
  return pointer_result(code, detail, topic);
}

// Where topics are. The texts are freed with free_place().
static leat_place copy_place(JNIEnv *env, jbyteArray directory, jbyteArray data_directory) {
  leat_place place = LEAT_PLACE_INIT;
  const text in_memory = copy_text(env, directory);
  const text on_disk = copy_text(env, data_directory);
  place.directory = bytes_of(&in_memory);
  place.data_directory = bytes_of(&on_disk);
  return place;
}
static void free_place(leat_place *place) {
  free((void *)place->directory.data);
  free((void *)place->data_directory.data);
}

NATIVE(jlong, topicOpen)
(JNIEnv *env, jclass type, jbyteArray name, jlong timeout_ns, jbyteArray directory,
 jbyteArray data_directory) {
  text named = copy_text(env, name);
  leat_place place = copy_place(env, directory, data_directory);
  leat_topic *topic = NULL;
  int32_t detail = 0;
  (void)type;
  const int32_t code = leat_topic_open(named.data, named.size, timeout_ns, &place, &topic, &detail);
  free_place(&place);
  free_text(&named);
  return pointer_result(code, detail, topic);
}

NATIVE(jlong, topicDelete)
(JNIEnv *env, jclass type, jbyteArray name, jboolean force, jbyteArray directory,
 jbyteArray data_directory) {
  text named = copy_text(env, name);
  leat_place place = copy_place(env, directory, data_directory);
  int32_t detail = 0;
  (void)type;
  place.force = force;
  const int32_t code = leat_topic_delete(named.data, named.size, &place, &detail);
  free_place(&place);
  free_text(&named);
  return result(code, detail, 0);
}

static int32_t write_list(const void *of, char *buffer, uint64_t capacity, uint64_t *size, int32_t *detail) {
  return leat_topic_list(of, buffer, capacity, size, detail);
}
NATIVE(jbyteArray, topicList)
(JNIEnv *env, jclass type, jbyteArray directory, jbyteArray data_directory) {
  leat_place place = copy_place(env, directory, data_directory);
  jbyteArray list = written_text(env, write_list, &place);
  (void)type;
  free_place(&place);
  return list;
}

// ---- What an open topic tells -------------------------------------------------------------------

static int32_t write_name(const void *of, char *buffer, uint64_t capacity, uint64_t *size, int32_t *detail) {
  (void)detail;
  return leat_topic_name((leat_topic *)of, buffer, capacity, size);
}
static int32_t write_json(const void *of, char *buffer, uint64_t capacity, uint64_t *size, int32_t *detail) {
  return leat_topic_get_json((leat_topic *)of, buffer, capacity, size, detail);
}
static int32_t write_groups(const void *of, char *buffer, uint64_t capacity, uint64_t *size, int32_t *detail) {
  return leat_topic_group_names((leat_topic *)of, buffer, capacity, size, detail);
}
NATIVE(jbyteArray, topicName)(JNIEnv *env, jclass type, jlong topic) {
  (void)type;
  return written_text(env, write_name, topic_of(topic));
}
NATIVE(jbyteArray, topicJson)(JNIEnv *env, jclass type, jlong topic) {
  (void)type;
  return written_text(env, write_json, topic_of(topic));
}
NATIVE(jbyteArray, topicGroups)(JNIEnv *env, jclass type, jlong topic) {
  (void)type;
  return written_text(env, write_groups, topic_of(topic));
}

NATIVE(jlong, topicMaxRecordSize)(JNIEnv *env, jclass type, jlong topic) {
  uint64_t bytes = 0;
  (void)env, (void)type;
  const int32_t code = leat_topic_max_record_size(topic_of(topic), &bytes);
  return result(code, 0, bytes);
}
NATIVE(jlong, topicPartitions)(JNIEnv *env, jclass type, jlong topic) {
  uint32_t count = 0;
  (void)env, (void)type;
  const int32_t code = leat_topic_partitions(topic_of(topic), &count);
  return result(code, 0, count);
}

// As java.util.UUID takes it.
static jlong uuid_half(const uint8_t *bytes) {
  uint64_t half = 0;
  for (int i = 0; i < 8; ++i) half = half << 8 | bytes[i];
  return (jlong)half;
}
// In the order of io.leat.TopicInfo, which reads it.
static jlong *put_info(jlong *to, const leat_topic_info *info) {
  const jlong fields[] = {
      info->policy, (jlong)info->capacity_bytes, (jlong)info->max_capacity_bytes,
      (jlong)info->segment_bytes, (jlong)info->max_record_bytes, info->retain_all,
      info->single_writer, info->timestamps, info->delete_when_unused, info->revoke_after_ns,
      info->evict_after_ns, info->durable, info->state, info->state_detail, info->archiver_pid,
      info->sync_interval_ns, info->created_ms, (jlong)info->file_bytes,
      (jlong)info->retention_bytes, info->retention_ms, (jlong)info->disk_bytes,
      (jlong)info->cut_bytes, (jlong)info->cut_records, (jlong)info->damaged,
      info->partition_count, info->participant_count, uuid_half(info->id), uuid_half(info->id + 8)};
  memcpy(to, fields, sizeof(fields));
  return to + sizeof(fields) / sizeof(fields[0]);
}
static jlong *put_partition(jlong *to, const leat_partition_info *from) {
  *to++ = (jlong)from->start;
  *to++ = (jlong)from->end;
  *to++ = (jlong)from->capacity_bytes;
  *to++ = (jlong)from->used_bytes;
  *to++ = (jlong)from->written;
  *to++ = (jlong)from->durable;
  return to;
}
static jlong *put_participant(jlong *to, const leat_participant_info *from) {
  *to++ = from->pid;
  *to++ = from->role;
  *to++ = (jlong)from->offset;
  *to++ = (jlong)from->lag;
  *to++ = from->blocking;
  return to;
}

NATIVE(jlongArray, topicInfo)(JNIEnv *env, jclass type, jlong topic) {
  enum { kFields = 64, kMaxPartitions = 4096, kMaxParticipants = 4096 };
  leat_topic_info info = {.size = sizeof(info)};
  leat_partition_info *partitions = calloc(kMaxPartitions, sizeof(*partitions));
  leat_participant_info *participants = calloc(kMaxParticipants, sizeof(*participants));
  int32_t detail = 0;
  int32_t code = LEAT_ERR_NO_MEMORY;
  jlong *numbers = NULL;
  jlong *to = NULL;
  (void)type;
  if (partitions != NULL && participants != NULL) {
    code = leat_topic_get_info(topic_of(topic), &info, partitions, kMaxPartitions, participants,
                               kMaxParticipants, &detail);
  }
  if (info.partition_count > kMaxPartitions) info.partition_count = kMaxPartitions;
  if (info.participant_count > kMaxParticipants) info.participant_count = kMaxParticipants;
  if (code == LEAT_OK) {
    numbers = calloc(kFields + 6 * (size_t)info.partition_count + 5 * (size_t)info.participant_count,
                     sizeof(*numbers));
    if (numbers == NULL) code = LEAT_ERR_NO_MEMORY;
  }
  if (code == LEAT_OK) {
    to = put_info(numbers, &info);
    for (uint32_t i = 0; i < info.partition_count; ++i) to = put_partition(to, &partitions[i]);
    for (uint32_t i = 0; i < info.participant_count; ++i) to = put_participant(to, &participants[i]);
  }
  free(partitions);
  free(participants);
  if (code == LEAT_OK) return take_longs(env, numbers, (uint64_t)(to - numbers));
  throw_error(env, code, detail);
  return NULL;
}

NATIVE(jlong, topicSetMaxCapacity)(JNIEnv *env, jclass type, jlong topic, jlong bytes) {
  int32_t detail = 0;
  (void)env, (void)type;
  const int32_t code = leat_topic_set_max_capacity(topic_of(topic), (uint64_t)bytes, &detail);
  return result(code, detail, 0);
}
NATIVE(jlong, topicShrink)(JNIEnv *env, jclass type, jlong topic) {
  int32_t detail = 0;
  uint64_t freed = 0;
  (void)env, (void)type;
  const int32_t code = leat_topic_shrink(topic_of(topic), &freed, &detail);
  return result(code, detail, freed);
}
NATIVE(jlong, topicRepair)(JNIEnv *env, jclass type, jlong topic, jlong timeout_ns) {
  int32_t detail = 0;
  (void)env, (void)type;
  const int32_t code = leat_topic_repair(topic_of(topic), timeout_ns, &detail);
  return result(code, detail, 0);
}
