// Subscribers.
//
// Entries are read in batches into an array of the library's records, and copied into tables and strings while the
// subscriber is in use: that may run finalizers, which must not read meanwhile.
#include "leat_lua.h"

static void close_subscriber(void *pointer) {
  leat_subscriber *subscriber = pointer;
  (void)leat_subscriber_close(&subscriber);
}
static int32_t stop_subscriber(void *pointer) { return leat_subscriber_stop(pointer); }
static int32_t resume_subscriber(void *pointer) { return leat_subscriber_resume(pointer); }
static int32_t is_subscriber_stopped(void *pointer, uint32_t *answer) {
  return leat_subscriber_is_stopped(pointer, answer);
}
const HandleKind subscriber_kind = {"subscriber",    0,                 close_subscriber,
                                    stop_subscriber, resume_subscriber, is_subscriber_stopped};

static const char *const stages[] = {"", "committed", "durable", NULL};
#define AT(name) offsetof(leat_subscriber_options, name)
static const Option subscriber_options[] = {
    {"from", OPTION_FROM, AT(from), AT(from_value), NULL},
    {"partition", OPTION_PARTITION, AT(partition), 0, NULL},
    {"gating", OPTION_FLAG, AT(gating), 0, NULL},
    {"in_place", OPTION_FLAG, AT(in_place), 0, NULL},
    {"read", OPTION_CHOICE, AT(read), 0, stages},
    {"any_thread", OPTION_FLAG, AT(any_thread), 0, NULL},
    {"spin", OPTION_SECONDS, AT(spin_ns), 0, NULL},
    {"patience", OPTION_SECONDS, AT(patience_ns), 0, NULL},
    {NULL, OPTION_FLAG, 0, 0, NULL},
};

int topic_subscriber(lua_State *L) {
  Handle *topic = self_of(L);
  Handle *made = NULL;
  leat_subscriber_options options = LEAT_SUBSCRIBER_OPTIONS_INIT;
  leat_subscriber *subscriber = NULL;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  parse_options(L, 2, subscriber_options, &options);
  options.interruptible = 1;
  made = handle_prepare(L, &subscriber_kind);
  HANDLE_ENTER(L, topic);
  code = leat_topic_subscriber(topic->pointer, &options, &subscriber, &detail);
  (void)handle_leave(topic);
  if (code != LEAT_OK) {
    const Subject subject = {.act = "make a subscriber", .subscriber = &options, .partition = &options.partition};
    return fail_about(L, &subject, code, detail);
  }
  handle_fill(made, subscriber);
  if (!options.any_thread) handle_mark_unused(made);
  return 1;
}

// ---- Reading ------------------------------------------------------------------------------------

// An array that the library fills. Short ones are on the stack.
typedef struct Reading {
  leat_subscriber *subscriber;
  leat_record *records;
  uint32_t capacity;
  uint32_t count;
  int is_ready;  // Of a view: taking comes next, not waiting.
  leat_record few[DEFAULT_LIMIT];
} Reading;

static int32_t try_receive(void *context, int64_t timeout_ns, int32_t *detail) {
  Reading *reading = context;
  return leat_subscriber_receive(reading->subscriber, reading->records, reading->capacity,
                                 &reading->count, timeout_ns, detail);
}

static int32_t try_poll(void *context, int64_t timeout_ns, int32_t *detail) {
  Reading *reading = context;
  (void)timeout_ns;
  return leat_subscriber_poll(reading->subscriber, reading->records, reading->capacity,
                              &reading->count, detail);
}

// Takes nothing in a call that waits. What a view shows cannot be kept for a later call: so hooks run between waiting and
// taking.
static int32_t try_view(void *context, int64_t timeout_ns, int32_t *detail) {
  Reading *reading = context;
  int32_t code = LEAT_OK;
  if (reading->is_ready) {
    reading->is_ready = 0;
    return try_receive(reading, 0, detail);
  }
  code = leat_subscriber_wait(reading->subscriber, timeout_ns);
  reading->is_ready = code == LEAT_OK;
  return code == LEAT_OK ? LEAT_ERR_INTERRUPTED : code;
}

// Reads as `entries` says, and pushes what came.
static int read_with(lua_State *L, uint32_t limit, int64_t timeout_ns, Attempt attempt, Entries *entries) {
  Handle *self = self_of(L);
  Reading reading;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  int pushed = 0;
  // The child of a fork gets LEAT_ERR_FORKED of the library.
  if (self->open != 0 && self->pointer != NULL && self->pid == this_process)
    return luaL_error(L, "the function of view() has not ended");
  if (has_kept(self)) {
    if (entries->viewed == NULL) return kept_take(L, self, limit, entries);
    return luaL_error(L, "the subscriber has kept entries of a call that a hook ended: receive() them first");
  }
  reading.records = reading.few;
  if (limit > DEFAULT_LIMIT) reading.records = lua_newuserdatauv(L, limit * sizeof(leat_record), 0);
  reading.capacity = limit;
  reading.count = 0;
  reading.is_ready = 1;
  HANDLE_ENTER(L, self);
  handle_mark_used(self);
  reading.subscriber = self->pointer;
  code = wait_for(L, self, timeout_ns, LONG_SLICES, attempt, &reading, &detail);
  entries->records = reading.records;
  entries->count = reading.count;
  entries->capacity = reading.capacity;
  if (code == LEAT_OK && entries->viewed == NULL && !run_hooks(L)) {
    if (reading.count != 0) kept_store(L, self, entries);
    code = ENDED_BY_LUA;
  }
  if (code == LEAT_OK) {
    if (entries->viewed != NULL) self->open = ++self->last_view;
    pushed = push_entries(L, entries);
    if (pushed != 0 && entries->viewed != NULL) self->open = 0;
  }
  (void)handle_leave(self);
  if (code != LEAT_OK) return fail(L, code, detail);
  return pushed == 0 ? 1 : lua_error(L);
}

static int poll(lua_State *L) {
  Entries entries = {.is_single = 0};
  return read_with(L, parse_limit(L, 2), 0, try_poll, &entries);
}

static int receive(lua_State *L) {
  Entries entries = {.is_single = 1};
  return read_with(L, 1, parse_timeout(L, 2), try_receive, &entries);
}

static int receive_batch(lua_State *L) {
  Entries entries = {.is_single = 0};
  return read_with(L, parse_limit(L, 2), parse_timeout(L, 3), try_receive, &entries);
}

static int read_values(lua_State *L) {
  Entries entries = {.only_values = 1};
  const int64_t timeout_ns = lua_isnoneornil(L, 3) ? 0 : parse_timeout(L, 3);
  return read_with(L, parse_limit(L, 2), timeout_ns, timeout_ns == 0 ? try_poll : try_receive, &entries);
}

// view(function [, limit [, timeout]]) returns what the function returns.
static int view(lua_State *L) {
  Handle *self = self_of(L);
  Entries entries = {.viewed = self};
  const uint32_t limit = parse_limit(L, 3);
  const int64_t timeout_ns = parse_timeout(L, 4);
  int results = 0;
  int top = 0;
  int is_failed = 0;
  luaL_checktype(L, 2, LUA_TFUNCTION);
  lua_settop(L, 2);
  results = read_with(L, limit, timeout_ns, try_view, &entries);
  if (results != 1) return results;
  top = lua_gettop(L);
  lua_pushvalue(L, 2);
  lua_pushvalue(L, top);
  is_failed = lua_pcall(L, 1, LUA_MULTRET, 0);
  self->open = 0;
  return is_failed ? lua_error(L) : lua_gettop(L) - top;
}

// For `for record in subscriber:records() do`: ends when waits are stopped or it is closed.
static int next_record(lua_State *L) {
  int results = 0;
  lua_settop(L, 1);
  results = receive(L);
  if (results == 1) return 1;
  lua_getfield(L, -1, "code");
  if (lua_tointeger(L, -1) != LEAT_ERR_STOPPED) {
    lua_pop(L, 1);
    return lua_error(L);
  }
  lua_pushnil(L);
  return 1;
}

static int records(lua_State *L) {
  (void)self_of(L);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_pushcclosure(L, next_record, 1);
  lua_pushvalue(L, 1);
  return 2;
}

// ---- Waiting ------------------------------------------------------------------------------------

static int32_t try_wait(void *context, int64_t timeout_ns, int32_t *detail) {
  (void)detail;
  return leat_subscriber_wait(context, timeout_ns);
}

static int wait_one(lua_State *L) {
  Handle *self = self_of(L);
  const int64_t timeout_ns = parse_timeout(L, 2);
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  HANDLE_ENTER(L, self);
  if (self->kept == 0) code = wait_for(L, self, timeout_ns, LONG_SLICES, try_wait, self->pointer, &detail);
  (void)handle_leave(self);
  return nothing_or(L, code, detail);
}

typedef struct WaitAny {
  leat_subscriber *all[LEAT_MAX_WAIT_ANY];
  Handle *handles[LEAT_MAX_WAIT_ANY];
  uint32_t count;
  uint32_t index;
} WaitAny;

static int32_t try_wait_any(void *context, int64_t timeout_ns, int32_t *detail) {
  WaitAny *any = context;
  (void)detail;
  for (uint32_t i = 0; i < any->count; ++i) {  // Closed by a hook meanwhile.
    if (any->handles[i]->is_closing) return LEAT_ERR_STOPPED;
  }
  return leat_subscriber_wait_any(any->all, any->count, timeout_ns, &any->index);
}

// wait_any(list [, timeout]) returns an index of the list.
int wait_any(lua_State *L) {
  WaitAny any = {{NULL}, {NULL}, 0, 0};
  const int64_t timeout_ns = parse_timeout(L, 2);
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  size_t count = 0;
  size_t i = 0;
  luaL_checktype(L, 1, LUA_TTABLE);
  count = lua_rawlen(L, 1);
  if (count == 0 || count > LEAT_MAX_WAIT_ANY)
    return luaL_error(L, "wait_any takes 1 to %d subscribers", LEAT_MAX_WAIT_ANY);
  luaL_checkstack(L, (int)count + 4, NULL);
  for (; i < count; ++i) {  // They stay on the stack, whatever happens to the list.
    lua_rawgeti(L, 1, (int)i + 1);
    any.handles[i] = handle_at(L, -1, &subscriber_kind);
    if (!handle_is_usable(any.handles[i])) return handle_refuse(L, any.handles[i]);
    for (size_t k = 0; k < i; ++k) {
      if (any.handles[k] == any.handles[i]) return luaL_error(L, "a subscriber is named twice");
    }
    any.all[i] = any.handles[i]->pointer;
  }
  for (i = 0; i < count; ++i) {
    if (any.handles[i]->kept != 0) return number_or(L, LEAT_OK, 0, i + 1);
  }
  for (; any.count < count; ++any.count) ++any.handles[any.count]->users;
  code = wait_for(L, any.handles[0], timeout_ns, LONG_SLICES, try_wait_any, &any, &detail);
  while (any.count > 0) (void)handle_leave(any.handles[--any.count]);
  return number_or(L, code, detail, (uint64_t)any.index + 1);
}

// The calls below end at once, and nothing else runs meanwhile.
static Handle *usable(lua_State *L) {
  Handle *self = self_of(L);
  if (!handle_is_usable(self)) handle_refuse(L, self);
  return self;
}

static int wait_fd(lua_State *L) {
  int32_t fd = -1;
  int32_t detail = 0;
  const int32_t code = leat_subscriber_wait_fd(usable(L)->pointer, &fd, &detail);
  return number_or(L, code, detail, (uint64_t)fd);
}

static int get_offset(lua_State *L) {
  Handle *self = usable(L);
  const uint32_t partition = lua_isnoneornil(L, 2) ? 0 : parse_partition(L, 2);
  uint64_t next = 0;
  int32_t code = LEAT_OK;
  if (!kept_offset(L, self, partition, &next)) code = leat_subscriber_offset(self->pointer, partition, &next);
  return number_or(L, code, 0, next);
}

static int is_lossy(lua_State *L) {
  uint32_t answer = 0;
  const int32_t code = leat_subscriber_is_lossy(usable(L)->pointer, &answer);
  if (code != LEAT_OK) return fail(L, code, 0);
  lua_pushboolean(L, (int)answer);
  return 1;
}

void add_subscribers(lua_State *L) {
  static const luaL_Reg methods[] = {
      {"poll", poll},       {"receive", receive}, {"receive_batch", receive_batch},
      {"view", view},       {"records", records}, {"read_values", read_values},
      {"wait", wait_one},   {"wait_fd", wait_fd}, {"offset", get_offset},
      {"is_lossy", is_lossy}, {NULL, NULL}};
  add_class(L, &subscriber_kind, methods);
}
