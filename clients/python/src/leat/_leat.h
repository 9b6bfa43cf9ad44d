// What the files of the extension share. Each file makes one type or a few that belong together.
//
// Everything here runs with the GIL, except the calls into the library within library_begin() and
// library_end(). The GIL is what guards the fields of handles.
#ifndef LEAT_PYTHON_LEAT_H
#define LEAT_PYTHON_LEAT_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
// After Python.h.
#include <stddef.h>
#include <stdint.h>
#include <structmember.h>
#include <sys/types.h>

#include "explain.h"
#include "leat.h"

// ---- Errors (errors.c) --------------------------------------------------------------------------

// Raises the exception that belongs to a code. Returns NULL.
PyObject *raise_code(int32_t code, int32_t detail);
// The same, with a sentence that names what the call was about.
PyObject *raise_about(const Subject *subject, int32_t code, int32_t detail);
// As LEAT_ERR_BUSY, with a sentence of our own. Returns NULL.
PyObject *raise_busy(const char *sentence);
// Of a call that iterates: when waits are stopped there is no next entry, which is no error.
PyObject *end_iteration(PyObject *entry);
// Adds Error, one class for each code, and the constants.
int add_errors(PyObject *module);

// ---- Handles (handle.c) -------------------------------------------------------------------------

typedef struct Handle Handle;

// What a handle of the library is, apart from its type.
typedef struct HandleKind {
  const char *name;
  int is_shared;  // Several threads may use it at once.
  void (*close)(void *pointer);
  // NULL if no call waits.
  int32_t (*stop)(void *pointer);
  int32_t (*resume)(void *pointer);
  int32_t (*is_stopped)(void *pointer, uint32_t *is_stopped);
  // Called before it is closed: ends the view or claim, if nothing of it is lent. May be NULL.
  void (*let_go)(Handle *handle);
} HandleKind;

// A topic, publisher, subscriber, group or member.
struct Handle {
  PyObject_HEAD
  void *pointer;  // NULL once closed.
  const HandleKind *kind;
  Py_ssize_t users;  // Calls that are under way; with the GIL released, or running Python code.
  Py_ssize_t lent;   // Buffers that point to memory which is gone once this is closed.
  int is_closing;    // To be closed when there are neither users nor lent buffers.
  // Subscribers and members: a list of entries that were read and not delivered; NULL: none. See pending.c.
  PyObject *pending;
  Py_ssize_t pending_at;
  int is_unused;     // A subscriber or member that has not been read.
  const void *awaited_by;  // A task of asyncio, which waits for the descriptor. NULL: none.
  pid_t pid;         // Of the process that opened it.
  int64_t spin_ns;   // How long a wait tries again before it sleeps. The library would spin in each slice.
};

extern PyTypeObject *handle_type;     // close, closed, with
extern PyTypeObject *stoppable_type;  // also stop, resume, is_stopped
int add_handles(PyObject *module);

// A new object of a type derived from handle_type. Closes the pointer if there is no memory.
PyObject *handle_new(PyTypeObject *type, const HandleKind *kind, void *pointer);
// Raises the reason why the handle cannot be used now. Returns 0.
int handle_refuse(Handle *handle);
// Begins a call; 0 with an exception if it cannot.
static inline int handle_enter(Handle *handle) {
  if (handle->pointer == NULL || handle->is_closing ||
      (handle->users != 0 && !handle->kind->is_shared))
    return handle_refuse(handle);
  ++handle->users;
  return 1;
}
// Closes it if it is to be closed and can be. Keeps the exception that is set.
void handle_settle(Handle *handle);
// Ends a call.
static inline void handle_leave(Handle *handle) {
  if (handle->users > 0) --handle->users;
  if (handle->is_closing) handle_settle(handle);
}
// 0, or -1 with a BufferError.
int handle_close(Handle *handle);
void handle_dealloc(PyObject *self);
// Of a subscriber or member: nobody has read it so far; somebody reads it.
void handle_mark_unused(PyObject *self);
void handle_mark_used(Handle *handle);
// Whether there is one that nobody has read.
int are_handles_unused(void);

// Immutable, so that nobody assigns another __class__. Nobody makes them but the library.
#define LEAF_TYPE \
  (Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE)
#define BASE_TYPE (LEAF_TYPE | Py_TPFLAGS_BASETYPE)
// Adds a type to the module; `base` may be NULL.
PyTypeObject *add_type(PyObject *module, PyType_Spec *spec, PyTypeObject *base);

// ---- Waits (wait.c) -----------------------------------------------------------------------------

// One call of the library, which waits for at most so long.
typedef int32_t (*Attempt)(void *context, int64_t timeout_ns, int32_t *detail);
// How long one of the calls lasts at most that a wait consists of. A signal that comes just before a sleep is noticed
// when the call ends.
typedef enum Slices {
  LONG_SLICES,
  // For what publishers wait for: the library wakes every 2 to 20 ms to look whether somebody has died.
  SHORT_SLICES,
  // For room. As short ones, unless only this thread could read, and there is a reader that it has not used yet: the
  // library reports LEAT_ERR_WOULD_DEADLOCK because of that one only in a call that lasts longer than a second.
  ROOM_SLICES,
} Slices;
// Calls `attempt` until it returns something else than LEAT_ERR_TIMEOUT or the time has passed: first with
// the GIL and without waiting, then without the GIL and in slices, between which signals are handled.
// Returns -1 with an exception if a signal handler raised one. LEAT_ERR_WOULD_DEADLOCK is returned only if there is
// no other thread of Python, which could use the readers of this one. `handle` is entered; NULL: no handle.
int32_t wait_for(Handle *handle, int64_t timeout_ns, Slices slices, Attempt attempt, void *context,
                 int32_t *detail);
// Seconds, or None for ever. -1 is LEAT_FOREVER. 0 with an exception if it is neither.
int parse_timeout(PyObject *seconds, int64_t *timeout_ns);
// The same of seconds that are not negative.
int parse_seconds(PyObject *seconds, const char *what, int64_t *ns);
int parse_partition(PyObject *number, uint32_t *partition);  // None: LEAT_ANY_PARTITION
int parse_u64(PyObject *number, const char *what, uint64_t *value);
// How many entries to read at most: 1 to MAX_LIMIT.
int parse_limit(PyObject *number, uint32_t *limit);
enum { DEFAULT_LIMIT = 64, MAX_LIMIT = 65536 };

// Arguments of a METH_FASTCALL | METH_KEYWORDS function into `out`, which holds NULL for those that are
// missing. `names` ends with NULL. 0 with an exception if one is wrong.
int parse_arguments(const char *function, PyObject *const *args, Py_ssize_t count, PyObject *names,
                    const char *const *wanted, Py_ssize_t required, PyObject **out);

// ---- Options and bytes (options.c, bytes.c) -----------------------------------------------------

// Buffers and memory that a call needs until it ends.
typedef struct Block Block;
typedef struct Arena {
  Block *blocks;
} Arena;
void *arena_memory(Arena *arena, size_t size);
// The bytes of a bytes-like object. `what` names it in the TypeError. None gives no bytes if `or_none`.
int arena_bytes(Arena *arena, PyObject *object, const char *what, leat_bytes *bytes);
void arena_end(Arena *arena);
// Key and headers, either of which may be NULL or None.
int arena_record(Arena *arena, PyObject *value, PyObject *key, PyObject *headers,
                 leat_new_record *record);
// Values, which are bytes-like objects, or records (attributes value, key, headers). Exactly one of
// `values` and `records` is set.
typedef struct NewBatch {
  leat_bytes *values;
  leat_new_record *records;
  uint64_t count;
} NewBatch;
int arena_batch(Arena *arena, PyObject *tuple, NewBatch *batch);

typedef enum OptionKind {
  OPTION_FLAG,          // uint32_t
  OPTION_U32,
  OPTION_U64,
  OPTION_SECONDS,       // int64_t nanoseconds
  OPTION_TIMEOUT,       // int64_t nanoseconds; None is LEAT_FOREVER
  OPTION_MILLISECONDS,  // int64_t milliseconds, given in seconds
  OPTION_TEXT,          // leat_bytes; also a path
  OPTION_CHOICE,        // uint32_t; the index of a text in `choices`
  OPTION_PARTITION,     // uint32_t
  OPTION_FROM           // uint32_t; `from_value` lies at `second`
} OptionKind;
typedef struct Option {
  const char *name;  // NULL ends a table.
  OptionKind kind;
  size_t at;
  size_t second;
  const char *const *choices;
} Option;
// Stores keyword arguments (NULL: none) in a struct of options. None stands for the default, except of a timeout.
int parse_options(const char *function, PyObject *arguments, const Option *table, void *into,
                  Arena *arena);
int parse_from(PyObject *object, uint32_t *from, uint64_t *value);
// UTF-8 that lives as long as the object; NULL with an exception.
const char *parse_name(PyObject *object, uint64_t *size);
// The same of the only positional argument.
const char *name_argument(const char *function, PyObject *arguments, uint64_t *size);

// Calls a function of the library that writes a text.
typedef int32_t (*WriteText)(void *context, char *buffer, uint64_t capacity, uint64_t *size,
                             int32_t *detail);
PyObject *text_of(WriteText write, void *context);
// The same of a handle.
PyObject *handle_text(PyObject *self, WriteText write);
// A list of texts from one in which each ends with a line feed.
PyObject *list_of_lines(PyObject *text);

// ---- Records (record.c) -------------------------------------------------------------------------

extern PyTypeObject *record_type;
extern PyTypeObject *delivery_type;
int add_records(PyObject *module);
// A Record, or a Gap.
PyObject *entry_new(const leat_record *record);
// A Delivery, or a Gap. `owner` is the member's number.
PyObject *delivery_new(const leat_delivery *delivery, uint64_t owner);
// The delivery that the library gave; NULL with an exception if the object is none, or another member's.
const leat_delivery *delivery_of(PyObject *object, uint64_t owner);
// Whether that would be no error.
int is_delivery_of(PyObject *object, uint64_t owner);
int is_gap_object(PyObject *object);
PyObject *gap_new(const leat_record *record);
// New references.
PyObject *headers_of(const leat_record *record);
PyObject *key_of(const leat_record *record);
PyObject *timestamp_of(const leat_record *record);
// The value of a Record as bytes; NULL without an exception if it is a Gap. Borrowed.
PyObject *value_of(PyObject *entry);
uint64_t offset_of(PyObject *entry, uint32_t *partition);

// ---- Entries that were not delivered (pending.c) ------------------------------------------------

// 0 with leat.Forked if there are some and they are the parent process's.
int pending_is_own(const Handle *self);
// There are some. The first, borrowed or taken out.
PyObject *pending_peek(const Handle *self);
PyObject *pending_take(Handle *self);
// A list of up to so many.
PyObject *pending_take_some(Handle *self, uint32_t limit);
// The last thing of a call that returns entries, a list or (`is_single`) one: handles signals. If a handler raises, Python
// would drop what the call returns: so the next call returns it. Takes the reference over.
PyObject *deliver(Handle *self, PyObject *made, int is_single);

// ---- The other types ----------------------------------------------------------------------------

typedef struct View View;
typedef struct Subscriber {
  Handle base;
  View *view;  // That has not ended. Borrowed.
} Subscriber;

// An array that the library fills. Short ones are on the stack.
typedef struct Reading {
  Subscriber *subscriber;
  leat_record *records;
  uint32_t capacity;
  uint32_t count;
  int is_ready;  // Of a view: taking comes next, not waiting.
  leat_record few[DEFAULT_LIMIT];
} Reading;

// Begins a call that reads; 0 with an exception.
int reading_begin(Subscriber *self, Reading *reading, uint32_t limit);
// Waits for records. 0 with an exception, except that there need not be any in time if `may_be_none`.
int reading_some(Reading *reading, int64_t timeout_ns, int may_be_none);
void reading_end(Reading *reading);
// Keeps what was read from `first` on for the next call. 0 with an exception.
int pending_keep(Reading *reading, uint32_t first);
// Handles signals. 0 with the exception that a handler raised: then all that was read is kept.
int reading_check_signals(Reading *reading);
PyObject *subscriber_read_values(PyObject *self, PyObject *const *args, Py_ssize_t count,
                                 PyObject *names);
PyObject *subscriber_read_into(PyObject *self, PyObject *const *args, Py_ssize_t count,
                               PyObject *names);

// Of publishers, and of subscribers and members, written in Python (_async.py).
PyObject *publish_async(PyObject *self, PyObject *args, PyObject *named);
PyObject *publish_batch_async(PyObject *self, PyObject *args, PyObject *named);
PyObject *flush_async(PyObject *self, PyObject *args, PyObject *named);
PyObject *receive_async(PyObject *self, PyObject *args, PyObject *named);
PyObject *receive_batch_async(PyObject *self, PyObject *args, PyObject *named);
PyObject *next_async(PyObject *self);

extern const HandleKind topic_kind;
extern PyTypeObject *topic_type;
int add_topics(PyObject *module);
PyObject *topic_publisher(PyObject *self, PyObject *args, PyObject *options);
int add_publishers(PyObject *module);
PyObject *topic_subscriber(PyObject *self, PyObject *args, PyObject *options);
int add_subscribers(PyObject *module);
PyObject *subscriber_wait_any(PyObject *module, PyObject *const *args, Py_ssize_t count,
                              PyObject *names);
extern PyTypeObject *subscriber_type;
int add_views(PyObject *module);
// Takes the array over.
PyObject *view_new(Subscriber *subscriber, leat_record *entries, uint32_t count);
// Ends it if nothing is lent.
void view_let_go(View *view);
PyObject *topic_group(PyObject *self, PyObject *args, PyObject *options);
PyObject *topic_find_group(PyObject *self, PyObject *name);
PyObject *topic_delete_group(PyObject *self, PyObject *args, PyObject *options);
PyObject *topic_group_names(PyObject *self, PyObject *none);
int add_groups(PyObject *module);
PyObject *group_join(PyObject *self, PyObject *args, PyObject *options);
int add_members(PyObject *module);

// Of publishers: the claim that is open.
typedef struct Claim Claim;
typedef struct Publisher {
  Handle base;
  uint32_t partitions;  // Of its topic.
  Claim *claim;     // Borrowed; NULL: none.
  leat_claim left;  // Nobody will finish it; to be aborted when the call that is under way ends. data NULL: none.
} Publisher;
// handle_leave(), and aborts `left`.
void publisher_leave(Publisher *publisher);
extern PyTypeObject *publisher_type;
int add_claims(PyObject *module);
PyObject *publisher_claim(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names);
// Takes back the claim's own buffer before the publisher is closed.
void claim_let_go(Claim *claim);

#endif
