// Reading. A batch lies in the reader's room: first leat_record (leat_delivery) for each, which Java reads, then the
// bytes of small records, one behind the other. Larger ones are fetched one by one, copied once.
#include "leat_jni.h"

_Static_assert(sizeof(leat_record) == 32 && sizeof(leat_delivery) == 64, "Java reads these");

NATIVE(jlong, subscriber)(JNIEnv *env, jclass type, jlong topic, jlongArray given) {
  leat_subscriber_options options = LEAT_SUBSCRIBER_OPTIONS_INIT;
  handle *made = new_handle(kSubscriber);
  int32_t detail = 0;
  jlong values[kMaxOptions];
  (void)type;
  if (made == NULL) return result(LEAT_ERR_NO_MEMORY, 0, 0);
  copy_options(env, given, values);
  // In the order of io.leat.SubscriberOptions.
  SET(options.from, values[0]);
  SET(options.from_value, values[1]);
  SET(options.partition, values[2]);
  SET(options.gating, values[3]);
  SET(options.in_place, values[4]);
  SET(options.read, values[5]);
  SET(options.spin_ns, values[6]);
  SET(options.patience_ns, values[7]);
  options.any_thread = 1;
  const int32_t code = leat_topic_subscriber(topic_of(topic), &options, &made->is.subscriber, &detail);
  return handle_result(code, detail, made);
}

// ---- Packing ------------------------------------------------------------------------------------

enum { kSmall = 4096 };  // With all that belongs to it. Copying twice costs more than a call from there on.

// How many bytes before the value belong to the record.
static inline uint64_t prefix(const leat_record *record) {
  const uint64_t before = (uint64_t)record->key_size + record->headers_size;
  if ((record->flags & LEAT_RECORD_HAS_TIMESTAMP) == 0) return before;
  return before + 8 + ((record->flags & LEAT_RECORD_HAS_KEY) != 0 ? 4 : 0) +
         ((record->flags & LEAT_RECORD_HAS_HEADERS) != 0 ? 4 : 0);
}

// Copies `count` small records, which lie `stride` bytes apart, behind `capacity` of them, and points them there.
static void pack(const handle *of, uint32_t count, uint32_t capacity, uint64_t stride) {
  uint8_t *at = of->room + capacity * stride;
  const uint8_t *end = of->room + of->room_size;
  for (uint32_t i = 0; i < count; ++i) {
    leat_record *record = (leat_record *)(void *)(of->room + i * stride);
    if (leat_record_is_gap(record)) continue;
    const uint64_t before = prefix(record);
    const uint64_t size = before + record->value_size;
    if (size > kSmall || size > (uint64_t)(end - at)) continue;
    memcpy(at, record->value - before, size);
    record->value = at + before;
    at += size;
  }
}

// Without a timeout, polls.
enum { kPoll = -2 };

NATIVE(jlong, read)
(JNIEnv *env, jclass type, jlong pointer, jint capacity, jlong timeout_ns, jboolean in_place) {
  const handle *of = handle_of(pointer);
  leat_record *records = (leat_record *)(void *)of->room;
  uint32_t count = 0;
  int32_t detail = 0;
  (void)env, (void)type;
  const int32_t code =
      timeout_ns == kPoll
          ? leat_subscriber_poll(of->is.subscriber, records, (uint32_t)capacity, &count, &detail)
          : leat_subscriber_receive(of->is.subscriber, records, (uint32_t)capacity, &count,
                                    timeout_ns, &detail);
  if (!in_place) pack(of, count, (uint32_t)capacity, sizeof(leat_record));
  return result(code, detail, count);
}

NATIVE(jlong, receive)(JNIEnv *env, jclass type, jlong pointer, jint capacity, jlong timeout_ns) {
  const handle *of = handle_of(pointer);
  uint32_t count = 0;
  int32_t detail = 0;
  (void)env, (void)type;
  const int32_t code = leat_member_receive(of->is.member, (leat_delivery *)(void *)of->room,
                                           (uint32_t)capacity, &count, timeout_ns, &detail);
  pack(of, count, (uint32_t)capacity, sizeof(leat_delivery));
  return result(code, detail, count);
}

// Copies bytes of a record that was not packed.
NATIVE(void, copy)(JNIEnv *env, jclass type, jlong address, jbyteArray into) {
  (void)type;
  (*env)->SetByteArrayRegion(env, into, 0, (*env)->GetArrayLength(env, into),
                             (const jbyte *)(intptr_t)address);
}

// ---- Waiting ------------------------------------------------------------------------------------

NATIVE(jlong, waitFor)(JNIEnv *env, jclass type, jlong pointer, jlong timeout_ns) {
  const handle *of = handle_of(pointer);
  (void)env, (void)type;
  if (of->kind == kMember) return result(leat_member_wait(of->is.member, timeout_ns), 0, 0);
  return result(leat_subscriber_wait(of->is.subscriber, timeout_ns), 0, 0);
}
NATIVE(jlong, waitAny)(JNIEnv *env, jclass type, jlongArray pointers, jlong timeout_ns) {
  leat_subscriber *subscribers[LEAT_MAX_WAIT_ANY];
  jlong of[LEAT_MAX_WAIT_ANY];
  const jsize count = (*env)->GetArrayLength(env, pointers);
  uint32_t index = 0;
  (void)type;
  if (count > LEAT_MAX_WAIT_ANY) return result(LEAT_ERR_INVALID_ARGUMENT, 0, 0);
  (*env)->GetLongArrayRegion(env, pointers, 0, count, of);
  for (jsize i = 0; i < count; ++i) subscribers[i] = subscriber_of(of[i]);
  const int32_t code = leat_subscriber_wait_any(subscribers, (uint32_t)count, timeout_ns, &index);
  return result(code, 0, index);
}
NATIVE(jlong, waitFd)(JNIEnv *env, jclass type, jlong pointer) {
  const handle *of = handle_of(pointer);
  int32_t detail = 0;
  int32_t fd = 0;
  (void)env, (void)type;
  const int32_t code = of->kind == kMember
                           ? leat_member_wait_fd(of->is.member, &fd, &detail)
                           : leat_subscriber_wait_fd(of->is.subscriber, &fd, &detail);
  return result(code, detail, (uint64_t)fd);
}

NATIVE(jlong, subscriberOffset)(JNIEnv *env, jclass type, jlong pointer, jint partition) {
  uint64_t offset = 0;
  (void)env, (void)type;
  const int32_t code = leat_subscriber_offset(subscriber_of(pointer), (uint32_t)partition, &offset);
  return result(code, 0, offset);
}
NATIVE(jlong, isLossy)(JNIEnv *env, jclass type, jlong pointer) {
  uint32_t is_lossy = 0;
  (void)env, (void)type;
  const int32_t code = leat_subscriber_is_lossy(subscriber_of(pointer), &is_lossy);
  return result(code, 0, is_lossy);
}
