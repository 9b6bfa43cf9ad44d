// What the files of the extension share. Each file makes one class or a few that belong together.
//
// Everything here runs with the GVL, except what wait.c calls without it. The GVL is what guards the fields of
// handles. A function of Ruby that raises leaves by longjmp: so between handle_enter() and handle_leave() there
// is none, or rb_protect() is around it.
#ifndef LEAT_RUBY_LEAT_RUBY_H
#define LEAT_RUBY_LEAT_RUBY_H

#include <ruby.h>
// After ruby.h.
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "explain.h"
#include "leat.h"

extern VALUE leat_module;

// ---- Errors (errors.c) --------------------------------------------------------------------------

// What a wait returns that ended by an exception, or by the end of its thread; `detail` says which.
enum { ENDED_BY_RUBY = -1 };
// Raises the exception that belongs to a code; goes on with what ended a wait.
NORETURN(void raise_code(int32_t code, int32_t detail));
// The same, with a sentence that names what the call was about.
NORETURN(void raise_about(const Subject *subject, int32_t code, int32_t detail));
// As LEAT_ERR_BUSY, with a sentence of our own.
NORETURN(void raise_busy(const char *format, const char *what));
// Leat::ClosedError: "the subscriber is closed".
NORETURN(void raise_closed(const char *what));
void add_errors(void);

// ---- Handles (handle.c) -------------------------------------------------------------------------

// This process, noted again in the child of a fork: getpid() would ask the kernel for each byte of a view.
extern pid_t this_process;
// What a handle of the library is, apart from its class.
typedef struct HandleKind {
  const char *name;
  int is_shared;  // Several threads may use it at once.
  void (*close)(void *pointer);
  // NULL if no call waits.
  int32_t (*stop)(void *pointer);
  int32_t (*resume)(void *pointer);
  int32_t (*is_stopped)(void *pointer, uint32_t *is_stopped);
  // NULL if it has no descriptor that is readable when there may be something to read.
  int32_t (*wait_fd)(void *pointer, int32_t *fd, int32_t *detail);
} HandleKind;

// A topic, publisher, subscriber, group or member. First in the struct of each.
typedef struct Handle {
  void *pointer;  // NULL once closed.
  const HandleKind *kind;
  long users;      // Calls that are under way, without the GVL or in a signal's handler.
  int is_closing;  // To be closed when there are no users.
  pid_t pid;       // Of the process that opened it.
  int64_t spin_ns;  // How long a wait tries again before it sleeps.
  int is_unused;    // A subscriber or member that nobody has read.
  VALUE kept;       // Subscribers and members: an Array of entries that were read and not returned. 0: none. See kept.c.
} Handle;

extern const rb_data_type_t handle_type;  // The parent of each handle's type.
extern VALUE stoppable_class;             // Derived from Handle; also stop, resume, stopped?
extern VALUE handle_class;
#define HANDLE_TYPE(variable, name, size, release)                                               \
  const rb_data_type_t variable = {                                                              \
      name, {handle_mark, release, size, NULL, {NULL}}, &handle_type, NULL, RUBY_TYPED_FREE_IMMEDIATELY}
void handle_mark(void *handle);
void handle_release(void *handle);
size_t handle_size(const void *handle);

// The handle that an object is; TypeError if it is none.
Handle *handle_of(VALUE object);
// A handle to be filled, closed; `size` is that of its struct. Before the library opens anything, as it may raise.
VALUE handle_prepare(VALUE class, const rb_data_type_t *type, size_t size);
// Opens it.
void handle_fill(VALUE object, const HandleKind *kind, void *pointer);
// The object, or with a block what that returns, after which the object is closed.
VALUE handle_lend(VALUE object);
NORETURN(void handle_refuse(Handle *handle));
// Begins a call; raises if it cannot.
static inline void handle_enter(Handle *handle) {
  if (handle->pointer == NULL || handle->is_closing ||
      (handle->users != 0 && !handle->kind->is_shared))
    handle_refuse(handle);
  ++handle->users;
}
// Of a subscriber or member: nobody has read it so far; somebody reads it.
void handle_mark_unused(Handle *handle);
void handle_mark_used(Handle *handle);
// Whether there is one that nobody has read.
int are_handles_unused(void);
void handle_close(Handle *handle);
// Closes it now if it is to be closed and can be.
void handle_settle(Handle *handle);
// Ends a call; 0 if somebody closed it meanwhile.
static inline int handle_leave(Handle *handle) {
  if (handle->users > 0) --handle->users;
  if (!handle->is_closing) return 1;
  handle_settle(handle);
  return 0;
}
void add_handles(void);

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
// Calls `attempt` without the GVL and in slices, between which interrupts are handled, until it returns
// something else than LEAT_ERR_TIMEOUT or the time has passed. Raises nothing: see ENDED_BY_RUBY. In a fiber that has a
// scheduler, `attempt` does not wait, and other fibers run until the descriptor of `handle` (NULL: none) is readable.
// LEAT_ERR_WOULD_DEADLOCK is returned only if there is no other thread, which could use the readers of this one.
int32_t wait_unlocked(Handle *handle, int64_t timeout_ns, Slices slices, Attempt attempt, void *context,
                      int32_t *detail);
// The same, but tries it first with the GVL and without waiting, and again and again for `spin_ns` before it sleeps.
int32_t wait_for(Handle *handle, int64_t spin_ns, int64_t timeout_ns, Slices slices, Attempt attempt, void *context,
                 int32_t *detail);

// Takes `spin_ns` out of the options of a subscriber or member: the library would spin in each slice.
int64_t take_spin(int64_t *option);

// ---- Arguments (options.c) ----------------------------------------------------------------------

// Seconds, or nil for ever.
int64_t parse_timeout(VALUE seconds);
int64_t parse_seconds(VALUE seconds, const char *what);
uint64_t parse_u64(VALUE number, const char *what);
uint32_t parse_partition(VALUE number);  // nil: LEAT_ANY_PARTITION
// How many entries to read at most: 1 to MAX_LIMIT.
uint32_t parse_limit(VALUE number);
enum { DEFAULT_LIMIT = 64, MAX_LIMIT = 65536 };
// :end, :beginning, or { offset: n }, { last: n }, { time: Time or milliseconds }.
void parse_from(VALUE object, uint32_t *from, uint64_t *value);
// The bytes of a String, or a TypeError. Not copied.
leat_bytes parse_bytes(VALUE string, const char *what);

// The arguments of a call: up to `required` + `optional` positional ones (Qundef: missing), and then those
// named in `names`, which ends with NULL.
void parse_arguments(int argc, const VALUE *argv, int required, int optional,
                     const char *const *names, VALUE *out);

typedef enum OptionKind {
  OPTION_FLAG,          // uint32_t
  OPTION_U32,
  OPTION_U64,
  OPTION_SECONDS,       // int64_t nanoseconds
  OPTION_MILLISECONDS,  // int64_t milliseconds, given in seconds
  OPTION_TEXT,          // leat_bytes; also a path
  OPTION_CHOICE,        // uint32_t; the index of a word in `choices`
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
// Texts that a call needs until it ends. On the stack, where the collector sees them and does not move them.
enum { MAX_TEXTS = 4 };
typedef struct Texts {
  volatile VALUE kept[MAX_TEXTS];
  int count;
} Texts;
// Takes `names` positional Strings (one or none) and stores keyword arguments in a struct of options. nil stands
// for the default. Returns the name.
leat_bytes parse_options(int argc, const VALUE *argv, int names, const Option *table, void *into,
                         Texts *texts);

// Calls a function of the library that writes a text.
typedef int32_t (*WriteText)(void *context, char *buffer, uint64_t capacity, uint64_t *size,
                             int32_t *detail);
VALUE text_of(WriteText write, void *context);
// Of an open handle.
VALUE text_of_handle(VALUE object, WriteText write);
// An Array of texts from one in which each ends with a line feed.
VALUE lines_of(VALUE text);

// ---- Records (record.c) -------------------------------------------------------------------------

// A Record, or a Gap.
VALUE entry_new(const leat_record *record);
// The value of a record, or a Gap.
VALUE value_or_gap(const leat_record *record);
// A Delivery, or a Gap. `owner` is the member's number.
VALUE delivery_new(const leat_delivery *delivery, uint64_t owner);
// What the library gave; raises TypeError if the object is none, NotInFlight if it is another member's.
const leat_delivery *delivery_of(VALUE object, uint64_t owner);
int is_delivery(VALUE object);
int is_delivery_of(VALUE object, uint64_t owner);
int is_gap(VALUE object);
VALUE bytes_of(const void *data, uint64_t size);
VALUE key_of(const leat_record *record);
VALUE headers_of(const leat_record *record);
VALUE timestamp_of(const leat_record *record);
void add_records(void);

// ---- Entries that were not returned (kept.c) ----------------------------------------------------

// Handles interrupts. Not 0: one raises, which rb_jump_tag() goes on with; the handle is entered.
int interrupts_pending(Handle *handle);
// Keeps a list for the next call, leaves the handle and goes on with that.
NORETURN(void keep_and_raise(Handle *handle, VALUE list, int state));
// Both: the last thing of a call that returns entries, an Array or (`is_single`) one.
VALUE deliver(Handle *handle, VALUE made, int is_single);
// Whether a call returns such entries instead of reading. Raises if the handle cannot be used. The child of a fork gets
// LEAT_ERR_FORKED of the library.
int has_kept(Handle *handle);
// There are some. The first; an Array of so many, or of their values.
VALUE kept_take(Handle *handle);
VALUE kept_take_some(Handle *handle, uint32_t limit, int only_values);
// The offset of the first of a partition; 0 if there is none.
int kept_offset(const Handle *handle, uint32_t partition, uint64_t *offset);
// Of a member: gives them back to the group.
void kept_requeue(Handle *handle, uint64_t owner);

// ---- The other classes --------------------------------------------------------------------------

typedef struct Subscriber {
  Handle base;
  uint64_t view;       // The number of the view whose block runs; 0: none.
  uint64_t last_view;
} Subscriber;
Subscriber *subscriber_of(VALUE object);
// Reads into an array, and raises what went wrong. Returns how many.
uint32_t subscriber_read(VALUE object, leat_record *records, uint32_t limit, int64_t timeout_ns);
VALUE subscriber_view(int argc, VALUE *argv, VALUE object);
void add_views(void);

// Of publishers, and the claims that they made: whoever is dropped last frees it.
typedef struct Publisher {
  Handle base;
  int references;
  uint64_t open;     // The id of the claim that is open; 0: none.
  leat_claim left;   // Nobody will finish it; to be aborted when the call under way ends. data NULL: none.
} Publisher;
Publisher *publisher_of(VALUE object);
void publisher_drop(Publisher *publisher);
// handle_leave(), and aborts `left`.
void publisher_leave(Publisher *publisher);
VALUE publisher_claim(int argc, VALUE *argv, VALUE object);
void add_claims(void);

VALUE topic_publisher(int argc, VALUE *argv, VALUE object);
VALUE topic_subscriber(int argc, VALUE *argv, VALUE object);
VALUE topic_group(int argc, VALUE *argv, VALUE object);
VALUE topic_find_group(VALUE object, VALUE name);
VALUE topic_delete_group(int argc, VALUE *argv, VALUE object);
VALUE topic_group_names(VALUE object);
VALUE group_join(int argc, VALUE *argv, VALUE object);
void add_topics(void);
void add_publishers(void);
void add_subscribers(void);
void add_groups(void);
void add_members(void);

#endif
