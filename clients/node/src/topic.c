// Topics: create, open, delete and list them, which may take long, and ask an open one.
#include <stdlib.h>
#include <string.h>

#include "addon.h"

// ---- Options ------------------------------------------------------------------------------------

static const char *const policies[] = {"block", "fail", "overwrite", "grow", NULL};
static const char *const durabilities[] = {"none", "os", "interval", "fsync", NULL};

#define AT(field) offsetof(leat_topic_options, field)
static const Option topic_options[] = {
    {"policy", OPTION_CHOICE, AT(policy), 0, policies},
    {"capacityBytes", OPTION_U64, AT(capacity_bytes), 0, NULL},
    {"segmentBytes", OPTION_U64, AT(segment_bytes), 0, NULL},
    {"maxCapacityBytes", OPTION_U64, AT(max_capacity_bytes), 0, NULL},
    {"growBelowBytes", OPTION_U64, AT(grow_below_bytes), 0, NULL},
    {"partitions", OPTION_U32, AT(partitions), 0, NULL},
    {"participants", OPTION_U32, AT(participants), 0, NULL},
    {"retainAll", OPTION_FLAG, AT(retain_all), 0, NULL},
    {"singleWriter", OPTION_FLAG, AT(single_writer), 0, NULL},
    {"timestamps", OPTION_FLAG, AT(timestamps), 0, NULL},
    {"deleteWhenUnused", OPTION_FLAG, AT(delete_when_unused), 0, NULL},
    {"revokeAfter", OPTION_MS_AS_NS, AT(revoke_after_ns), 0, NULL},
    {"evictAfter", OPTION_MS_AS_NS, AT(evict_after_ns), 0, NULL},
    {"mode", OPTION_U32, AT(mode), 0, NULL},
    {"durable", OPTION_CHOICE, AT(durable), 0, durabilities},
    {"syncInterval", OPTION_MS_AS_NS, AT(sync_interval_ns), 0, NULL},
    {"fileBytes", OPTION_U64, AT(file_bytes), 0, NULL},
    {"retentionBytes", OPTION_U64, AT(retention_bytes), 0, NULL},
    {"retention", OPTION_MS, AT(retention_ms), 0, NULL},
    {"fileGroup", OPTION_TEXT, AT(file_group), 0, NULL},
    {"directory", OPTION_TEXT, AT(directory), 0, NULL},
    {"dataDirectory", OPTION_TEXT, AT(data_directory), 0, NULL},
    {NULL, OPTION_FLAG, 0, 0, NULL},
};
#undef AT

static const Option place_options[] = {
    {"directory", OPTION_TEXT, offsetof(leat_place, directory), 0, NULL},
    {"dataDirectory", OPTION_TEXT, offsetof(leat_place, data_directory), 0, NULL},
    {"force", OPTION_FLAG, offsetof(leat_place, force), 0, NULL},
    {NULL, OPTION_FLAG, 0, 0, NULL},
};

// ---- Tasks without a topic ----------------------------------------------------------------------

static void keep_topic(Task *task, leat_topic *topic) {
  leat_topic_info info = {.size = sizeof info};
  task->pointer = topic;
  task->flag = task->code == LEAT_OK &&
               leat_topic_get_info(topic, &info, NULL, 0, NULL, 0, NULL) == LEAT_OK &&
               info.durable != LEAT_DURABILITY_NONE;
}
static napi_value topic_result(napi_env env, Task *task) {
  return handle_new(env, TOPIC, task->pointer, (int)task->flag);
}

static void run_create(Task *task) {
  leat_topic *topic = NULL;
  task->code =
      leat_topic_create(task->name, task->name_size, &task->options.topic, &topic, &task->detail);
  keep_topic(task, topic);
}
static void run_open_or_create(Task *task) {
  leat_topic *topic = NULL;
  task->code = leat_topic_open_or_create(task->name, task->name_size, &task->options.topic, &topic,
                                         &task->detail);
  keep_topic(task, topic);
}
static void run_open(Task *task) {
  leat_topic *topic = NULL;
  task->code =
      leat_topic_open(task->name, task->name_size, 0, &task->options.place, &topic, &task->detail);
  keep_topic(task, topic);
}
static void run_delete(Task *task) {
  task->code = leat_topic_delete(task->name, task->name_size, &task->options.place, &task->detail);
}

static int32_t write_list(void *place, char *buffer, uint64_t capacity, uint64_t *size,
                          int32_t *detail) {
  return leat_topic_list(place, buffer, capacity, size, detail);
}
static void run_list(Task *task) {
  task->code =
      read_text(write_list, &task->options.place, &task->text, &task->text_size, &task->detail);
}
static napi_value text_of_task(napi_env env, Task *task) {
  return make_text(env, task->text, task->text_size);
}

// The first argument is a name (which lib/ has checked to be a string), the second one options.
static napi_value start(napi_env env, napi_callback_info info, Task *task, const Option *table) {
  static const leat_topic_options topic_defaults = LEAT_TOPIC_OPTIONS_INIT;
  static const leat_place place_defaults = LEAT_PLACE_INIT;
  Call call;
  call_begin(env, info, &call);
  if (task == NULL) return failure(env, LEAT_ERR_NO_MEMORY, 0);
  if (table == topic_options) task->options.topic = topic_defaults;
  if (table == place_options) task->options.place = place_defaults;
  task->table = table;
  task->name = text_of(env, call.args[0], &task->name_size);
  if (task->name == NULL || !parse_options(env, call.args[1], table, &task->options)) {
    task_free(task);
    return failure(env, LEAT_ERR_INVALID_ARGUMENT, 0);
  }
  return task_start(env, task);
}

static napi_value create(napi_env env, napi_callback_info info) {
  return start(env, info, task_new(run_create, topic_result), topic_options);
}
static napi_value open_or_create(napi_env env, napi_callback_info info) {
  return start(env, info, task_new(run_open_or_create, topic_result), topic_options);
}
// open(name, options): does not wait.
static napi_value open_topic(napi_env env, napi_callback_info info) {
  return start(env, info, task_new(run_open, topic_result), place_options);
}
static napi_value delete_topic(napi_env env, napi_callback_info info) {
  return start(env, info, task_new(run_delete, NULL), place_options);
}
// list('', options)
static napi_value list(napi_env env, napi_callback_info info) {
  return start(env, info, task_new(run_list, text_of_task), place_options);
}

// ---- An open topic ------------------------------------------------------------------------------

static int32_t write_name(void *topic, char *buffer, uint64_t capacity, uint64_t *size,
                          int32_t *detail) {
  (void)detail;
  return leat_topic_name(topic, buffer, capacity, size);
}
static int32_t write_json(void *topic, char *buffer, uint64_t capacity, uint64_t *size,
                          int32_t *detail) {
  return leat_topic_get_json(topic, buffer, capacity, size, detail);
}
static int32_t write_groups(void *topic, char *buffer, uint64_t capacity, uint64_t *size,
                            int32_t *detail) {
  return leat_topic_group_names(topic, buffer, capacity, size, detail);
}

static napi_value get_text(napi_env env, napi_callback_info info, WriteText write) {
  Call call;
  call_begin(env, info, &call);
  Handle *handle = handle_of(env, call.args[0], TOPIC);
  return handle == NULL ? closed(env) : text_result(env, write, handle->pointer);
}
static napi_value name(napi_env env, napi_callback_info info) {
  return get_text(env, info, write_name);
}
static napi_value group_names(napi_env env, napi_callback_info info) {
  return get_text(env, info, write_groups);
}

static napi_value max_record_size(napi_env env, napi_callback_info info) {
  uint64_t bytes = 0;
  Call call;
  call_begin(env, info, &call);
  Handle *handle = handle_of(env, call.args[0], TOPIC);
  if (handle == NULL) return closed(env);
  const int32_t code = leat_topic_max_record_size(handle->pointer, &bytes);
  return number_or(env, code, bytes, 0);
}
static napi_value partitions(napi_env env, napi_callback_info info) {
  uint32_t count = 0;
  Call call;
  call_begin(env, info, &call);
  Handle *handle = handle_of(env, call.args[0], TOPIC);
  if (handle == NULL) return closed(env);
  const int32_t code = leat_topic_partitions(handle->pointer, &count);
  return number_or(env, code, count, 0);
}

// set_max_capacity(topic, bytes)
static napi_value set_max_capacity(napi_env env, napi_callback_info info) {
  int32_t detail = 0;
  Call call;
  call_begin(env, info, &call);
  Handle *handle = handle_of(env, call.args[0], TOPIC);
  if (handle == NULL) return closed(env);
  const int32_t code = leat_topic_set_max_capacity(
      handle->pointer, (uint64_t)double_of(env, call.args[1], 0), &detail);
  return done_or(env, code, detail);
}

// It opens the groups, for which it may wait for another process.
static void run_json(Task *task) {
  task->code = read_text(write_json, task->handle->pointer, &task->text, &task->text_size,
                         &task->detail);
}
static void run_shrink(Task *task) {
  uint64_t bytes = 0;
  task->code = leat_topic_shrink(task->handle->pointer, &bytes, &task->detail);
  task->number = (double)bytes;
}
static void run_repair(Task *task) {
  task->code = leat_topic_repair(task->handle->pointer, task->timeout_ns, &task->detail);
}
static napi_value number_result(napi_env env, Task *task) { return number(env, task->number); }

static napi_value start_with(napi_env env, napi_callback_info info, Task *task) {
  Call call;
  call_begin(env, info, &call);
  Handle *handle = handle_of(env, call.args[0], TOPIC);
  if (task == NULL) return failure(env, LEAT_ERR_NO_MEMORY, 0);
  if (handle == NULL) {
    task_free(task);
    return closed(env);
  }
  task->handle = handle;
  task->timeout_ns = (int64_t)(double_of(env, call.args[1], 0) * 1e6);
  handle_use(handle);
  return task_start(env, task);
}
static napi_value json(napi_env env, napi_callback_info info) {
  return start_with(env, info, task_new(run_json, text_of_task));
}
static napi_value shrink(napi_env env, napi_callback_info info) {
  return start_with(env, info, task_new(run_shrink, number_result));
}
// repair(topic, milliseconds)
static napi_value repair(napi_env env, napi_callback_info info) {
  return start_with(env, info, task_new(run_repair, NULL));
}

const Method topic_methods[] = {
    {"topicCreate", create},
    {"topicOpenOrCreate", open_or_create},
    {"topicOpen", open_topic},
    {"topicDelete", delete_topic},
    {"topicList", list},
    {"topicName", name},
    {"topicJson", json},
    {"topicGroupNames", group_names},
    {"topicMaxRecordSize", max_record_size},
    {"topicPartitions", partitions},
    {"topicSetMaxCapacity", set_max_capacity},
    {"topicShrink", shrink},
    {"topicRepair", repair},
    {NULL, NULL},
};
