// What subscribers and members read, as numbers and bytes of JavaScript.
#include <stdlib.h>
#include <string.h>

#include "addon.h"

int read_room(Handle *handle, uint32_t limit) {
  void *larger = NULL;
  if (limit <= handle->capacity) return 1;
  if (limit < 64) limit = 64;
  handle->count = 0;
  if (handle->kind == MEMBER) {
    larger = realloc(handle->deliveries, limit * sizeof(leat_delivery));
    if (larger == NULL) return 0;
    handle->deliveries = larger;
  } else {
    larger = realloc(handle->records, limit * sizeof(leat_record));
    if (larger == NULL) return 0;
    handle->records = larger;
  }
  handle->capacity = limit;
  return 1;
}

static const leat_record *record_at(const Handle *handle, uint32_t index) {
  return handle->kind == MEMBER ? &handle->deliveries[index].record : &handle->records[index];
}

uint64_t read_size(const Handle *handle) {
  uint64_t size = 0;
  for (uint32_t i = 0; i < handle->count; ++i) {
    const leat_record *record = record_at(handle, i);
    if (leat_record_is_gap(record)) continue;
    size += (uint64_t)record->key_size + record->headers_size + record->value_size;
  }
  return size;
}

static void describe(const leat_record *record, double *entry) {
  const int is_gap = leat_record_is_gap(record);
  entry[ENTRY_FLAGS] = record->flags;
  entry[ENTRY_PARTITION] = record->partition;
  entry[ENTRY_OFFSET] = (double)record->offset;
  entry[ENTRY_VALUE] = is_gap ? (double)leat_gap_count(record) : record->value_size;
  entry[ENTRY_KEY] = record->key_size;
  entry[ENTRY_HEADERS] = record->headers_size;
  entry[ENTRY_TIME] = is_gap ? -1 : (double)leat_record_timestamp_ms(record);
  entry[ENTRY_DELIVERIES] = 0;
}

napi_value read_copy(napi_env env, napi_callback_info info) {
  void *data = NULL;
  Call call;
  call_begin(env, info, &call);
  if (napi_get_value_external(env, call.args[0], &data) != napi_ok) return closed(env);
  Handle *handle = handle_of(env, call.args[0], ((Handle *)data)->kind);
  if (handle == NULL) return closed(env);
  const uint64_t at = (uint64_t)double_of(env, call.args[3], 0);
  double *entry =
      memory_of(env, call.args[1], (uint64_t)handle->count * ENTRY_SIZE * sizeof(double));
  uint8_t *bytes = memory_of(env, call.args[2], at + read_size(handle));
  uint8_t *tokens = NULL;
  if (handle->kind == MEMBER)
    tokens = memory_of(env, call.args[4], (uint64_t)handle->count * sizeof(leat_delivery));
  if (entry == NULL || bytes == NULL || (handle->kind == MEMBER && tokens == NULL))
    return failure(env, LEAT_ERR_INVALID_ARGUMENT, 0);
  bytes += at;
  for (uint32_t i = 0; i < handle->count; ++i, entry += ENTRY_SIZE) {
    const leat_record *record = record_at(handle, i);
    const uint64_t before = (uint64_t)record->key_size + record->headers_size;
    describe(record, entry);
    if (tokens != NULL) entry[ENTRY_DELIVERIES] = handle->deliveries[i].deliveries;
    if (leat_record_is_gap(record)) continue;
    // They lie like that in the log.
    if (before + record->value_size != 0)
      memcpy(bytes, record->value - before, before + record->value_size);
    bytes += before + record->value_size;
  }
  if (tokens != NULL) memcpy(tokens, handle->deliveries, handle->count * sizeof(leat_delivery));
  return number(env, handle->count);
}
