// Members of consumer groups.
#include "leat_ruby.h"

static VALUE member_class;

typedef struct Member {
  Handle base;
  uint64_t number;  // Never that of another member of this process; 0 is none.
} Member;

static void close_member(void *pointer) {
  leat_member *member = pointer;
  (void)leat_member_close(&member);
}
static int32_t stop_member(void *pointer) { return leat_member_stop(pointer); }
static int32_t resume_member(void *pointer) { return leat_member_resume(pointer); }
static int32_t is_member_stopped(void *pointer, uint32_t *answer) {
  return leat_member_is_stopped(pointer, answer);
}
static int32_t get_wait_fd(void *pointer, int32_t *fd, int32_t *detail) {
  return leat_member_wait_fd(pointer, fd, detail);
}
static const HandleKind member_kind = {"member",    0,             close_member,
                                       stop_member, resume_member, is_member_stopped, get_wait_fd};
static HANDLE_TYPE(member_type, "Leat::Member", handle_size, handle_release);

static Member *member_of(VALUE object) { return rb_check_typeddata(object, &member_type); }

#define AT(name) offsetof(leat_member_options, name)
static const Option member_options[] = {
    {"name", OPTION_TEXT, AT(name), 0, NULL},
    {"spin", OPTION_SECONDS, AT(spin_ns), 0, NULL},
    {"patience", OPTION_SECONDS, AT(patience_ns), 0, NULL},
    {NULL, OPTION_FLAG, 0, 0, NULL},
};

VALUE group_join(int argc, VALUE *argv, VALUE object) {
  static uint64_t last_number;
  Handle *group = handle_of(object);
  leat_member_options options = LEAT_MEMBER_OPTIONS_INIT;
  Texts texts = {{Qnil, Qnil, Qnil, Qnil}, 0};
  leat_member *member = NULL;
  int64_t spin_ns = 0;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  const VALUE made = handle_prepare(member_class, &member_type, sizeof(Member));
  (void)parse_options(argc, argv, 0, member_options, &options, &texts);
  spin_ns = take_spin(&options.spin_ns);
  options.interruptible = 1;
  handle_enter(group);
  code = leat_group_join(group->pointer, &options, &member, &detail);
  handle_leave(group);
  if (code != LEAT_OK) raise_code(code, detail);
  handle_fill(made, &member_kind, member);
  ((Handle *)RTYPEDDATA_DATA(made))->spin_ns = spin_ns;
  handle_mark_unused(RTYPEDDATA_DATA(made));
  ((Member *)RTYPEDDATA_DATA(made))->number = ++last_number;
  return handle_lend(made);
}

// ---- Receive ------------------------------------------------------------------------------------

typedef struct Receiving {
  leat_member *member;
  leat_delivery *deliveries;
  uint32_t capacity;
  uint32_t count;
} Receiving;

static int32_t try_receive(void *context, int64_t timeout_ns, int32_t *detail) {
  Receiving *it = context;
  return leat_member_receive(it->member, it->deliveries, it->capacity, &it->count, timeout_ns, detail);
}

static void receive_some(Member *self, Receiving *it, int64_t timeout_ns) {
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  handle_enter(&self->base);
  handle_mark_used(&self->base);
  it->member = self->base.pointer;
  code = wait_for(&self->base, self->base.spin_ns, timeout_ns, LONG_SLICES, try_receive, it, &detail);
  if (!handle_leave(&self->base) && code == LEAT_OK) code = LEAT_ERR_STOPPED;
  if (code != LEAT_OK) raise_code(code, detail);
}

static VALUE receive(int argc, VALUE *argv, VALUE object) {
  static const char *const names[] = {"timeout", NULL};
  Member *self = member_of(object);
  leat_delivery delivery;
  Receiving it = {NULL, &delivery, 1, 0};
  VALUE timeout = Qundef;
  int64_t timeout_ns = LEAT_FOREVER;
  if (argc != 0) {
    parse_arguments(argc, argv, 0, 0, names, &timeout);
    timeout_ns = parse_timeout(timeout);
  }
  if (has_kept(&self->base)) return kept_take(&self->base);
  receive_some(self, &it, timeout_ns);
  return deliver(&self->base, delivery_new(&delivery, self->number), 1);
}

static VALUE receive_batch(int argc, VALUE *argv, VALUE object) {
  static const char *const names[] = {"timeout", NULL};
  Member *self = member_of(object);
  leat_delivery few[DEFAULT_LIMIT];
  Receiving it = {NULL, few, 0, 0};
  VALUE given[2];
  VALUE memory = 0;
  VALUE list = Qnil;
  int64_t timeout_ns = 0;
  uint32_t i = 0;
  parse_arguments(argc, argv, 0, 1, names, given);
  it.capacity = parse_limit(given[0]);
  timeout_ns = parse_timeout(given[1]);
  if (has_kept(&self->base)) return kept_take_some(&self->base, it.capacity, 0);
  if (it.capacity > DEFAULT_LIMIT) it.deliveries = ALLOCV_N(leat_delivery, memory, it.capacity);
  receive_some(self, &it, timeout_ns);
  list = rb_ary_new_capa((long)it.count);
  for (; i < it.count; ++i) rb_ary_push(list, delivery_new(&it.deliveries[i], self->number));
  ALLOCV_END(memory);
  return deliver(&self->base, list, 0);
}

// ---- Acknowledge --------------------------------------------------------------------------------

static VALUE count_or(int32_t code, uint64_t count) {
  if (code != LEAT_OK) raise_code(code, 0);
  return ULL2NUM(count);
}

static VALUE acknowledge_one(Member *self, VALUE object) {
  const leat_delivery *delivery = delivery_of(object, self->number);
  int32_t code = LEAT_OK;
  handle_enter(&self->base);
  code = leat_member_acknowledge(self->base.pointer, delivery);
  handle_leave(&self->base);
  return count_or(code, 1);
}

// Those that this member holds count; an error only if none does.
static VALUE acknowledge_some(Member *self, VALUE array) {
  const long count = RARRAY_LEN(array);
  VALUE memory = Qnil;
  leat_delivery *all = ALLOCV_N(leat_delivery, memory, count + 1);
  uint64_t known = 0;
  uint64_t others = 0;
  uint64_t done = 0;
  int32_t code = LEAT_OK;
  long i = 0;
  for (; i < count; ++i) {
    const VALUE object = rb_ary_entry(array, i);
    if (is_gap(object)) continue;
    if (is_delivery(object) && !is_delivery_of(object, self->number))
      ++others;
    else
      all[known++] = *delivery_of(object, self->number);
  }
  handle_enter(&self->base);
  code = leat_member_acknowledge_some(self->base.pointer, all, known, &done);
  handle_leave(&self->base);
  ALLOCV_END(memory);
  if (code == LEAT_OK && known == 0 && others != 0) code = LEAT_ERR_NOT_IN_FLIGHT;
  return count_or(code, done);
}

static VALUE acknowledge(VALUE object, VALUE what) {
  Member *self = member_of(object);
  if (is_gap(what)) raise_code(LEAT_ERR_NOT_IN_FLIGHT, 0);
  if (RB_TYPE_P(what, T_ARRAY)) return acknowledge_some(self, what);
  return acknowledge_one(self, what);
}

static VALUE acknowledge_up_to(VALUE object, VALUE what) {
  Member *self = member_of(object);
  const leat_delivery *delivery = delivery_of(what, self->number);
  uint64_t count = 0;
  int32_t code = LEAT_OK;
  handle_enter(&self->base);
  code = leat_member_acknowledge_up_to(self->base.pointer, delivery, &count);
  handle_leave(&self->base);
  return count_or(code, count);
}

static VALUE acknowledge_all(VALUE object) {
  Handle *self = handle_of(object);
  uint64_t count = 0;
  int32_t code = LEAT_OK;
  kept_requeue(self, ((Member *)self)->number);  // Nobody has got these, so they are not acknowledged.
  handle_enter(self);
  code = leat_member_acknowledge_all(self->pointer, &count);
  handle_leave(self);
  return count_or(code, count);
}

static VALUE requeue(int argc, VALUE *argv, VALUE object) {
  static const char *const names[] = {"delay", NULL};
  Member *self = member_of(object);
  VALUE given[2];
  const leat_delivery *delivery = NULL;
  int64_t delay_ns = 0;
  int32_t code = LEAT_OK;
  parse_arguments(argc, argv, 1, 0, names, given);
  if (given[1] != Qundef) delay_ns = parse_seconds(given[1], "delay");
  delivery = delivery_of(given[0], self->number);
  handle_enter(&self->base);
  code = leat_member_requeue(self->base.pointer, delivery, delay_ns);
  handle_leave(&self->base);
  if (code != LEAT_OK) raise_code(code, 0);
  return Qnil;
}

// ---- Wait ---------------------------------------------------------------------------------------

static int32_t try_wait(void *context, int64_t timeout_ns, int32_t *detail) {
  (void)detail;
  return leat_member_wait(context, timeout_ns);
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

static VALUE wait_fd(VALUE object) {
  Handle *self = handle_of(object);
  int32_t fd = -1;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  handle_enter(self);
  code = leat_member_wait_fd(self->pointer, &fd, &detail);
  handle_leave(self);
  if (code != LEAT_OK) raise_code(code, detail);
  return INT2NUM(fd);
}

static VALUE in_flight(VALUE object) {
  Handle *self = handle_of(object);
  uint64_t count = 0;
  int32_t code = LEAT_OK;
  handle_enter(self);
  code = leat_member_in_flight(self->pointer, &count);
  handle_leave(self);
  return count_or(code, count);
}

void add_members(void) {
  member_class = rb_define_class_under(leat_module, "Member", stoppable_class);
  rb_define_method(member_class, "receive", receive, -1);
  rb_define_method(member_class, "receive_batch", receive_batch, -1);
  rb_define_method(member_class, "acknowledge", acknowledge, 1);
  rb_define_method(member_class, "acknowledge_up_to", acknowledge_up_to, 1);
  rb_define_method(member_class, "acknowledge_all", acknowledge_all, 0);
  rb_define_method(member_class, "requeue", requeue, -1);
  rb_define_method(member_class, "wait", wait_one, -1);
  rb_define_method(member_class, "wait_fd", wait_fd, 0);
  rb_define_method(member_class, "in_flight", in_flight, 0);
}
