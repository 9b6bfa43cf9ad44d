// Subscribers.
//
// Entries are read in batches into an array of the library's records, and copied into objects before anything else
// can be called on the subscriber: meanwhile nothing lets another thread run.
#include "leat_ruby.h"

static VALUE subscriber_class;

static void close_subscriber(void *pointer) {
  leat_subscriber *subscriber = pointer;
  (void)leat_subscriber_close(&subscriber);
}
static int32_t stop_subscriber(void *pointer) { return leat_subscriber_stop(pointer); }
static int32_t resume_subscriber(void *pointer) { return leat_subscriber_resume(pointer); }
static int32_t is_subscriber_stopped(void *pointer, uint32_t *answer) {
  return leat_subscriber_is_stopped(pointer, answer);
}
static int32_t get_wait_fd(void *pointer, int32_t *fd, int32_t *detail) {
  return leat_subscriber_wait_fd(pointer, fd, detail);
}
static const HandleKind subscriber_kind = {"subscriber",      0,
                                           close_subscriber,  stop_subscriber,
                                           resume_subscriber, is_subscriber_stopped, get_wait_fd};
static HANDLE_TYPE(subscriber_type, "Leat::Subscriber", handle_size, handle_release);

Subscriber *subscriber_of(VALUE object) { return rb_check_typeddata(object, &subscriber_type); }

static const char *const stages[] = {"", "committed", "durable", NULL};
#define AT(name) offsetof(leat_subscriber_options, name)
static const Option subscriber_options[] = {
    {"from", OPTION_FROM, AT(from), AT(from_value), NULL},
    {"partition", OPTION_PARTITION, AT(partition), 0, NULL},
    {"gating", OPTION_FLAG, AT(gating), 0, NULL},
    {"in_place", OPTION_FLAG, AT(in_place), 0, NULL},
    {"read", OPTION_CHOICE, AT(read), 0, stages},
    {"spin", OPTION_SECONDS, AT(spin_ns), 0, NULL},
    {"patience", OPTION_SECONDS, AT(patience_ns), 0, NULL},
    {NULL, OPTION_FLAG, 0, 0, NULL},
};

VALUE topic_subscriber(int argc, VALUE *argv, VALUE object) {
  Handle *topic = handle_of(object);
  leat_subscriber_options options = LEAT_SUBSCRIBER_OPTIONS_INIT;
  Texts texts = {{Qnil, Qnil, Qnil, Qnil}, 0};
  leat_subscriber *subscriber = NULL;
  int64_t spin_ns = 0;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  const VALUE made = handle_prepare(subscriber_class, &subscriber_type, sizeof(Subscriber));
  (void)parse_options(argc, argv, 0, subscriber_options, &options, &texts);
  spin_ns = take_spin(&options.spin_ns);
  options.interruptible = 1;
  handle_enter(topic);
  code = leat_topic_subscriber(topic->pointer, &options, &subscriber, &detail);
  handle_leave(topic);
  if (code != LEAT_OK) {
    const Subject subject = {.act = "make a subscriber", .subscriber = &options, .partition = &options.partition};
    raise_about(&subject, code, detail);
  }
  handle_fill(made, &subscriber_kind, subscriber);
  ((Handle *)RTYPEDDATA_DATA(made))->spin_ns = spin_ns;
  handle_mark_unused(RTYPEDDATA_DATA(made));
  return handle_lend(made);
}

// ---- Reading ------------------------------------------------------------------------------------

// An array that the library fills.
typedef struct Reading {
  leat_subscriber *subscriber;
  leat_record *records;
  uint32_t capacity;
  uint32_t count;
} Reading;

static int32_t try_receive(void *context, int64_t timeout_ns, int32_t *detail) {
  Reading *reading = context;
  return leat_subscriber_receive(reading->subscriber, reading->records, reading->capacity,
                                 &reading->count, timeout_ns, detail);
}

// The child of a fork gets LEAT_ERR_FORKED of the library.
static void refuse_view(const Subscriber *self) {
  if (self->view != 0 && self->base.pointer != NULL && self->base.pid == this_process)
    raise_busy("the block of view() of this %s has not ended", "subscriber");
}

// Waits for records. There need not be any if `is_poll`.
static void read_some(Subscriber *self, Reading *reading, int64_t timeout_ns, int is_poll) {
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  refuse_view(self);
  handle_enter(&self->base);
  handle_mark_used(&self->base);
  reading->subscriber = self->base.pointer;
  if (is_poll)
    code = leat_subscriber_poll(reading->subscriber, reading->records, reading->capacity,
                                &reading->count, &detail);
  else
    code = wait_for(&self->base, self->base.spin_ns, timeout_ns, LONG_SLICES, try_receive, reading, &detail);
  if (!handle_leave(&self->base) && code == LEAT_OK) code = LEAT_ERR_STOPPED;
  if (code != LEAT_OK) raise_code(code, detail);
}

// An Array takes so many objects in one call, which is faster than one by one. Until then they are on the stack, where
// the collector sees them.
enum { AT_ONCE = 64 };

// An Array of what `make` makes of each entry.
static inline VALUE make_array(const Reading *reading, VALUE (*make)(const leat_record *)) {
  const uint64_t distance = leat_next_batch(reading->records, reading->count, reading->capacity);
  const VALUE list = rb_ary_new_capa((long)reading->count);
  uint32_t i = 0;
  while (i < reading->count) {
    VALUE some[AT_ONCE];
    long made = 0;
    for (; made < AT_ONCE && i < reading->count; ++i) {
      leat_prefetch(&reading->records[i], distance);
      some[made++] = make(&reading->records[i]);
    }
    rb_ary_cat(list, some, made);
  }
  return list;
}

// A few entries are on the stack: ALLOCV_N would take their memory from malloc(), as they are over 1 KiB, and large blocks
// make the small ones of Strings slower.
static inline VALUE read_array(VALUE object, uint32_t limit, int64_t timeout_ns, int is_poll,
                               VALUE (*make)(const leat_record *)) {
  leat_record few[DEFAULT_LIMIT];
  Reading reading = {NULL, few, limit, 0};
  Handle *self = &subscriber_of(object)->base;
  VALUE memory = 0;
  VALUE list = Qnil;
  int state = 0;
  if (has_kept(self)) return kept_take_some(self, limit, make == value_or_gap);
  if (limit > DEFAULT_LIMIT) reading.records = ALLOCV_N(leat_record, memory, limit);
  read_some(subscriber_of(object), &reading, timeout_ns, is_poll);
  list = make_array(&reading, make);
  state = interrupts_pending(self);
  if (state != 0) keep_and_raise(self, make_array(&reading, entry_new), state);
  ALLOCV_END(memory);
  return list;
}

static VALUE poll(int argc, VALUE *argv, VALUE object) {
  rb_check_arity(argc, 0, 1);
  return read_array(object, parse_limit(argc == 0 ? Qundef : argv[0]), 0, 1, entry_new);
}

static VALUE receive_batch(int argc, VALUE *argv, VALUE object) {
  static const char *const names[] = {"timeout", NULL};
  VALUE given[2];
  parse_arguments(argc, argv, 0, 1, names, given);
  return read_array(object, parse_limit(given[0]), parse_timeout(given[1]), 0, entry_new);
}

// The values alone; gaps are Gaps.
static VALUE read_values(int argc, VALUE *argv, VALUE object) {
  static const char *const names[] = {"timeout", NULL};
  VALUE given[2];
  parse_arguments(argc, argv, 0, 1, names, given);
  const int64_t timeout_ns = given[1] == Qundef ? 0 : parse_timeout(given[1]);
  return read_array(object, parse_limit(given[0]), timeout_ns, timeout_ns == 0, value_or_gap);
}

static VALUE receive(int argc, VALUE *argv, VALUE object) {
  static const char *const names[] = {"timeout", NULL};
  leat_record record;
  Reading reading = {NULL, &record, 1, 0};
  VALUE timeout = Qundef;
  Handle *self = &subscriber_of(object)->base;
  int64_t timeout_ns = LEAT_FOREVER;
  if (argc != 0) {
    parse_arguments(argc, argv, 0, 0, names, &timeout);
    timeout_ns = parse_timeout(timeout);
  }
  if (has_kept(self)) return kept_take(self);
  read_some(subscriber_of(object), &reading, timeout_ns, 0);
  return deliver(self, entry_new(&record), 1);
}

// For view.c.
uint32_t subscriber_read(VALUE object, leat_record *records, uint32_t limit, int64_t timeout_ns) {
  Reading reading = {NULL, records, limit, 0};
  if (has_kept(handle_of(object)))
    raise_busy("the %s has kept entries of a call that was interrupted: receive them first", "subscriber");
  read_some(subscriber_of(object), &reading, timeout_ns, 0);
  return reading.count;
}

// ---- Waiting ------------------------------------------------------------------------------------

static int32_t try_wait(void *context, int64_t timeout_ns, int32_t *detail) {
  (void)detail;
  return leat_subscriber_wait(context, timeout_ns);
}

static VALUE wait_one(int argc, VALUE *argv, VALUE object) {
  static const char *const names[] = {"timeout", NULL};
  Handle *self = handle_of(object);
  VALUE timeout = Qundef;
  int64_t timeout_ns = 0;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  parse_arguments(argc, argv, 0, 0, names, &timeout);
  timeout_ns = parse_timeout(timeout);
  handle_enter(self);
  if (self->kept == 0)
    code = wait_for(self, self->spin_ns, timeout_ns, LONG_SLICES, try_wait, self->pointer, &detail);
  handle_leave(self);
  if (code != LEAT_OK) raise_code(code, detail);
  return Qnil;
}

typedef struct WaitAny {
  leat_subscriber *all[LEAT_MAX_WAIT_ANY];
  Handle *handles[LEAT_MAX_WAIT_ANY];
  int64_t spin_ns;  // The longest of theirs.
  uint32_t count;
  uint32_t index;
} WaitAny;

static int32_t try_wait_any(void *context, int64_t timeout_ns, int32_t *detail) {
  WaitAny *any = context;
  (void)detail;
  return leat_subscriber_wait_any(any->all, any->count, timeout_ns, &any->index);
}

static int is_usable(const Handle *handle) {
  return handle->pointer != NULL && !handle->is_closing && handle->users == 0;
}

// Raises before the first is entered.
static void enter_all(VALUE array, WaitAny *any) {
  const long count = RARRAY_LEN(array);
  long i = 0;
  long k = 0;
  if (count == 0 || count > LEAT_MAX_WAIT_ANY)
    rb_raise(rb_eArgError, "wait_any takes 1 to %d subscribers", LEAT_MAX_WAIT_ANY);
  for (; i < count; ++i) {
    any->handles[i] = &subscriber_of(rb_ary_entry(array, i))->base;
    if (!is_usable(any->handles[i])) handle_refuse(any->handles[i]);
    for (k = 0; k < i; ++k) {
      if (any->handles[k] == any->handles[i]) rb_raise(rb_eArgError, "a subscriber is named twice");
    }
  }
  for (; any->count < (uint32_t)count; ++any->count) {
    handle_enter(any->handles[any->count]);
    any->all[any->count] = any->handles[any->count]->pointer;
    if (any->handles[any->count]->spin_ns > any->spin_ns) any->spin_ns = any->handles[any->count]->spin_ns;
  }
}

static VALUE wait_any(int argc, VALUE *argv, VALUE module) {
  static const char *const names[] = {"timeout", NULL};
  WaitAny any = {{NULL}, {NULL}, 0, 0, 0};
  VALUE given[2];
  VALUE array = Qnil;
  int64_t timeout_ns = 0;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  (void)module;
  parse_arguments(argc, argv, 1, 0, names, given);
  timeout_ns = parse_timeout(given[1]);
  array = rb_ary_dup(rb_Array(given[0]));  // Which nobody changes meanwhile.
  for (long i = 0; i < RARRAY_LEN(array); ++i) {
    if (has_kept(&subscriber_of(rb_ary_entry(array, i))->base)) return LONG2NUM(i);
  }
  enter_all(array, &any);
  code = wait_for(NULL, any.spin_ns, timeout_ns, LONG_SLICES, try_wait_any, &any, &detail);
  while (any.count > 0) handle_leave(any.handles[--any.count]);
  RB_GC_GUARD(array);
  if (code != LEAT_OK) raise_code(code, detail);
  return UINT2NUM(any.index);
}

static VALUE wait_fd(VALUE object) {
  Handle *self = handle_of(object);
  int32_t fd = -1;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  handle_enter(self);
  code = leat_subscriber_wait_fd(self->pointer, &fd, &detail);
  handle_leave(self);
  if (code != LEAT_OK) raise_code(code, detail);
  return INT2NUM(fd);
}

// ---- Where it is --------------------------------------------------------------------------------

static VALUE get_offset(int argc, VALUE *argv, VALUE object) {
  static const char *const names[] = {"partition", NULL};
  Handle *self = handle_of(object);
  VALUE given = Qundef;
  uint32_t partition = 0;
  uint64_t next = 0;
  int32_t code = LEAT_OK;
  parse_arguments(argc, argv, 0, 0, names, &given);
  if (given != Qundef) partition = parse_partition(given);
  handle_enter(self);
  if (!kept_offset(self, partition, &next)) code = leat_subscriber_offset(self->pointer, partition, &next);
  handle_leave(self);
  if (code != LEAT_OK) raise_code(code, 0);
  return ULL2NUM(next);
}

static VALUE is_lossy(VALUE object) {
  Handle *self = handle_of(object);
  uint32_t answer = 0;
  int32_t code = LEAT_OK;
  handle_enter(self);
  code = leat_subscriber_is_lossy(self->pointer, &answer);
  handle_leave(self);
  if (code != LEAT_OK) raise_code(code, 0);
  return answer != 0 ? Qtrue : Qfalse;
}

void add_subscribers(void) {
  subscriber_class = rb_define_class_under(leat_module, "Subscriber", stoppable_class);
  rb_define_method(subscriber_class, "poll", poll, -1);
  rb_define_method(subscriber_class, "receive", receive, -1);
  rb_define_method(subscriber_class, "receive_batch", receive_batch, -1);
  rb_define_method(subscriber_class, "read_values", read_values, -1);
  rb_define_method(subscriber_class, "view", subscriber_view, -1);
  rb_define_method(subscriber_class, "wait", wait_one, -1);
  rb_define_method(subscriber_class, "wait_fd", wait_fd, 0);
  rb_define_method(subscriber_class, "offset", get_offset, -1);
  rb_define_method(subscriber_class, "lossy?", is_lossy, 0);
  rb_define_module_function(leat_module, "wait_any", wait_any, -1);
}
