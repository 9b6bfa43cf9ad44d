// Errors of the library: tables with code, name, message and detail.
#include <string.h>

#include "leat_lua.h"

static void push_with(lua_State *L, int32_t code, int32_t detail, const char *sentence) {
  lua_createtable(L, 0, 4);
  lua_pushinteger(L, code);
  lua_setfield(L, -2, "code");
  lua_pushstring(L, leat_error_name(code));
  lua_setfield(L, -2, "name");
  lua_pushstring(L, sentence);
  lua_setfield(L, -2, "message");
  lua_pushinteger(L, detail);
  lua_setfield(L, -2, "detail");
  luaL_getmetatable(L, "leat.error");
  lua_setmetatable(L, -2);
}

void push_error(lua_State *L, int32_t code, int32_t detail) {
  char sentence[LEAT_DESCRIPTION_SIZE] = "";
  (void)leat_describe(code, detail, sentence, sizeof sentence);
  push_with(L, code, detail, sentence);
}

int fail_about(lua_State *L, const Subject *subject, int32_t code, int32_t detail) {
  char sentence[EXPLANATION_SIZE] = "";
  if (code == ENDED_BY_LUA) return lua_error(L);
  explain(subject, code, detail, sentence);
  lua_pushnil(L);
  push_with(L, code, detail, sentence);
  return 2;
}

int fail(lua_State *L, int32_t code, int32_t detail) {
  if (code == ENDED_BY_LUA) return lua_error(L);
  lua_pushnil(L);
  push_error(L, code, detail);
  return 2;
}

int nothing_or(lua_State *L, int32_t code, int32_t detail) {
  if (code != LEAT_OK) return fail(L, code, detail);
  lua_pushboolean(L, 1);
  return 1;
}

int number_or(lua_State *L, int32_t code, int32_t detail, uint64_t number) {
  if (code != LEAT_OK) return fail(L, code, detail);
  push_u64(L, number);
  return 1;
}

static int error_text(lua_State *L) {
  lua_getfield(L, 1, "message");
  return 1;
}

void add_errors(lua_State *L) {
  int32_t code = 0;
  luaL_newmetatable(L, "leat.error");
  lua_pushcfunction(L, error_text);
  lua_setfield(L, -2, "__tostring");
  lua_pop(L, 1);
  lua_newtable(L);
  for (; strcmp(leat_error_name(code), "unknown") != 0; ++code) {
    lua_pushinteger(L, code);
    lua_setfield(L, -2, leat_error_name(code));
  }
  lua_setfield(L, -2, "codes");
}
