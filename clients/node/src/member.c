// Members of groups. Nothing here waits but joining, which is a task.
#include <stdlib.h>
#include <string.h>

#include "addon.h"

static const Option member_options[] = {
    {"name", OPTION_TEXT, offsetof(leat_member_options, name), 0, NULL},
    {"patience", OPTION_MS_AS_NS, offsetof(leat_member_options, patience_ns), 0, NULL},
    {NULL, OPTION_FLAG, 0, 0, NULL},
};

static void run_join(Task *task) {
  leat_member *member = NULL;
  task->code =
      leat_group_join(task->handle->pointer, &task->options.member, &member, &task->detail);
  task->pointer = member;
}
static napi_value join_result(napi_env env, Task *task) {
  return handle_new(env, MEMBER, task->pointer, task->handle->is_durable);
}

// join(group, options)
static napi_value join(napi_env env, napi_callback_info info) {
  static const leat_member_options defaults = LEAT_MEMBER_OPTIONS_INIT;
  Call call;
  call_begin(env, info, &call);
  Handle *group = handle_of(env, call.args[0], GROUP);
  if (group == NULL) return closed(env);
  Task *task = task_new(run_join, join_result);
  if (task == NULL) return failure(env, LEAT_ERR_NO_MEMORY, 0);
  task->table = member_options;
  task->options.member = defaults;
  task->options.member.any_thread = 1;
  task->options.member.spin_ns = 0;
  if (!parse_options(env, call.args[1], member_options, &task->options)) {
    task_free(task);
    return NULL;
  }
  task->handle = group;
  handle_use(group);
  return task_start(env, task);
}

// receive(member, limit, sizes): as poll() of subscribers; LEAT_ERR_TIMEOUT if there is nothing.
static napi_value receive(napi_env env, napi_callback_info info) {
  int32_t detail = 0;
  Call call;
  call_begin(env, info, &call);
  Handle *handle = handle_of(env, call.args[0], MEMBER);
  if (handle == NULL) return closed(env);
  const uint32_t limit = u32_of(env, call.args[1], 1);
  double *sizes = memory_of(env, call.args[2], sizeof *sizes);
  if (sizes == NULL || limit == 0) return failure(env, LEAT_ERR_INVALID_ARGUMENT, 0);
  if (!read_room(handle, limit)) return failure(env, LEAT_ERR_NO_MEMORY, 0);
  handle->count = 0;
  const int32_t code =
      leat_member_receive(handle->pointer, handle->deliveries, limit, &handle->count, 0, &detail);
  if (code != LEAT_OK) return failure(env, code, detail);
  sizes[0] = (double)read_size(handle);
  return number(env, handle->count);
}

// ready(member): as that of subscribers.
static napi_value ready(napi_env env, napi_callback_info info) {
  Call call;
  call_begin(env, info, &call);
  Handle *handle = handle_of(env, call.args[0], MEMBER);
  if (handle == NULL) return closed(env);
  const int32_t code = leat_member_wait(handle->pointer, 1);
  return done_or(env, code, 0);
}

// ---- Acknowledge ----------------------------------------------------------------------------------

// The delivery with this index among `tokens`, which copy() filled and only lib/ knows.
static int delivery_of(napi_env env, napi_value tokens, napi_value index, leat_delivery *delivery) {
  const uint64_t at = (uint64_t)u32_of(env, index, 0) * sizeof *delivery;
  const char *from = memory_of(env, tokens, at + sizeof *delivery);
  if (from != NULL) memcpy(delivery, from + at, sizeof *delivery);
  return from != NULL;
}

// acknowledge(member, tokens, index)
static napi_value acknowledge(napi_env env, napi_callback_info info) {
  leat_delivery delivery;
  Call call;
  call_begin(env, info, &call);
  Handle *handle = handle_of(env, call.args[0], MEMBER);
  if (handle == NULL) return closed(env);
  if (!delivery_of(env, call.args[1], call.args[2], &delivery))
    return failure(env, LEAT_ERR_INVALID_ARGUMENT, 0);
  const int32_t code = leat_member_acknowledge(handle->pointer, &delivery);
  return number_or(env, code, 1, 0);
}

// acknowledgeSome(member, tokens, count)
static napi_value acknowledge_some(napi_env env, napi_callback_info info) {
  uint64_t done = 0;
  Call call;
  call_begin(env, info, &call);
  Handle *handle = handle_of(env, call.args[0], MEMBER);
  if (handle == NULL) return closed(env);
  const uint32_t count = u32_of(env, call.args[2], 0);
  const leat_delivery *all = memory_of(env, call.args[1], (uint64_t)count * sizeof *all);
  if (all == NULL) return failure(env, LEAT_ERR_INVALID_ARGUMENT, 0);
  const int32_t code = leat_member_acknowledge_some(handle->pointer, all, count, &done);
  return number_or(env, code, done, 0);
}

// acknowledgeUpTo(member, tokens, index)
static napi_value acknowledge_up_to(napi_env env, napi_callback_info info) {
  leat_delivery delivery;
  uint64_t done = 0;
  Call call;
  call_begin(env, info, &call);
  Handle *handle = handle_of(env, call.args[0], MEMBER);
  if (handle == NULL) return closed(env);
  if (!delivery_of(env, call.args[1], call.args[2], &delivery))
    return failure(env, LEAT_ERR_INVALID_ARGUMENT, 0);
  const int32_t code = leat_member_acknowledge_up_to(handle->pointer, &delivery, &done);
  return number_or(env, code, done, 0);
}

static napi_value acknowledge_all(napi_env env, napi_callback_info info) {
  uint64_t done = 0;
  Call call;
  call_begin(env, info, &call);
  Handle *handle = handle_of(env, call.args[0], MEMBER);
  if (handle == NULL) return closed(env);
  const int32_t code = leat_member_acknowledge_all(handle->pointer, &done);
  return number_or(env, code, done, 0);
}

// requeue(member, tokens, index, nanoseconds)
static napi_value requeue(napi_env env, napi_callback_info info) {
  leat_delivery delivery;
  Call call;
  call_begin(env, info, &call);
  Handle *handle = handle_of(env, call.args[0], MEMBER);
  if (handle == NULL) return closed(env);
  if (!delivery_of(env, call.args[1], call.args[2], &delivery))
    return failure(env, LEAT_ERR_INVALID_ARGUMENT, 0);
  const int32_t code =
      leat_member_requeue(handle->pointer, &delivery, (int64_t)double_of(env, call.args[3], 0));
  return done_or(env, code, 0);
}

static napi_value in_flight(napi_env env, napi_callback_info info) {
  uint64_t count = 0;
  Call call;
  call_begin(env, info, &call);
  Handle *handle = handle_of(env, call.args[0], MEMBER);
  if (handle == NULL) return closed(env);
  const int32_t code = leat_member_in_flight(handle->pointer, &count);
  return number_or(env, code, count, 0);
}

const Method member_methods[] = {
    {"join", join},
    {"receive", receive},
    {"memberReady", ready},
    {"acknowledge", acknowledge},
    {"acknowledgeSome", acknowledge_some},
    {"acknowledgeUpTo", acknowledge_up_to},
    {"acknowledgeAll", acknowledge_all},
    {"requeue", requeue},
    {"inFlight", in_flight},
    {NULL, NULL},
};
