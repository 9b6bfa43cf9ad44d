// Groups and their members. Members receive in subscriber.c.
#include "leat_jni.h"

// Opens or creates; without options, only opens. options[9] becomes 1 if it was created.
NATIVE(jlong, group)(JNIEnv *env, jclass type, jlong topic, jbyteArray name, jlongArray given) {
  leat_group_options options = LEAT_GROUP_OPTIONS_INIT;
  text named = copy_text(env, name);
  leat_group *group = NULL;
  uint32_t was_created = 0;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  jlong values[kMaxOptions];
  (void)type;
  copy_options(env, given, values);
  if (given == NULL) {
    code = leat_topic_find_group(topic_of(topic), named.data, named.size, &group, &detail);
  } else {
    // In the order of io.leat.GroupOptions.
    SET(options.from, values[0]);
    SET(options.from_value, values[1]);
    SET(options.mode, values[2]);
    SET(options.by_key, values[3]);
    SET(options.members, values[4]);
    SET(options.in_flight, values[5]);
    SET(options.max_deliveries, values[6]);
    SET(options.on_expired, values[7]);
    SET(options.lease_ns, values[8]);
    code = leat_topic_group(topic_of(topic), named.data, named.size, &options, &group, &was_created,
                            &detail);
    values[9] = was_created;
    (*env)->SetLongArrayRegion(env, given, 9, 1, &values[9]);
  }
  free_text(&named);
  return pointer_result(code, detail, group);
}
NATIVE(jlong, deleteGroup)
(JNIEnv *env, jclass type, jlong topic, jbyteArray name, jboolean force) {
  text named = copy_text(env, name);
  int32_t detail = 0;
  (void)type;
  const int32_t code =
      leat_topic_delete_group(topic_of(topic), named.data, named.size, force, &detail);
  free_text(&named);
  return result(code, detail, 0);
}

static int32_t write_name(const void *of, char *buffer, uint64_t capacity, uint64_t *size, int32_t *detail) {
  (void)detail;
  return leat_group_name((leat_group *)of, buffer, capacity, size);
}
static int32_t write_dead_letters(const void *of, char *buffer, uint64_t capacity, uint64_t *size,
                                  int32_t *detail) {
  (void)detail;
  return leat_group_dead_letter_topic((leat_group *)of, buffer, capacity, size);
}
NATIVE(jbyteArray, groupName)(JNIEnv *env, jclass type, jlong group) {
  (void)type;
  return written_text(env, write_name, group_of(group));
}
NATIVE(jbyteArray, groupDeadLetterTopic)(JNIEnv *env, jclass type, jlong group) {
  (void)type;
  return written_text(env, write_dead_letters, group_of(group));
}

// In the order of io.leat.GroupInfo, which reads it.
static jlong *put_info(jlong *to, const leat_group_info *info) {
  const jlong fields[] = {info->mode, info->by_key, info->max_deliveries, info->lease_ns,
                          info->on_expired, info->in_flight_limit, (jlong)info->lag,
                          (jlong)info->in_flight, (jlong)info->redelivered, (jlong)info->returned,
                          (jlong)info->returned_limit, (jlong)info->dead_letters, info->taking,
                          info->member_count, info->partition_count};
  memcpy(to, fields, sizeof(fields));
  return to + sizeof(fields) / sizeof(fields[0]);
}
// The name as the 8 numbers whose bytes it is.
static jlong *put_member(jlong *to, const leat_member_info *from) {
  *to++ = (jlong)from->in_flight;
  *to++ = from->pid;
  memcpy(to, from->name, 64);
  return to + 8;
}

NATIVE(jlongArray, groupInfo)(JNIEnv *env, jclass type, jlong group) {
  enum { kFields = 32, kMaxMembers = 255, kMaxPartitions = 4096 };
  leat_group_info info = {.size = sizeof(info)};
  leat_member_info *members = calloc(kMaxMembers, sizeof(*members));
  uint64_t *offsets = calloc(kMaxPartitions, sizeof(*offsets));
  jlong *numbers = calloc(kFields + 10 * kMaxMembers + kMaxPartitions, sizeof(*numbers));
  int32_t detail = 0;
  int32_t code = LEAT_ERR_NO_MEMORY;
  jlong *to = numbers;
  (void)type;
  if (members != NULL && offsets != NULL && numbers != NULL) {
    code = leat_group_get_info(group_of(group), &info, members, kMaxMembers, offsets, kMaxPartitions,
                               &detail);
  }
  if (info.member_count > kMaxMembers) info.member_count = kMaxMembers;
  if (info.partition_count > kMaxPartitions) info.partition_count = kMaxPartitions;
  if (code == LEAT_OK) {
    to = put_info(to, &info);
    for (uint32_t i = 0; i < info.member_count; ++i) to = put_member(to, &members[i]);
    for (uint32_t i = 0; i < info.partition_count; ++i) *to++ = (jlong)offsets[i];
  }
  free(members);
  free(offsets);
  if (code == LEAT_OK) return take_longs(env, numbers, (uint64_t)(to - numbers));
  free(numbers);
  throw_error(env, code, detail);
  return NULL;
}

NATIVE(jlong, groupSeek)
(JNIEnv *env, jclass type, jlong group, jint from, jlong value, jint partition) {
  int32_t detail = 0;
  (void)env, (void)type;
  const int32_t code = leat_group_seek(group_of(group), (uint32_t)from, (uint64_t)value,
                                       (uint32_t)partition, &detail);
  return result(code, detail, 0);
}
NATIVE(jlong, groupPosition)(JNIEnv *env, jclass type, jlong group, jint partition) {
  uint64_t offset = 0;
  (void)env, (void)type;
  const int32_t code = leat_group_position(group_of(group), (uint32_t)partition, &offset);
  return result(code, 0, offset);
}
NATIVE(jlong, groupReleased)(JNIEnv *env, jclass type, jlong group, jint partition) {
  uint64_t count = 0;
  (void)env, (void)type;
  const int32_t code = leat_group_released(group_of(group), (uint32_t)partition, &count);
  return result(code, 0, count);
}

// ---- Members ------------------------------------------------------------------------------------

NATIVE(jlong, join)(JNIEnv *env, jclass type, jlong group, jlongArray given, jbyteArray name) {
  leat_member_options options = LEAT_MEMBER_OPTIONS_INIT;
  handle *made = new_handle(kMember);
  text named = copy_text(env, name);
  int32_t detail = 0;
  jlong values[kMaxOptions];
  (void)type;
  if (made == NULL) {
    free_text(&named);
    return result(LEAT_ERR_NO_MEMORY, 0, 0);
  }
  copy_options(env, given, values);
  // In the order of io.leat.MemberOptions.
  SET(options.spin_ns, values[0]);
  SET(options.patience_ns, values[1]);
  options.any_thread = 1;
  options.name = bytes_of(&named);
  const int32_t code = leat_group_join(group_of(group), &options, &made->is.member, &detail);
  free_text(&named);
  return handle_result(code, detail, made);
}

// All that names a delivery.
static leat_delivery delivery_of(jlong at, jlong state, jlong position, jlong entry) {
  leat_delivery delivery = {0};
  delivery.record.partition = (uint16_t)((uint64_t)at & 0xffff);
  delivery.record.flags = (uint16_t)((uint64_t)at >> 16);
  delivery.state = (uint64_t)state;
  delivery.position = (uint64_t)position;
  delivery.entry = (uint64_t)entry;
  return delivery;
}

NATIVE(jlong, acknowledge)
(JNIEnv *env, jclass type, jlong pointer, jlong at, jlong state, jlong position, jlong entry) {
  const leat_delivery delivery = delivery_of(at, state, position, entry);
  (void)env, (void)type;
  return result(leat_member_acknowledge(member_of(pointer), &delivery), 0, 1);
}
// `count` deliveries of four numbers each.
NATIVE(jlong, acknowledgeSome)(JNIEnv *env, jclass type, jlong pointer, jlongArray given) {
  const jsize count = (*env)->GetArrayLength(env, given) / 4;
  leat_delivery *deliveries = calloc((size_t)count + 1, sizeof(*deliveries));
  uint64_t acknowledged = 0;
  (void)type;
  if (deliveries == NULL) return result(LEAT_ERR_NO_MEMORY, 0, 0);
  for (jsize i = 0; i < count; ++i) {
    jlong of[4];
    (*env)->GetLongArrayRegion(env, given, 4 * i, 4, of);
    deliveries[i] = delivery_of(of[0], of[1], of[2], of[3]);
  }
  const int32_t code = leat_member_acknowledge_some(member_of(pointer), deliveries, (uint64_t)count,
                                                    &acknowledged);
  free(deliveries);
  return result(code, 0, acknowledged);
}
NATIVE(jlong, acknowledgeUpTo)
(JNIEnv *env, jclass type, jlong pointer, jlong at, jlong state, jlong position, jlong entry) {
  const leat_delivery delivery = delivery_of(at, state, position, entry);
  uint64_t acknowledged = 0;
  (void)env, (void)type;
  const int32_t code = leat_member_acknowledge_up_to(member_of(pointer), &delivery, &acknowledged);
  return result(code, 0, acknowledged);
}
NATIVE(jlong, acknowledgeAll)(JNIEnv *env, jclass type, jlong pointer) {
  uint64_t acknowledged = 0;
  (void)env, (void)type;
  const int32_t code = leat_member_acknowledge_all(member_of(pointer), &acknowledged);
  return result(code, 0, acknowledged);
}
NATIVE(jlong, requeue)
(JNIEnv *env, jclass type, jlong pointer, jlong at, jlong state, jlong position, jlong entry,
 jlong delay_ns) {
  const leat_delivery delivery = delivery_of(at, state, position, entry);
  (void)env, (void)type;
  return result(leat_member_requeue(member_of(pointer), &delivery, delay_ns), 0, 0);
}
NATIVE(jlong, inFlight)(JNIEnv *env, jclass type, jlong pointer) {
  uint64_t count = 0;
  (void)env, (void)type;
  const int32_t code = leat_member_in_flight(member_of(pointer), &count);
  return result(code, 0, count);
}
