// What subscribers and members deliver: tables. A record has value, offset and partition, and what it came with of key,
// headers and timestamp_ms; a gap has gap = true, offset, partition, count and reason.
#include <string.h>

#include "leat_lua.h"

// The field `token` of a delivery: what the library gave.
typedef struct Token {
  leat_delivery delivery;
  uint64_t owner;
} Token;

// A record that is read in place, in the function of a view.
typedef struct View {
  Handle *subscriber;  // A reference is counted.
  uint64_t number;
  leat_record record;
} View;

static void set_number(lua_State *L, const char *name, uint64_t number) {
  push_u64(L, number);
  lua_setfield(L, -2, name);
}

static void push_headers(lua_State *L, const leat_record *record) {
  leat_headers headers = leat_record_headers(record);
  leat_header header = {NULL, NULL, 0, 0};
  int count = 0;
  lua_newtable(L);
  while (leat_next_header(&headers, &header)) {
    lua_createtable(L, 2, 0);
    lua_pushlstring(L, (const char *)header.name, header.name_size);
    lua_rawseti(L, -2, 1);
    lua_pushlstring(L, (const char *)header.value, header.value_size);
    lua_rawseti(L, -2, 2);
    lua_rawseti(L, -2, ++count);
  }
}

static void push_gap(lua_State *L, const leat_record *gap) {
  lua_createtable(L, 0, 5);
  lua_pushboolean(L, 1);
  lua_setfield(L, -2, "gap");
  set_number(L, "offset", gap->offset);
  set_number(L, "partition", gap->partition);
  set_number(L, "count", leat_gap_count(gap));
  lua_pushstring(L, leat_gap_reason_name(leat_gap_reason(gap)));
  lua_setfield(L, -2, "reason");
}

static void push_value(lua_State *L, const leat_record *record) {
  lua_pushlstring(L, (const char *)record->value, record->value_size);
}

// The names of the fields that all records have: pushed once for a batch, as making each costs as much as setting it.
// Returns the index of the first.
static int push_names(lua_State *L) {
  lua_pushliteral(L, "value");
  lua_pushliteral(L, "offset");
  lua_pushliteral(L, "partition");
  return lua_gettop(L) - 2;
}

static void push_record(lua_State *L, const leat_record *record, int names) {
  lua_createtable(L, 0, 4);
  lua_pushvalue(L, names);
  push_value(L, record);
  lua_rawset(L, -3);
  lua_pushvalue(L, names + 1);
  push_u64(L, record->offset);
  lua_rawset(L, -3);
  lua_pushvalue(L, names + 2);
  lua_pushinteger(L, record->partition);
  lua_rawset(L, -3);
  if (record->flags == 0) return;
  if ((record->flags & LEAT_RECORD_HAS_KEY) != 0) {
    lua_pushlstring(L, (const char *)leat_record_key(record), record->key_size);
    lua_setfield(L, -2, "key");
  }
  if ((record->flags & LEAT_RECORD_HAS_HEADERS) != 0) {
    push_headers(L, record);
    lua_setfield(L, -2, "headers");
  }
  if ((record->flags & LEAT_RECORD_HAS_TIMESTAMP) != 0)
    set_number(L, "timestamp_ms", (uint64_t)leat_record_timestamp_ms(record));
}

static void push_delivery(lua_State *L, const leat_delivery *delivery, uint64_t owner, int names) {
  Token *token = NULL;
  if (leat_record_is_gap(&delivery->record)) {
    push_gap(L, &delivery->record);
    return;
  }
  push_record(L, &delivery->record, names);
  set_number(L, "deliveries", delivery->deliveries);
  token = lua_newuserdatauv(L, sizeof(Token), 0);
  token->delivery = *delivery;
  token->owner = owner;
  luaL_getmetatable(L, "leat.token");
  lua_setmetatable(L, -2);
  lua_setfield(L, -2, "token");
}

static void push_view(lua_State *L, const leat_record *record, Handle *subscriber) {
  View *view = NULL;
  if (leat_record_is_gap(record)) {
    push_gap(L, record);
    return;
  }
  view = lua_newuserdatauv(L, sizeof(View), 0);
  view->subscriber = subscriber;
  view->number = subscriber->open;
  view->record = *record;
  ++subscriber->references;
  luaL_getmetatable(L, "leat.view");
  lua_setmetatable(L, -2);
}

static void push_one(lua_State *L, const Entries *entries, uint32_t i, int names) {
  if (entries->deliveries != NULL)
    push_delivery(L, &entries->deliveries[i], entries->owner, names);
  else if (entries->viewed != NULL)
    push_view(L, &entries->records[i], entries->viewed);
  else if (leat_record_is_gap(&entries->records[i]))
    push_gap(L, &entries->records[i]);
  else if (entries->only_values)
    push_value(L, &entries->records[i]);
  else
    push_record(L, &entries->records[i], names);
}

static int push_all(lua_State *L) {
  const Entries *entries = lua_touserdata(L, 1);
  const int names = push_names(L);
  uint64_t distance = 0;
  uint32_t i = 0;
  if (entries->is_single) {
    push_one(L, entries, 0, names);
    return 1;
  }
  if (entries->records != NULL) distance = leat_next_batch(entries->records, entries->count, entries->capacity);
  lua_createtable(L, (int)entries->count, 0);
  for (; i < entries->count; ++i) {
    if (distance != 0) leat_prefetch(&entries->records[i], distance);
    push_one(L, entries, i, names);
    lua_rawseti(L, -2, (int)i + 1);
  }
  return 1;
}

int push_entries(lua_State *L, const Entries *entries) {
  lua_pushcfunction(L, push_all);
  lua_pushlightuserdata(L, (void *)(uintptr_t)entries);
  return lua_pcall(L, 1, 1, 0);
}

const leat_delivery *delivery_at(lua_State *L, int index, uint64_t owner, int *is_gap) {
  const Token *token = NULL;
  *is_gap = 0;
  if (lua_type(L, index) != LUA_TTABLE) luaL_error(L, "expected a delivery, not a %s", luaL_typename(L, index));
  index = lua_absindex(L, index);
  lua_pushliteral(L, "gap");
  lua_rawget(L, index);
  *is_gap = lua_toboolean(L, -1);
  lua_pop(L, 1);
  if (*is_gap) return NULL;
  lua_pushliteral(L, "token");
  lua_rawget(L, index);
  if (lua_type(L, -1) != LUA_TUSERDATA) luaL_error(L, "expected a delivery of receive()");
  token = luaL_checkudata(L, -1, "leat.token");
  lua_pop(L, 1);  // The delivery holds it.
  return token->owner == owner ? &token->delivery : NULL;
}

// ---- Views --------------------------------------------------------------------------------------

static const leat_record *viewed(lua_State *L) {
  const View *view = luaL_checkudata(L, 1, "leat.view");
  const Handle *subscriber = view->subscriber;
  if (subscriber == NULL || subscriber->pointer == NULL || subscriber->open != view->number) luaL_error(L, "the batch has ended");
  if (subscriber->pid != this_process) luaL_error(L, "the batch belongs to the parent process");
  return &view->record;
}

static int view_value(lua_State *L) {
  push_value(L, viewed(L));
  return 1;
}

// As string.sub and string.byte: positions from 1 on; those below 0 count from the end.
static size_t position(lua_State *L, int index, lua_Integer otherwise, size_t size) {
  const lua_Integer at = luaL_optinteger(L, index, otherwise);
  if (at >= 0) return (size_t)at;
  return (size_t)-(uint64_t)at > size ? 0 : size + 1 - (size_t)-(uint64_t)at;
}

static int view_sub(lua_State *L) {
  const leat_record *record = viewed(L);
  size_t first = position(L, 2, 1, record->value_size);
  size_t last = position(L, 3, -1, record->value_size);
  if (first < 1) first = 1;
  if (last > record->value_size) last = record->value_size;
  if (first > last)
    lua_pushliteral(L, "");
  else
    lua_pushlstring(L, (const char *)record->value + first - 1, last - first + 1);
  return 1;
}

static int view_byte(lua_State *L) {
  const leat_record *record = viewed(L);
  const size_t at = position(L, 2, 1, record->value_size);
  if (at < 1 || at > record->value_size) return 0;
  lua_pushinteger(L, record->value[at - 1]);
  return 1;
}

static int view_size(lua_State *L) {
  push_u64(L, viewed(L)->value_size);
  return 1;
}

static int view_record(lua_State *L) {
  const leat_record *record = viewed(L);
  push_record(L, record, push_names(L));
  return 1;
}

static int drop_view(lua_State *L) {
  View *view = lua_touserdata(L, 1);
  if (view->subscriber != NULL) handle_drop(view->subscriber);
  view->subscriber = NULL;
  return 0;
}

// A metatable that nobody sees; left on the stack.
static void new_class(lua_State *L, const char *name) {
  luaL_newmetatable(L, name);
  lua_pushboolean(L, 0);
  lua_setfield(L, -2, "__metatable");
}

void add_records(lua_State *L) {
  static const luaL_Reg methods[] = {{"value", view_value}, {"sub", view_sub},       {"byte", view_byte},
                                     {"size", view_size},   {"record", view_record}, {NULL, NULL}};
  const luaL_Reg *method = methods;
  new_class(L, "leat.token");
  lua_pop(L, 1);
  new_class(L, "leat.view");
  lua_pushcfunction(L, drop_view);
  lua_setfield(L, -2, "__gc");
  lua_pushcfunction(L, view_size);
  lua_setfield(L, -2, "__len");
  lua_newtable(L);
  for (; method->name != NULL; ++method) {
    lua_pushcfunction(L, method->func);
    lua_setfield(L, -2, method->name);
  }
  lua_setfield(L, -2, "__index");
  lua_pop(L, 1);
}
