// Reading batches into packed bytes.
#include <stdlib.h>
#include <string.h>

#include "shim.h"

// Bytes of records, one record behind the other.
typedef struct packed {
  uint8_t *to;
  uint64_t room;   // Of `to`.
  uint64_t bytes;  // Those that do not fit are only counted.
} packed;

// Key, headers and value lie one behind the other.
static inline void pack(packed *all, const leat_record *record) {
  if (leat_record_is_gap(record)) return;
  const uint64_t before = (uint64_t)record->key_size + record->headers_size;
  const uint64_t size = before + record->value_size;
  if (all->bytes + size <= all->room) memcpy(all->to + all->bytes, record->value - before, size);
  all->bytes += size;
}

// Packs all, and fetches what lies `distance` bytes behind each; 0: nothing.
static inline uint64_t pack_all(const leat_record *records, uint32_t count, uint64_t distance,
                                uint8_t *buffer, uint64_t room) {
  packed all = {buffer, room, 0};
  for (uint32_t i = 0; i < count; ++i) {
    leat_prefetch(&records[i], distance);
    pack(&all, &records[i]);
  }
  return all.bytes;
}

leatgo_batch leatgo_read(leat_subscriber *subscriber, leat_record *records, uint32_t capacity,
                         int64_t timeout_ns, uint8_t *buffer, uint64_t room) {
  leatgo_batch batch = {0, 0, 0, 0};
  if (timeout_ns == LEATGO_POLL) {
    batch.code = leat_subscriber_poll(subscriber, records, capacity, &batch.count, &batch.detail);
  } else {
    batch.code = leat_subscriber_receive(subscriber, records, capacity, &batch.count, timeout_ns,
                                         &batch.detail);
  }
  batch.bytes = pack_all(records, batch.count, leat_next_batch(records, batch.count, capacity), buffer, room);
  return batch;
}

void leatgo_copy(const leat_record *records, uint32_t count, uint8_t *buffer, uint64_t room) {
  (void)pack_all(records, count, 0, buffer, room);
}

leatgo_batch leatgo_receive(leat_member *member, leat_delivery *deliveries, uint32_t capacity,
                            int64_t timeout_ns, uint8_t *buffer, uint64_t room) {
  leatgo_batch batch = {0, 0, 0, 0};
  batch.code = leat_member_receive(member, deliveries, capacity, &batch.count, timeout_ns, &batch.detail);
  batch.bytes = leatgo_copy_delivered(deliveries, batch.count, buffer, room);
  return batch;
}

uint64_t leatgo_copy_delivered(const leat_delivery *deliveries, uint32_t count, uint8_t *buffer,
                               uint64_t room) {
  packed all = {buffer, room, 0};
  for (uint32_t i = 0; i < count; ++i) pack(&all, &deliveries[i].record);
  return all.bytes;
}

leatgo_result leatgo_receive_copy(leat_member *member, uint8_t *buffer, uint64_t capacity,
                                  int64_t timeout_ns) {
  leatgo_result result = {0, 0, 0};
  result.code = leat_member_receive_copy(member, buffer, capacity, &result.number, timeout_ns,
                                         &result.detail);
  return result;
}

static leat_delivery to_delivery(const leatgo_delivery *from) {
  leat_delivery to;
  memset(&to, 0, sizeof(to));
  to.record.offset = from->offset;
  to.record.partition = from->partition;
  to.record.flags = from->flags;
  to.deliveries = from->deliveries;
  to.state = from->state;
  to.position = from->position;
  to.entry = from->entry;
  return to;
}

leatgo_result leatgo_settle(leat_member *member, leatgo_delivery delivery, uint32_t how,
                            int64_t delay_ns) {
  leatgo_result result = {1, 0, 0};
  const leat_delivery settled = to_delivery(&delivery);
  if (how == LEATGO_ACKNOWLEDGE) result.code = leat_member_acknowledge(member, &settled);
  if (how == LEATGO_ACKNOWLEDGE_UP_TO)
    result.code = leat_member_acknowledge_up_to(member, &settled, &result.number);
  if (how == LEATGO_REQUEUE) result.code = leat_member_requeue(member, &settled, delay_ns);
  return result;
}

leatgo_result leatgo_acknowledge_some(leat_member *member, const leatgo_delivery *deliveries,
                                      uint64_t count) {
  leatgo_result result = {0, LEAT_ERR_NO_MEMORY, 0};
  leat_delivery few[64];
  leat_delivery *some = few;
  if (count > 64) some = malloc(count * sizeof(*some));
  if (some == NULL) return result;
  for (uint64_t i = 0; i < count; ++i) some[i] = to_delivery(&deliveries[i]);
  result.code = leat_member_acknowledge_some(member, some, count, &result.number);
  if (some != few) free(some);
  return result;
}
