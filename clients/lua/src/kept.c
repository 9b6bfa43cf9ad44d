// Entries that a call has taken just when a hook raised an error: the next calls return them. A list in the registry.
#include "leat_lua.h"

static int store(lua_State *L) {
  Handle *handle = lua_touserdata(L, 1);
  if (push_entries(L, lua_touserdata(L, 2)) != 0) return lua_error(L);
  handle->kept = luaL_ref(L, LUA_REGISTRYINDEX);
  handle->kept_at = 0;
  return 0;
}

void kept_store(lua_State *L, Handle *handle, const Entries *entries) {
  Entries all = *entries;
  all.is_single = 0;
  all.only_values = 0;
  lua_pushcfunction(L, store);
  lua_pushlightuserdata(L, handle);
  lua_pushlightuserdata(L, &all);
  if (lua_pcall(L, 2, 0, 0) != 0) lua_pop(L, 1);  // There is no memory for them.
}

void kept_drop(lua_State *L, Handle *handle) {
  if (handle->kept != 0) luaL_unref(L, LUA_REGISTRYINDEX, handle->kept);
  handle->kept = 0;
}

static int push_list(lua_State *L, const Handle *handle) {
  lua_rawgeti(L, LUA_REGISTRYINDEX, handle->kept);
  return lua_gettop(L);
}

// Pushes an entry, or of a record only the value.
static void push_one(lua_State *L, int list, int index, int only_values) {
  lua_rawgeti(L, list, index);
  if (!only_values) return;
  lua_getfield(L, -1, "value");
  if (lua_isnil(L, -1))  // A gap.
    lua_pop(L, 1);
  else
    lua_remove(L, -2);
}

int kept_take(lua_State *L, Handle *handle, uint32_t limit, const Entries *how) {
  const int list = push_list(L, handle);
  const int last = (int)lua_rawlen(L, list);
  const int left = last - handle->kept_at;
  const int count = (uint32_t)left < limit ? left : (int)limit;
  int i = 0;
  if (how->is_single) {
    push_one(L, list, handle->kept_at + 1, how->only_values);
  } else {
    lua_createtable(L, count, 0);
    for (; i < count; ++i) {
      push_one(L, list, handle->kept_at + i + 1, how->only_values);
      lua_rawseti(L, -2, i + 1);
    }
  }
  handle->kept_at += count;
  if (handle->kept_at == last) kept_drop(L, handle);
  return 1;
}

int kept_offset(lua_State *L, const Handle *handle, uint32_t partition, uint64_t *offset) {
  int list = 0;
  int found = 0;
  if (handle->kept == 0) return 0;
  list = push_list(L, handle);
  for (int i = handle->kept_at + 1; !found && i <= (int)lua_rawlen(L, list); ++i) {
    lua_rawgeti(L, list, i);
    lua_getfield(L, -1, "partition");
    lua_getfield(L, -2, "offset");
    found = (uint32_t)lua_tonumber(L, -2) == partition;
    if (found) *offset = parse_u64(L, -1, "offset");
    lua_pop(L, 3);
  }
  lua_pop(L, 1);
  return found;
}

void kept_requeue(lua_State *L, Handle *handle) {
  int list = 0;
  int last = 0;
  int count = 0;
  if (handle->kept == 0) return;
  list = push_list(L, handle);
  last = (int)lua_rawlen(L, list);
  for (int i = handle->kept_at + 1; i <= last; ++i) {
    int is_gap = 0;
    const leat_delivery *delivery = NULL;
    lua_rawgeti(L, list, i);
    delivery = delivery_at(L, -1, handle->number, &is_gap);
    if (delivery != NULL && leat_member_requeue(handle->pointer, delivery, 0) == LEAT_OK)
      lua_pop(L, 1);
    else
      lua_rawseti(L, list, ++count);
  }
  for (int i = count + 1; i <= last; ++i) {
    lua_pushnil(L);
    lua_rawseti(L, list, i);
  }
  handle->kept_at = 0;
  if (count == 0) kept_drop(L, handle);
  lua_pop(L, 1);
}
