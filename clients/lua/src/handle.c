// What topics, publishers, subscribers, groups and members have in common: opened, used by one call at a time,
// stopped, closed.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "leat_lua.h"

pid_t this_process;
static void note_process(void) { this_process = getpid(); }
// Once, for all states of Lua.
__attribute__((constructor)) static void note_processes(void) {
  note_process();
  (void)pthread_atfork(NULL, NULL, note_process);
}

// Calls that a fork interrupted: whoever made them is not in this process. What they had half done stays as
// it is, so the handle's memory is given up.
static int is_left_by_fork(const Handle *handle) {
  return handle->users != 0 && handle->pid != this_process;
}

int handle_refuse(lua_State *L, Handle *handle) {
  if (handle->pointer == NULL || handle->is_closing)
    return luaL_error(L, "the %s is closed", handle->kind->name);
  if (is_left_by_fork(handle)) return fail(L, LEAT_ERR_FORKED, 0);
  return luaL_error(L, "the %s is in use: a hook or finalizer interrupted a call", handle->kind->name);
}

// relaxed, pairs with nothing: a wait that sees another number only lasts longer.
static int unused_handles;

void handle_mark_unused(Handle *handle) {
  handle->is_unused = 1;
  __atomic_add_fetch(&unused_handles, 1, __ATOMIC_RELAXED);
}

void handle_mark_used(Handle *handle) {
  if (handle->is_unused) __atomic_sub_fetch(&unused_handles, 1, __ATOMIC_RELAXED);
  handle->is_unused = 0;
}

int are_handles_unused(void) { return __atomic_load_n(&unused_handles, __ATOMIC_RELAXED) != 0; }

static void close_now(Handle *handle) {
  void *const pointer = handle->pointer;
  handle_mark_used(handle);
  handle->pointer = NULL;
  handle->is_closing = 0;
  handle->kind->close(pointer);
}

int handle_leave(Handle *handle) {
  if (handle->users > 0) --handle->users;
  if (handle->left.data != NULL && handle->users == 0 && handle->pointer != NULL) {
    const leat_claim left = handle->left;
    handle->left.data = NULL;
    (void)leat_publisher_abort(handle->pointer, &left, NULL);
  }
  if (!handle->is_closing) return 1;
  if (handle->users == 0) close_now(handle);
  return 0;
}

void handle_close(Handle *handle) {
  if (handle->pointer == NULL) return;
  if (is_left_by_fork(handle)) {
    handle->pointer = NULL;
  } else if (handle->users == 0) {
    close_now(handle);
  } else {  // By a hook or finalizer: the call that it interrupted closes it.
    handle->is_closing = 1;
    if (handle->kind->stop != NULL) (void)handle->kind->stop(handle->pointer);
  }
}

void handle_drop(Handle *handle) {
  if (--handle->references == 0) free(handle);
}

// ---- Objects ------------------------------------------------------------------------------------

// What the userdata of a handle is. Known by its size and by `kind`, an address that nothing else has: looking for
// the metatable would take as long as a call of the library.
typedef struct Box {
  const HandleKind *kind;
  Handle *handle;  // NULL once collected.
} Box;

static Box *box_at(lua_State *L, int index, const HandleKind *kind) {
  Box *box = lua_touserdata(L, index);
  return box != NULL && lua_rawlen(L, index) == sizeof(Box) && box->kind == kind ? box : NULL;
}

static const HandleKind *kind_of_method(lua_State *L) { return lua_touserdata(L, lua_upvalueindex(1)); }

static void class_of(const HandleKind *kind, char name[40]) { snprintf(name, 40, "leat.%s", kind->name); }

Handle *handle_prepare(lua_State *L, const HandleKind *kind) {
  char class[40];
  Box *box = lua_newuserdatauv(L, sizeof(Box), 0);
  box->kind = kind;
  box->handle = NULL;
  class_of(kind, class);
  luaL_getmetatable(L, class);
  lua_setmetatable(L, -2);
  box->handle = calloc(1, sizeof(Handle));
  if (box->handle == NULL) luaL_error(L, "out of memory");
  box->handle->references = 1;
  box->handle->kind = kind;
  return box->handle;
}

void handle_fill(Handle *handle, void *pointer) {
  handle->pointer = pointer;
  handle->pid = this_process;
}

Handle *self_of(lua_State *L) {
  const HandleKind *kind = kind_of_method(L);
  const Box *box = box_at(L, 1, kind);
  if (box != NULL && box->handle != NULL) return box->handle;
  luaL_error(L, "expected a leat.%s: methods are called with ':'", kind->name);
  return NULL;
}

Handle *handle_at(lua_State *L, int index, const HandleKind *kind) {
  const Box *box = box_at(L, index, kind);
  if (box == NULL || box->handle == NULL) luaL_error(L, "expected a leat.%s, not a %s", kind->name, luaL_typename(L, index));
  return box->handle;
}

static int close_handle(lua_State *L) {
  handle_close(self_of(L));
  return 0;
}

static int collect(lua_State *L) {
  Box *box = box_at(L, 1, kind_of_method(L));
  if (box == NULL || box->handle == NULL) return 0;
  kept_drop(L, box->handle);
  handle_close(box->handle);
  // A finalizer that ran earlier may have kept the object, and may use it still.
  if (box->handle->users == 0) {
    handle_drop(box->handle);
    box->handle = NULL;
  }
  return 0;
}

static int is_closed(lua_State *L) {
  const Handle *handle = self_of(L);
  lua_pushboolean(L, handle->pointer == NULL || handle->is_closing);
  return 1;
}

static int text(lua_State *L) {
  const Handle *handle = self_of(L);
  lua_pushfstring(L, "leat.%s%s", handle->kind->name, handle->pointer == NULL ? " (closed)" : "");
  return 1;
}

// ---- Stop -------------------------------------------------------------------------------------

static Handle *usable(lua_State *L) {
  Handle *handle = self_of(L);
  if (handle->pointer == NULL || handle->is_closing) handle_refuse(L, handle);
  return handle;
}

static int stop(lua_State *L) {
  Handle *handle = usable(L);
  return nothing_or(L, handle->kind->stop(handle->pointer), 0);
}
static int resume(lua_State *L) {
  Handle *handle = usable(L);
  return nothing_or(L, handle->kind->resume(handle->pointer), 0);
}
static int is_stopped(lua_State *L) {
  Handle *handle = usable(L);
  uint32_t answer = 0;
  const int32_t code = handle->kind->is_stopped(handle->pointer, &answer);
  if (code != LEAT_OK) return fail(L, code, 0);
  lua_pushboolean(L, (int)answer);
  return 1;
}

// Functions with their kind as upvalue; into the table on the stack.
static void add_methods(lua_State *L, const HandleKind *kind, const luaL_Reg *methods) {
  for (; methods->name != NULL; ++methods) {
    lua_pushlightuserdata(L, (void *)(uintptr_t)kind);
    lua_pushcclosure(L, methods->func, 1);
    lua_setfield(L, -2, methods->name);
  }
}

void add_class(lua_State *L, const HandleKind *kind, const luaL_Reg *methods) {
  static const luaL_Reg special[] = {
      {"__close", close_handle}, {"__tostring", text}, {"__gc", collect}, {NULL, NULL}};
  static const luaL_Reg all[] = {{"close", close_handle}, {"closed", is_closed}, {NULL, NULL}};
  static const luaL_Reg stoppable[] = {
      {"stop", stop}, {"resume", resume}, {"is_stopped", is_stopped}, {NULL, NULL}};
  char class[40];
  int meta = 0;
  class_of(kind, class);
  luaL_newmetatable(L, class);
  meta = lua_gettop(L);
  lua_pushstring(L, class);
  lua_setfield(L, meta, "__name");
  lua_pushboolean(L, 0);
  lua_setfield(L, meta, "__metatable");  // Nobody replaces its functions, or calls __gc.
  add_methods(L, kind, special);
  lua_newtable(L);
  add_methods(L, kind, all);
  if (kind->stop != NULL) add_methods(L, kind, stoppable);
  add_methods(L, kind, methods);
  lua_setfield(L, meta, "__index");
  lua_pop(L, 1);
}
