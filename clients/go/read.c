// Reading batches into packed bytes.
#include <stdlib.h>
#include <string.h>

#include "shim.h"

// Describes a record, and returns how many bytes it has.
static inline uint64_t describe(const leat_record *from, leatgo_entry *to) {
  to->offset = from->offset;
  to->partition = from->partition;
  to->flags = from->flags;
  if (leat_record_is_gap(from)) {
    to->timestamp_ms = (int64_t)leat_gap_count(from);
    to->value_size = 0;
    to->key_size = 0;
    to->headers_size = leat_gap_reason(from);
    return 0;
  }
  to->timestamp_ms = leat_record_timestamp_ms(from);
  to->value_size = from->value_size;
  to->key_size = from->key_size;
  to->headers_size = from->headers_size;
  return (uint64_t)from->value_size + from->key_size + from->headers_size;
}

// Copies key, headers and value, which lie one behind the other.
static inline uint8_t *copy(const leat_record *record, uint8_t *to) {
  if (leat_record_is_gap(record)) return to;
  const uint64_t before = (uint64_t)record->key_size + record->headers_size;
  memcpy(to, record->value - before, before + record->value_size);
  return to + before + record->value_size;
}

leatgo_batch leatgo_read(leat_subscriber *subscriber, leat_record *records, uint32_t capacity,
                         int64_t timeout_ns, leatgo_entry *index, uint8_t *buffer, uint64_t room) {
  leatgo_batch batch = {0, 0, 0, 0};
  if (timeout_ns == LEATGO_POLL) {
    batch.code = leat_subscriber_poll(subscriber, records, capacity, &batch.count, &batch.detail);
  } else {
    batch.code = leat_subscriber_receive(subscriber, records, capacity, &batch.count, timeout_ns,
                                         &batch.detail);
  }
  for (uint32_t i = 0; i < batch.count; ++i) batch.bytes += describe(&records[i], &index[i]);
  if (batch.bytes <= room) leatgo_copy(records, batch.count, buffer);
  return batch;
}

void leatgo_copy(const leat_record *records, uint32_t count, uint8_t *buffer) {
  for (uint32_t i = 0; i < count; ++i) buffer = copy(&records[i], buffer);
}

leatgo_batch leatgo_receive(leat_member *member, leat_delivery *deliveries, uint32_t capacity,
                            int64_t timeout_ns, leatgo_delivery *index, uint8_t *buffer,
                            uint64_t room) {
  leatgo_batch batch = {0, 0, 0, 0};
  batch.code = leat_member_receive(member, deliveries, capacity, &batch.count, timeout_ns, &batch.detail);
  for (uint32_t i = 0; i < batch.count; ++i) {
    const leat_delivery *from = &deliveries[i];
    batch.bytes += describe(&from->record, &index[i].record);
    index[i].state = from->state;
    index[i].position = from->position;
    index[i].hold = from->hold;
    index[i].deliveries = from->deliveries;
  }
  if (batch.bytes <= room) leatgo_copy_delivered(deliveries, batch.count, buffer);
  return batch;
}

void leatgo_copy_delivered(const leat_delivery *deliveries, uint32_t count, uint8_t *buffer) {
  for (uint32_t i = 0; i < count; ++i) buffer = copy(&deliveries[i].record, buffer);
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
  to.record.offset = from->record.offset;
  to.record.partition = from->record.partition;
  to.record.flags = from->record.flags;
  to.deliveries = from->deliveries;
  to.state = from->state;
  to.position = from->position;
  to.hold = from->hold;
  return to;
}

leatgo_result leatgo_settle(leat_member *member, leatgo_delivery delivery, uint32_t how,
                            int64_t delay_ns) {
  leatgo_result result = {1, 0, 0};
  const leat_delivery settled = to_delivery(&delivery);
  if (how == LEATGO_ACKNOWLEDGE) result.code = leat_member_acknowledge(member, &settled);
  if (how == LEATGO_ACKNOWLEDGE_UP_TO)
    result.code = leat_member_acknowledge_up_to(member, &settled, &result.number);
  if (how == LEATGO_GIVE_BACK) result.code = leat_member_give_back(member, &settled, delay_ns);
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
