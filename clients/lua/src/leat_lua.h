// What the files of the module share. Each file makes one class or a few that belong together.
//
// Functions of Lua that raise an error leave by longjmp; those that make something may run finalizers, which are any
// code. So between handle_enter() and handle_leave() there is neither, or lua_pcall() is around it.
#ifndef LEAT_LUA_LEAT_LUA_H
#define LEAT_LUA_LEAT_LUA_H

#include <lauxlib.h>
#include <lua.h>
// After lua.h.
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "explain.h"
#include "leat.h"

// ---- Lua 5.1, as LuaJIT has it --------------------------------------------------------------------

#if LUA_VERSION_NUM < 502
#define lua_rawlen lua_objlen
static inline int lua_absindex(lua_State *L, int index) {
  return index > 0 || index <= LUA_REGISTRYINDEX ? index : lua_gettop(L) + index + 1;
}
#endif
#if LUA_VERSION_NUM < 504
#define lua_newuserdatauv(L, size, values) lua_newuserdata(L, size)
#endif

// Pushes an element of a table, and returns its type.
static inline int push_element(lua_State *L, int table, int index) {
#if LUA_VERSION_NUM < 503
  lua_rawgeti(L, table, index);
  return lua_type(L, -1);
#else
  return lua_rawgeti(L, table, index);
#endif
}

// Numbers up to 2^53 are exact in LuaJIT, all others in Lua 5.4.
static inline void push_u64(lua_State *L, uint64_t number) {
#if LUA_VERSION_NUM < 503
  lua_pushnumber(L, (lua_Number)number);
#else
  lua_pushinteger(L, (lua_Integer)number);
#endif
}

// ---- Errors (errors.c) --------------------------------------------------------------------------

// What a wait returns that a hook ended; its error is on the stack.
enum { ENDED_BY_LUA = -1 };
// Pushes nil and the error that belongs to a code, and returns 2; raises what ended a wait.
int fail(lua_State *L, int32_t code, int32_t detail);
// Pushes only the error.
void push_error(lua_State *L, int32_t code, int32_t detail);
// The same, with a sentence that names what the call was about.
int fail_about(lua_State *L, const Subject *subject, int32_t code, int32_t detail);
// Returns true, or what fail() does.
int nothing_or(lua_State *L, int32_t code, int32_t detail);
int number_or(lua_State *L, int32_t code, int32_t detail, uint64_t number);
void add_errors(lua_State *L);  // To the table on the stack.

// ---- Handles (handle.c) -------------------------------------------------------------------------

// What a handle of the library is.
typedef struct HandleKind {
  const char *name;  // "topic"; its metatable is "leat.topic".
  int is_shared;     // May be used in a finalizer or hook while it is in use.
  void (*close)(void *pointer);
  // NULL if no call waits.
  int32_t (*stop)(void *pointer);
  int32_t (*resume)(void *pointer);
  int32_t (*is_stopped)(void *pointer, uint32_t *is_stopped);
} HandleKind;

// This process, noted again in the child of a fork: getpid() would ask the kernel for each byte of a view.
extern pid_t this_process;
// A topic, publisher, subscriber, group or member. Claims and views refer to it, and may be collected later.
typedef struct Handle {
  void *pointer;  // NULL once closed.
  const HandleKind *kind;
  int references;
  int users;       // Calls that are under way.
  // Subscribers and members: the reference of a list, and how many of its entries were returned. 0: none. See kept.c.
  int kept;
  int kept_at;
  int is_unused;   // A subscriber or member that nobody has read.
  int is_closing;  // To be closed when there are no users.
  int was_created;     // Groups.
  uint64_t open;       // Publishers: the id of the claim that is open. Subscribers: the view that has not ended.
  uint64_t last_view;  // Subscribers.
  uint64_t number;     // Members: never that of another one of this process.
  leat_claim left;     // Publishers: to be aborted when the call under way ends. data NULL: none.
  pid_t pid;           // Of the process that opened it.
} Handle;

// Makes the metatable of a class: methods with the kind as upvalue, and close, __gc and so on.
void add_class(lua_State *L, const HandleKind *kind, const luaL_Reg *methods);
// Of a method: what it is called with.
Handle *self_of(lua_State *L);
// Another argument.
Handle *handle_at(lua_State *L, int index, const HandleKind *kind);
// Pushes a handle that is closed, before the library opens anything, as it may raise.
Handle *handle_prepare(lua_State *L, const HandleKind *kind);
void handle_fill(Handle *handle, void *pointer);
// Raises the reason why the handle cannot be used now; or (1) pushes what fail() does.
int handle_refuse(lua_State *L, Handle *handle);
static inline int handle_is_usable(const Handle *handle) {
  return handle->pointer != NULL && !handle->is_closing &&
         (handle->users == 0 || handle->kind->is_shared);
}
// Begins a call. Returns from it if it cannot.
#define HANDLE_ENTER(L, handle)                                       \
  do {                                                                \
    if (!handle_is_usable(handle)) return handle_refuse((L), (handle)); \
    ++(handle)->users;                                                \
  } while (0)
// Ends a call; 0 if it was closed meanwhile.
int handle_leave(Handle *handle);
// Of a subscriber or member that belongs to this thread: nobody has read it so far; somebody reads it.
void handle_mark_unused(Handle *handle);
void handle_mark_used(Handle *handle);
// Whether there is one that nobody has read, in any state.
int are_handles_unused(void);
void handle_close(Handle *handle);
void handle_drop(Handle *handle);  // A reference.

// ---- Waits (wait.c) -----------------------------------------------------------------------------

// One call of the library, which waits for at most so long.
typedef int32_t (*Attempt)(void *context, int64_t timeout_ns, int32_t *detail);
// How long one of the calls lasts at most that a wait consists of. A signal that comes just before a sleep is noticed
// when the call ends.
typedef enum Slices {
  LONG_SLICES,
  // For what publishers wait for: the library wakes every 2 to 20 ms to look whether somebody has died.
  SHORT_SLICES,
  // For room. As short ones, unless there is a reader that nobody has used yet: the library reports
  // LEAT_ERR_WOULD_DEADLOCK because of that one only in a call that lasts longer than a second.
  ROOM_SLICES,
} Slices;
// Calls `attempt` until it returns something else than LEAT_ERR_TIMEOUT or the time has passed: in slices,
// between which hooks run. `handle` is entered; NULL: no handle.
int32_t wait_for(lua_State *L, const Handle *handle, int64_t timeout_ns, Slices slices, Attempt attempt,
                 void *context, int32_t *detail);
// Runs what a call of a function runs. 0 if it raised an error, which is on the stack.
int run_hooks(lua_State *L);

// ---- Arguments (options.c) ----------------------------------------------------------------------

int64_t parse_timeout(lua_State *L, int index);  // Seconds; nil or none: for ever.
int64_t parse_seconds(lua_State *L, int index, const char *what);
uint64_t parse_u64(lua_State *L, int index, const char *what);
uint32_t parse_partition(lua_State *L, int index);  // nil or none: LEAT_ANY_PARTITION
uint32_t parse_limit(lua_State *L, int index);      // 1 to MAX_LIMIT
enum { DEFAULT_LIMIT = 64, MAX_LIMIT = 65536 };
// "end", "beginning", or { offset = n }, { last = n }, { time = milliseconds }.
void parse_from(lua_State *L, int index, uint32_t *from, uint64_t *value);
// The bytes of a string, which must stay where it is.
leat_bytes parse_bytes(lua_State *L, int index, const char *what);

typedef enum OptionKind {
  OPTION_FLAG,          // uint32_t
  OPTION_U32,
  OPTION_U64,
  OPTION_SECONDS,       // int64_t nanoseconds
  OPTION_MILLISECONDS,  // int64_t milliseconds, given in seconds
  OPTION_TIMEOUT,       // int64_t nanoseconds; false is for ever
  OPTION_TEXT,          // leat_bytes
  OPTION_CHOICE,        // uint32_t; the index of a word in `choices`
  OPTION_PARTITION,     // uint32_t
  OPTION_FROM           // uint32_t; `from_value` lies at `second`
} OptionKind;
typedef struct Option {
  const char *name;  // NULL ends a list.
  OptionKind kind;
  size_t at;
  size_t second;
  const char *const *choices;
} Option;
// Stores the fields of a table (nil or none: none) in a struct of options. Leaves their texts on the stack.
void parse_options(lua_State *L, int index, const Option *list, void *into);

// Calls a function of the library that writes a text, of a handle (with its pointer) or (NULL) of none. Pushes it, or
// what fail() does.
typedef int32_t (*WriteText)(void *context, char *buffer, uint64_t capacity, uint64_t *size,
                             int32_t *detail);
int push_text(lua_State *L, Handle *handle, WriteText write, void *context);
// The same as a list of lines.
int push_lines(lua_State *L, Handle *handle, WriteText write, void *context);

// ---- Records (record.c) -------------------------------------------------------------------------

// What the library filled, to be pushed by push_entries(). One of `records` and `deliveries` is set.
typedef struct Entries {
  const leat_record *records;
  const leat_delivery *deliveries;
  uint32_t count;
  uint32_t capacity;
  int is_single;      // Not a list of them.
  int only_values;    // Strings, or gaps.
  Handle *viewed;     // Of a view: the subscriber.
  uint64_t owner;     // The member's number.
} Entries;
// In a protected call, so that the handle can be left. LUA_OK, or the error is on the stack.
int push_entries(lua_State *L, const Entries *entries);
// The delivery at `index`, or NULL: it is none of this member's. Raises if it is none at all, and no gap.
const leat_delivery *delivery_at(lua_State *L, int index, uint64_t owner, int *is_gap);
void add_records(lua_State *L);

// ---- Entries that were not returned (kept.c) ----------------------------------------------------

// Keeps what was read for the next call. Raises nothing; leaves the stack as it is.
void kept_store(lua_State *L, Handle *handle, const Entries *entries);
// Pushes up to so many of them, as `how` says. There are some.
int kept_take(lua_State *L, Handle *handle, uint32_t limit, const Entries *how);
// The offset of the first of a partition; 0 if there is none.
int kept_offset(lua_State *L, const Handle *handle, uint32_t partition, uint64_t *offset);
// Of a member: gives them back to the group.
void kept_requeue(lua_State *L, Handle *handle);
void kept_drop(lua_State *L, Handle *handle);
// Whether a call returns these instead of reading. The child of a fork gets LEAT_ERR_FORKED of the library.
static inline int has_kept(const Handle *handle) {
  return handle->kept != 0 && handle_is_usable(handle) && handle->pid == this_process;
}

// ---- The other classes --------------------------------------------------------------------------

extern const HandleKind topic_kind, publisher_kind, subscriber_kind, group_kind, member_kind;
int topic_publisher(lua_State *L);
int topic_subscriber(lua_State *L);
int topic_group(lua_State *L);
int topic_find_group(lua_State *L);
int topic_delete_group(lua_State *L);
int topic_group_names(lua_State *L);
int group_join(lua_State *L);
int publisher_claim(lua_State *L);
int wait_any(lua_State *L);
void add_topics(lua_State *L);  // Its functions to the table on the stack.
void add_publishers(lua_State *L);
void add_claims(lua_State *L);
void add_subscribers(lua_State *L);
void add_groups(lua_State *L);
void add_members(lua_State *L);

#endif
