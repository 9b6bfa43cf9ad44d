// Arguments into the library's types and structs of options, and texts out of it.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "leat_lua.h"

// Wants a number, and no text that looks like one.
static lua_Number number_at(lua_State *L, int index, const char *what) {
  if (lua_type(L, index) != LUA_TNUMBER)
    luaL_error(L, "%s must be a number, not a %s", what, luaL_typename(L, index));
  return lua_tonumber(L, index);
}

int64_t parse_seconds(lua_State *L, int index, const char *what) {
  const lua_Number seconds = number_at(L, index, what);
  if (isnan(seconds) || seconds < 0) luaL_error(L, "%s must be seconds from 0 on, not %f", what, seconds);
  // Beyond a hundred years it is for ever, and would overflow soon.
  return seconds > 3e9 ? (int64_t)3e18 : (int64_t)ceil(seconds * 1e9);
}

int64_t parse_timeout(lua_State *L, int index) {
  int64_t ns = LEAT_FOREVER;
  if (lua_isnoneornil(L, index)) return LEAT_FOREVER;
  ns = parse_seconds(L, index, "timeout");
  return ns == (int64_t)3e18 ? LEAT_FOREVER : ns;
}

uint64_t parse_u64(lua_State *L, int index, const char *what) {
  const lua_Number number = number_at(L, index, what);
#if LUA_VERSION_NUM >= 503
  if (lua_isinteger(L, index)) {
    if (lua_tointeger(L, index) < 0) luaL_error(L, "%s must not be negative: it is %s", what, lua_tostring(L, index));
    return (uint64_t)lua_tointeger(L, index);
  }
#endif
  if (!(number >= 0 && number <= 9007199254740992.0) || floor(number) != number)
    luaL_error(L, "%s must be a whole number from 0 to 2^53", what);
  return (uint64_t)number;
}

uint32_t parse_partition(lua_State *L, int index) {
  uint64_t value = 0;
  if (lua_isnoneornil(L, index)) return LEAT_ANY_PARTITION;
  value = parse_u64(L, index, "partition");
  // Beyond all partitions that a topic can have, so the library answers.
  return value < UINT32_MAX - 1 ? (uint32_t)value : UINT32_MAX - 1;
}

uint32_t parse_limit(lua_State *L, int index) {
  uint64_t value = DEFAULT_LIMIT;
  if (!lua_isnoneornil(L, index)) value = parse_u64(L, index, "limit");
  if (value == 0) luaL_error(L, "limit must not be 0");
  return value < MAX_LIMIT ? (uint32_t)value : MAX_LIMIT;
}

leat_bytes parse_bytes(lua_State *L, int index, const char *what) {
  leat_bytes bytes = {NULL, 0};
  size_t size = 0;
  if (lua_type(L, index) != LUA_TSTRING)
    luaL_error(L, "%s must be a string, not a %s", what, luaL_typename(L, index));
  bytes.data = lua_tolstring(L, index, &size);
  bytes.size = size;
  return bytes;
}

static uint32_t parse_choice(lua_State *L, int index, const char *name, const char *const *choices) {
  const char *word = lua_type(L, index) == LUA_TSTRING ? lua_tostring(L, index) : NULL;
  luaL_Buffer all;
  uint32_t i = 0;
  // An empty name stands for the default, which has none.
  for (; word != NULL && choices[i] != NULL; ++i) {
    if (choices[i][0] != '\0' && strcmp(word, choices[i]) == 0) return i;
  }
  luaL_buffinit(L, &all);
  for (i = 0; choices[i] != NULL; ++i) {
    if (choices[i][0] == '\0') continue;
    luaL_addstring(&all, " ");
    luaL_addstring(&all, choices[i]);
  }
  luaL_pushresult(&all);
  luaL_error(L, "%s must be one of%s, not %s", name, lua_tostring(L, -1), word == NULL ? luaL_typename(L, index) : word);
  return 0;
}

void parse_from(lua_State *L, int index, uint32_t *from, uint64_t *value) {
  static const char *const words[] = {"end", "beginning", NULL};
  static const char *const kinds[] = {"", "", "offset", "last", "time", NULL};
  *value = 0;
  if (lua_type(L, index) != LUA_TTABLE) {
    *from = parse_choice(L, index, "from", words);
    return;
  }
  index = lua_absindex(L, index);
  lua_pushnil(L);
  if (!lua_next(L, index)) luaL_error(L, "from must have one of offset, last, time");
  *from = parse_choice(L, -2, "from", kinds);
  *value = parse_u64(L, -1, "from");
  lua_pop(L, 2);
}

// ---- Options ------------------------------------------------------------------------------------

static void parse_option(lua_State *L, const Option *option, char *into) {
  void *at = into + option->at;
  uint64_t number = 0;
  switch (option->kind) {
    case OPTION_FLAG:
      *(uint32_t *)at = (uint32_t)lua_toboolean(L, -1);
      return;
    case OPTION_U32:
      number = parse_u64(L, -1, option->name);
      if (number > UINT32_MAX) luaL_error(L, "%s must be below 2^32", option->name);
      *(uint32_t *)at = (uint32_t)number;
      return;
    case OPTION_U64:
      *(uint64_t *)at = parse_u64(L, -1, option->name);
      return;
    case OPTION_SECONDS:
      *(int64_t *)at = parse_seconds(L, -1, option->name);
      return;
    case OPTION_MILLISECONDS:
      *(int64_t *)at = parse_seconds(L, -1, option->name) / 1000000;
      return;
    case OPTION_TIMEOUT:
      *(int64_t *)at = lua_toboolean(L, -1) ? parse_timeout(L, -1) : LEAT_FOREVER;
      return;
    case OPTION_TEXT:
      *(leat_bytes *)at = parse_bytes(L, -1, option->name);
      return;
    case OPTION_CHOICE:
      *(uint32_t *)at = parse_choice(L, -1, option->name, option->choices);
      return;
    case OPTION_PARTITION:
      *(uint32_t *)at = parse_partition(L, -1);
      return;
    case OPTION_FROM:
      parse_from(L, -1, at, (uint64_t *)(into + option->second));
      return;
  }
}

static void refuse_unknown(lua_State *L, int index, const Option *list) {
  lua_pushnil(L);
  while (lua_next(L, index)) {
    const char *name = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "[number]";
    const Option *option = list;
    while (option->name != NULL && strcmp(name, option->name) != 0) ++option;
    if (option->name == NULL) luaL_error(L, "unknown option '%s'", name);
    lua_pop(L, 1);
  }
}

void parse_options(lua_State *L, int index, const Option *list, void *into) {
  if (lua_isnoneornil(L, index)) return;
  if (lua_type(L, index) != LUA_TTABLE)
    luaL_error(L, "options must be a table, not a %s", luaL_typename(L, index));
  index = lua_absindex(L, index);
  luaL_checkstack(L, 40, "too many options");
  refuse_unknown(L, index, list);
  for (; list->name != NULL; ++list) {
    lua_pushstring(L, list->name);
    lua_rawget(L, index);
    if (!lua_isnil(L, -1)) parse_option(L, list, into);
    if (lua_type(L, -1) != LUA_TSTRING) lua_pop(L, 1);
  }
}

// ---- Texts ------------------------------------------------------------------------------------

int push_text(lua_State *L, Handle *handle, WriteText write, void *context) {
  char small[512];
  char *buffer = small;
  uint64_t capacity = sizeof small;
  uint64_t size = 0;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  while (1) {
    if (handle != NULL) {  // Making a buffer may run a finalizer, which may close it.
      if (!handle_is_usable(handle)) return handle_refuse(L, handle);
      context = handle->pointer;
    }
    code = write(context, buffer, capacity, &size, &detail);
    if (code != LEAT_ERR_BUFFER_TOO_SMALL) break;
    capacity = size + 256;  // It may have grown meanwhile.
    buffer = lua_newuserdatauv(L, capacity, 0);
  }
  if (code != LEAT_OK) return fail(L, code, detail);
  lua_pushlstring(L, buffer, size);
  return 1;
}

int push_lines(lua_State *L, Handle *handle, WriteText write, void *context) {
  const int results = push_text(L, handle, write, context);
  const char *at = NULL;
  const char *end = NULL;
  size_t size = 0;
  int count = 0;
  if (results != 1) return results;
  at = lua_tolstring(L, -1, &size);
  lua_newtable(L);
  while ((end = memchr(at, '\n', size)) != NULL) {
    lua_pushlstring(L, at, (size_t)(end - at));
    lua_rawseti(L, -2, ++count);
    size -= (size_t)(end - at) + 1;
    at = end + 1;
  }
  return 1;
}
