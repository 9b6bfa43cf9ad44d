// Mirrors: further mappings of a topic's memory, which live as long as Java can reach a buffer of them, whatever
// becomes of the topic.
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>

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

// Maps the same pages a second time: mremap() does that if the old size is 0. NULL if it fails.
NATIVE(jobject, mirror)(JNIEnv *env, jclass type, jlong of, jlong size, jboolean writable) {
  void *mapped = mremap((void *)(intptr_t)of, 0, (size_t)size, MREMAP_MAYMOVE);
  (void)type;
  if (mapped == MAP_FAILED) return NULL;
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
