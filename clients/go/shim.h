// What Go calls instead of leat.h where that is cheaper or where cgo demands it: results are returned as
// structs, because a pointer to a Go variable would move it to the heap; and batches cross as one block of
// bytes, because Go memory that C is given may not point to other Go memory.
#ifndef LEAT_GO_SHIM_H
#define LEAT_GO_SHIM_H

#include <leat/leat.h>

typedef struct leatgo_result {
  uint64_t number;  // an offset, or how many
  int32_t code;
  int32_t detail;
} leatgo_result;

// ---- Publishing: publish.c ----------------------------------------------------------------------

leatgo_result leatgo_publish(leat_publisher *publisher, const uint8_t *value, uint64_t size,
                             int64_t timeout_ns);
// The values lie one behind the other in `bytes`.
leatgo_result leatgo_publish_values(leat_publisher *publisher, const uint8_t *bytes,
                                    const uint32_t *sizes, uint64_t count, uint32_t partition,
                                    int64_t timeout_ns);

// A record to publish. In `bytes`: its value, its key, then its headers, each as two numbers of 4 bytes,
// the sizes of name and value, which follow.
typedef struct leatgo_new_record {
  uint32_t value_size;
  uint32_t key_size;
  uint32_t header_count;
  uint32_t partition;
  uint32_t has_key;
} leatgo_new_record;

leatgo_result leatgo_publish_record(leat_publisher *publisher, const uint8_t *bytes,
                                    const leatgo_new_record *record, int64_t timeout_ns);
leatgo_result leatgo_publish_records(leat_publisher *publisher, const uint8_t *bytes,
                                     const leatgo_new_record *records, uint64_t count,
                                     uint32_t partition, int64_t timeout_ns);

typedef struct leatgo_claimed {
  leat_claim claim;
  int32_t code;
  int32_t detail;
} leatgo_claimed;

leatgo_claimed leatgo_claim(leat_publisher *publisher, uint64_t size, int64_t timeout_ns);
leatgo_result leatgo_commit(leat_publisher *publisher, leat_claim claim, uint64_t size);
leatgo_result leatgo_abort(leat_publisher *publisher, leat_claim claim);

// ---- Reading: read.c ----------------------------------------------------------------------------

typedef struct leatgo_batch {
  uint64_t bytes;  // of all its records
  uint32_t count;
  int32_t code;
  int32_t detail;
} leatgo_batch;

#define LEATGO_POLL ((int64_t)-2)  // instead of a timeout: leat_subscriber_poll()

// Reads into `records`, memory of C, and copies key, headers as encoded, and value of each into `buffer`, one
// behind the other. If they do not fit into `room`, leatgo_copy() must do that before the next call.
leatgo_batch leatgo_read(leat_subscriber *subscriber, leat_record *records, uint32_t capacity,
                         int64_t timeout_ns, uint8_t *buffer, uint64_t room);
void leatgo_copy(const leat_record *records, uint32_t count, uint8_t *buffer, uint64_t room);

// The same for members.
leatgo_batch leatgo_receive(leat_member *member, leat_delivery *deliveries, uint32_t capacity,
                            int64_t timeout_ns, uint8_t *buffer, uint64_t room);
uint64_t leatgo_copy_delivered(const leat_delivery *deliveries, uint32_t count, uint8_t *buffer,
                               uint64_t room);

leatgo_result leatgo_receive_copy(leat_member *member, uint8_t *buffer, uint64_t capacity,
                                  int64_t timeout_ns);

#define LEATGO_ACKNOWLEDGE 0
#define LEATGO_ACKNOWLEDGE_UP_TO 1
#define LEATGO_REQUEUE 2
// What a delivery is known by.
typedef struct leatgo_delivery {
  uint64_t offset;
  uint64_t state;
  uint64_t position;
  uint64_t entry;
  uint32_t deliveries;
  uint16_t partition;
  uint16_t flags;  // LEAT_RECORD_...
} leatgo_delivery;

// Settles one delivery.
leatgo_result leatgo_settle(leat_member *member, leatgo_delivery delivery, uint32_t how,
                            int64_t delay_ns);
leatgo_result leatgo_acknowledge_some(leat_member *member, const leatgo_delivery *deliveries,
                                      uint64_t count);

// ---- Reading in place: mirror.c -----------------------------------------------------------------

// Go cannot forbid to keep a slice, and a slice of unmapped memory would crash the program. So views lie in
// mappings of our own of the same pages, read-only ones, which a topic and its readers share. When the last of
// them is closed, the pages are taken away and the addresses stay, to be used for the next mirror of this size:
// old views read other bytes. While addresses are limited (RLIMIT_AS), none is made, and views are copies.
typedef struct leatgo_mirrors leatgo_mirrors;

#define LEATGO_COPY_ME 0x8000  // flag of a record that lies in no mirror, and must be copied

// As leatgo_read(), but makes the records point into mirrors, and stores in `bytes` the sum of the bytes of
// those that are LEATGO_COPY_ME, with all that lies before their values. `skip` belongs to the subscriber: so many
// batches are copied without checking whether their memory is shared.
leatgo_batch leatgo_view(leat_subscriber *subscriber, leat_record *records, uint32_t capacity,
                         int64_t timeout_ns, leatgo_mirrors *mirrors, uint32_t *skip);
// Bytes that lie before a value: timestamp, sizes, key and headers, as far as a record has them.
uint64_t leatgo_prefix(const leat_record *record);
leatgo_mirrors *leatgo_mirrors_new(void);  // NULL: no memory. Held once.
void leatgo_mirrors_hold(leatgo_mirrors *mirrors);
void leatgo_mirrors_drop(leatgo_mirrors *mirrors);

#endif
