// Publishing. What is published lies in the publisher's room: Java has copied it there, and written structs of C
// before it, with the addresses.
#include "leat_jni.h"

_Static_assert(sizeof(leat_new_record) == 48 && sizeof(leat_new_header) == 32, "Java writes these");

NATIVE(jlong, publisher)(JNIEnv *env, jclass type, jlong topic, jlongArray given) {
  leat_publisher_options options = LEAT_PUBLISHER_OPTIONS_INIT;
  handle *made = new_handle(kPublisher);
  int32_t detail = 0;
  jlong values[kMaxOptions];
  (void)type;
  if (made == NULL) return result(LEAT_ERR_NO_MEMORY, 0, 0);
  copy_options(env, given, values);
  // In the order of io.leat.PublisherOptions.
  SET(options.partition, values[0]);
  SET(options.exclusive, values[1]);
  SET(options.acknowledge, values[2]);
  const int32_t code = leat_topic_publisher(topic_of(topic), &options, &made->is.publisher, &detail);
  return handle_result(code, detail, made);
}

NATIVE(jlong, publish)(JNIEnv *env, jclass type, jlong pointer, jint size, jlong timeout_ns) {
  const handle *of = handle_of(pointer);
  uint64_t offset = 0;
  int32_t detail = 0;
  (void)env, (void)type;
  const int32_t code = leat_publisher_publish(of->is.publisher, of->room, (uint64_t)size, timeout_ns,
                                              &offset, &detail);
  return result(code, detail, offset);
}
// The room begins with leat_bytes.
NATIVE(jlong, publishBatch)
(JNIEnv *env, jclass type, jlong pointer, jint count, jint partition, jlong timeout_ns) {
  const handle *of = handle_of(pointer);
  uint64_t offset = 0;
  int32_t detail = 0;
  (void)env, (void)type;
  const int32_t code =
      leat_publisher_publish_batch(of->is.publisher, (const leat_bytes *)of->room, (uint64_t)count,
                                   (uint32_t)partition, timeout_ns, &offset, &detail);
  return result(code, detail, offset);
}
// The room begins with leat_new_record.
NATIVE(jlong, publishRecord)(JNIEnv *env, jclass type, jlong pointer, jlong timeout_ns) {
  const handle *of = handle_of(pointer);
  uint64_t offset = 0;
  int32_t detail = 0;
  (void)env, (void)type;
  const int32_t code = leat_publisher_publish_record(
      of->is.publisher, (const leat_new_record *)of->room, timeout_ns, &offset, &detail);
  return result(code, detail, offset);
}
NATIVE(jlong, publishRecordBatch)
(JNIEnv *env, jclass type, jlong pointer, jint count, jint partition, jlong timeout_ns) {
  const handle *of = handle_of(pointer);
  uint64_t offset = 0;
  int32_t detail = 0;
  (void)env, (void)type;
  const int32_t code = leat_publisher_publish_record_batch(
      of->is.publisher, (const leat_new_record *)of->room, (uint64_t)count, (uint32_t)partition,
      timeout_ns, &offset, &detail);
  return result(code, detail, offset);
}

// ---- Claims: address, size, offset and number cross as they are -----------------------------------

NATIVE(jlong, claim)
(JNIEnv *env, jclass type, jlong pointer, jlong size, jlong timeout_ns, jlongArray claimed) {
  leat_claim claim = {0};
  int32_t detail = 0;
  (void)type;
  const int32_t code =
      leat_publisher_claim(publisher_of(pointer), (uint64_t)size, timeout_ns, &claim, &detail);
  const jlong fields[] = {(jlong)(intptr_t)claim.data, (jlong)claim.size, (jlong)claim.offset,
                          (jlong)claim.id};
  if (code == LEAT_OK) (*env)->SetLongArrayRegion(env, claimed, 0, 4, fields);
  return result(code, detail, 0);
}

static leat_claim claim_of(jlong data, jlong size, jlong offset, jlong id) {
  return (leat_claim){(uint8_t *)(intptr_t)data, (uint64_t)size, (uint64_t)offset, (uint64_t)id};
}
// `copy` is NULL, or a direct buffer with what must be copied into the claim first.
NATIVE(jlong, commit)
(JNIEnv *env, jclass type, jlong pointer, jlong data, jlong size, jlong offset, jlong id, jlong used,
 jobject copy) {
  const leat_claim claim = claim_of(data, size, offset, id);
  int32_t detail = 0;
  (void)type;
  if (copy != NULL && used <= size) {
    memcpy(claim.data, (*env)->GetDirectBufferAddress(env, copy), (size_t)used);
  }
  const int32_t code = leat_publisher_commit(publisher_of(pointer), &claim, (uint64_t)used, &detail);
  return result(code, detail, 0);
}
NATIVE(jlong, abort)
(JNIEnv *env, jclass type, jlong pointer, jlong data, jlong size, jlong offset, jlong id) {
  const leat_claim claim = claim_of(data, size, offset, id);
  int32_t detail = 0;
  (void)env, (void)type;
  const int32_t code = leat_publisher_abort(publisher_of(pointer), &claim, &detail);
  return result(code, detail, 0);
}

// ---- Stable storage, and numbers --------------------------------------------------------------------

NATIVE(jlong, flush)(JNIEnv *env, jclass type, jlong pointer, jlong timeout_ns) {
  int32_t detail = 0;
  (void)env, (void)type;
  const int32_t code = leat_publisher_flush(publisher_of(pointer), timeout_ns, &detail);
  return result(code, detail, 0);
}
NATIVE(jlong, requestSync)(JNIEnv *env, jclass type, jlong pointer) {
  int32_t detail = 0;
  (void)env, (void)type;
  const int32_t code = leat_publisher_request_sync(publisher_of(pointer), &detail);
  return result(code, detail, 0);
}
NATIVE(jlong, durableOffset)(JNIEnv *env, jclass type, jlong pointer, jint partition) {
  uint64_t offset = 0;
  (void)env, (void)type;
  const int32_t code =
      leat_publisher_durable_offset(publisher_of(pointer), (uint32_t)partition, &offset);
  return result(code, 0, offset);
}
NATIVE(jlong, lastOffset)(JNIEnv *env, jclass type, jlong pointer) {
  uint64_t offset = 0;
  (void)env, (void)type;
  const int32_t code = leat_publisher_last_offset(publisher_of(pointer), &offset);
  return result(code, 0, offset);
}
NATIVE(jlong, publisherMaxRecordSize)(JNIEnv *env, jclass type, jlong pointer) {
  uint64_t bytes = 0;
  (void)env, (void)type;
  const int32_t code = leat_publisher_max_record_size(publisher_of(pointer), &bytes);
  return result(code, 0, bytes);
}
NATIVE(jlong, publisherPartition)(JNIEnv *env, jclass type, jlong pointer) {
  uint32_t partition = 0;
  (void)env, (void)type;
  const int32_t code = leat_publisher_partition(publisher_of(pointer), &partition);
  return result(code, 0, partition);
}
NATIVE(jlong, durableFd)(JNIEnv *env, jclass type, jlong pointer) {
  int32_t detail = 0;
  int32_t fd = 0;
  (void)env, (void)type;
  const int32_t code = leat_publisher_durable_fd(publisher_of(pointer), &fd, &detail);
  return result(code, detail, (uint64_t)fd);
}
NATIVE(jlong, roomFd)(JNIEnv *env, jclass type, jlong pointer, jint partition) {
  int32_t detail = 0;
  int32_t fd = 0;
  (void)env, (void)type;
  const int32_t code =
      leat_publisher_room_fd(publisher_of(pointer), (uint32_t)partition, &fd, &detail);
  return result(code, detail, (uint64_t)fd);
}
