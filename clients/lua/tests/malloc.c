// For the tests: the bytes that malloc has given out. They are exact, where pages that are resident are not.
#include <lauxlib.h>
#include <malloc.h>

static int allocated(lua_State *L) {
  const struct mallinfo2 info = mallinfo2();
  lua_pushnumber(L, (lua_Number)(info.uordblks + info.hblkhd));
  return 1;
}

int luaopen_malloc(lua_State *L) {
  lua_pushcfunction(L, allocated);
  return 1;
}
