// Publishing from packed bytes.
#include <stdlib.h>

#include "shim.h"

enum { kFew = 256 };  // So many need no memory from the heap.

leatgo_result leatgo_publish(leat_publisher *publisher, const uint8_t *value, uint64_t size,
                             int64_t timeout_ns) {
  leatgo_result result = {0, 0, 0};
  result.code = leat_publisher_publish(publisher, value, size, timeout_ns, &result.number, &result.detail);
  return result;
}

leatgo_result leatgo_publish_values(leat_publisher *publisher, const uint8_t *bytes,
                                    const uint32_t *sizes, uint64_t count, uint32_t partition,
                                    int64_t timeout_ns) {
  leatgo_result result = {0, LEAT_ERR_NO_MEMORY, 0};
  leat_bytes few[kFew];
  leat_bytes *values = few;
  if (count > kFew) values = malloc(count * sizeof(*values));
  if (values == NULL) return result;
  for (uint64_t i = 0; i < count; ++i) {
    values[i].data = bytes;
    values[i].size = sizes[i];
    bytes += sizes[i];
  }
  result.code = leat_publisher_publish_batch(publisher, values, count, partition, timeout_ns,
                                             &result.number, &result.detail);
  if (values != few) free(values);
  return result;
}

// Reads a record from `bytes`; its headers go to `headers`. Returns what is behind it.
static const uint8_t *unpack(const uint8_t *bytes, const leatgo_new_record *from,
                             leat_new_record *to, leat_new_header *headers) {
  to->value.data = bytes;
  to->value.size = from->value_size;
  bytes += from->value_size;
  to->key.data = from->has_key ? bytes : NULL;
  to->key.size = from->key_size;
  bytes += from->key_size;
  to->headers = from->header_count != 0 ? headers : NULL;
  to->header_count = from->header_count;
  to->partition = from->partition;
  for (uint32_t i = 0; i < from->header_count; ++i) {
    headers[i].name.size = leat_read_u32(bytes);
    headers[i].value.size = leat_read_u32(bytes + 4);
    headers[i].name.data = bytes + 8;
    headers[i].value.data = bytes + 8 + headers[i].name.size;
    bytes += 8 + headers[i].name.size + headers[i].value.size;
  }
  return bytes;
}

leatgo_result leatgo_publish_record(leat_publisher *publisher, const uint8_t *bytes,
                                    const leatgo_new_record *record, int64_t timeout_ns) {
  leatgo_result result = {0, LEAT_ERR_NO_MEMORY, 0};
  leat_new_record unpacked = LEAT_NEW_RECORD_INIT;
  leat_new_header few[kFew];
  leat_new_header *headers = few;
  if (record->header_count > kFew) headers = malloc(record->header_count * sizeof(*headers));
  if (headers == NULL) return result;
  unpack(bytes, record, &unpacked, headers);
  result.code = leat_publisher_publish_record(publisher, &unpacked, timeout_ns, &result.number,
                                              &result.detail);
  if (headers != few) free(headers);
  return result;
}

leatgo_result leatgo_publish_records(leat_publisher *publisher, const uint8_t *bytes,
                                     const leatgo_new_record *records, uint64_t count,
                                     uint32_t partition, int64_t timeout_ns) {
  leatgo_result result = {0, LEAT_ERR_NO_MEMORY, 0};
  uint64_t header_count = 0;
  for (uint64_t i = 0; i < count; ++i) header_count += records[i].header_count;
  leat_new_record *unpacked = malloc(count * sizeof(*unpacked) + header_count * sizeof(leat_new_header));
  if (unpacked == NULL) return result;
  leat_new_header *headers = (leat_new_header *)(unpacked + count);
  for (uint64_t i = 0; i < count; ++i) {
    bytes = unpack(bytes, &records[i], &unpacked[i], headers);
    headers += records[i].header_count;
  }
  result.code = leat_publisher_publish_record_batch(publisher, unpacked, count, partition, timeout_ns,
                                                    &result.number, &result.detail);
  free(unpacked);
  return result;
}

leatgo_claimed leatgo_claim(leat_publisher *publisher, uint64_t size, int64_t timeout_ns) {
  leatgo_claimed claimed = {{NULL, 0, 0, 0}, 0, 0};
  claimed.code = leat_publisher_claim(publisher, size, timeout_ns, &claimed.claim, &claimed.detail);
  return claimed;
}

leatgo_result leatgo_commit(leat_publisher *publisher, leat_claim claim, uint64_t size) {
  leatgo_result result = {claim.offset, 0, 0};
  result.code = leat_publisher_commit(publisher, &claim, size, &result.detail);
  return result;
}

leatgo_result leatgo_abort(leat_publisher *publisher, leat_claim claim) {
  leatgo_result result = {claim.offset, 0, 0};
  result.code = leat_publisher_abort(publisher, &claim, &result.detail);
  return result;
}
