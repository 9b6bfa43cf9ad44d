// Mirrors: mappings of our own of the pages that records lie in. shim.h says what for.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "shim.h"

typedef struct mirror {
  const uint8_t *original;
  uint8_t *copy;
  uint64_t size;
  struct mirror *next;
} mirror;

// Those of one reader.
struct leatgo_mirrors {
  mirror *first;
  uint32_t skip;  // so many batches are copied without looking whether their memory is shared
};
enum { kSkip = 256 };

// Addresses without pages.
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
    taken = old->copy;
    *at = old->next;
    free(old);
    break;
  }
  pthread_mutex_unlock(&retired_lock);
  return taken;
}

static void retire(mirror *old) {
  mmap(old->copy, old->size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  pthread_mutex_lock(&retired_lock);
  old->next = retired;
  retired = old;
  pthread_mutex_unlock(&retired_lock);
}

// Maps the same pages a second time: mremap() does that if the old size is 0.
static uint8_t *map_again(const mirror *of) {
  uint8_t *at = take_retired(of->size);
  const int flags = at != NULL ? MREMAP_MAYMOVE | MREMAP_FIXED : MREMAP_MAYMOVE;
  void *mapped = mremap((void *)of->original, 0, of->size, flags, at);
  if (mapped == MAP_FAILED) return NULL;
  mprotect(mapped, of->size, PROT_READ);
  return mapped;
}

static mirror *add_mirror(const uint8_t *address, leatgo_mirrors *mirrors) {
  mirror *added = calloc(1, sizeof(*added));
  if (added == NULL) return NULL;
  if (find_mapping(address, added) == 1) added->copy = map_again(added);
  if (added->copy == NULL) {  // Not kept: the heap's mappings come and go.
    free(added);
    return NULL;
  }
  added->next = mirrors->first;
  mirrors->first = added;
  return added;
}

static mirror *mirror_of(const uint8_t *address, const leatgo_mirrors *mirrors) {
  for (mirror *at = mirrors->first; at != NULL; at = at->next) {
    if ((uint64_t)(address - at->original) < at->size) return at;
  }
  return NULL;
}

uint64_t leatgo_prefix(const leat_record *record) {
  const uint64_t before = (uint64_t)record->key_size + record->headers_size;
  if ((record->flags & LEAT_RECORD_HAS_TIMESTAMP) == 0) return before;
  return before + 8 + ((record->flags & LEAT_RECORD_HAS_KEY) != 0 ? 4 : 0) +
         ((record->flags & LEAT_RECORD_HAS_HEADERS) != 0 ? 4 : 0);
}

// Makes the record point into a mirror. Returns how many bytes must be copied instead.
static uint64_t redirect(leat_record *record, leatgo_mirrors *mirrors) {
  mirror *lies_in = mirror_of(record->value, mirrors);
  if (lies_in == NULL && mirrors->skip == 0) {
    lies_in = add_mirror(record->value, mirrors);
    // The same is probably true of what follows, and looking takes long.
    if (lies_in == NULL) mirrors->skip = kSkip;
  }
  if (lies_in != NULL) {
    record->value = lies_in->copy + (record->value - lies_in->original);
    return 0;
  }
  record->flags |= LEATGO_COPY_ME;
  return leatgo_prefix(record) + record->value_size;
}

leatgo_batch leatgo_view(leat_subscriber *subscriber, leat_record *records, uint32_t capacity,
                         int64_t timeout_ns, leatgo_mirrors *mirrors) {
  leatgo_batch batch = {0, 0, 0, 0};
  batch.code = leat_subscriber_receive(subscriber, records, capacity, &batch.count, timeout_ns,
                                       &batch.detail);
  if (mirrors->skip != 0) --mirrors->skip;
  for (uint32_t i = 0; i < batch.count; ++i) {
    if (!leat_record_is_gap(&records[i])) batch.bytes += redirect(&records[i], mirrors);
  }
  return batch;
}

leatgo_mirrors *leatgo_mirrors_new(void) { return calloc(1, sizeof(leatgo_mirrors)); }

void leatgo_mirrors_free(leatgo_mirrors *mirrors) {
  if (mirrors == NULL) return;
  for (mirror *at = mirrors->first; at != NULL;) {
    mirror *next = at->next;
    retire(at);
    at = next;
  }
  free(mirrors);
}
