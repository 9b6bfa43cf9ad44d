// Handles: who closes them and when, and how the event loop waits for their descriptors.
#include <stdlib.h>

#include "addon.h"

// ---- Waits --------------------------------------------------------------------------------------

static void poller_closed(uv_handle_t *closed) {
  Poller *poller = (Poller *)closed;
  Addon *addon = poller->addon;
  free(poller);
  --addon->closing_pollers;
  addon_settle(addon);
}

// Its memory belongs to the loop until that has let go of it.
static void poller_close(Poller *poller) {
  if (poller->callback != NULL) (void)napi_delete_reference(poller->env, poller->callback);
  poller->callback = NULL;
  (void)uv_poll_stop(&poller->poll);
  ++poller->addon->closing_pollers;
  uv_close((uv_handle_t *)&poller->poll, poller_closed);
}

static void poller_disarm(Poller *poller) {
  if (poller->callback == NULL) return;
  (void)uv_poll_stop(&poller->poll);
  (void)napi_delete_reference(poller->env, poller->callback);
  poller->callback = NULL;
}

static void readable(uv_poll_t *poll, int status, int events) {
  Poller *poller = (Poller *)poll;
  const napi_env env = poller->env;
  napi_handle_scope scope = NULL;
  napi_value callback = NULL;
  napi_value global = NULL;
  (void)status;  // Whatever it is, the library says it better.
  (void)events;
  if (poller->callback == NULL || napi_open_handle_scope(env, &scope) != napi_ok) return;
  (void)napi_get_reference_value(env, poller->callback, &callback);
  (void)napi_get_global(env, &global);
  poller_disarm(poller);
  // It may close this handle. What a promise does next, it does within this call.
  if (napi_make_callback(env, NULL, global, callback, 0, NULL, NULL) == napi_pending_exception &&
      napi_get_and_clear_last_exception(env, &callback) == napi_ok)
    (void)napi_fatal_exception(env, callback);  // Thrown by an AbortSignal that is none.
  (void)napi_close_handle_scope(env, scope);
}

static Poller *poller_new(napi_env env, Addon *addon, int fd) {
  Poller *poller = calloc(1, sizeof *poller);
  if (poller == NULL) return NULL;
  poller->addon = addon;
  poller->env = env;
  poller->fd = fd;
  if (uv_poll_init(addon->loop, &poller->poll, fd) == 0) return poller;
  free(poller);
  return NULL;
}

static int32_t descriptor(Handle *handle, uint32_t what, uint32_t partition, int32_t *fd,
                          int32_t *detail) {
  uint64_t ignored = 0;
  int32_t code = LEAT_OK;
  switch (handle->kind) {
    case SUBSCRIBER: return leat_subscriber_wait_fd(handle->pointer, fd, detail);
    case MEMBER: return leat_member_wait_fd(handle->pointer, fd, detail);
    case PUBLISHER:
      if (what == WAIT_ROOM) return leat_publisher_room_fd(handle->pointer, partition, fd, detail);
      code = leat_publisher_durable_fd(handle->pointer, fd, detail);
      // Makes it unreadable until there is news.
      if (code == LEAT_OK)
        code = leat_publisher_durable_offset(handle->pointer, LEAT_ANY_PARTITION, &ignored);
      return code;
    default: return LEAT_ERR_INVALID_ARGUMENT;
  }
}

// prepare(handle, what, partition): makes the descriptor. The next attempt that finds nothing makes it wait.
static napi_value prepare(napi_env env, napi_callback_info info) {
  void *data = NULL;
  int32_t fd = -1;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  Call call;
  call_begin(env, info, &call);
  if (napi_get_value_external(env, call.args[0], &data) != napi_ok) return closed(env);
  Handle *handle = handle_of(env, call.args[0], ((Handle *)data)->kind);
  if (handle == NULL) return closed(env);
  const uint32_t what = u32_of(env, call.args[1], 0) % MAX_POLLERS;
  code = descriptor(handle, what, u32_of(env, call.args[2], LEAT_ANY_PARTITION), &fd, &detail);
  if (code != LEAT_OK) return failure(env, code, detail);
  Poller *poller = handle->pollers[what];
  if (poller != NULL && poller->fd == fd) return number(env, 0);
  if (poller != NULL) poller_close(poller);
  handle->pollers[what] = poller_new(env, handle->addon, fd);
  return handle->pollers[what] != NULL ? number(env, 0) : failure(env, LEAT_ERR_NO_MEMORY, 0);
}

// arm(handle, what, callback): calls it once, when the descriptor that was prepared is readable.
static napi_value arm(napi_env env, napi_callback_info info) {
  void *data = NULL;
  Call call;
  call_begin(env, info, &call);
  if (napi_get_value_external(env, call.args[0], &data) != napi_ok) return closed(env);
  Handle *handle = handle_of(env, call.args[0], ((Handle *)data)->kind);
  Poller *poller =
      handle == NULL ? NULL : handle->pollers[u32_of(env, call.args[1], 0) % MAX_POLLERS];
  if (poller == NULL) return closed(env);
  poller_disarm(poller);
  if (napi_create_reference(env, call.args[2], 1, &poller->callback) != napi_ok ||
      uv_poll_start(&poller->poll, UV_READABLE, readable) != 0)
    return failure(env, LEAT_ERR_NO_MEMORY, 0);
  return number(env, 0);
}

// disarm(handle, what)
static napi_value disarm(napi_env env, napi_callback_info info) {
  void *data = NULL;
  Call call;
  call_begin(env, info, &call);
  if (napi_get_value_external(env, call.args[0], &data) != napi_ok) return NULL;
  Poller *poller = ((Handle *)data)->pollers[u32_of(env, call.args[1], 0) % MAX_POLLERS];
  if (poller != NULL) poller_disarm(poller);
  return NULL;
}

void handle_end_waits(Handle *handle) {
  for (int i = 0; i < MAX_POLLERS; ++i) {
    if (handle->pollers[i] != NULL) poller_close(handle->pollers[i]);
    handle->pollers[i] = NULL;
  }
}

// ---- Closing ------------------------------------------------------------------------------------

void handle_close_pointer(Kind kind, void *pointer) {
  leat_topic *topic = pointer;
  leat_publisher *publisher = pointer;
  leat_subscriber *subscriber = pointer;
  leat_group *group = pointer;
  leat_member *member = pointer;
  switch (kind) {
    case TOPIC: (void)leat_topic_close(&topic); break;
    case PUBLISHER: (void)leat_publisher_close(&publisher); break;
    case SUBSCRIBER: (void)leat_subscriber_close(&subscriber); break;
    case GROUP: (void)leat_group_close(&group); break;
    case MEMBER: (void)leat_member_close(&member); break;
  }
}

// Closes and frees what can be.
static void settle(Handle *handle) {
  if (handle->is_closing && handle->users == 0 && handle->pointer != NULL) {
    if (handle->addon != NULL) handle_end_waits(handle);  // Before the descriptors are gone.
    if (handle->is_durable && handle->addon != NULL && !handle->addon->is_ending)
      task_close(handle->addon, handle->kind, handle->pointer);
    else
      handle_close_pointer(handle->kind, handle->pointer);
    handle->pointer = NULL;
    free(handle->records);
    free(handle->deliveries);
    handle->records = NULL;
    handle->deliveries = NULL;
    handle->count = 0;
  }
  if (!handle->is_dropped || handle->users != 0) return;
  if (handle->before != NULL) *handle->before = handle->next;
  if (handle->next != NULL) handle->next->before = handle->before;
  free(handle);
}

void handle_use(Handle *handle) { ++handle->users; }

void handle_leave(Handle *handle) {
  --handle->users;
  settle(handle);
}

static void dropped(napi_env env, void *data, void *hint) {
  Handle *handle = data;
  (void)env;
  (void)hint;
  handle->is_closing = 1;
  handle->is_dropped = 1;
  settle(handle);
}

napi_value handle_new(napi_env env, Kind kind, void *pointer, int is_durable) {
  Addon *addon = addon_of(env);
  Handle *handle = calloc(1, sizeof *handle);
  napi_value value = NULL;
  if (handle == NULL || addon == NULL ||
      napi_create_external(env, handle, dropped, NULL, &value) != napi_ok) {
    free(handle);
    handle_close_pointer(kind, pointer);
    return NULL;
  }
  handle->pointer = pointer;
  handle->kind = kind;
  handle->is_durable = is_durable;
  handle->addon = addon;
  handle->next = addon->handles;
  handle->before = &addon->handles;
  if (handle->next != NULL) handle->next->before = &handle->next;
  addon->handles = handle;
  return value;
}

// close(handle): may be called any number of times.
static napi_value close_handle(napi_env env, napi_callback_info info) {
  void *data = NULL;
  Call call;
  call_begin(env, info, &call);
  if (napi_get_value_external(env, call.args[0], &data) != napi_ok) return NULL;
  Handle *handle = data;
  handle->is_closing = 1;
  settle(handle);
  return NULL;
}

// ---- Stopping -----------------------------------------------------------------------------------

// stop(handle, is_stopped)
static napi_value stop(napi_env env, napi_callback_info info) {
  void *data = NULL;
  int32_t code = LEAT_ERR_INVALID_ARGUMENT;
  bool is_stopped = false;
  Call call;
  call_begin(env, info, &call);
  if (napi_get_value_external(env, call.args[0], &data) != napi_ok) return closed(env);
  Handle *handle = handle_of(env, call.args[0], ((Handle *)data)->kind);
  if (handle == NULL) return closed(env);
  (void)napi_get_value_bool(env, call.args[1], &is_stopped);
  void *pointer = handle->pointer;
  switch (handle->kind) {
    case PUBLISHER:
      code = is_stopped ? leat_publisher_stop(pointer) : leat_publisher_resume(pointer);
      break;
    case SUBSCRIBER:
      code = is_stopped ? leat_subscriber_stop(pointer) : leat_subscriber_resume(pointer);
      break;
    case MEMBER: code = is_stopped ? leat_member_stop(pointer) : leat_member_resume(pointer); break;
    default: break;
  }
  return done_or(env, code, 0);
}

const Method handle_methods[] = {
    {"prepare", prepare},    {"arm", arm},   {"disarm", disarm},
    {"close", close_handle}, {"stop", stop}, {NULL, NULL},
};
