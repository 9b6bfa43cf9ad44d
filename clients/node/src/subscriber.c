// Subscribers. Nothing here waits: lib/ waits for the descriptor, and polls again.
#include "addon.h"

static const char *const stages[] = {"", "committed", "durable", NULL};

#define AT(field) offsetof(leat_subscriber_options, field)
static const Option subscriber_options[] = {
    {"from", OPTION_FROM, AT(from), AT(from_value), NULL},
    {"partition", OPTION_U32, AT(partition), 0, NULL},
    {"gating", OPTION_FLAG, AT(gating), 0, NULL},
    {"inPlace", OPTION_FLAG, AT(in_place), 0, NULL},
    {"read", OPTION_CHOICE, AT(read), 0, stages},
    {"patience", OPTION_MS_AS_NS, AT(patience_ns), 0, NULL},
    {NULL, OPTION_FLAG, 0, 0, NULL},
};
#undef AT

// subscriber(topic, options)
static napi_value make(napi_env env, napi_callback_info info) {
  leat_subscriber_options options = LEAT_SUBSCRIBER_OPTIONS_INIT;
  leat_subscriber *subscriber = NULL;
  int32_t detail = 0;
  Call call;
  call_begin(env, info, &call);
  Handle *topic = handle_of(env, call.args[0], TOPIC);
  if (topic == NULL) return closed(env);
  // Its publishers wait in the event loop that would read: nobody could find out that they never end.
  options.any_thread = 1;
  options.spin_ns = 0;  // No wait is to take any time.
  if (!parse_options(env, call.args[1], subscriber_options, &options)) return NULL;
  const int32_t code = leat_topic_subscriber(topic->pointer, &options, &subscriber, &detail);
  return code == LEAT_OK ? handle_new(env, SUBSCRIBER, subscriber, topic->is_durable) : failure(env, code, detail);
}

// poll(subscriber, limit, sizes): how many entries; sizes[0] is then what copy() needs for them.
static napi_value poll(napi_env env, napi_callback_info info) {
  int32_t detail = 0;
  Call call;
  call_begin(env, info, &call);
  Handle *handle = handle_of(env, call.args[0], SUBSCRIBER);
  if (handle == NULL) return closed(env);
  const uint32_t limit = u32_of(env, call.args[1], 1);
  double *sizes = memory_of(env, call.args[2], sizeof *sizes);
  if (sizes == NULL || limit == 0) return failure(env, LEAT_ERR_INVALID_ARGUMENT, 0);
  if (!read_room(handle, limit)) return failure(env, LEAT_ERR_NO_MEMORY, 0);
  handle->count = 0;
  const int32_t code =
      leat_subscriber_poll(handle->pointer, handle->records, limit, &handle->count, &detail);
  if (code != LEAT_OK) return failure(env, code, detail);
  sizes[0] = (double)read_size(handle);
  return number(env, handle->count);
}

// ready(subscriber): LEAT_ERR_TIMEOUT if poll() has nothing to do. A nanosecond: without one, nobody looks
// after dead publishers.
static napi_value ready(napi_env env, napi_callback_info info) {
  Call call;
  call_begin(env, info, &call);
  Handle *handle = handle_of(env, call.args[0], SUBSCRIBER);
  if (handle == NULL) return closed(env);
  const int32_t code = leat_subscriber_wait(handle->pointer, 1);
  return done_or(env, code, 0);
}

// offset(subscriber, partition)
static napi_value offset(napi_env env, napi_callback_info info) {
  uint64_t next = 0;
  Call call;
  call_begin(env, info, &call);
  Handle *handle = handle_of(env, call.args[0], SUBSCRIBER);
  if (handle == NULL) return closed(env);
  const int32_t code = leat_subscriber_offset(handle->pointer, u32_of(env, call.args[1], 0), &next);
  return number_or(env, code, next, 0);
}

static napi_value is_lossy(napi_env env, napi_callback_info info) {
  uint32_t answer = 0;
  Call call;
  call_begin(env, info, &call);
  Handle *handle = handle_of(env, call.args[0], SUBSCRIBER);
  if (handle == NULL) return closed(env);
  const int32_t code = leat_subscriber_is_lossy(handle->pointer, &answer);
  return number_or(env, code, answer, 0);
}

const Method subscriber_methods[] = {
    {"subscriber", make}, {"poll", poll},        {"copy", read_copy}, {"subscriberReady", ready},
    {"offset", offset},   {"isLossy", is_lossy}, {NULL, NULL},
};
