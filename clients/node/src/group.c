// Consumer groups. What takes a group's lock may wait for another process, and is a task.
#include <stdlib.h>

#include "addon.h"

static const char *const modes[] = {"at_least_once", "at_most_once", NULL};
static const char *const places[] = {"start", "end", "stop", NULL};

#define AT(field) offsetof(leat_group_options, field)
static const Option group_options[] = {
    {"from", OPTION_FROM, AT(from), AT(from_value), NULL},
    {"mode", OPTION_CHOICE, AT(mode), 0, modes},
    {"byKey", OPTION_FLAG, AT(by_key), 0, NULL},
    {"members", OPTION_U32, AT(members), 0, NULL},
    {"inFlight", OPTION_U32, AT(in_flight), 0, NULL},
    {"maxDeliveries", OPTION_U32, AT(max_deliveries), 0, NULL},
    {"onExpired", OPTION_CHOICE, AT(on_expired), 0, places},
    {"lease", OPTION_MS_AS_NS, AT(lease_ns), 0, NULL},
    {NULL, OPTION_FLAG, 0, 0, NULL},
};
#undef AT

// ---- Tasks of a topic -----------------------------------------------------------------------------

static napi_value group_result(napi_env env, Task *task) {
  napi_value pair = NULL;
  napi_value handle = handle_new(env, GROUP, task->pointer, task->handle->is_durable);
  if (handle == NULL || napi_create_array_with_length(env, 2, &pair) != napi_ok) return NULL;
  (void)napi_set_element(env, pair, 0, handle);
  (void)napi_set_element(env, pair, 1, number(env, task->flag));
  return pair;
}

static void run_group(Task *task) {
  leat_group *group = NULL;
  task->code = leat_topic_group(task->handle->pointer, task->name, task->name_size,
                                &task->options.group, &group, &task->flag, &task->detail);
  task->pointer = group;
}
static void run_find_group(Task *task) {
  leat_group *group = NULL;
  task->code = leat_topic_find_group(task->handle->pointer, task->name, task->name_size, &group,
                                     &task->detail);
  task->pointer = group;
}
static void run_delete_group(Task *task) {
  task->code = leat_topic_delete_group(task->handle->pointer, task->name, task->name_size,
                                       task->options.place.force, &task->detail);
}

static const Option no_options[] = {{NULL, OPTION_FLAG, 0, 0, NULL}};
static const Option force_option[] = {
    {"force", OPTION_FLAG, offsetof(leat_place, force), 0, NULL},
    {NULL, OPTION_FLAG, 0, 0, NULL},
};

// The arguments are the topic, a name and options.
static napi_value start(napi_env env, napi_callback_info info, Task *task, const Option *table) {
  static const leat_group_options defaults = LEAT_GROUP_OPTIONS_INIT;
  Call call;
  call_begin(env, info, &call);
  Handle *topic = handle_of(env, call.args[0], TOPIC);
  if (task == NULL) return failure(env, LEAT_ERR_NO_MEMORY, 0);
  if (table == group_options) task->options.group = defaults;
  task->table = table;
  task->name = text_of(env, call.args[1], &task->name_size);
  if (topic == NULL || task->name == NULL ||
      !parse_options(env, call.args[2], table, &task->options)) {
    task_free(task);
    return topic == NULL ? closed(env) : failure(env, LEAT_ERR_INVALID_ARGUMENT, 0);
  }
  task->handle = topic;
  handle_use(topic);
  return task_start(env, task);
}
static napi_value make(napi_env env, napi_callback_info info) {
  return start(env, info, task_new(run_group, group_result), group_options);
}
static napi_value find(napi_env env, napi_callback_info info) {
  return start(env, info, task_new(run_find_group, group_result), no_options);
}
static napi_value delete_group(napi_env env, napi_callback_info info) {
  return start(env, info, task_new(run_delete_group, NULL), force_option);
}

// ---- An open group --------------------------------------------------------------------------------

static int32_t write_name(void *group, char *buffer, uint64_t capacity, uint64_t *size,
                          int32_t *detail) {
  (void)detail;
  return leat_group_name(group, buffer, capacity, size);
}
static int32_t write_dead_letters(void *group, char *buffer, uint64_t capacity, uint64_t *size,
                                  int32_t *detail) {
  (void)detail;
  return leat_group_dead_letter_topic(group, buffer, capacity, size);
}
static napi_value get_text(napi_env env, napi_callback_info info, WriteText write) {
  Call call;
  call_begin(env, info, &call);
  Handle *handle = handle_of(env, call.args[0], GROUP);
  return handle == NULL ? closed(env) : text_result(env, write, handle->pointer);
}
static napi_value name(napi_env env, napi_callback_info info) {
  return get_text(env, info, write_name);
}
static napi_value dead_letter_topic(napi_env env, napi_callback_info info) {
  return get_text(env, info, write_dead_letters);
}

static void set(napi_env env, napi_value object, const char *key, napi_value value) {
  (void)napi_set_named_property(env, object, key, value);
}
static void set_number(napi_env env, napi_value object, const char *key, double value) {
  set(env, object, key, number(env, value));
}
static void set_text(napi_env env, napi_value object, const char *key, const char *text) {
  napi_value value = NULL;
  (void)napi_create_string_utf8(env, text, NAPI_AUTO_LENGTH, &value);
  set(env, object, key, value);
}

static napi_value info_object(napi_env env, const leat_group_info *info) {
  napi_value object = NULL;
  napi_value by_key = NULL;
  (void)napi_create_object(env, &object);
  (void)napi_get_boolean(env, info->by_key != 0, &by_key);
  set_text(env, object, "mode", info->mode < 2 ? modes[info->mode] : "unknown");
  set(env, object, "byKey", by_key);
  set_number(env, object, "maxDeliveries", info->max_deliveries);
  set_number(env, object, "lease", (double)info->lease_ns / 1e6);
  set_text(env, object, "onExpired", info->on_expired < 3 ? places[info->on_expired] : "unknown");
  set_number(env, object, "inFlightLimit", info->in_flight_limit);
  set_number(env, object, "lag", (double)info->lag);
  set_number(env, object, "inFlight", (double)info->in_flight);
  set_number(env, object, "redelivered", (double)info->redelivered);
  set_number(env, object, "returned", (double)info->returned);
  set_number(env, object, "returnedLimit", (double)info->returned_limit);
  set_number(env, object, "deadLetters", (double)info->dead_letters);
  set_text(env, object, "taking", leat_error_name(info->taking));
  return object;
}

enum { MAX_MEMBERS = 256, MAX_PARTITIONS = 4096 };
typedef struct Snapshot {
  leat_member_info members[MAX_MEMBERS];
  uint64_t offsets[MAX_PARTITIONS];
} Snapshot;

static napi_value get_info(napi_env env, napi_callback_info call_info) {
  leat_group_info info = {0};
  int32_t detail = 0;
  napi_value members = NULL;
  napi_value offsets = NULL;
  Call call;
  call_begin(env, call_info, &call);
  Handle *handle = handle_of(env, call.args[0], GROUP);
  if (handle == NULL) return closed(env);
  Snapshot *found = calloc(1, sizeof *found);
  if (found == NULL) return failure(env, LEAT_ERR_NO_MEMORY, 0);
  info.size = sizeof info;
  const int32_t code = leat_group_get_info(handle->pointer, &info, found->members, MAX_MEMBERS,
                                           found->offsets, MAX_PARTITIONS, &detail);
  if (code != LEAT_OK) {
    free(found);
    return failure(env, code, detail);
  }
  napi_value object = info_object(env, &info);
  (void)napi_create_array(env, &members);
  for (uint32_t i = 0; i < info.member_count && i < MAX_MEMBERS; ++i) {
    napi_value member = NULL;
    (void)napi_create_object(env, &member);
    set_text(env, member, "name", found->members[i].name);
    set_number(env, member, "pid", found->members[i].pid);
    set_number(env, member, "inFlight", (double)found->members[i].in_flight);
    (void)napi_set_element(env, members, i, member);
  }
  set(env, object, "members", members);
  (void)napi_create_array(env, &offsets);
  for (uint32_t i = 0; i < info.partition_count && i < MAX_PARTITIONS; ++i)
    (void)napi_set_element(env, offsets, i, number(env, (double)found->offsets[i]));
  set(env, object, "offsets", offsets);
  free(found);
  return object;
}

// seek(group, from, partition)
static napi_value seek(napi_env env, napi_callback_info info) {
  uint32_t from = 0;
  uint64_t value = 0;
  int32_t detail = 0;
  Call call;
  call_begin(env, info, &call);
  Handle *handle = handle_of(env, call.args[0], GROUP);
  if (handle == NULL) return closed(env);
  if (!parse_from(env, call.args[1], &from, &value)) return NULL;
  const int32_t code = leat_group_seek(handle->pointer, from, value,
                                       u32_of(env, call.args[2], LEAT_ANY_PARTITION), &detail);
  return done_or(env, code, detail);
}
// position(group, partition), released(group, partition)
static napi_value position(napi_env env, napi_callback_info info) {
  uint64_t offset = 0;
  Call call;
  call_begin(env, info, &call);
  Handle *handle = handle_of(env, call.args[0], GROUP);
  if (handle == NULL) return closed(env);
  const int32_t code = leat_group_position(handle->pointer, u32_of(env, call.args[1], 0), &offset);
  return number_or(env, code, offset, 0);
}
static napi_value released(napi_env env, napi_callback_info info) {
  uint64_t count = 0;
  Call call;
  call_begin(env, info, &call);
  Handle *handle = handle_of(env, call.args[0], GROUP);
  if (handle == NULL) return closed(env);
  const int32_t code = leat_group_released(handle->pointer, u32_of(env, call.args[1], 0), &count);
  return number_or(env, code, count, 0);
}

const Method group_methods[] = {
    {"group", make},     {"findGroup", find},     {"deleteGroup", delete_group},
    {"groupName", name}, {"groupInfo", get_info}, {"deadLetterTopic", dead_letter_topic},
    {"seek", seek},      {"position", position},  {"released", released},
    {NULL, NULL},
};
