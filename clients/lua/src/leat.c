// The module of Lua: require "leat". One source for Lua 5.4 and LuaJIT; each has its own leat.so.
#include "leat_lua.h"

__attribute__((visibility("default"))) int luaopen_leat(lua_State *L);

int luaopen_leat(lua_State *L) {
  if (leat_abi_check(LEAT_ABI_VERSION) != LEAT_OK) return luaL_error(L, "libleat is too old: %s", leat_version());
  lua_newtable(L);
  lua_pushstring(L, leat_version());
  lua_setfield(L, -2, "version");
  lua_pushcfunction(L, wait_any);
  lua_setfield(L, -2, "wait_any");
  add_errors(L);
  add_records(L);
  add_topics(L);
  add_publishers(L);
  add_claims(L);
  add_subscribers(L);
  add_groups(L);
  add_members(L);
  return 1;
}
