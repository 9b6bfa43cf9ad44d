// The module of Lua: require "leat". One source for Lua 5.4 and LuaJIT; each has its own leat.so.
#include <signal.h>

#include "leat_lua.h"

__attribute__((visibility("default"))) int luaopen_leat(lua_State *L);

#if LUA_VERSION_NUM < 502
// The interpreter luajit has the system go on with a call that its handler of SIGINT interrupted, so a wait would not
// notice. lua5.4 does not. This holds for the handlers that it sets later, too: it uses signal().
static void end_calls_on_control_c(void) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  (void)siginterrupt(SIGINT, 1);
#pragma GCC diagnostic pop
}
#endif

int luaopen_leat(lua_State *L) {
  if (leat_abi_check(LEAT_ABI_VERSION) != LEAT_OK) return luaL_error(L, "libleat is too old: %s", leat_version());
#if LUA_VERSION_NUM < 502
  end_calls_on_control_c();
#endif
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
