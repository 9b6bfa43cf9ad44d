// Members of consumer groups.
#include "leat_lua.h"

static void close_member(void *pointer) {
  leat_member *member = pointer;
  (void)leat_member_close(&member);
}
static int32_t stop_member(void *pointer) { return leat_member_stop(pointer); }
static int32_t resume_member(void *pointer) { return leat_member_resume(pointer); }
static int32_t is_member_stopped(void *pointer, uint32_t *answer) {
  return leat_member_is_stopped(pointer, answer);
}
const HandleKind member_kind = {"member",    0,             close_member,
                                stop_member, resume_member, is_member_stopped};

#define AT(name) offsetof(leat_member_options, name)
static const Option member_options[] = {
    {"name", OPTION_TEXT, AT(name), 0, NULL},
    {"any_thread", OPTION_FLAG, AT(any_thread), 0, NULL},
    {"spin", OPTION_SECONDS, AT(spin_ns), 0, NULL},
    {"patience", OPTION_SECONDS, AT(patience_ns), 0, NULL},
    {NULL, OPTION_FLAG, 0, 0, NULL},
};

int group_join(lua_State *L) {
  static uint64_t last_number;
  Handle *group = self_of(L);
  Handle *made = NULL;
  leat_member_options options = LEAT_MEMBER_OPTIONS_INIT;
  leat_member *member = NULL;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  parse_options(L, 2, member_options, &options);
  options.interruptible = 1;
  made = handle_prepare(L, &member_kind);
  HANDLE_ENTER(L, group);
  code = leat_group_join(group->pointer, &options, &member, &detail);
  (void)handle_leave(group);
  if (code != LEAT_OK) return fail(L, code, detail);
  handle_fill(made, member);
  if (!options.any_thread) handle_mark_unused(made);
  made->number = __atomic_add_fetch(&last_number, 1, __ATOMIC_RELAXED);
  return 1;
}

// ---- Receive ------------------------------------------------------------------------------------

typedef struct Receiving {
  leat_member *member;
  leat_delivery *deliveries;
  uint32_t capacity;
  uint32_t count;
} Receiving;

static int32_t try_receive(void *context, int64_t timeout_ns, int32_t *detail) {
  Receiving *it = context;
  return leat_member_receive(it->member, it->deliveries, it->capacity, &it->count, timeout_ns, detail);
}

static int receive_some(lua_State *L, Receiving *it, int64_t timeout_ns, int is_single) {
  Handle *self = self_of(L);
  Entries entries = {.is_single = is_single, .owner = self->number};
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  int pushed = 0;
  if (has_kept(self)) return kept_take(L, self, it->capacity, &entries);
  HANDLE_ENTER(L, self);
  handle_mark_used(self);
  it->member = self->pointer;
  code = wait_for(L, self, timeout_ns, LONG_SLICES, try_receive, it, &detail);
  entries.deliveries = it->deliveries;
  entries.count = it->count;
  if (code == LEAT_OK && !run_hooks(L)) {
    kept_store(L, self, &entries);
    code = ENDED_BY_LUA;
  }
  if (code == LEAT_OK) {
    pushed = push_entries(L, &entries);
  }
  (void)handle_leave(self);
  if (code != LEAT_OK) return fail(L, code, detail);
  return pushed == 0 ? 1 : lua_error(L);
}

static int receive(lua_State *L) {
  leat_delivery delivery;
  Receiving it = {NULL, &delivery, 1, 0};
  return receive_some(L, &it, parse_timeout(L, 2), 1);
}

static int receive_batch(lua_State *L) {
  const uint32_t limit = parse_limit(L, 2);
  const int64_t timeout_ns = parse_timeout(L, 3);
  Receiving it = {NULL, lua_newuserdatauv(L, limit * sizeof(leat_delivery), 0), limit, 0};
  return receive_some(L, &it, timeout_ns, 0);
}

// ---- Acknowledge --------------------------------------------------------------------------------

// A delivery at 2, which must be this member's.
static int acknowledge_one(lua_State *L, Handle *self) {
  int is_gap = 0;
  const leat_delivery *delivery = delivery_at(L, 2, self->number, &is_gap);
  int32_t code = LEAT_ERR_NOT_IN_FLIGHT;
  HANDLE_ENTER(L, self);
  if (delivery != NULL) code = leat_member_acknowledge(self->pointer, delivery);
  (void)handle_leave(self);
  return number_or(L, code, 0, 1);
}

// Those that this member holds count; an error only if none does.
static int acknowledge_some(lua_State *L, Handle *self, size_t count) {
  leat_delivery *all = lua_newuserdatauv(L, count * sizeof(leat_delivery), 0);
  uint64_t known = 0;
  uint64_t others = 0;
  uint64_t done = 0;
  int32_t code = LEAT_OK;
  size_t i = 0;
  for (; i < count; ++i) {
    const leat_delivery *delivery = NULL;
    int is_gap = 0;
    lua_rawgeti(L, 2, (int)i + 1);
    delivery = delivery_at(L, -1, self->number, &is_gap);
    if (delivery != NULL)
      all[known++] = *delivery;
    else if (!is_gap)
      ++others;
    lua_pop(L, 1);
  }
  HANDLE_ENTER(L, self);
  code = leat_member_acknowledge_some(self->pointer, all, known, &done);
  (void)handle_leave(self);
  if (code == LEAT_OK && known == 0 && others != 0) code = LEAT_ERR_NOT_IN_FLIGHT;
  return number_or(L, code, 0, done);
}

// acknowledge(delivery), or acknowledge(list).
static int acknowledge(lua_State *L) {
  Handle *self = self_of(L);
  size_t count = 0;
  luaL_checktype(L, 2, LUA_TTABLE);
  count = lua_rawlen(L, 2);
  if (count != 0) return acknowledge_some(L, self, count);
  lua_pushnil(L);
  if (lua_next(L, 2)) {
    lua_settop(L, 2);
    return acknowledge_one(L, self);
  }
  push_u64(L, 0);  // An empty list.
  return 1;
}

static int acknowledge_up_to(lua_State *L) {
  Handle *self = self_of(L);
  int is_gap = 0;
  const leat_delivery *delivery = delivery_at(L, 2, self->number, &is_gap);
  uint64_t count = 0;
  int32_t code = LEAT_ERR_NOT_IN_FLIGHT;
  HANDLE_ENTER(L, self);
  if (delivery != NULL) code = leat_member_acknowledge_up_to(self->pointer, delivery, &count);
  (void)handle_leave(self);
  return number_or(L, code, 0, count);
}

static int acknowledge_all(lua_State *L) {
  Handle *self = self_of(L);
  uint64_t count = 0;
  int32_t code = LEAT_OK;
  if (has_kept(self)) kept_requeue(L, self);  // Nobody has got these, so they are not acknowledged.
  HANDLE_ENTER(L, self);
  code = leat_member_acknowledge_all(self->pointer, &count);
  (void)handle_leave(self);
  return number_or(L, code, 0, count);
}

// requeue(delivery [, delay])
static int requeue(lua_State *L) {
  Handle *self = self_of(L);
  const int64_t delay_ns = lua_isnoneornil(L, 3) ? 0 : parse_seconds(L, 3, "delay");
  int is_gap = 0;
  const leat_delivery *delivery = delivery_at(L, 2, self->number, &is_gap);
  int32_t code = LEAT_ERR_NOT_IN_FLIGHT;
  HANDLE_ENTER(L, self);
  if (delivery != NULL) code = leat_member_requeue(self->pointer, delivery, delay_ns);
  (void)handle_leave(self);
  return nothing_or(L, code, 0);
}

// ---- Wait ---------------------------------------------------------------------------------------

static int32_t try_wait(void *context, int64_t timeout_ns, int32_t *detail) {
  (void)detail;
  return leat_member_wait(context, timeout_ns);
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

static int wait_fd(lua_State *L) {
  Handle *self = self_of(L);
  int32_t fd = -1;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  HANDLE_ENTER(L, self);
  code = leat_member_wait_fd(self->pointer, &fd, &detail);
  (void)handle_leave(self);
  return number_or(L, code, detail, (uint64_t)fd);
}

static int in_flight(lua_State *L) {
  Handle *self = self_of(L);
  uint64_t count = 0;
  int32_t code = LEAT_OK;
  HANDLE_ENTER(L, self);
  code = leat_member_in_flight(self->pointer, &count);
  (void)handle_leave(self);
  return number_or(L, code, 0, count);
}

void add_members(lua_State *L) {
  static const luaL_Reg methods[] = {
      {"receive", receive},         {"receive_batch", receive_batch},
      {"acknowledge", acknowledge}, {"acknowledge_up_to", acknowledge_up_to},
      {"acknowledge_all", acknowledge_all}, {"requeue", requeue},
      {"wait", wait_one},           {"wait_fd", wait_fd},
      {"in_flight", in_flight},     {NULL, NULL}};
  add_class(L, &member_kind, methods);
}
