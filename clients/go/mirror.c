// Mirrors: mappings of our own of the pages that records lie in. shim.h says what for.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "shim.h"

typedef struct mirror {
  const uint8_t *original;
  uint8_t *copy;
  uint64_t size;
  uint8_t *reserved;  // Addresses that `copy` lies in: kHashed more.
  struct mirror *next;
} mirror;

// Those of one topic. Readers look for a mirror without the lock; none goes before the last reader.
struct leatgo_mirrors {
  mirror *first;
  pthread_mutex_t lock;  // for adding one
  uint32_t holders;
};
enum { kSkip = 256 };

// AMD's processors find a line in their nearest cache by a hash of the lower 28 bits of its address. Where these
// differ, what was read through an original or its mirror is not found there through the other.
enum { kHashed = 1 << 28 };

// Those whose copies have no pages any more: their addresses are for use again.
static pthread_mutex_t retired_lock = PTHREAD_MUTEX_INITIALIZER;
static mirror *retired = NULL;

// Finds the mapping that an address lies in. Returns whether it is shared, -1 if there is none.
static int find_mapping(const uint8_t *address, mirror *found) {
  FILE *maps = fopen("/proc/self/maps", "re");
  char line[512];
  int is_shared = -1;
  if (maps == NULL) return -1;
  while (is_shared == -1 && fgets(line, sizeof(line), maps) != NULL) {
    unsigned long begin = 0;
    unsigned long end = 0;
    char permissions[5] = "";
    if (sscanf(line, "%lx-%lx %4s", &begin, &end, permissions) == 3 &&
        (unsigned long)address >= begin && (unsigned long)address < end) {
      found->original = (const uint8_t *)begin;
      found->size = end - begin;
      is_shared = permissions[3] == 's';
    }
    while (strchr(line, '\n') == NULL && fgets(line, sizeof(line), maps) != NULL) continue;
  }
  fclose(maps);
  return is_shared;
}

static uint8_t *take_retired(uint64_t size) {
  uint8_t *taken = NULL;
  pthread_mutex_lock(&retired_lock);
  for (mirror **at = &retired; *at != NULL; at = &(*at)->next) {
    mirror *old = *at;
    if (old->size != size) continue;
    taken = old->reserved;
    *at = old->next;
    free(old);
    break;
  }
  pthread_mutex_unlock(&retired_lock);
  return taken;
}

// Addresses that can be read, and take no memory.
static uint8_t *reserve(uint8_t *at, uint64_t size, int more_flags) {
  return mmap(at, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | more_flags, -1, 0);
}

static void retire(mirror *old) {
  reserve(old->copy, old->size, MAP_FIXED);
  pthread_mutex_lock(&retired_lock);
  old->next = retired;
  retired = old;
  pthread_mutex_unlock(&retired_lock);
}

// Finds a place for a copy. Whether it could.
static int place(mirror *made) {
  made->reserved = take_retired(made->size);
  if (made->reserved == NULL) made->reserved = reserve(NULL, made->size + kHashed, 0);
  if (made->reserved == MAP_FAILED) return 0;
  made->copy = made->reserved + ((uint64_t)(made->original - made->reserved) & (kHashed - 1));
  return 1;
}

// Whether all `size` bytes lie in it. There are some: their first one says which mapping is meant, and
// their end may be where another one begins.
static int holds(const mirror *of, const uint8_t *begin, uint64_t size) {
  const uint64_t before = (uint64_t)(begin - of->original);
  return before < of->size && size <= of->size - before;
}

static mirror *find_mirror(const uint8_t *begin, uint64_t size, const leatgo_mirrors *mirrors) {
  for (mirror *at = __atomic_load_n(&mirrors->first, __ATOMIC_ACQUIRE); at != NULL; at = at->next) {
    if (holds(at, begin, size)) return at;
  }
  return NULL;
}

// Go ends the program if it finds no addresses for its heap: where they are limited, all are left to it.
static int addresses_are_limited(void) {
  struct rlimit limit;
  return getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

static mirror *add_mirror(const uint8_t *begin, uint64_t size, leatgo_mirrors *mirrors) {
  if (addresses_are_limited()) return NULL;
  mirror *added = calloc(1, sizeof(*added));
  if (added == NULL) return NULL;
  // What is not shared is not kept: the heap's mappings come and go.
  if (find_mapping(begin, added) != 1 || !holds(added, begin, size) || !place(added)) {
    free(added);
    return NULL;
  }
  // Maps the same pages a second time, because the old size is 0.
  if (mremap((void *)added->original, 0, added->size, MREMAP_MAYMOVE | MREMAP_FIXED, added->copy) ==
      MAP_FAILED) {
    free(added);  // The addresses are given up: they may be another thread's by now.
    return NULL;
  }
  mprotect(added->copy, added->size, PROT_READ);
  added->next = mirrors->first;
  __atomic_store_n(&mirrors->first, added, __ATOMIC_RELEASE);
  return added;
}

static mirror *find_or_add_mirror(const uint8_t *begin, uint64_t size, leatgo_mirrors *mirrors) {
  pthread_mutex_lock(&mirrors->lock);
  mirror *found = find_mirror(begin, size, mirrors);  // Another reader may have added it.
  if (found == NULL) found = add_mirror(begin, size, mirrors);
  pthread_mutex_unlock(&mirrors->lock);
  return found;
}

uint64_t leatgo_prefix(const leat_record *record) {
  const uint64_t before = (uint64_t)record->key_size + record->headers_size;
  if ((record->flags & LEAT_RECORD_HAS_TIMESTAMP) == 0) return before;
  return before + 8 + ((record->flags & LEAT_RECORD_HAS_KEY) != 0 ? 4 : 0) +
         ((record->flags & LEAT_RECORD_HAS_HEADERS) != 0 ? 4 : 0);
}

static const uint8_t nothing[1];  // Where a value without bytes may begin.

// Makes the record point into a mirror. Returns how many bytes must be copied instead.
static uint64_t redirect(leat_record *record, leatgo_mirrors *mirrors, uint32_t *skip) {
  const uint64_t prefix = leatgo_prefix(record);
  const uint8_t *begin = record->value - prefix;
  const uint64_t size = prefix + record->value_size;
  if (size == 0) {  // It lies nowhere.
    record->value = nothing;
    return 0;
  }
  mirror *lies_in = find_mirror(begin, size, mirrors);
  if (lies_in == NULL && *skip == 0) {
    lies_in = find_or_add_mirror(begin, size, mirrors);
    // The same is probably true of what follows, and looking takes long.
    if (lies_in == NULL) *skip = kSkip;
  }
  if (lies_in != NULL) {
    record->value = lies_in->copy + (record->value - lies_in->original);
    return 0;
  }
  record->flags |= LEATGO_COPY_ME;
  return size;
}

leatgo_batch leatgo_view(leat_subscriber *subscriber, leat_record *records, uint32_t capacity,
                         int64_t timeout_ns, leatgo_mirrors *mirrors, uint32_t *skip) {
  leatgo_batch batch = {0, 0, 0, 0};
  batch.code = leat_subscriber_receive(subscriber, records, capacity, &batch.count, timeout_ns,
                                       &batch.detail);
  if (*skip != 0) --*skip;
  for (uint32_t i = 0; i < batch.count; ++i) {
    if (!leat_record_is_gap(&records[i])) batch.bytes += redirect(&records[i], mirrors, skip);
  }
  return batch;
}

leatgo_mirrors *leatgo_mirrors_new(void) {
  leatgo_mirrors *mirrors = calloc(1, sizeof(*mirrors));
  if (mirrors == NULL) return NULL;
  pthread_mutex_init(&mirrors->lock, NULL);
  mirrors->holders = 1;
  return mirrors;
}

void leatgo_mirrors_hold(leatgo_mirrors *mirrors) {
  __atomic_add_fetch(&mirrors->holders, 1, __ATOMIC_RELAXED);
}

void leatgo_mirrors_drop(leatgo_mirrors *mirrors) {
  if (__atomic_sub_fetch(&mirrors->holders, 1, __ATOMIC_ACQ_REL) != 0) return;
  for (mirror *at = mirrors->first; at != NULL;) {
    mirror *next = at->next;
    retire(at);
    at = next;
  }
  pthread_mutex_destroy(&mirrors->lock);
  free(mirrors);
}
