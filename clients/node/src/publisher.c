// Publishers. Nothing here waits: lib/ waits for descriptors, and tries again.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "addon.h"

static const char *const stages[] = {"", "committed", "durable", NULL};
static const Option publisher_options[] = {
    {"partition", OPTION_U32, offsetof(leat_publisher_options, partition), 0, NULL},
    {"exclusive", OPTION_FLAG, offsetof(leat_publisher_options, exclusive), 0, NULL},
    {"acknowledge", OPTION_CHOICE, offsetof(leat_publisher_options, acknowledge), 0, stages},
    {NULL, OPTION_FLAG, 0, 0, NULL},
};

// publisher(topic, options)
static napi_value make(napi_env env, napi_callback_info info) {
  leat_publisher_options options = LEAT_PUBLISHER_OPTIONS_INIT;
  leat_publisher *publisher = NULL;
  int32_t detail = 0;
  Call call;
  call_begin(env, info, &call);
  Handle *topic = handle_of(env, call.args[0], TOPIC);
  if (topic == NULL) return closed(env);
  if (!parse_options(env, call.args[1], publisher_options, &options)) return NULL;
  const int32_t code = leat_topic_publisher(topic->pointer, &options, &publisher, &detail);
  return code == LEAT_OK ? handle_new(env, PUBLISHER, publisher, topic->is_durable) : failure(env, code, detail);
}

// ---- Publishing ---------------------------------------------------------------------------------

static napi_value wrong_bytes(napi_env env, const char *what) {
  char sentence[120] = "";
  snprintf(sentence, sizeof sentence, "%s must be a Buffer, a typed array, a DataView or a string",
           what);
  (void)napi_throw_type_error(env, "ERR_INVALID_ARG_TYPE", sentence);
  return NULL;
}

// As bytes_of(), and faster for what most values are.
static int plain_bytes_of(napi_env env, napi_value value, leat_bytes *bytes) {
  napi_typedarray_type type = napi_uint8_array;
  void *data = NULL;
  size_t size = 0;
  if (napi_get_typedarray_info(env, value, &type, &size, &data, NULL, NULL) != napi_ok ||
      type != napi_uint8_array || data == NULL)
    return bytes_of(env, value, bytes);
  bytes->data = data;
  bytes->size = size;
  return 1;
}

// publish(publisher, value)
static napi_value publish(napi_env env, napi_callback_info info) {
  napi_value args[2];
  size_t count = 2;
  leat_bytes value = {NULL, 0};
  uint64_t offset = 0;
  int32_t detail = 0;
  (void)napi_get_cb_info(env, info, &count, args, NULL, NULL);
  Handle *handle = handle_of(env, args[0], PUBLISHER);
  if (handle == NULL) return closed(env);
  if (!plain_bytes_of(env, args[1], &value)) return wrong_bytes(env, "a value");
  const int32_t code =
      leat_publisher_publish(handle->pointer, value.data, value.size, 0, &offset, &detail);
  return number_or(env, code, offset, detail);
}

// The headers are an array of name, value, name, value. The caller frees them. 0 with an exception.
static int headers_of(napi_env env, napi_value array, leat_new_header **headers, uint32_t *count) {
  uint32_t length = 0;
  if (is_nothing(env, array)) return 1;
  if (napi_get_array_length(env, array, &length) != napi_ok || length == 0) return 1;
  *headers = calloc(length / 2 + 1, sizeof **headers);
  if (*headers == NULL) {
    (void)napi_throw_error(env, NULL, "out of memory");
    return 0;
  }
  for (uint32_t i = 0; i + 1 < length; i += 2, ++*count) {
    napi_value name = NULL;
    napi_value value = NULL;
    (void)napi_get_element(env, array, i, &name);
    (void)napi_get_element(env, array, i + 1, &value);
    if (bytes_of(env, name, &(*headers)[*count].name) &&
        bytes_of(env, value, &(*headers)[*count].value))
      continue;
    (void)wrong_bytes(env, "names and values of headers");
    return 0;
  }
  return 1;
}

static int record_of(napi_env env, const napi_value parts[3], leat_new_record *record) {
  if (!bytes_of(env, parts[0], &record->value)) return wrong_bytes(env, "a value") != NULL;
  if (!is_nothing(env, parts[1]) && !bytes_of(env, parts[1], &record->key))
    return wrong_bytes(env, "a key") != NULL;
  return headers_of(env, parts[2], (leat_new_header **)&record->headers, &record->header_count);
}

// publishRecord(publisher, value, key, headers, partition, nanoseconds)
static napi_value publish_record(napi_env env, napi_callback_info info) {
  leat_new_record record = LEAT_NEW_RECORD_INIT;
  uint64_t offset = 0;
  int32_t detail = 0;
  napi_value result = NULL;
  Call call;
  call_begin(env, info, &call);
  Handle *handle = handle_of(env, call.args[0], PUBLISHER);
  if (handle == NULL) return closed(env);
  record.partition = u32_of(env, call.args[4], LEAT_ANY_PARTITION);
  if (record_of(env, call.args + 1, &record)) {
    const int32_t code = leat_publisher_publish_record(
        handle->pointer, &record, (int64_t)double_of(env, call.args[5], 0), &offset, &detail);
    result = number_or(env, code, offset, detail);
  }
  free((void *)record.headers);
  return result;
}

// publishBatch(publisher, packed, sizes, count, partition, nanoseconds): the values follow each other.
static napi_value publish_batch(napi_env env, napi_callback_info info) {
  leat_bytes few[256];
  leat_bytes *values = few;
  leat_bytes packed = {NULL, 0};
  uint64_t offset = 0;
  uint64_t at = 0;
  int32_t detail = 0;
  int32_t code = LEAT_ERR_NO_MEMORY;
  Call call;
  call_begin(env, info, &call);
  Handle *handle = handle_of(env, call.args[0], PUBLISHER);
  if (handle == NULL) return closed(env);
  const uint32_t count = u32_of(env, call.args[3], 0);
  const uint32_t *sizes = memory_of(env, call.args[2], (uint64_t)count * sizeof *sizes);
  if (sizes == NULL || !bytes_of(env, call.args[1], &packed)) return wrong_bytes(env, "values");
  if (count > sizeof few / sizeof *few) values = malloc(count * sizeof *values);
  uint32_t known = 0;
  for (; values != NULL && known < count && sizes[known] <= packed.size - at; ++known) {
    values[known] = (leat_bytes){(const char *)packed.data + at, sizes[known]};
    at += sizes[known];
  }
  if (values != NULL)
    code = leat_publisher_publish_batch(handle->pointer, values, known,
                                        u32_of(env, call.args[4], LEAT_ANY_PARTITION),
                                        (int64_t)double_of(env, call.args[5], 0), &offset, &detail);
  if (values != few) free(values);
  return number_or(env, code, offset, detail);
}

// publishRecordBatch(publisher, [value, key, headers, …], partition, nanoseconds)
static napi_value publish_record_batch(napi_env env, napi_callback_info info) {
  static const leat_new_record empty = LEAT_NEW_RECORD_INIT;
  uint64_t offset = 0;
  uint32_t length = 0;
  uint32_t count = 0;
  int32_t detail = 0;
  int is_right = 1;
  napi_value result = NULL;
  Call call;
  call_begin(env, info, &call);
  Handle *handle = handle_of(env, call.args[0], PUBLISHER);
  if (handle == NULL) return closed(env);
  if (napi_get_array_length(env, call.args[1], &length) != napi_ok)
    return wrong_bytes(env, "values");
  leat_new_record *records = calloc(length / 3 + 1, sizeof *records);
  if (records == NULL) return failure(env, LEAT_ERR_NO_MEMORY, 0);
  for (; is_right && count < length / 3; ++count) {
    napi_value parts[3] = {NULL, NULL, NULL};
    for (uint32_t i = 0; i < 3; ++i)
      (void)napi_get_element(env, call.args[1], 3 * count + i, &parts[i]);
    records[count] = empty;
    is_right = record_of(env, parts, &records[count]);
  }
  if (is_right) {
    const int32_t code = leat_publisher_publish_record_batch(
        handle->pointer, records, count, u32_of(env, call.args[2], LEAT_ANY_PARTITION),
        (int64_t)double_of(env, call.args[3], 0), &offset, &detail);
    result = number_or(env, code, offset, detail);
  }
  while (count != 0) free((void *)records[--count].headers);
  free(records);
  return result;
}

// ---- Claims -------------------------------------------------------------------------------------

// claim(publisher, size, nanoseconds): its offset.
static napi_value claim(napi_env env, napi_callback_info info) {
  leat_claim made = {NULL, 0, 0, 0};
  int32_t detail = 0;
  Call call;
  call_begin(env, info, &call);
  Handle *handle = handle_of(env, call.args[0], PUBLISHER);
  if (handle == NULL) return closed(env);
  const int32_t code =
      leat_publisher_claim(handle->pointer, (uint64_t)double_of(env, call.args[1], 0),
                           (int64_t)double_of(env, call.args[2], 0), &made, &detail);
  if (code == LEAT_OK) handle->claim = made;
  return number_or(env, code, made.offset, detail);
}

// commit(publisher, offset, bytes, size): copies them in.
static napi_value commit(napi_env env, napi_callback_info info) {
  leat_bytes bytes = {NULL, 0};
  int32_t detail = 0;
  Call call;
  call_begin(env, info, &call);
  Handle *handle = handle_of(env, call.args[0], PUBLISHER);
  if (handle == NULL) return closed(env);
  if (handle->claim.data == NULL ||
      (double)handle->claim.offset != double_of(env, call.args[1], -1))
    return failure(env, LEAT_ERR_NOT_IN_FLIGHT, 0);
  const uint64_t size = (uint64_t)double_of(env, call.args[3], 0);
  if (size > handle->claim.size || !bytes_of(env, call.args[2], &bytes) || size > bytes.size)
    return failure(env, LEAT_ERR_INVALID_ARGUMENT, 0);
  if (size != 0) memcpy(handle->claim.data, bytes.data, size);
  const int32_t code = leat_publisher_commit(handle->pointer, &handle->claim, size, &detail);
  handle->claim.data = NULL;
  return done_or(env, code, detail);
}

// abort(publisher, offset)
static napi_value abort_claim(napi_env env, napi_callback_info info) {
  int32_t detail = 0;
  Call call;
  call_begin(env, info, &call);
  Handle *handle = handle_of(env, call.args[0], PUBLISHER);
  if (handle == NULL) return closed(env);
  if (handle->claim.data == NULL ||
      (double)handle->claim.offset != double_of(env, call.args[1], -1))
    return failure(env, LEAT_ERR_NOT_IN_FLIGHT, 0);
  const int32_t code = leat_publisher_abort(handle->pointer, &handle->claim, &detail);
  handle->claim.data = NULL;
  return done_or(env, code, detail);
}

// ---- Durable topics, and what it is -------------------------------------------------------------

// flush(publisher): LEAT_ERR_NOT_DURABLE without a detail if it is not done yet.
static napi_value flush(napi_env env, napi_callback_info info) {
  int32_t detail = 0;
  Call call;
  call_begin(env, info, &call);
  Handle *handle = handle_of(env, call.args[0], PUBLISHER);
  if (handle == NULL) return closed(env);
  const int32_t code = leat_publisher_flush(handle->pointer, 0, &detail);
  return done_or(env, code, detail);
}
static napi_value request_sync(napi_env env, napi_callback_info info) {
  int32_t detail = 0;
  Call call;
  call_begin(env, info, &call);
  Handle *handle = handle_of(env, call.args[0], PUBLISHER);
  if (handle == NULL) return closed(env);
  const int32_t code = leat_publisher_request_sync(handle->pointer, &detail);
  return done_or(env, code, detail);
}
// durableOffset(publisher, partition)
static napi_value durable_offset(napi_env env, napi_callback_info info) {
  uint64_t offset = 0;
  Call call;
  call_begin(env, info, &call);
  Handle *handle = handle_of(env, call.args[0], PUBLISHER);
  if (handle == NULL) return closed(env);
  const int32_t code = leat_publisher_durable_offset(
      handle->pointer, u32_of(env, call.args[1], LEAT_ANY_PARTITION), &offset);
  return number_or(env, code, offset, 0);
}
static napi_value last_offset(napi_env env, napi_callback_info info) {
  uint64_t offset = 0;
  Call call;
  call_begin(env, info, &call);
  Handle *handle = handle_of(env, call.args[0], PUBLISHER);
  if (handle == NULL) return closed(env);
  const int32_t code = leat_publisher_last_offset(handle->pointer, &offset);
  return number_or(env, code, offset, 0);
}
static napi_value max_record_size(napi_env env, napi_callback_info info) {
  uint64_t bytes = 0;
  Call call;
  call_begin(env, info, &call);
  Handle *handle = handle_of(env, call.args[0], PUBLISHER);
  if (handle == NULL) return closed(env);
  const int32_t code = leat_publisher_max_record_size(handle->pointer, &bytes);
  return number_or(env, code, bytes, 0);
}
static napi_value partition(napi_env env, napi_callback_info info) {
  uint32_t own = 0;
  Call call;
  call_begin(env, info, &call);
  Handle *handle = handle_of(env, call.args[0], PUBLISHER);
  if (handle == NULL) return closed(env);
  const int32_t code = leat_publisher_partition(handle->pointer, &own);
  return number_or(env, code, own, 0);
}

// Of keys, as the library computes it (and Kafka): a publisher waits for room in that partition.
static uint32_t murmur2(const uint8_t *key, uint32_t size) {
  const uint32_t multiplier = 0x5bd1e995;
  uint32_t hash = 0x9747b28c ^ size;
  for (; size >= 4; key += 4, size -= 4) {
    uint32_t word = 0;
    memcpy(&word, key, sizeof word);
    word *= multiplier;
    word ^= word >> 24;
    hash = (hash * multiplier) ^ (word * multiplier);
  }
  if (size >= 3) hash ^= (uint32_t)key[2] << 16;
  if (size >= 2) hash ^= (uint32_t)key[1] << 8;
  if (size >= 1) hash = (hash ^ key[0]) * multiplier;
  hash = (hash ^ (hash >> 13)) * multiplier;
  return hash ^ (hash >> 15);
}

// partitionOf(key, count)
static napi_value partition_of(napi_env env, napi_callback_info info) {
  leat_bytes key = {NULL, 0};
  Call call;
  call_begin(env, info, &call);
  const uint32_t count = u32_of(env, call.args[1], 1);
  if (!bytes_of(env, call.args[0], &key) || count == 0) return number(env, 0);
  return number(env, (murmur2(key.data, (uint32_t)key.size) & 0x7fffffff) % count);
}

const Method publisher_methods[] = {
    {"publisher", make},
    {"publish", publish},
    {"publishRecord", publish_record},
    {"publishBatch", publish_batch},
    {"publishRecordBatch", publish_record_batch},
    {"claim", claim},
    {"commit", commit},
    {"abort", abort_claim},
    {"flush", flush},
    {"requestSync", request_sync},
    {"durableOffset", durable_offset},
    {"lastOffset", last_offset},
    {"publisherMaxRecordSize", max_record_size},
    {"publisherPartition", partition},
    {"partitionOf", partition_of},
    {NULL, NULL},
};
