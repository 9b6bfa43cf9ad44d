// What the files of the addon share. Only lib/ calls it, so it checks what could crash, and lib/ the rest.
//
// Functions return a result, or a code of the library below zero: -LEAT_ERR_FULL. What else is known of an error
// is then in Addon.detail. Everything runs on the thread of its environment (each worker_thread has one), except
// the `run` of tasks.
#ifndef LEAT_NODE_ADDON_H
#define LEAT_NODE_ADDON_H

#define NAPI_VERSION 8
#include <node_api.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "leat.h"

// A handle that is closed. No code of the library is as large.
enum { CODE_CLOSED = 1000 };

// ---- Environments (addon.c) -----------------------------------------------------------------------

typedef struct Handle Handle;
typedef struct Task Task;

typedef struct Addon {
  uv_loop_t *loop;
  Handle *handles;  // All that exist.
  napi_async_cleanup_hook_handle hook;
  uint32_t closing_pollers;
  uint32_t closing_handles;  // On other threads. Tasks begin when there are none.
  Task *first_waiting;       // For that.
  Task **after_waiting;
  int is_ending;
  int32_t detail;  // Of the last error.
} Addon;

Addon *addon_of(napi_env env);
// Lets an environment end that has waited for something to close.
void addon_settle(Addon *addon);
napi_value number(napi_env env, double value);
// -code, and keeps the detail.
napi_value failure(napi_env env, int32_t code, int32_t detail);
static inline napi_value done_or(napi_env env, int32_t code, int32_t detail) {
  return code == LEAT_OK ? number(env, 0) : failure(env, code, detail);
}
static inline napi_value number_or(napi_env env, int32_t code, uint64_t value, int32_t detail) {
  return code == LEAT_OK ? number(env, (double)value) : failure(env, code, detail);
}

// The arguments of a call; missing ones are undefined.
enum { MAX_ARGUMENTS = 8 };
typedef struct Call {
  size_t count;
  napi_value args[MAX_ARGUMENTS];
} Call;
static inline void call_begin(napi_env env, napi_callback_info info, Call *call) {
  call->count = MAX_ARGUMENTS;
  (void)napi_get_cb_info(env, info, &call->count, call->args, NULL, NULL);
}

typedef struct Method {
  const char *name;
  napi_callback call;
} Method;
extern const Method handle_methods[], topic_methods[], publisher_methods[], subscriber_methods[],
    group_methods[], member_methods[];

// ---- Handles (handle.c) -------------------------------------------------------------------------

typedef enum Kind { TOPIC, PUBLISHER, SUBSCRIBER, GROUP, MEMBER } Kind;

// Waits for a descriptor of the library in the event loop.
typedef struct Poller {
  uv_poll_t poll;  // First.
  Addon *addon;
  napi_env env;
  int fd;
  napi_ref callback;  // NULL: it does not wait.
} Poller;
// Publishers have two: for room, and for stable storage.
enum { WAIT_DATA = 0, WAIT_ROOM = 0, WAIT_DURABLE = 1, MAX_POLLERS = 2 };

// Lives until nobody knows it any more: neither JavaScript nor a task.
struct Handle {
  void *pointer;  // NULL once closed.
  Kind kind;
  uint32_t users;  // Tasks that use it. It closes when the last one ends.
  int is_closing;
  int is_dropped;  // By JavaScript.
  int is_durable;  // Of a durable topic: to close it may write to disk.
  Addon *addon;
  Handle *next;
  Handle **before;  // What points to it.
  Poller *pollers[MAX_POLLERS];
  // Subscribers and members: what was read last, until it is copied.
  leat_record *records;
  leat_delivery *deliveries;
  uint32_t capacity;
  uint32_t count;
  leat_claim claim;  // Publishers: the last one.
};

// A value for JavaScript, whose collector closes the handle. NULL, and closes the pointer, without memory.
napi_value handle_new(napi_env env, Kind kind, void *pointer, int is_durable);
// Any thread.
void handle_close_pointer(Kind kind, void *pointer);
// The open handle; NULL if it is closed, or none of this kind.
static inline Handle *handle_of(napi_env env, napi_value value, Kind kind) {
  void *data = NULL;
  Handle *handle = NULL;
  if (napi_get_value_external(env, value, &data) != napi_ok) return NULL;
  handle = data;
  return handle->kind == kind && handle->pointer != NULL && !handle->is_closing ? handle : NULL;
}
static inline napi_value closed(napi_env env) { return failure(env, CODE_CLOSED, 0); }
// A task begins to use it, and ends.
void handle_use(Handle *handle);
void handle_leave(Handle *handle);
// Closes what waits in the event loop, before the environment ends.
void handle_end_waits(Handle *handle);

// ---- Values (values.c) --------------------------------------------------------------------------

// The bytes of a view (Buffer, typed array, DataView). 0 if it is none.
int bytes_of(napi_env env, napi_value value, leat_bytes *bytes);
// The memory of a typed array that lib/ made. NULL if it is shorter than `size`.
void *memory_of(napi_env env, napi_value value, uint64_t size);
int is_nothing(napi_env env, napi_value value);  // undefined or null
uint32_t u32_of(napi_env env, napi_value value, uint32_t otherwise);
double double_of(napi_env env, napi_value value, double otherwise);
// A copy of a string, which the caller frees, and its size. NULL if it is none.
char *text_of(napi_env env, napi_value value, uint64_t *size);
napi_value make_text(napi_env env, const char *text, uint64_t size);

// Calls a function of the library that writes a text. The caller frees `text`.
typedef int32_t (*WriteText)(void *context, char *buffer, uint64_t capacity, uint64_t *size,
                             int32_t *detail);
int32_t read_text(WriteText write, void *context, char **text, uint64_t *size, int32_t *detail);
// The same at once, as a string.
napi_value text_result(napi_env env, WriteText write, void *context);

// ---- Options (options.c) ------------------------------------------------------------------------

typedef enum OptionKind {
  OPTION_FLAG,  // uint32_t
  OPTION_U32,
  OPTION_U64,
  OPTION_MS_AS_NS,  // int64_t nanoseconds, given in milliseconds
  OPTION_MS,        // int64_t milliseconds
  OPTION_TEXT,      // leat_bytes, which the caller frees
  OPTION_CHOICE,    // uint32_t; the index of a text in `choices`
  OPTION_FROM       // uint32_t; its value lies at `second`
} OptionKind;
typedef struct Option {
  const char *name;  // NULL ends a table.
  OptionKind kind;
  size_t at;
  size_t second;
  const char *const *choices;
} Option;
// Stores the properties of an object (or of nothing) in a struct. 0 with an exception if one is wrong, or
// not in the table. undefined stands for the default.
int parse_options(napi_env env, napi_value object, const Option *table, void *into);
void free_options(const Option *table, void *options);
int parse_from(napi_env env, napi_value value, uint32_t *from, uint64_t *number);

// ---- Tasks (task.c) -----------------------------------------------------------------------------

// A call that may take long, on a thread of Node's pool. Its promise fulfills with [code, detail, result].
struct Task {
  void (*run)(Task *task);                         // On another thread: no Node-API.
  napi_value (*result)(napi_env env, Task *task);  // If the code is LEAT_OK. May be NULL.
  int32_t code;
  int32_t detail;
  Handle *handle;  // Used meanwhile; may be NULL.
  char *name;      // The task frees these, and the texts in options.
  uint64_t name_size;
  const Option *table;
  union {
    leat_topic_options topic;
    leat_place place;
    leat_group_options group;
    leat_member_options member;
  } options;
  int64_t timeout_ns;
  uint32_t flag;
  void *pointer;  // Of the handle that it made.
  char *text;
  uint64_t text_size;
  double number;
  napi_async_work work;
  napi_deferred deferred;
  napi_env env;
  Task *next;  // That waits.
};
Task *task_new(void (*run)(Task *), napi_value (*result)(napi_env, Task *));
// Gives it to the pool, which frees it. Returns the promise.
napi_value task_start(napi_env env, Task *task);
void task_free(Task *task);
// Closes on a thread of the pool. What this thread begins later finds it closed.
void task_close(Addon *addon, Kind kind, void *pointer);

// ---- Reading (read.c) ---------------------------------------------------------------------------

// What lib/ learns of an entry, as numbers: ENTRY_SIZE of them.
enum {
  ENTRY_FLAGS,
  ENTRY_PARTITION,
  ENTRY_OFFSET,
  ENTRY_VALUE,
  ENTRY_KEY,
  ENTRY_HEADERS,
  ENTRY_TIME,
  ENTRY_DELIVERIES,
  ENTRY_SIZE
};
// Room for so many records or deliveries. 0 without memory.
int read_room(Handle *handle, uint32_t limit);
// copy(handle, numbers, bytes, at, tokens): what was read last. Key, headers and value of each record follow
// each other in `bytes`. `tokens`, of members: the deliveries themselves.
napi_value read_copy(napi_env env, napi_callback_info info);
// The bytes that read_copy() writes.
uint64_t read_size(const Handle *handle);

#endif
