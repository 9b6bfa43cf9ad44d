// What topics, publishers, subscribers, groups and members have in common: opened, used by one thread at a
// time, stopped, closed.
#include <pthread.h>
#include <unistd.h>

#include "leat_ruby.h"

pid_t this_process;
VALUE handle_class;
VALUE stoppable_class;
const rb_data_type_t handle_type = {"Leat::Handle", {NULL, NULL, NULL, NULL, {NULL}}, NULL, NULL, 0};

Handle *handle_of(VALUE object) { return rb_check_typeddata(object, &handle_type); }

VALUE handle_prepare(VALUE class, const rb_data_type_t *type, size_t size) {
  return rb_data_typed_object_zalloc(class, size, type);
}

void handle_fill(VALUE object, const HandleKind *kind, void *pointer) {
  Handle *handle = RTYPEDDATA_DATA(object);
  handle->kind = kind;
  handle->pointer = pointer;
  handle->pid = this_process;
}

static void note_process(void) { this_process = getpid(); }

// Calls that a fork interrupted: whoever made them is not in this process. What they had half done stays as
// it is, so the handle's memory is given up.
static int is_left_by_fork(const Handle *handle) {
  return handle->users != 0 && handle->pid != this_process;
}

void handle_refuse(Handle *handle) {
  if (handle->pointer == NULL || handle->is_closing) {
    char sentence[80];
    snprintf(sentence, sizeof sentence, "the %s is closed",
             handle->kind == NULL ? "handle" : handle->kind->name);
    raise_closed(sentence);
  }
  if (is_left_by_fork(handle)) raise_code(LEAT_ERR_FORKED, 0);
  raise_busy("the %s is in use by another thread or fiber", handle->kind->name);
}

static int unused_handles;

void handle_mark_unused(Handle *handle) {
  handle->is_unused = 1;
  ++unused_handles;
}

void handle_mark_used(Handle *handle) {
  unused_handles -= handle->is_unused;
  handle->is_unused = 0;
}

int are_handles_unused(void) { return unused_handles != 0; }

static void close_now(Handle *handle) {
  void *const pointer = handle->pointer;
  handle_mark_used(handle);
  handle->pointer = NULL;
  handle->is_closing = 0;
  handle->kind->close(pointer);
}

void handle_settle(Handle *handle) {
  if (handle->pointer != NULL && handle->is_closing && handle->users == 0) close_now(handle);
}

void handle_close(Handle *handle) {
  if (handle->pointer == NULL) return;
  if (is_left_by_fork(handle)) {
    handle->pointer = NULL;
  } else if (handle->users == 0) {
    close_now(handle);
  } else {  // The last user closes it.
    handle->is_closing = 1;
    if (handle->kind->stop != NULL) (void)handle->kind->stop(handle->pointer);
  }
}

void handle_mark(void *memory) {
  const Handle *handle = memory;
  if (handle->kept != 0) rb_gc_mark(handle->kept);
}

// By the collector: nobody uses it any more.
void handle_release(void *memory) {
  Handle *handle = memory;
  if (handle->pointer != NULL && !is_left_by_fork(handle)) close_now(handle);
  xfree(handle);
}

size_t handle_size(const void *memory) {
  (void)memory;
  return sizeof(Handle);
}

static VALUE close_handle(VALUE object) {
  handle_close(handle_of(object));
  return Qnil;
}

static VALUE is_closed(VALUE object) {
  const Handle *handle = handle_of(object);
  return handle->pointer == NULL || handle->is_closing ? Qtrue : Qfalse;
}

VALUE handle_lend(VALUE object) {
  return rb_block_given_p() ? rb_ensure(rb_yield, object, close_handle, object) : object;
}

// ---- Stop -------------------------------------------------------------------------------------

static Handle *usable(VALUE object) {
  Handle *handle = handle_of(object);
  if (handle->pointer == NULL || handle->is_closing) handle_refuse(handle);
  return handle;
}

static VALUE stop(VALUE object) {
  Handle *handle = usable(object);
  const int32_t code = handle->kind->stop(handle->pointer);
  if (code != LEAT_OK) raise_code(code, 0);
  return Qnil;
}

static VALUE resume(VALUE object) {
  Handle *handle = usable(object);
  const int32_t code = handle->kind->resume(handle->pointer);
  if (code != LEAT_OK) raise_code(code, 0);
  return Qnil;
}

static VALUE is_stopped(VALUE object) {
  Handle *handle = usable(object);
  uint32_t answer = 0;
  const int32_t code = handle->kind->is_stopped(handle->pointer, &answer);
  if (code != LEAT_OK) raise_code(code, 0);
  return answer != 0 ? Qtrue : Qfalse;
}

void add_handles(void) {
  note_process();
  (void)pthread_atfork(NULL, NULL, note_process);
  handle_class = rb_define_class_under(leat_module, "Handle", rb_cObject);
  rb_undef_alloc_func(handle_class);
  rb_define_method(handle_class, "close", close_handle, 0);
  rb_define_method(handle_class, "closed?", is_closed, 0);
  stoppable_class = rb_define_class_under(leat_module, "Stoppable", handle_class);
  rb_define_method(stoppable_class, "stop", stop, 0);
  rb_define_method(stoppable_class, "resume", resume, 0);
  rb_define_method(stoppable_class, "stopped?", is_stopped, 0);
}
