// What Java calls: class io.leat.Native declares these functions. They check nothing of what Java has checked, and
// keep nothing that belongs to a thread.
//
// Results. A function that Java calls often returns a number of 63 bits, or an error as a negative one, so that
// nothing else needs to cross. One that returns an array throws io.leat.LeatException.
#ifndef LEAT_JAVA_LEAT_JNI_H
#define LEAT_JAVA_LEAT_JNI_H

#include <jni.h>
#include <leat/leat.h>
#include <stdlib.h>
#include <string.h>

// The name of io.leat.Native.name().
#define NATIVE(type, name) JNIEXPORT type JNICALL Java_io_leat_Native_##name

// ---- Handles ------------------------------------------------------------------------------------

// As in io.leat.Resource.
enum kind { kTopic, kGroup, kPublisher, kSubscriber, kMember };

// Behind publishers, subscribers and members of Java; topics and groups are those of C. One thread at a time uses
// it, except for stop and resume.
typedef struct handle {
  union {
    leat_publisher *publisher;
    leat_subscriber *subscriber;
    leat_member *member;
  } is;
  uint8_t *room;  // What one call passes: Java has it as a direct buffer.
  uint64_t room_size;
  uint32_t kind;
  uint32_t reserved;
} handle;

static inline handle *handle_of(jlong pointer) { return (handle *)(intptr_t)pointer; }
static inline leat_publisher *publisher_of(jlong pointer) { return handle_of(pointer)->is.publisher; }
static inline leat_subscriber *subscriber_of(jlong pointer) { return handle_of(pointer)->is.subscriber; }
static inline leat_member *member_of(jlong pointer) { return handle_of(pointer)->is.member; }
static inline leat_topic *topic_of(jlong pointer) { return (leat_topic *)(intptr_t)pointer; }
static inline leat_group *group_of(jlong pointer) { return (leat_group *)(intptr_t)pointer; }

// A handle without an object of C yet; NULL without memory.
handle *new_handle(uint32_t kind);

// ---- Results ------------------------------------------------------------------------------------

static inline jlong result(int32_t code, int32_t detail, uint64_t number) {
  if (code == LEAT_OK) return (jlong)number;
  return (jlong)((UINT64_C(1) << 63) | ((uint64_t)(uint32_t)code << 32) | (uint32_t)detail);
}
static inline jlong pointer_result(int32_t code, int32_t detail, const void *pointer) {
  return result(code, detail, (uint64_t)(uintptr_t)pointer);
}
// Of a call that made, or did not make, what is in the handle.
jlong handle_result(int32_t code, int32_t detail, handle *made);

void throw_error(JNIEnv *env, int32_t code, int32_t detail);

// ---- What comes from Java -----------------------------------------------------------------------

// Bytes of an array of Java. data is NULL only for null.
typedef struct text {
  char *data;
  uint64_t size;
} text;

// Returns a copy, to be freed with free_text(). Without memory it has no data.
text copy_text(JNIEnv *env, jbyteArray array);
static inline void free_text(text *copy) { free(copy->data); }
static inline leat_bytes bytes_of(const text *copy) { return (leat_bytes){copy->data, copy->size}; }

// Options that were not set are this: they keep the default of C.
#define UNSET INT64_MIN
enum { kMaxOptions = 32 };
// Copies an array of options; what it does not have is UNSET.
void copy_options(JNIEnv *env, jlongArray array, jlong options[kMaxOptions]);
#define SET(option, value)                                              \
  do {                                                                  \
    if ((value) != UNSET) (option) = (__typeof__(option))(value);       \
  } while (0)

// ---- What goes to Java --------------------------------------------------------------------------

jbyteArray new_bytes(JNIEnv *env, const void *data, uint64_t size);
// The numbers; frees them.
jlongArray take_longs(JNIEnv *env, jlong *numbers, uint64_t count);

// A text that a function of C writes, for which it says how much room it needs.
typedef int32_t (*write_text)(const void *of, char *buffer, uint64_t capacity, uint64_t *size, int32_t *detail);
jbyteArray written_text(JNIEnv *env, write_text write, const void *of);

#endif
