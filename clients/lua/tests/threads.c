// If this failed, a program with a Lua state for each thread would lose records, or crash.
//
// A state of Lua belongs to one thread at a time: two threads that work at once have a state each, and a state may move.
//
//     threads      with LEAT_DIR empty; LUA_CPATH as for all.lua
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static const char works[] =
    "local leat, own = require 'leat', ...\n"
    "local topic = assert(leat.open('shared', {timeout = 10}))\n"
    "local publisher, subscriber = topic:publisher(), topic:subscriber({from = 'beginning'})\n"
    "local member = topic:find_group('workers'):join()\n"
    "local seen, taken = {[0] = 0, [1] = 0}, 0\n"
    "for i = 1, 3000 do\n"
    "  assert(publisher:publish(own .. ':' .. i))\n"
    "  if i % 10 == 0 then\n"
    "    local one = member:receive(10)\n"
    "    taken = taken + assert(member:acknowledge(one))\n"
    "    topic:publisher():claim(3)\n"  // Dropped, so aborted when it is collected.
    "    collectgarbage()\n"
    "  end\n"
    "end\n"
    "while seen[0] < 3000 or seen[1] < 3000 do\n"
    "  local record = assert(subscriber:receive(10))\n"
    "  if not record.gap then\n"
    "    local who, number = record.value:match('(%d+):(%d+)')\n"
    "    who, seen[tonumber(who)] = tonumber(who), seen[tonumber(who)] + 1\n"
    "    assert(seen[who] == tonumber(number))\n"
    "  end\n"
    "end\n"
    "assert(taken == 300)\n";

static const char drops[] =
    "local leat = require 'leat'\n"
    "topic = leat.open('shared')\n"
    "assert(topic:info().participant_count == 0)\n"
    "for _ = 1, 10 do\n"
    "  assert(topic:subscriber() and topic:publisher():claim(9) and topic:find_group('workers'):join():wait_fd())\n"
    "end\n"
    "assert(topic:info().participant_count >= 10)\n";

static void run(lua_State *L, const char *text, int own) {
  luaL_loadstring(L, text);
  lua_pushinteger(L, own);
  if (lua_pcall(L, 1, 0, 0) == 0) return;
  fprintf(stderr, "%s\n", lua_tostring(L, -1));
  exit(1);
}

static lua_State *new_state(void) {
  lua_State *L = luaL_newstate();
  luaL_openlibs(L);
  return L;
}

static void *work(void *own) {
  lua_State *L = new_state();
  run(L, works, own != NULL);
  lua_close(L);
  return NULL;
}

static void *collect(void *state) {
  lua_gc(state, LUA_GCCOLLECT, 0);
  lua_gc(state, LUA_GCCOLLECT, 0);
  return NULL;
}

static void in_threads(void *(*call)(void *), void *first, void *second, int count) {
  pthread_t threads[2];
  void *arguments[2] = {first, second};
  for (int i = 0; i < count; ++i) pthread_create(&threads[i], NULL, call, arguments[i]);
  for (int i = 0; i < count; ++i) pthread_join(threads[i], NULL);
}

int main(void) {
  lua_State *L = new_state();
  run(L, "topic = require('leat').create('shared') topic:group('workers', {from = 'beginning'})", 0);
  in_threads(work, NULL, L, 2);
  run(L, drops, 0);
  in_threads(collect, L, NULL, 1);
  run(L, "assert(topic:info().participant_count == 0) topic:close()", 0);
  lua_close(L);
  return 0;
}
