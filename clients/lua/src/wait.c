// Waits that hooks can end: the standard interpreters answer Ctrl-C with a hook.
#include <time.h>

#include "leat_lua.h"

// A signal in the microseconds between a look for hooks and a sleep does not end it: the slice has to end. At random moments
// most of those hit the first sleep, so that is short. To wake costs 50 to 90 us, so the later ones are long, unless there is
// a hook: 0.04 % of a CPU.
enum {
  FIRST_SLICE_NS = 5 * 1000 * 1000,
  SHORT_SLICE_NS = 50 * 1000 * 1000,  // Also while there is a hook.
  LONG_SLICE_NS = 250 * 1000 * 1000,
  HANDED_OVER_NS = 2000 * 1000 * 1000
};

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int nothing(lua_State *L) {
  (void)L;
  return 0;
}

// A hook runs when a function is called.
int run_hooks(lua_State *L) {
  if (lua_gethook(L) == NULL) return 1;
  lua_pushcfunction(L, nothing);
  return lua_pcall(L, 0, 0, 0) == 0;
}

// Whether the main thread has a hook and this coroutine has none. Only Lua 5.1 has one for all of them.
static int has_main_hook(lua_State *L) {
#if LUA_VERSION_NUM >= 502
  lua_State *main_thread = NULL;
  lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
  main_thread = lua_tothread(L, -1);
  lua_pop(L, 1);
  return main_thread != L && lua_gethook(main_thread) != NULL;
#else
  (void)L;
  return 0;
#endif
}

static int64_t longest_slice(lua_State *L, Slices slices) {
  if (slices == ROOM_SLICES && are_handles_unused()) return HANDED_OVER_NS;
  return slices != LONG_SLICES || lua_gethook(L) != NULL ? SHORT_SLICE_NS : LONG_SLICE_NS;
}

int32_t wait_for(lua_State *L, const Handle *handle, int64_t timeout_ns, Slices slices, Attempt attempt,
                 void *context, int32_t *detail) {
  const int64_t deadline = timeout_ns == LEAT_FOREVER ? 0 : now_ns() + timeout_ns;
  int had_main_hook = 0;
  int64_t next = FIRST_SLICE_NS;
  int32_t code = attempt(context, 0, detail);
  if (code != LEAT_ERR_TIMEOUT || timeout_ns == 0) return code;
  if (!lua_checkstack(L, 4)) return LEAT_ERR_NO_MEMORY;
  had_main_hook = has_main_hook(L);
  while (1) {
    const int64_t longest = longest_slice(L, slices);
    int64_t slice = next < longest ? next : longest;
    next = longest == HANDED_OVER_NS ? longest : next * 4 < longest ? next * 4 : longest;
    if (!run_hooks(L)) return ENDED_BY_LUA;
    if (!had_main_hook && has_main_hook(L)) return LEAT_ERR_INTERRUPTED;
    if (handle != NULL && handle->is_closing) return LEAT_ERR_STOPPED;
    if (timeout_ns != LEAT_FOREVER) {
      const int64_t left = deadline - now_ns();
      if (left <= 0) return LEAT_ERR_TIMEOUT;
      if (left < slice) slice = left;
    }
    code = attempt(context, slice, detail);
    if (code != LEAT_ERR_TIMEOUT && code != LEAT_ERR_INTERRUPTED) return code;
  }
}
