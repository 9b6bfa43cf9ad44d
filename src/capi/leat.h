// Leat in C: topics in shared memory, which processes publish to and read from directly. For C99 and
// later, for C++, and for every language that calls C. Link with -lleat (pkg-config: libleat).
//
//     leat_topic *topic = NULL;
//     leat_publisher *publisher = NULL;
//     if (leat_topic_open("orders", LEAT_TEXT, 0, NULL, &topic, NULL) != LEAT_OK) ...
//     if (leat_topic_publisher(topic, NULL, &publisher, NULL) != LEAT_OK) ...
//     leat_publisher_publish(publisher, "hello", 5, LEAT_FOREVER, NULL, NULL);
//     leat_publisher_close(&publisher);
//     leat_topic_close(&topic);
//
// Results. Functions return a code: LEAT_OK, or one of LEAT_ERR_... The comment of each names what it
// returns besides LEAT_ERR_INVALID_ARGUMENT (a required pointer is NULL, a flag is neither 0 nor 1, bytes
// have a size and no address), LEAT_ERR_NO_MEMORY, LEAT_ERR_FORKED and LEAT_ERR_IO_ERROR, which any may
// return. A function whose last parameter is `detail` stores there what else is known: the errno of the
// system call that failed, or 0; the most bytes allowed with LEAT_ERR_TOO_LARGE; the bytes wanted with
// LEAT_ERR_BUFFER_TOO_SMALL of leat_member_receive_copy(). `detail` may be NULL, as may every parameter of
// which that is said. It is written only if there is something to tell: set it to 0 before the call. After
// an error all other results are 0 or unchanged.
//
// Handles. Made by the functions whose parameter is leat_x **, and ended by leat_x_close(), which stores
// NULL: so closing twice is LEAT_ERR_INVALID_ARGUMENT. They may be closed in any order: what is made from
// a topic or group keeps what it needs.
//
// Threads. A publisher, subscriber or member belongs to one thread at a time; it may pass from thread to
// thread (subscribers and members that do: `any_thread`). Only ..._stop(), ..._resume() and ..._is_stopped()
// may be called by other threads meanwhile. Topics and groups may be used by several threads at once.
// Nobody may use a handle while it is being closed. Threads that may be inside the library must not be
// cancelled (pthread_cancel): stop their waits.
//
// Fork. In the child every inherited handle returns LEAT_ERR_FORKED. Closing it there frees its memory and
// changes nothing for the parent. Handles that the child opens itself work.
//
// Waits. `timeout_ns` is in nanoseconds: 0 does not wait, LEAT_FOREVER waits for as long as it takes;
// anything else below 0 is LEAT_ERR_INVALID_ARGUMENT. Other threads end waits with ..._stop(). With the option
// `interruptible`, of a handle or of leat_place, so does a signal handler that runs while the wait sleeps (one
// that was installed with SA_RESTART need not end it). One that runs just before is not noticed: who must not
// miss any waits for 50 ms at a time.
//
// Bytes and texts have lengths in bytes. A text may instead end with a null byte, with the length LEAT_TEXT.
//
// Options. Structs of options begin with their size, so that a program works with later libraries, whose
// structs are longer. Start with the ..._OPTIONS_INIT of each. NULL means those. A library that is older
// than the program returns LEAT_ERR_UNSUPPORTED if one of the options that it does not know is not 0.
//
// How this interface may change: docs/internals/capi.md. The words: docs/ARCHITECTURE.md.
#ifndef LEAT_LEAT_H
#define LEAT_LEAT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define LEAT_API __attribute__((visibility("default")))
#else
#define LEAT_API
#endif

// ---- Errors -------------------------------------------------------------------------------------

// clang-format off
// From spec/errors.csv, by tools/errors.py: begin
#define LEAT_OK 0                      // no error
#define LEAT_ERR_INVALID_ARGUMENT 1    // invalid argument
#define LEAT_ERR_NOT_FOUND 2           // no such topic or group
#define LEAT_ERR_EXISTS 3              // the topic exists already
#define LEAT_ERR_BUSY 4                // in use by another process or handle, or by a claim that is still open
#define LEAT_ERR_PERMISSION 5          // permission denied
#define LEAT_ERR_WRONG_FORMAT 6        // not a Leat topic of this format version
#define LEAT_ERR_CORRUPT 7             // the topic is corrupt: a check on its shared memory failed
#define LEAT_ERR_FULL 8                // the topic is full
#define LEAT_ERR_NO_SPACE 9            // no room for files, or the archiver cannot write them
#define LEAT_ERR_TOO_LARGE 10          // the record is larger than the topic allows
#define LEAT_ERR_TIMEOUT 11            // the deadline passed
#define LEAT_ERR_STOPPED 12            // stopped on request
#define LEAT_ERR_DELETED 13            // the topic was deleted
#define LEAT_ERR_FORKED 14             // this handle belongs to the parent process: open a new one after fork
#define LEAT_ERR_REVOKED 15            // the claim was revoked because its owner did not run for too long
#define LEAT_ERR_WOULD_DEADLOCK 16     // the topic is full and only this very thread could make room
#define LEAT_ERR_NOT_ALLOWED 17        // the connection point was made with preAllocate: its expansions are fixed
#define LEAT_ERR_TOO_MANY 18           // no slot for another participant or group is free
#define LEAT_ERR_UNSUPPORTED 19        // not supported by this kernel, file system or version of Leat
#define LEAT_ERR_IN_FLIGHT_FULL 20     // this member holds as many records as its group allows: acknowledge some
#define LEAT_ERR_REDELIVERY_FULL 21    // more records came back, or wait for their key, than the group has room for
#define LEAT_ERR_NOT_IN_FLIGHT 22      // that record or claim is not in flight (any more)
#define LEAT_ERR_LEASE_LOST 23         // the record was held for longer than the group's lease
#define LEAT_ERR_CLOSED 24             // the consumer group was deleted
#define LEAT_ERR_BUFFER_TOO_SMALL 25   // the buffer is too small for the record
#define LEAT_ERR_IO_ERROR 26           // a system call failed
#define LEAT_ERR_READ_ONLY 27          // the topic is read-only: writing to its files failed
#define LEAT_ERR_NOT_DURABLE 28        // published, but not on stable storage in time
#define LEAT_ERR_EXPIRED 29            // retention has deleted the group's next record
#define LEAT_ERR_INTERRUPTED 30        // a signal interrupted the wait
#define LEAT_ERR_NO_MEMORY 31          // out of memory, or at a limit of memory or of mappings
#define LEAT_ERR_NEEDS_DURABLE 32      // the topic is in memory only: this needs a durable topic
#define LEAT_ERR_NEEDS_TIMESTAMPS 33   // the topic's records carry no time: this needs a topic with timestamps
#define LEAT_ERR_NEEDS_GROWING 34      // the topic's capacity is fixed: this needs a topic with policy grow
#define LEAT_ERR_NOT_WITH_OVERWRITE 35 // the topic overwrites its oldest records: only lossy subscribers can read it
#define LEAT_ERR_NOT_WITH_DURABLE 36   // a durable topic cannot have overwrite, grow, retain_all, evict_after, delete_when_unused or in_place
// From spec/errors.csv: end
// clang-format on

// The name of a code, for example "timeout". "unknown" if it is none. Never NULL; not to be freed.
LEAT_API const char *leat_error_name(int32_t code);

// Room that leat_describe() needs at most, in bytes.
#define LEAT_DESCRIPTION_SIZE 256

// Writes a sentence for users, without a full stop, and a null byte. `detail`: what the function that failed
// stored there, or 0.
//   LEAT_ERR_BUFFER_TOO_SMALL   `capacity` bytes do not suffice: the sentence was cut
LEAT_API int32_t leat_describe(int32_t code, int32_t detail, char *buffer, uint64_t capacity);

// ---- The library --------------------------------------------------------------------------------

// 1 in version 0.1.0; raised by one with every addition after it. Nothing is ever changed or removed.
#define LEAT_ABI_VERSION 1

// To be called once, with LEAT_ABI_VERSION, by programs that load the library at run time.
//   LEAT_ERR_UNSUPPORTED   the library is older than the header that the program was compiled with
LEAT_API int32_t leat_abi_check(uint32_t version);
// The LEAT_ABI_VERSION of the library.
LEAT_API uint32_t leat_abi_version(void);
// The version of the library, for example "0.1.0". Not to be freed.
LEAT_API const char *leat_version(void);

// ---- Bytes, and constants -----------------------------------------------------------------------

// The length of a text that ends with a null byte.
#define LEAT_TEXT ((uint64_t)-1)
// A wait without end.
#define LEAT_FOREVER ((int64_t)-1)

// `size` bytes at `data`, which is NULL for none. Not owned.
typedef struct leat_bytes {
  const void *data;
  uint64_t size;
} leat_bytes;

// No partition is named. Of records to publish: the one that the key selects, or else the publisher's.
// Subscribers: all partitions.
#define LEAT_ANY_PARTITION ((uint32_t)-1)

// What happens when a topic is full.
#define LEAT_POLICY_BLOCK 0     // publishers wait for room
#define LEAT_POLICY_FAIL 1      // they get LEAT_ERR_FULL at once
#define LEAT_POLICY_OVERWRITE 2 // the room of the oldest records is reused
#define LEAT_POLICY_GROW 3      // as block, but memory is added up to a maximum before anybody waits

// What survives what.
#define LEAT_DURABILITY_NONE 0     // in memory: gone when the machine restarts
#define LEAT_DURABILITY_OS 1       // also written to disk: survives all processes
#define LEAT_DURABILITY_INTERVAL 2 // also synced to stable storage at intervals
#define LEAT_DURABILITY_FSYNC 3    // on stable storage before publishing returns

// How far a record has come.
#define LEAT_STAGE_DEFAULT 0   // durable with LEAT_DURABILITY_FSYNC, otherwise committed
#define LEAT_STAGE_COMMITTED 1 // subscribers can see it
#define LEAT_STAGE_DURABLE 2   // durable topics: it is on stable storage

// Where a subscriber or a group begins; the number that belongs to it is `from_value`.
#define LEAT_FROM_END 0       // only records claimed from now on
#define LEAT_FROM_BEGINNING 1 // the oldest record that can be read
#define LEAT_FROM_OFFSET 2    // the record with the offset `from_value`
#define LEAT_FROM_LAST 3      // the last `from_value` records of each partition
#define LEAT_FROM_TIME 4      // the first record not older than `from_value` (ms since 1970), or published after the call

// Why offsets hold no record.
#define LEAT_GAP_ABORTED 1     // the publisher aborted its claim
#define LEAT_GAP_DIED 2        // the publisher died between claim and commit
#define LEAT_GAP_REVOKED 3     // the publisher did not run for longer than revoke_after_ns
#define LEAT_GAP_OVERWRITTEN 4 // a lossy subscriber was overtaken, or began below the oldest record
#define LEAT_GAP_DAMAGED 5     // durable topics: a checksum on disk does not match
#define LEAT_GAP_LOST 6        // durable topics: the machine failed before they were on disk

// The name of a reason, for example "aborted". "unknown" if it is none. Not to be freed.
LEAT_API const char *leat_gap_reason_name(uint32_t reason);

// Handles.
typedef struct leat_topic leat_topic;
typedef struct leat_publisher leat_publisher;
typedef struct leat_subscriber leat_subscriber;
typedef struct leat_group leat_group;
typedef struct leat_member leat_member;

// ---- Records ------------------------------------------------------------------------------------

// A record as delivered, or a gap: offsets that will not be delivered. 32 bytes. Read key, headers and
// timestamp with the functions below, and gaps too. What it points to belongs to the topic, must not be
// written, and is valid as long as the function that delivered it says.
typedef struct leat_record {
  const uint8_t *value;  // NULL: a gap
  uint64_t offset;       // of a gap: the first one
  uint32_t value_size;   // bytes, as the next two
  uint32_t key_size;
  uint32_t headers_size;
  uint16_t partition;
  uint16_t flags;  // LEAT_RECORD_...
} leat_record;

#define LEAT_RECORD_HAS_KEY 1
#define LEAT_RECORD_HAS_TIMESTAMP 2
#define LEAT_RECORD_HAS_HEADERS 4
#define LEAT_RECORD_IS_GAP 8

// A named value that travels with a record. Names need not be unique, nor be text.
typedef struct leat_header {
  const uint8_t *name;
  const uint8_t *value;
  uint32_t name_size;
  uint32_t value_size;
} leat_header;

// Where leat_next_header() is; made by leat_record_headers().
typedef struct leat_headers {
  const uint8_t *at;
  uint64_t left;
} leat_headers;

// NOLINTBEGIN(modernize-use-nullptr): this is C too.

// Of the functions below, those of a gap are to be called for gaps only, those of a record for records only.

static inline int32_t leat_record_is_gap(const leat_record *record) {
  return (record->flags & LEAT_RECORD_IS_GAP) != 0;
}
// How many offsets, beginning with record->offset.
static inline uint64_t leat_gap_count(const leat_record *record) {
  return ((uint64_t)record->key_size << 32) | record->value_size;
}
// LEAT_GAP_...
static inline uint32_t leat_gap_reason(const leat_record *record) { return record->headers_size; }

// The key, of record->key_size bytes; NULL without a key, which is not the same as an empty one.
static inline const uint8_t *leat_record_key(const leat_record *record) {
  if ((record->flags & LEAT_RECORD_HAS_KEY) == 0) return NULL;
  return record->value - record->headers_size - record->key_size;
}

// When it was published, in milliseconds since 1970; -1 without a timestamp.
static inline int64_t leat_record_timestamp_ms(const leat_record *record) {
  const volatile uint8_t *at = NULL;
  uint64_t bits = 0;
  int32_t i = 0;
  if ((record->flags & LEAT_RECORD_HAS_TIMESTAMP) == 0) return -1;
  // It lies before the sizes of key and headers, which lie before these.
  at = record->value - record->headers_size - record->key_size - 8;
  if ((record->flags & LEAT_RECORD_HAS_KEY) != 0) at -= 4;
  if ((record->flags & LEAT_RECORD_HAS_HEADERS) != 0) at -= 4;
  for (i = 7; i >= 0; --i) bits = (bits << 8) | at[i];
  return (int64_t)bits;
}

// How far behind the records of a full batch those of the next one probably lie; 0 if there may be none. For
// leat_prefetch(): a program that spends 10 ns or more on each record can fetch those of the next batch meanwhile. By
// itself the processor begins anew with each batch, and waits for memory. A batch that is not full is the last one for
// now: behind it publishers write, and fetching would slow them down.
static inline uint64_t leat_next_batch(const leat_record *records, uint32_t count, uint32_t capacity) {
  uint64_t distance = 0;
  if (count < 2 || count < capacity) return 0;
  distance = (uint64_t)((uintptr_t)records[count - 1].value - (uintptr_t)records[0].value);
  if (distance >= (1U << 20)) return 0;        // They lie apart: other partitions, copies.
  return distance + distance / (count - 1);  // The last one has a size, too.
}
// Fetches two cache lines so many bytes behind a record, whatever is there. Reads nothing.
static inline void leat_prefetch(const leat_record *record, uint64_t distance) {
#ifdef __GNUC__
  if (distance != 0) {
    const uintptr_t there = (uintptr_t)record->value + (uintptr_t)distance;
    __builtin_prefetch((const void *)there);
    __builtin_prefetch((const void *)(there + 64));
  }
#else
  (void)record;
  (void)distance;
#endif
}

// All headers, to be read with leat_next_header().
static inline leat_headers leat_record_headers(const leat_record *record) {
  leat_headers headers = {NULL, 0};
  if ((record->flags & LEAT_RECORD_HAS_HEADERS) == 0) return headers;
  headers.at = record->value - record->headers_size;
  headers.left = record->headers_size;
  return headers;
}

// Not for programs. Reads each byte once: another process may overwrite the memory meanwhile.
static inline uint32_t leat_read_u32(const uint8_t *from) {
  const volatile uint8_t *at = from;
  const uint32_t low = (uint32_t)at[0] | ((uint32_t)at[1] << 8);
  return low | ((uint32_t)at[2] << 16) | ((uint32_t)at[3] << 24);
}

// Stores the next header and returns 1; returns 0 behind the last one. Never reads beyond the headers,
// whatever their bytes are: a header that is not complete ends them.
static inline int32_t leat_next_header(leat_headers *headers, leat_header *header) {
  uint32_t name_size = 0;
  uint32_t value_size = 0;
  if (headers->left < 8) return 0;
  name_size = leat_read_u32(headers->at);
  value_size = leat_read_u32(headers->at + 4);
  if ((uint64_t)name_size + value_size > headers->left - 8) {
    headers->left = 0;
    return 0;
  }
  header->name = headers->at + 8;
  header->name_size = name_size;
  header->value = header->name + name_size;
  header->value_size = value_size;
  headers->at = header->value + value_size;
  headers->left -= (uint64_t)8 + name_size + value_size;
  return 1;
}

// NOLINTEND(modernize-use-nullptr)

// A header to publish.
typedef struct leat_new_header {
  leat_bytes name;
  leat_bytes value;
} leat_new_header;

// A record to publish. Start with LEAT_NEW_RECORD_INIT. Its bytes are copied.
typedef struct leat_new_record {
  leat_bytes value;
  leat_bytes key;  // also selects the partition. data NULL: no key; a size of 0 otherwise: an empty key
  const leat_new_header *headers;
  uint32_t header_count;
  uint32_t partition;  // overrides the one that the key selects
} leat_new_record;
#define LEAT_NEW_RECORD_INIT {{NULL, 0}, {NULL, 0}, NULL, 0, LEAT_ANY_PARTITION}

// ---- Topics -------------------------------------------------------------------------------------

// Sizes in bytes; they are rounded up to whole segments and pages.
typedef struct leat_topic_options {
  uint32_t size;                // sizeof(leat_topic_options)
  uint32_t policy;              // LEAT_POLICY_...
  uint64_t capacity_bytes;      // per partition; 0: 8 MiB, durable topics 32 MiB
  uint64_t segment_bytes;       // 0: an eighth of the capacity; at most 1 GiB
  uint64_t max_capacity_bytes;  // policy grow, per partition; 0: 8 times the capacity
  uint64_t grow_below_bytes;    // policy grow: adds memory at so little free; 0: a segment
  uint32_t partitions;
  uint32_t participants;        // publishers, subscribers and members at a time; at most 4096
  uint32_t retain_all;          // 1: never reuse room; publishing returns LEAT_ERR_FULL at the end
  uint32_t single_writer;       // 1: every publisher is exclusive
  uint32_t timestamps;          // 1: records have timestamps
  uint32_t delete_when_unused;  // 1: once it was used, delete it when the last process closes it
  int64_t revoke_after_ns;      // revoke a claim that is open for so long while a subscriber waits; 0: never
  int64_t evict_after_ns;       // make a gating subscriber lossy that blocks for so long; 0: never
  uint32_t mode;                // permission bits of the files; 0600 is required
  uint32_t durable;             // LEAT_DURABILITY_...
  int64_t sync_interval_ns;     // LEAT_DURABILITY_INTERVAL; 1 ms to 1 h
  uint64_t file_bytes;          // durable topics: size of a file with records
  uint64_t retention_bytes;     // durable topics: keep so much on disk, in whole files; 0: no limit
  int64_t retention_ms;         // and for so long; 0: no limit
  leat_bytes file_group;        // Unix group of the files; data NULL: the caller's
  leat_bytes directory;         // data NULL: $LEAT_DIR, else /dev/shm/leat-<uid>
  leat_bytes data_directory;    // durable topics; data NULL: $LEAT_DATA_DIR, else
                                // $XDG_DATA_HOME/leat, else ~/.local/share/leat
} leat_topic_options;
#define LEAT_TOPIC_OPTIONS_INIT                                                                   \
  {sizeof(leat_topic_options), LEAT_POLICY_BLOCK, 0, 0, 0, 0, 1, 256, 0, 0, 0, 0, 0, 0, 384,      \
   LEAT_DURABILITY_NONE, 0, (uint64_t)64 << 20, 0, 0, {NULL, 0}, {NULL, 0}, {NULL, 0}}

// Where topics are, if not in the default directories.
typedef struct leat_place {
  uint32_t size;   // sizeof(leat_place)
  uint32_t force;  // leat_topic_delete() only. 1: also while it has participants
  leat_bytes directory;       // as in leat_topic_options
  leat_bytes data_directory;  // as in leat_topic_options
  uint32_t interruptible;     // leat_topic_open() only. 1: a signal handler that runs while it waits ends it
  uint32_t reserved;          // 0
} leat_place;
#define LEAT_PLACE_INIT {sizeof(leat_place), 0, {NULL, 0}, {NULL, 0}, 0, 0}

// Creates a topic and opens it. Of several processes that create the same name at once exactly one
// succeeds. `options` may be NULL.
//   LEAT_ERR_INVALID_ARGUMENT   the name (1 to 200 of A-Z a-z 0-9 . _ -) or the options
//   LEAT_ERR_EXISTS, LEAT_ERR_NO_SPACE
//   LEAT_ERR_NOT_WITH_DURABLE   options that a durable topic cannot have
//   LEAT_ERR_UNSUPPORTED        the name contains "://", or an option is not known
//   LEAT_ERR_PERMISSION, LEAT_ERR_WRONG_FORMAT, LEAT_ERR_BUSY, LEAT_ERR_DELETED
LEAT_API int32_t leat_topic_create(const char *name, uint64_t name_size,
                                   const leat_topic_options *options, leat_topic **topic,
                                   int32_t *detail);

// Opens a topic; waits until it was created. A durable topic that no process has open is recovered from
// disk first. `place` may be NULL. While it waits, it looks after 5 ms, then less and less often, in the end
// 8 times a second (place->interruptible: 4 times, because who looks for signals opens again and again).
// No other thread can end this wait: whoever must be able to opens for a short time, again and again.
//   LEAT_ERR_NOT_FOUND      it does not exist, or was not created in time
//   LEAT_ERR_INTERRUPTED    place->interruptible
//   LEAT_ERR_WRONG_FORMAT   the name belongs to something else, or to another format version
//   LEAT_ERR_BUSY           it is being deleted, and that does not finish within 5 s
//   LEAT_ERR_UNSUPPORTED, LEAT_ERR_PERMISSION
LEAT_API int32_t leat_topic_open(const char *name, uint64_t name_size, int64_t timeout_ns,
                                 const leat_place *place, leat_topic **topic, int32_t *detail);

// Opens the topic if it exists, whatever its options are; otherwise creates it. Errors as both.
LEAT_API int32_t leat_topic_open_or_create(const char *name, uint64_t name_size,
                                           const leat_topic_options *options, leat_topic **topic,
                                           int32_t *detail);

// Closes the handle. The topic stays until it is deleted.
LEAT_API int32_t leat_topic_close(leat_topic **topic);

// Deletes a topic and frees its name. With place->force, participants get LEAT_ERR_DELETED; what they read
// in place stays valid. `place` may be NULL.
//   LEAT_ERR_NOT_FOUND
//   LEAT_ERR_BUSY   it has participants; or it is open with another LEAT_DIR; or what another process does
//                   with it, opening, closing or deleting, does not end within 5 s
//   LEAT_ERR_PERMISSION   it is as it was
//   LEAT_ERR_UNSUPPORTED, LEAT_ERR_WRONG_FORMAT
LEAT_API int32_t leat_topic_delete(const char *name, uint64_t name_size, const leat_place *place,
                                   int32_t *detail);

// Functions that return a text write it into `buffer`, without a null byte, and its size in bytes into
// `size`. If `capacity` does not suffice (`buffer` may be NULL if it is 0), they write nothing, store the size
// wanted and return LEAT_ERR_BUFFER_TOO_SMALL.

// The names of all topics, sorted, each followed by a line feed. `place` may be NULL.
//   LEAT_ERR_BUFFER_TOO_SMALL, LEAT_ERR_PERMISSION
LEAT_API int32_t leat_topic_list(const leat_place *place, char *buffer, uint64_t capacity,
                                 uint64_t *size, int32_t *detail);

// The topic's name.
//   LEAT_ERR_BUFFER_TOO_SMALL
LEAT_API int32_t leat_topic_name(leat_topic *topic, char *buffer, uint64_t capacity, uint64_t *size);
// The largest record in bytes: key, headers, timestamp and value together, encoded.
LEAT_API int32_t leat_topic_max_record_size(leat_topic *topic, uint64_t *bytes);
// The number of partitions.
LEAT_API int32_t leat_topic_partitions(leat_topic *topic, uint32_t *count);

// A snapshot of a topic. Sizes in bytes. The caller sets `size`; the library fills as much of it.
typedef struct leat_topic_info {
  uint32_t size;                // sizeof(leat_topic_info), set by the caller
  uint32_t policy;              // LEAT_POLICY_...
  uint64_t capacity_bytes;      // per partition, now; policy grow: of the largest one
  uint64_t max_capacity_bytes;  // equal to capacity_bytes unless the policy is grow
  uint64_t min_capacity_bytes;  // per partition, at creation; leat_topic_shrink() does not go below it
  uint64_t max_capacity_limit;  // the most that leat_topic_set_max_capacity() accepts
  uint64_t segment_bytes;
  uint64_t max_record_bytes;
  uint32_t retain_all;  // 0 or 1, as the next three
  uint32_t single_writer;
  uint32_t timestamps;
  uint32_t delete_when_unused;
  int64_t revoke_after_ns;  // 0: never, as the next
  int64_t evict_after_ns;
  uint32_t partition_count;
  uint32_t participant_count;  // alive now
  // Durable topics; otherwise 0.
  uint32_t durable;          // LEAT_DURABILITY_...
  int32_t state;             // why nothing is written to disk, LEAT_ERR_...; LEAT_OK: it is
  int32_t state_detail;      // its errno
  uint32_t archiver_pid;     // 0: no archiver is needed yet
  int64_t sync_interval_ns;  // LEAT_DURABILITY_INTERVAL
  int64_t created_ms;        // milliseconds since 1970
  uint64_t file_bytes;
  uint64_t retention_bytes;
  int64_t retention_ms;
  uint64_t disk_bytes;   // of all its files
  uint64_t cut_bytes;    // what recovery found: bytes and records that were never written whole,
  uint64_t cut_records;
  uint64_t damaged;      // and offsets whose records cannot be read
  // A UUID, which tells the topic from earlier and later ones of its name; save it with an offset that you save. All 0:
  // made by a version without ids.
  uint8_t id[16];
} leat_topic_info;

// The structs of arrays never change. More about the same things comes as JSON.
typedef struct leat_partition_info {
  uint64_t start;           // oldest offset that can be read
  uint64_t end;             // offset of the next claim
  uint64_t capacity_bytes;  // current capacity
  uint64_t used_bytes;      // from the oldest segment that can be read to the end
  uint64_t written;         // durable topics: everything before can be read from disk,
  uint64_t durable;         // and everything before is on stable storage
} leat_partition_info;

#define LEAT_ROLE_PUBLISHER 1
#define LEAT_ROLE_EXCLUSIVE_PUBLISHER 2
#define LEAT_ROLE_SUBSCRIBER 3
#define LEAT_ROLE_LOSSY_SUBSCRIBER 4
#define LEAT_ROLE_MEMBER 5

typedef struct leat_participant_info {
  uint32_t pid;  // in its own PID namespace
  uint32_t role;
  uint64_t offset;    // subscribers: next offset, summed over partitions
  uint64_t lag;       // subscribers: records not read yet, all partitions
  uint32_t blocking;  // 1: others wait for it
  uint32_t reserved;
} leat_participant_info;

// Takes a snapshot of the topic. Holds up nobody. Stores up to `..._capacity` partitions and participants;
// info->..._count says how many there are. Either array may be NULL if its capacity is 0.
LEAT_API int32_t leat_topic_get_info(leat_topic *topic, leat_topic_info *info,
                                     leat_partition_info *partitions, uint32_t partition_capacity,
                                     leat_participant_info *participants,
                                     uint32_t participant_capacity, int32_t *detail);

// The same, and the groups, as the JSON text that `leat topic info --json` prints.
// Without memory it may end the process.
//   LEAT_ERR_BUFFER_TOO_SMALL
LEAT_API int32_t leat_topic_get_json(leat_topic *topic, char *buffer, uint64_t capacity,
                                     uint64_t *size, int32_t *detail);

// Policy grow: sets how far each partition may grow from now on, in bytes.
//   LEAT_ERR_NEEDS_GROWING      the topic has another policy
//   LEAT_ERR_INVALID_ARGUMENT   less than the capacity at creation, or more than was allowed then
//   LEAT_ERR_DELETED
LEAT_API int32_t leat_topic_set_max_capacity(leat_topic *topic, uint64_t bytes, int32_t *detail);

// Policy grow: frees idle memory, and stores how many bytes. `freed_bytes` may be NULL.
//   LEAT_ERR_NEEDS_GROWING   the topic has another policy
//   LEAT_ERR_BUSY            another process has been adding or freeing memory for more than 1 s
//   LEAT_ERR_TOO_MANY, LEAT_ERR_PERMISSION, LEAT_ERR_DELETED
LEAT_API int32_t leat_topic_shrink(leat_topic *topic, uint64_t *freed_bytes, int32_t *detail);

// A durable topic that is read-only: writes everything that may not be on stable storage, and makes the topic
// writable again. Call it when the cause is fixed.
//   LEAT_ERR_IO_ERROR        the disk still fails; the topic stays read-only
//   LEAT_ERR_NOT_DURABLE     the time passed, or the disk is full: the topic is writable, and that goes on
//   LEAT_ERR_NEEDS_DURABLE   the topic is not durable
//   LEAT_ERR_DELETED
LEAT_API int32_t leat_topic_repair(leat_topic *topic, int64_t timeout_ns, int32_t *detail);
// The same, but a signal handler that runs during the wait ends it.
//   LEAT_ERR_NOT_DURABLE   also: a signal came (detail: EINTR). The topic is writable, and that goes on
LEAT_API int32_t leat_topic_repair_interruptible(leat_topic *topic, int64_t timeout_ns,
                                                 int32_t *detail);

// ---- Publishers ---------------------------------------------------------------------------------

typedef struct leat_publisher_options {
  uint32_t size;           // sizeof(leat_publisher_options)
  uint32_t partition;      // of records that have no key; LEAT_ANY_PARTITION: in turn
  uint32_t exclusive;      // 1: the topic's only publisher; cheaper per record
  uint32_t acknowledge;    // LEAT_STAGE_...: how far a record has come when publishing returns
  uint32_t interruptible;  // 1: a signal handler that runs during a wait ends it: LEAT_ERR_INTERRUPTED
  uint32_t reserved;       // 0
} leat_publisher_options;
#define LEAT_PUBLISHER_OPTIONS_INIT \
  {sizeof(leat_publisher_options), LEAT_ANY_PARTITION, 0, LEAT_STAGE_DEFAULT, 0, 0}

// Makes a publisher. `options` may be NULL.
//   LEAT_ERR_BUSY               an exclusive publisher exists, or (exclusive) any other publisher does
//   LEAT_ERR_NEEDS_DURABLE      acknowledge is durable, and the topic is not
//   LEAT_ERR_INVALID_ARGUMENT   no such partition
//   LEAT_ERR_TOO_MANY           every participant slot is in use by a living process
//   LEAT_ERR_PERMISSION, LEAT_ERR_DELETED
LEAT_API int32_t leat_topic_publisher(leat_topic *topic, const leat_publisher_options *options,
                                      leat_publisher **publisher, int32_t *detail);
// Leaves the topic. Aborts an open claim.
LEAT_API int32_t leat_publisher_close(leat_publisher **publisher);

// Publishes one record and stores its offset; `offset` may be NULL. If the topic is full, waits (policies
// block and grow). With LEAT_STAGE_DURABLE it then waits, within the same time, for stable storage.
//   LEAT_ERR_BUSY             a claim of this publisher in this partition is still open
//   LEAT_ERR_FULL, LEAT_ERR_TIMEOUT, LEAT_ERR_STOPPED, LEAT_ERR_INTERRUPTED, LEAT_ERR_WOULD_DEADLOCK,
//   LEAT_ERR_TOO_LARGE        nothing was published
//   LEAT_ERR_NO_SPACE         durable topics: the disk is full. Nothing was published
//   LEAT_ERR_READ_ONLY        durable topics: writing to disk has failed. Nothing was published
//   LEAT_ERR_REVOKED          not delivered: this thread did not run for longer than revoke_after_ns
//   LEAT_ERR_DELETED          the topic was deleted; subscribers still attached may get the record
//   LEAT_ERR_CORRUPT          a check on shared memory failed; whether it was published is unknown
//   LEAT_ERR_NOT_DURABLE      LEAT_STAGE_DURABLE: published, but not on stable storage in time; or a stop or
//                             a signal (detail: EINTR) ended the wait for it, or the disk is full
//   LEAT_ERR_IO_ERROR         LEAT_STAGE_DURABLE: writing failed; whether it survives is unknown
LEAT_API int32_t leat_publisher_publish(leat_publisher *publisher, const void *value, uint64_t size,
                                        int64_t timeout_ns, uint64_t *offset, int32_t *detail);

// The same with key, headers and partition.
//   LEAT_ERR_INVALID_ARGUMENT   no such partition
LEAT_API int32_t leat_publisher_publish_record(leat_publisher *publisher,
                                               const leat_new_record *record, int64_t timeout_ns,
                                               uint64_t *offset, int32_t *detail);

// Publishes `count` values as one batch: they become visible together, with consecutive offsets, in one
// partition (LEAT_ANY_PARTITION: the publisher's). Stores the offset of the first. Together they take at
// most half a segment. Errors as leat_publisher_publish(): all are published, or none.
//   LEAT_ERR_INVALID_ARGUMENT   there are none, or no such partition
LEAT_API int32_t leat_publisher_publish_batch(leat_publisher *publisher, const leat_bytes *values,
                                              uint64_t count, uint32_t partition,
                                              int64_t timeout_ns, uint64_t *offset,
                                              int32_t *detail);
// The same with keys and headers. Keys select no partition.
//   LEAT_ERR_INVALID_ARGUMENT   also: a record names another partition
LEAT_API int32_t leat_publisher_publish_record_batch(leat_publisher *publisher,
                                                     const leat_new_record *records,
                                                     uint64_t count, uint32_t partition,
                                                     int64_t timeout_ns, uint64_t *offset,
                                                     int32_t *detail);

// Room for one record, to be written in place.
typedef struct leat_claim {
  uint8_t *data;    // where to write the value; uninitialised
  uint64_t size;    // bytes
  uint64_t offset;  // the record's offset
  uint64_t id;      // not for programs
} leat_claim;

// Claims room for a value of `size` bytes. Until it is committed or aborted, subscribers wait at it. A
// publisher has at most one open claim; it keeps it, and `claim` is a copy of what is known of it. After an
// error, claim->size is unchanged, and the rest is 0.
//   LEAT_ERR_BUSY       a claim is still open
//   LEAT_ERR_FULL, LEAT_ERR_TIMEOUT, LEAT_ERR_STOPPED, LEAT_ERR_INTERRUPTED, LEAT_ERR_WOULD_DEADLOCK,
//   LEAT_ERR_TOO_LARGE, LEAT_ERR_NO_SPACE, LEAT_ERR_READ_ONLY, LEAT_ERR_DELETED, LEAT_ERR_CORRUPT
LEAT_API int32_t leat_publisher_claim(leat_publisher *publisher, uint64_t size, int64_t timeout_ns,
                                      leat_claim *claim, int32_t *detail);
// Publishes the first `size` bytes. Never waits. The memory must not be touched afterwards.
//   LEAT_ERR_NOT_IN_FLIGHT      it was committed or aborted already, or belongs to another publisher
//   LEAT_ERR_INVALID_ARGUMENT   `size` is larger than what was claimed; the claim stays open
//   LEAT_ERR_REVOKED            not delivered: this thread did not run for longer than revoke_after_ns
//   LEAT_ERR_DELETED            the topic was deleted; subscribers still attached may get the record
LEAT_API int32_t leat_publisher_commit(leat_publisher *publisher, const leat_claim *claim,
                                       uint64_t size, int32_t *detail);
// Gives the room up: subscribers see a gap (LEAT_GAP_ABORTED). Errors as leat_publisher_commit().
LEAT_API int32_t leat_publisher_abort(leat_publisher *publisher, const leat_claim *claim,
                                      int32_t *detail);

// Durable topics: waits until everything that this publisher has published is on stable storage.
//   LEAT_ERR_NOT_DURABLE     the time passed, a stop or a signal (detail: EINTR) ended the wait, or the
//                            disk is full
//   LEAT_ERR_IO_ERROR        writing failed
//   LEAT_ERR_BUSY            a claim is still open
//   LEAT_ERR_NEEDS_DURABLE   the topic is not durable
//   LEAT_ERR_DELETED
LEAT_API int32_t leat_publisher_flush(leat_publisher *publisher, int64_t timeout_ns,
                                      int32_t *detail);
// Asks for the same, and does not wait; see leat_publisher_durable_offset().
//   LEAT_ERR_NEEDS_DURABLE   the topic is not durable
LEAT_API int32_t leat_publisher_request_sync(leat_publisher *publisher, int32_t *detail);
// Durable topics: stores the offset of a partition (LEAT_ANY_PARTITION: the publisher's) before which
// everything is on stable storage. 0 for other topics.
//   LEAT_ERR_INVALID_ARGUMENT   no such partition
LEAT_API int32_t leat_publisher_durable_offset(leat_publisher *publisher, uint32_t partition,
                                               uint64_t *offset);
// Durable topics: a descriptor that becomes readable when a durable offset may have moved, or the topic was
// deleted; leat_publisher_durable_offset() makes it unreadable until then. Owned by the publisher.
//   LEAT_ERR_NEEDS_DURABLE   the topic is not durable
LEAT_API int32_t leat_publisher_durable_fd(leat_publisher *publisher, int32_t *fd, int32_t *detail);
// A descriptor that becomes readable when there may be room in a full partition (LEAT_ANY_PARTITION: the
// publisher's), or the topic was deleted: wait for it after LEAT_ERR_FULL, then try again. Owned by the
// publisher.
//   LEAT_ERR_INVALID_ARGUMENT   no such partition
LEAT_API int32_t leat_publisher_room_fd(leat_publisher *publisher, uint32_t partition, int32_t *fd,
                                        int32_t *detail);

#define LEAT_HOLDER_SUBSCRIBER 1 // has yet to read the oldest records, or reads them in place
#define LEAT_HOLDER_GROUP 2      // has yet to take the oldest records, or its members to acknowledge them
#define LEAT_HOLDER_PUBLISHER 3  // has claimed a record among the oldest, and not committed it
#define LEAT_HOLDER_ARCHIVER 4   // has yet to write the oldest records to disk

// Somebody who keeps a full partition from taking another record. Never changes.
typedef struct leat_room_holder {
  uint32_t kind;     // LEAT_HOLDER_...
  uint32_t pid;      // in its own PID namespace; of a group: of one of its members, 0 if it has none
  uint32_t members;  // of a group
  uint32_t reserved;
  char group[208];   // its name, ends with a null byte; otherwise empty
} leat_room_holder;

// Who has to make room in a full partition (LEAT_ANY_PARTITION: the publisher's): for a message to people when a
// call has waited long, or after LEAT_ERR_FULL. Stores up to `capacity` of them, and in `count` how many there are:
// none if there is room by now, and where nobody can make it (`retain_all`). A snapshot. Any thread, also while
// another waits in a call of this publisher, but not while one closes it.
//   LEAT_ERR_INVALID_ARGUMENT   no such partition
LEAT_API int32_t leat_publisher_waiting_for(leat_publisher *publisher, uint32_t partition,
                                            leat_room_holder *holders, uint32_t capacity,
                                            uint32_t *count, int32_t *detail);

// The offset of the record, or the last of the batch, that was published last with LEAT_STAGE_DURABLE, with
// or without an error of the disk.
//   LEAT_ERR_NOT_FOUND   there is none
LEAT_API int32_t leat_publisher_last_offset(leat_publisher *publisher, uint64_t *offset);
// The largest record in bytes: key, headers, timestamp and value together, encoded.
LEAT_API int32_t leat_publisher_max_record_size(leat_publisher *publisher, uint64_t *bytes);
// The partition of records that have no key.
LEAT_API int32_t leat_publisher_partition(leat_publisher *publisher, uint32_t *partition);

// Makes waits of this publisher return LEAT_ERR_STOPPED, now and later, until leat_publisher_resume(). Any
// thread, while the publisher is open.
LEAT_API int32_t leat_publisher_stop(leat_publisher *publisher);
LEAT_API int32_t leat_publisher_resume(leat_publisher *publisher);
// Stores 1 if they are stopped, otherwise 0.
LEAT_API int32_t leat_publisher_is_stopped(leat_publisher *publisher, uint32_t *is_stopped);

// ---- Subscribers --------------------------------------------------------------------------------

typedef struct leat_subscriber_options {
  uint32_t size;           // sizeof(leat_subscriber_options)
  uint32_t from;           // LEAT_FROM_...
  uint64_t from_value;     // belongs to `from`
  uint32_t partition;      // LEAT_ANY_PARTITION: all
  uint32_t gating;         // 1: publishers keep what it has not read. 0: lossy, and may be overtaken
  uint32_t in_place;       // 1: lossy, but pins the segment that it reads instead of copying
  uint32_t read;           // LEAT_STAGE_...: how far a record must have come to be delivered
  uint32_t any_thread;     // 1: different threads use it in turn; LEAT_ERR_WOULD_DEADLOCK is not found out
  uint32_t interruptible;  // 1: a signal handler that runs during a wait ends it: LEAT_ERR_INTERRUPTED
  int64_t spin_ns;         // how long a wait spins before it sleeps
  int64_t patience_ns;     // pause of an empty poll after many records; 0: none
} leat_subscriber_options;
#define LEAT_SUBSCRIBER_OPTIONS_INIT                                                            \
  {sizeof(leat_subscriber_options), LEAT_FROM_END, 0, LEAT_ANY_PARTITION, 1, 0,                 \
   LEAT_STAGE_DEFAULT, 0, 0, 20000, 20000}

// Makes a subscriber. `options` may be NULL.
//   LEAT_ERR_NOT_WITH_OVERWRITE   gating, and the policy is overwrite
//   LEAT_ERR_NOT_WITH_DURABLE     in_place, and the topic is durable
//   LEAT_ERR_NEEDS_DURABLE        read is durable, and the topic is not
//   LEAT_ERR_NEEDS_TIMESTAMPS     a time, and the topic has no timestamps
//   LEAT_ERR_INVALID_ARGUMENT     no such partition; an offset in several partitions; gating with in_place
//   LEAT_ERR_TOO_MANY             every participant slot is in use by a living process
//   LEAT_ERR_PERMISSION, LEAT_ERR_DELETED
LEAT_API int32_t leat_topic_subscriber(leat_topic *topic, const leat_subscriber_options *options,
                                       leat_subscriber **subscriber, int32_t *detail);
// Leaves the topic. What it delivered is no longer valid.
LEAT_API int32_t leat_subscriber_close(leat_subscriber **subscriber);

// Stores up to `capacity` available records and gaps, oldest first within a partition, and how many; 0 if
// nothing is there. Never sleeps. They are valid until the next poll, receive or close of this subscriber.
//   LEAT_ERR_DELETED     the topic was deleted, and everything before that was delivered
//   LEAT_ERR_CORRUPT     a check on shared memory failed; this partition delivers nothing more
//   LEAT_ERR_IO_ERROR, LEAT_ERR_PERMISSION, LEAT_ERR_NOT_FOUND, LEAT_ERR_WRONG_FORMAT
//                        durable topics: a file cannot be read now. The next call tries it again
LEAT_API int32_t leat_subscriber_poll(leat_subscriber *subscriber, leat_record *records,
                                      uint32_t capacity, uint32_t *count, int32_t *detail);
// The same, but waits for the first.
//   LEAT_ERR_TIMEOUT, LEAT_ERR_STOPPED, LEAT_ERR_INTERRUPTED
LEAT_API int32_t leat_subscriber_receive(leat_subscriber *subscriber, leat_record *records,
                                         uint32_t capacity, uint32_t *count, int64_t timeout_ns,
                                         int32_t *detail);

// Waits until leat_subscriber_poll() may have something to do. What was delivered stays valid.
//   LEAT_ERR_TIMEOUT, LEAT_ERR_STOPPED, LEAT_ERR_INTERRUPTED; others are returned by polling
LEAT_API int32_t leat_subscriber_wait(leat_subscriber *subscriber, int64_t timeout_ns);

// The most subscribers that leat_subscriber_wait_any() can wait for.
#define LEAT_MAX_WAIT_ANY 64

// Waits until one of the subscribers may have something to do, and stores its index in the array.
//   LEAT_ERR_INVALID_ARGUMENT   none, more than LEAT_MAX_WAIT_ANY, or one of them is NULL
//   LEAT_ERR_TIMEOUT, LEAT_ERR_STOPPED, LEAT_ERR_INTERRUPTED; others are returned by polling
LEAT_API int32_t leat_subscriber_wait_any(leat_subscriber *const *subscribers, uint32_t count,
                                          int64_t timeout_ns, uint32_t *index);

// A descriptor that becomes readable when leat_subscriber_poll() may have something to do; then poll until
// there is nothing, or wait until LEAT_ERR_TIMEOUT: both make it unreadable. It is also readable while waits
// are stopped. Owned by the subscriber. A helper thread of this process serves it, and others.
LEAT_API int32_t leat_subscriber_wait_fd(leat_subscriber *subscriber, int32_t *fd, int32_t *detail);

// Stores the offset of the next record in a partition; 0 if it does not read that partition.
LEAT_API int32_t leat_subscriber_offset(leat_subscriber *subscriber, uint32_t partition,
                                        uint64_t *offset);
// Stores 1 if it may be overtaken: it was made lossy, or was evicted (evict_after_ns); otherwise 0.
LEAT_API int32_t leat_subscriber_is_lossy(leat_subscriber *subscriber, uint32_t *is_lossy);

// Makes waits of this subscriber return LEAT_ERR_STOPPED, now and later, until leat_subscriber_resume(). What
// is available is still delivered. Any thread, while the subscriber is open.
LEAT_API int32_t leat_subscriber_stop(leat_subscriber *subscriber);
LEAT_API int32_t leat_subscriber_resume(leat_subscriber *subscriber);
// Stores 1 if they are stopped, otherwise 0.
LEAT_API int32_t leat_subscriber_is_stopped(leat_subscriber *subscriber, uint32_t *is_stopped);

// ---- Groups -------------------------------------------------------------------------------------

// When a record counts as done.
#define LEAT_GROUP_AT_LEAST_ONCE 0 // records that were not acknowledged are delivered again
#define LEAT_GROUP_AT_MOST_ONCE 1  // records that a dead member had in its hands are not

// Durable topics: where a group goes on whose next record was deleted by retention.
#define LEAT_EXPIRED_START 0 // at the oldest record
#define LEAT_EXPIRED_END 1   // behind everything that is there now
#define LEAT_EXPIRED_STOP 2  // nowhere: members get LEAT_ERR_EXPIRED until somebody moves the group

// Options of a new group.
typedef struct leat_group_options {
  uint32_t size;            // sizeof(leat_group_options)
  uint32_t from;            // LEAT_FROM_...
  uint64_t from_value;      // belongs to `from`
  uint32_t mode;            // LEAT_GROUP_...
  uint32_t by_key;          // 1: records of one key go to one member at a time, in order
  uint32_t members;         // at a time; at most 255
  uint32_t in_flight;       // unacknowledged records that a member may hold; at most 65536
  uint32_t max_deliveries;  // then a record goes to the dead-letter topic; at most 65534; 0: no limit
  uint32_t on_expired;      // LEAT_EXPIRED_...
  int64_t lease_ns;         // a record that is held for longer goes to another member; 0: never
} leat_group_options;
#define LEAT_GROUP_OPTIONS_INIT                                                                   \
  {sizeof(leat_group_options), LEAT_FROM_END, 0, LEAT_GROUP_AT_LEAST_ONCE, 0, 64, 1024, 0,        \
   LEAT_EXPIRED_START, 0}

// Opens the consumer group of that name, or creates it; `options` (NULL: the defaults) apply only then.
// `was_created` (may be NULL) is set to 1 if this call created it, otherwise to 0.
//   LEAT_ERR_INVALID_ARGUMENT     the name (1 to 200 of A-Z a-z 0-9 . _ -) or the options
//   LEAT_ERR_NOT_WITH_OVERWRITE   the topic has policy overwrite
//   LEAT_ERR_NEEDS_TIMESTAMPS     `from` is a time, and the topic has no timestamps
//   LEAT_ERR_NEEDS_DURABLE        on_expired is not the default, and the topic is not durable
//   LEAT_ERR_TOO_MANY             the topic has 64 groups, or every participant slot is in use
//   LEAT_ERR_BUSY                 another process that works on groups blocks it for 5 s
//   LEAT_ERR_NO_SPACE, LEAT_ERR_PERMISSION, LEAT_ERR_DELETED
LEAT_API int32_t leat_topic_group(leat_topic *topic, const char *name, uint64_t name_size,
                                  const leat_group_options *options, leat_group **group,
                                  uint32_t *was_created, int32_t *detail);
// Opens an existing group.
//   LEAT_ERR_NOT_FOUND; otherwise as leat_topic_group()
LEAT_API int32_t leat_topic_find_group(leat_topic *topic, const char *name, uint64_t name_size,
                                       leat_group **group, int32_t *detail);
// Closes the handle. The group stays until it is deleted.
LEAT_API int32_t leat_group_close(leat_group **group);

// Deletes a group. With force = 1 also while it has members, which get LEAT_ERR_CLOSED from their next call
// on; what they hold stays valid until then.
//   LEAT_ERR_INVALID_ARGUMENT   no group can have that name
//   LEAT_ERR_NOT_FOUND
//   LEAT_ERR_BUSY               it has a living member; or as leat_topic_group()
//   LEAT_ERR_PERMISSION, LEAT_ERR_DELETED
LEAT_API int32_t leat_topic_delete_group(leat_topic *topic, const char *name, uint64_t name_size,
                                         uint32_t force, int32_t *detail);
// The names of the topic's groups, sorted, each followed by a line feed.
//   LEAT_ERR_BUFFER_TOO_SMALL, LEAT_ERR_BUSY
LEAT_API int32_t leat_topic_group_names(leat_topic *topic, char *buffer, uint64_t capacity,
                                        uint64_t *size, int32_t *detail);

// The group's name.
//   LEAT_ERR_BUFFER_TOO_SMALL
LEAT_API int32_t leat_group_name(leat_group *group, char *buffer, uint64_t capacity, uint64_t *size);

// A snapshot of a group. The caller sets `size`; the library fills as much of it.
typedef struct leat_group_info {
  uint32_t size;  // sizeof(leat_group_info), set by the caller
  uint32_t mode;  // LEAT_GROUP_...
  uint32_t by_key;
  uint32_t max_deliveries;
  int64_t lease_ns;
  uint32_t on_expired;       // LEAT_EXPIRED_...
  uint32_t in_flight_limit;  // for each member
  uint64_t lag;              // records that no member has taken yet
  uint64_t in_flight;        // taken or returned, and not acknowledged
  uint64_t redelivered;      // deliveries after the first
  uint64_t returned;         // waiting for redelivery or for their key
  uint64_t returned_limit;
  uint64_t dead_letters;  // records that went to the dead-letter topic
  int32_t taking;         // LEAT_ERR_REDELIVERY_FULL: no room for returned records; otherwise LEAT_OK
  uint32_t member_count;  // alive now
  uint32_t partition_count;
  uint32_t reserved;
} leat_group_info;

// A living member. Never changes.
typedef struct leat_member_info {
  char name[64];       // ends with a null byte
  uint64_t in_flight;  // records that it holds or has taken
  uint32_t pid;
  uint32_t reserved;
} leat_member_info;

// Takes a snapshot of the group. Holds up nobody. Stores up to `..._capacity` members and, by partition,
// offsets of the next record to be taken; info->..._count says how many there are. Either array may be
// NULL if its capacity is 0.
LEAT_API int32_t leat_group_get_info(leat_group *group, leat_group_info *info,
                                     leat_member_info *members, uint32_t member_capacity,
                                     uint64_t *offsets, uint32_t offset_capacity, int32_t *detail);
// The name of the dead-letter topic; empty without max_deliveries.
//   LEAT_ERR_BUFFER_TOO_SMALL
LEAT_API int32_t leat_group_dead_letter_topic(leat_group *group, char *buffer, uint64_t capacity,
                                              uint64_t *size);

// Moves the group's position, in one partition, or in all: LEAT_ANY_PARTITION. Records that members hold stay
// theirs.
//   LEAT_ERR_INVALID_ARGUMENT   no such partition; an offset beyond the end, or in several partitions
//   LEAT_ERR_NEEDS_TIMESTAMPS   a time on a topic without timestamps
//   LEAT_ERR_TOO_MANY, LEAT_ERR_CLOSED, LEAT_ERR_PERMISSION, LEAT_ERR_DELETED
LEAT_API int32_t leat_group_seek(leat_group *group, uint32_t from, uint64_t from_value,
                                 uint32_t partition, int32_t *detail);
// Stores the offset of the next record to be taken in a partition.
//   LEAT_ERR_INVALID_ARGUMENT   no such partition
LEAT_API int32_t leat_group_position(leat_group *group, uint32_t partition, uint64_t *offset);
// Stores how many records of a partition, at least, the group is done with, counted from offset 0.
//   LEAT_ERR_INVALID_ARGUMENT   no such partition
LEAT_API int32_t leat_group_released(leat_group *group, uint32_t partition, uint64_t *count);

// ---- Members ------------------------------------------------------------------------------------

typedef struct leat_member_options {
  uint32_t size;           // sizeof(leat_member_options)
  uint32_t any_thread;     // 1: different threads use it in turn; LEAT_ERR_WOULD_DEADLOCK is not found out
  uint32_t interruptible;  // 1: a signal handler that runs during a wait ends it: LEAT_ERR_INTERRUPTED
  uint32_t reserved;       // 0
  int64_t spin_ns;         // how long a wait spins before it sleeps
  int64_t patience_ns;     // pause of an empty receive after many records; 0: none
  leat_bytes name;         // informational; at most 63 bytes; data NULL: none
} leat_member_options;
#define LEAT_MEMBER_OPTIONS_INIT {sizeof(leat_member_options), 0, 0, 0, 20000, 20000, {NULL, 0}}

// Makes a member of the group. `options` may be NULL.
//   LEAT_ERR_INVALID_ARGUMENT   the name has more than 63 bytes
//   LEAT_ERR_TOO_MANY           every seat of the group, or participant slot of the topic, is in use
//   LEAT_ERR_CLOSED             the group was deleted
//   LEAT_ERR_NO_SPACE, LEAT_ERR_PERMISSION, LEAT_ERR_DELETED
LEAT_API int32_t leat_group_join(leat_group *group, const leat_member_options *options,
                                 leat_member **member, int32_t *detail);
// Leaves the group. Records that were not acknowledged go to other members.
LEAT_API int32_t leat_member_close(leat_member **member);

// A record that a member holds, or (durable topics) a gap. 64 bytes, which may be copied and kept, and
// are acknowledged by any copy.
typedef struct leat_delivery {
  leat_record record;
  uint32_t deliveries;  // 1: the first delivery. At most 65535. 0: a gap
  uint32_t reserved;
  uint64_t state;     // not for programs, as the next two
  uint64_t position;
  uint64_t entry;
} leat_delivery;

// Stores up to `capacity` available records and how many; waits for the first. The member holds each until
// it is acknowledged or requeued, and what it points to stays valid for as long. In a group with a lease it is
// valid until the member's next receive.
//
// On durable topics, gaps come as entries too: offsets that this member came upon and that no member will
// get. Those found during a call come before the records that it returns; those for which the array has
// no room come with the next call, which then does not wait. They are held by nobody: acknowledging one
// is LEAT_ERR_NOT_IN_FLIGHT.
//   LEAT_ERR_IN_FLIGHT_FULL   it holds as many records as the group allows
//   LEAT_ERR_EXPIRED          retention has deleted the next record, and the group stops then
//   LEAT_ERR_TIMEOUT, LEAT_ERR_STOPPED, LEAT_ERR_INTERRUPTED, LEAT_ERR_CLOSED, LEAT_ERR_DELETED,
//   LEAT_ERR_CORRUPT
LEAT_API int32_t leat_member_receive(leat_member *member, leat_delivery *deliveries,
                                     uint32_t capacity, uint32_t *count, int64_t timeout_ns,
                                     int32_t *detail);

// Copies the value of the next record into `buffer`, stores its size, and acknowledges the record. Waits for
// it. Gaps are kept for leat_member_receive().
//   LEAT_ERR_BUFFER_TOO_SMALL   `size` is what it needs, and the next call returns the same record
//   LEAT_ERR_LEASE_LOST         the lease ran out meanwhile: another member also gets the record
//   otherwise as leat_member_receive()
LEAT_API int32_t leat_member_receive_copy(leat_member *member, void *buffer, uint64_t capacity,
                                          uint64_t *size, int64_t timeout_ns, int32_t *detail);

// Tells the group that the record is done: it is never delivered again.
//   LEAT_ERR_NOT_IN_FLIGHT  acknowledged or requeued already, another member's, or a gap
//   LEAT_ERR_LEASE_LOST     held for longer than the group's lease: another member has it, or will
//   LEAT_ERR_CLOSED
LEAT_API int32_t leat_member_acknowledge(leat_member *member, const leat_delivery *delivery);
// Acknowledges those of these `count` records that the member holds, in any order, and stores how many
// (`acknowledged` may be NULL). Passes over gaps. The others change nothing: an error only if there were
// records and none was acknowledged. Publishers that wait for room are woken once. Errors as above.
LEAT_API int32_t leat_member_acknowledge_some(leat_member *member, const leat_delivery *deliveries,
                                              uint64_t count, uint64_t *acknowledged);
// Acknowledges the record and all that this member received before it; stores how many (`acknowledged` may
// be NULL). LEAT_ERR_LEASE_LOST only if none was acknowledged. Errors as above.
LEAT_API int32_t leat_member_acknowledge_up_to(leat_member *member, const leat_delivery *delivery,
                                               uint64_t *acknowledged);
// Acknowledges all that it holds; otherwise as above.
LEAT_API int32_t leat_member_acknowledge_all(leat_member *member, uint64_t *acknowledged);
// Makes the record available to any member again, after `delay_ns` nanoseconds. Errors as
// leat_member_acknowledge().
//   LEAT_ERR_INVALID_ARGUMENT   the delay is below 0
LEAT_API int32_t leat_member_requeue(leat_member *member, const leat_delivery *delivery,
                                     int64_t delay_ns);

// Waits until leat_member_receive() may have something to do.
//   LEAT_ERR_TIMEOUT, LEAT_ERR_STOPPED, LEAT_ERR_INTERRUPTED; others are returned by receiving
LEAT_API int32_t leat_member_wait(leat_member *member, int64_t timeout_ns);
// As leat_subscriber_wait_fd(); then receive, with the timeout 0, until LEAT_ERR_TIMEOUT.
LEAT_API int32_t leat_member_wait_fd(leat_member *member, int32_t *fd, int32_t *detail);
// Stores how many records it holds or has taken in advance for its next calls.
LEAT_API int32_t leat_member_in_flight(leat_member *member, uint64_t *count);

// Makes waits of this member return LEAT_ERR_STOPPED, now and later, until leat_member_resume(). What is
// available is still delivered. Any thread, while the member is open.
LEAT_API int32_t leat_member_stop(leat_member *member);
LEAT_API int32_t leat_member_resume(leat_member *member);
// Stores 1 if they are stopped, otherwise 0.
LEAT_API int32_t leat_member_is_stopped(leat_member *member, uint32_t *is_stopped);

#ifdef __cplusplus
}
#endif

#endif
