// Entries that a call has taken just when an interrupt came (Thread#raise, Timeout, Ctrl-C): Ruby would drop what the call
// returns, so the next calls return it.
#include "leat_ruby.h"

static VALUE check(VALUE nothing) {
  rb_thread_check_ints();
  return nothing;
}

int interrupts_pending(Handle *handle) {
  int state = 0;
  if (!rb_thread_interrupted(rb_thread_current())) return 0;
  ++handle->users;  // Other threads may run.
  rb_protect(check, Qnil, &state);
  if (state == 0) (void)handle_leave(handle);
  return state;
}

void keep_and_raise(Handle *handle, VALUE list, int state) {
  if (handle->kept != 0) list = rb_ary_plus(list, handle->kept);
  handle->kept = RARRAY_LEN(list) == 0 ? 0 : list;
  (void)handle_leave(handle);
  rb_jump_tag(state);
}

VALUE deliver(Handle *handle, VALUE made, int is_single) {
  const int state = interrupts_pending(handle);
  if (state != 0) keep_and_raise(handle, is_single ? rb_ary_new_from_args(1, made) : made, state);
  RB_GC_GUARD(made);
  return made;
}

int has_kept(Handle *handle) {
  if (handle->kept == 0 || handle->pid != this_process) return 0;
  if (handle->pointer == NULL || handle->is_closing || handle->users != 0) handle_refuse(handle);
  return 1;
}

static void drop_if_empty(Handle *handle) {
  if (RARRAY_LEN(handle->kept) == 0) handle->kept = 0;
}

VALUE kept_take(Handle *handle) {
  const VALUE entry = rb_ary_shift(handle->kept);
  drop_if_empty(handle);
  return entry;
}

VALUE kept_take_some(Handle *handle, uint32_t limit, int only_values) {
  const VALUE list = rb_ary_new();
  while (handle->kept != 0 && (uint32_t)RARRAY_LEN(list) < limit) {
    const VALUE entry = kept_take(handle);
    rb_ary_push(list, only_values && !is_gap(entry) ? rb_funcall(entry, rb_intern("value"), 0) : entry);
  }
  return list;
}

int kept_offset(const Handle *handle, uint32_t partition, uint64_t *offset) {
  long i = 0;
  for (; handle->kept != 0 && i < RARRAY_LEN(handle->kept); ++i) {
    const VALUE entry = rb_ary_entry(handle->kept, i);
    if (NUM2UINT(rb_funcall(entry, rb_intern("partition"), 0)) != partition) continue;
    *offset = NUM2ULL(rb_funcall(entry, rb_intern("offset"), 0));
    return 1;
  }
  return 0;
}

void kept_requeue(Handle *handle, uint64_t owner) {
  const VALUE list = handle->kept;
  VALUE left = Qnil;
  if (!has_kept(handle)) return;
  left = rb_ary_new();
  for (long i = 0; i < RARRAY_LEN(list); ++i) {
    const VALUE entry = rb_ary_entry(list, i);
    if (is_gap(entry) || leat_member_requeue(handle->pointer, delivery_of(entry, owner), 0) != LEAT_OK)
      rb_ary_push(left, entry);
  }
  handle->kept = left;
  drop_if_empty(handle);
}
