// Mirrors: further mappings of a topic's memory, which live as long as Java can reach a buffer of them, whatever
// becomes of the topic.
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "leat_jni.h"

// Finds the mapping of shared memory that an address lies in: where it begins and ends. False: there is none.
NATIVE(jboolean, findMapping)(JNIEnv *env, jclass type, jlong address, jlongArray range) {
  const unsigned long wanted = (unsigned long)address;
  FILE *maps = fopen("/proc/self/maps", "re");
  char line[512];
  jboolean found = JNI_FALSE;
  int is_over = 0;
  (void)type;
  if (maps == NULL) return JNI_FALSE;
  while (!is_over && fgets(line, sizeof(line), maps) != NULL) {
    unsigned long begin = 0;
    unsigned long end = 0;
    char permissions[5] = "";
    if (sscanf(line, "%lx-%lx %4s", &begin, &end, permissions) == 3 && wanted >= begin && wanted < end) {
      const jlong ends[] = {(jlong)begin, (jlong)end};
      is_over = 1;
      found = permissions[3] == 's';
      (*env)->SetLongArrayRegion(env, range, 0, 2, ends);
    }
    while (strchr(line, '\n') == NULL && fgets(line, sizeof(line), maps) != NULL) continue;
  }
  fclose(maps);
  return found;
}

// AMD's processors find a line in their nearest cache by a hash of the lower 28 bits of its address. Where these
// differ, what was read through an original or its mirror is not found there through the other.
enum { kHashed = 1 << 28 };

// Free addresses for the mirror of `size` bytes, whose lower bits are those of the original. NULL: there are none.
static uint8_t *reserve(const uint8_t *original, size_t size) {
  uint8_t *all = mmap(NULL, size + kHashed, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) return NULL;
  const size_t before = (uintptr_t)(original - all) & (kHashed - 1);
  if (before != 0) (void)munmap(all, before);
  (void)munmap(all + before + size, kHashed - before);
  return all + before;
}

// The JVM may end the program if it finds no addresses for itself: where they are limited, all are left to it.
static int addresses_are_limited(void) {
  struct rlimit limit;
  return getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

// Maps the same pages a second time: mremap() does that if the old size is 0. NULL if it fails, or should not be done.
NATIVE(jobject, mirror)(JNIEnv *env, jclass type, jlong of, jlong size, jboolean writable) {
  uint8_t *original = (uint8_t *)(intptr_t)of;
  (void)type;
  if (addresses_are_limited()) return NULL;
  uint8_t *room = reserve(original, (size_t)size);
  if (room == NULL) return NULL;
  void *mapped = mremap(original, 0, (size_t)size, MREMAP_MAYMOVE | MREMAP_FIXED, room);
  if (mapped == MAP_FAILED) return NULL;  // The addresses are given up: they may be another thread's by now.
  if (!writable) (void)mprotect(mapped, (size_t)size, PROT_READ);
  jobject buffer = (*env)->NewDirectByteBuffer(env, mapped, size);
  if (buffer == NULL) (void)munmap(mapped, (size_t)size);
  return buffer;
}
NATIVE(jlong, addressOf)(JNIEnv *env, jclass type, jobject buffer) {
  (void)type;
  return (jlong)(intptr_t)(*env)->GetDirectBufferAddress(env, buffer);
}
NATIVE(void, unmap)(JNIEnv *env, jclass type, jlong address, jlong size) {
  (void)env, (void)type;
  (void)munmap((void *)(intptr_t)address, (size_t)size);
}
