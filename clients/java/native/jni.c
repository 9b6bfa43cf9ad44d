// What all files need; the library itself; handles of every kind.
#include "leat_jni.h"

#include <unistd.h>

_Static_assert(sizeof(void *) == 8, "Java writes structs of C, with pointers of 8 bytes");

// ---- Results ------------------------------------------------------------------------------------

void throw_error(JNIEnv *env, int32_t code, int32_t detail) {
  jclass type = (*env)->FindClass(env, "io/leat/LeatException");
  if (type == NULL) return;  // Then that is thrown.
  jmethodID make = (*env)->GetStaticMethodID(env, type, "of", "(II)Lio/leat/LeatException;");
  if (make == NULL) return;
  jobject error = (*env)->CallStaticObjectMethod(env, type, make, (jint)code, (jint)detail);
  if (error != NULL) (*env)->Throw(env, (jthrowable)error);
}

handle *new_handle(uint32_t kind) {
  handle *made = calloc(1, sizeof(*made));
  if (made != NULL) made->kind = kind;
  return made;
}

jlong handle_result(int32_t code, int32_t detail, handle *made) {
  if (code != LEAT_OK) free(made);
  return pointer_result(code, detail, made);
}

// ---- Arrays -------------------------------------------------------------------------------------

text copy_text(JNIEnv *env, jbyteArray array) {
  text copy = {NULL, 0};
  if (array == NULL) return copy;
  const jsize size = (*env)->GetArrayLength(env, array);
  copy.data = malloc((size_t)size + 1);
  if (copy.data == NULL) return copy;
  copy.size = (uint64_t)size;
  (*env)->GetByteArrayRegion(env, array, 0, size, (jbyte *)copy.data);
  return copy;
}

void copy_options(JNIEnv *env, jlongArray array, jlong options[kMaxOptions]) {
  jsize count = array == NULL ? 0 : (*env)->GetArrayLength(env, array);
  for (int i = 0; i < kMaxOptions; ++i) options[i] = UNSET;
  if (count > kMaxOptions) count = kMaxOptions;
  if (count != 0) (*env)->GetLongArrayRegion(env, array, 0, count, options);
}

jbyteArray new_bytes(JNIEnv *env, const void *data, uint64_t size) {
  jbyteArray array = (*env)->NewByteArray(env, (jsize)size);
  if (array != NULL) (*env)->SetByteArrayRegion(env, array, 0, (jsize)size, data);
  return array;
}

jlongArray take_longs(JNIEnv *env, jlong *numbers, uint64_t count) {
  jlongArray array = (*env)->NewLongArray(env, (jsize)count);
  if (array != NULL) (*env)->SetLongArrayRegion(env, array, 0, (jsize)count, numbers);
  free(numbers);
  return array;
}

jbyteArray written_text(JNIEnv *env, write_text write, const void *of) {
  uint64_t capacity = 4096;
  for (;;) {
    uint64_t size = 0;
    int32_t detail = 0;
    char *buffer = malloc(capacity);
    const int32_t code =
        buffer == NULL ? LEAT_ERR_NO_MEMORY : write(of, buffer, capacity, &size, &detail);
    jbyteArray array = NULL;
    if (code == LEAT_OK) {
      array = new_bytes(env, buffer, size);
    } else if (code != LEAT_ERR_BUFFER_TOO_SMALL) {
      throw_error(env, code, detail);
    }
    free(buffer);
    if (code != LEAT_ERR_BUFFER_TOO_SMALL) return array;
    capacity = size + size / 4;  // It may have grown until the next call.
  }
}

// ---- The library --------------------------------------------------------------------------------

// Raised whenever these functions change: Java has the same number in io.leat.Native.
enum { kInterface = 2 };

NATIVE(jint, checkedInterface)(JNIEnv *env, jclass type) {
  (void)env, (void)type;
  return kInterface;
}
NATIVE(jbyteArray, version)(JNIEnv *env, jclass type) {
  (void)type;
  return new_bytes(env, leat_version(), strlen(leat_version()));
}
NATIVE(jint, userId)(JNIEnv *env, jclass type) {
  (void)env, (void)type;
  return (jint)geteuid();
}
NATIVE(jbyteArray, describe)(JNIEnv *env, jclass type, jint code, jint detail) {
  char buffer[LEAT_DESCRIPTION_SIZE] = "";
  (void)type;
  (void)leat_describe(code, detail, buffer, sizeof(buffer));
  return new_bytes(env, buffer, strlen(buffer));
}
NATIVE(jbyteArray, errorName)(JNIEnv *env, jclass type, jint code) {
  (void)type;
  return new_bytes(env, leat_error_name(code), strlen(leat_error_name(code)));
}

// ---- Handles ------------------------------------------------------------------------------------

NATIVE(jlong, close)(JNIEnv *env, jclass type, jint kind, jlong pointer) {
  leat_topic *topic = topic_of(pointer);
  leat_group *group = group_of(pointer);
  handle *closed = handle_of(pointer);
  int32_t code = LEAT_OK;
  (void)env, (void)type;
  switch ((enum kind)kind) {
    case kTopic: return result(leat_topic_close(&topic), 0, 0);
    case kGroup: return result(leat_group_close(&group), 0, 0);
    case kPublisher: code = leat_publisher_close(&closed->is.publisher); break;
    case kSubscriber: code = leat_subscriber_close(&closed->is.subscriber); break;
    case kMember: code = leat_member_close(&closed->is.member); break;
  }
  free(closed->room);
  free(closed);
  return result(code, 0, 0);
}

NATIVE(jlong, stop)(JNIEnv *env, jclass type, jlong pointer, jboolean stopped) {
  const handle *of = handle_of(pointer);
  (void)env, (void)type;
  switch (of->kind) {
    case kPublisher:
      return result((stopped ? leat_publisher_stop : leat_publisher_resume)(of->is.publisher), 0, 0);
    case kSubscriber:
      return result((stopped ? leat_subscriber_stop : leat_subscriber_resume)(of->is.subscriber), 0, 0);
    default:
      return result((stopped ? leat_member_stop : leat_member_resume)(of->is.member), 0, 0);
  }
}

// Makes the room so large. Buffers of the old one must not be used any more.
NATIVE(jobject, room)(JNIEnv *env, jclass type, jlong pointer, jlong size) {
  handle *of = handle_of(pointer);
  uint8_t *room = malloc((size_t)size);
  (void)type;
  if (room == NULL) {
    throw_error(env, LEAT_ERR_NO_MEMORY, 0);
    return NULL;
  }
  free(of->room);
  of->room = room;
  of->room_size = (uint64_t)size;
  return (*env)->NewDirectByteBuffer(env, room, size);
}
NATIVE(jlong, roomAddress)(JNIEnv *env, jclass type, jlong pointer) {
  (void)env, (void)type;
  return (jlong)(intptr_t)handle_of(pointer)->room;
}
