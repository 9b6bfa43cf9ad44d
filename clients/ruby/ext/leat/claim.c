// Claims: room for one record, to be written in place.
//
// The memory is never lent: write() copies into it, and what is committed is what was written, so nothing that was
// there before gets out.
#include <string.h>

#include "leat_ruby.h"

// It may outlive its publisher, and both may be collected at once, in any order: so they share the memory.
typedef struct Claim {
  Publisher *publisher;  // A reference is counted.
  leat_claim room;
  uint64_t at;       // Where the next bytes go.
  uint64_t written;  // Bytes up to the last that was written.
} Claim;

static VALUE claim_class;

static int is_open(const Claim *claim) {
  const Publisher *publisher = claim->publisher;
  return publisher != NULL && publisher->base.pointer != NULL && claim->room.id != 0 &&
         publisher->open == claim->room.id;
}

// Aborts a claim that nobody will finish; if another call is under way, when that ends.
static void leave(Claim *claim) {
  Publisher *publisher = claim->publisher;
  if (!is_open(claim)) return;
  publisher->open = 0;
  if (publisher->base.users != 0) {
    publisher->left = claim->room;
  } else {
    (void)leat_publisher_abort(publisher->base.pointer, &claim->room, NULL);
  }
}

static void release_claim(void *memory) {
  Claim *claim = memory;
  if (claim->publisher != NULL) {
    leave(claim);
    publisher_drop(claim->publisher);
  }
  xfree(claim);
}

static const rb_data_type_t claim_type = {
    "Leat::Claim", {NULL, release_claim, NULL, NULL, {NULL}}, NULL, NULL, RUBY_TYPED_FREE_IMMEDIATELY};

static Claim *claim_of(VALUE object) { return rb_check_typeddata(object, &claim_type); }

static int32_t try_claim(void *context, int64_t timeout_ns, int32_t *detail) {
  Claim *claim = context;
  const int32_t code =
      leat_publisher_claim(claim->publisher->base.pointer, claim->room.size, timeout_ns, &claim->room,
                           detail);
  return code == LEAT_ERR_FULL && timeout_ns == 0 ? LEAT_ERR_TIMEOUT : code;
}

// ---- Writing and finishing ------------------------------------------------------------------------

static Claim *open_claim(VALUE object) {
  Claim *claim = claim_of(object);
  if (!is_open(claim)) {
    if (claim->publisher != NULL && claim->publisher->base.pointer == NULL) raise_closed("the publisher is closed");
    raise_code(LEAT_ERR_NOT_IN_FLIGHT, 0);
  }
  return claim;
}

static VALUE write_bytes(int argc, VALUE *argv, VALUE object) {
  static const char *const names[] = {"at", NULL};
  VALUE given[2];
  Claim *claim = open_claim(object);
  uint64_t at = claim->at;
  leat_bytes bytes = {NULL, 0};
  parse_arguments(argc, argv, 1, 0, names, given);
  if (given[1] != Qundef) at = parse_u64(given[1], "at");
  bytes = parse_bytes(given[0], "what is written");
  if (at > claim->room.size || bytes.size > claim->room.size - at)
    raise_code(LEAT_ERR_INVALID_ARGUMENT, 0);
  if (claim->publisher->base.pid != this_process) raise_code(LEAT_ERR_FORKED, 0);
  if (at > claim->written) memset(claim->room.data + claim->written, 0, at - claim->written);
  if (bytes.size != 0) memcpy(claim->room.data + at, bytes.data, bytes.size);
  claim->at = at + bytes.size;
  if (claim->at > claim->written) claim->written = claim->at;
  return object;
}

static VALUE append(VALUE object, VALUE bytes) { return write_bytes(1, &bytes, object); }

static VALUE commit_size(Claim *claim, uint64_t size) {
  Handle *publisher = &claim->publisher->base;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  handle_enter(publisher);
  if (size > claim->written && size <= claim->room.size)
    memset(claim->room.data + claim->written, 0, size - claim->written);
  code = leat_publisher_commit(publisher->pointer, &claim->room, size, &detail);
  if (code != LEAT_ERR_INVALID_ARGUMENT) claim->publisher->open = 0;
  handle_leave(publisher);
  if (code != LEAT_OK) raise_code(code, detail);
  return ULL2NUM(claim->room.offset);
}

static VALUE commit(int argc, VALUE *argv, VALUE object) {
  Claim *claim = open_claim(object);
  rb_check_arity(argc, 0, 1);
  return commit_size(claim, argc == 0 ? claim->written : parse_u64(argv[0], "size"));
}

static VALUE abort_claim(VALUE object) {
  Claim *claim = open_claim(object);
  Handle *publisher = &claim->publisher->base;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  handle_enter(publisher);
  code = leat_publisher_abort(publisher->pointer, &claim->room, &detail);
  claim->publisher->open = 0;
  handle_leave(publisher);
  if (code != LEAT_OK) raise_code(code, detail);
  return Qnil;
}

static VALUE get_size(VALUE object) { return ULL2NUM(claim_of(object)->room.size); }
static VALUE get_offset(VALUE object) { return ULL2NUM(claim_of(object)->room.offset); }

// ---- Of publishers ------------------------------------------------------------------------------

// What the block leaves open is committed. Whatever ends it otherwise skips this.
static VALUE run_block(VALUE object) {
  Claim *claim = claim_of(object);
  rb_yield(object);
  if (is_open(claim))
    (void)commit_size(claim, claim->written);
  else if (claim->publisher->open == claim->room.id)
    raise_closed("the publisher is closed");  // Nothing was published.
  return get_offset(object);
}

static VALUE leave_block(VALUE object) {
  leave(claim_of(object));
  return Qnil;
}

VALUE publisher_claim(int argc, VALUE *argv, VALUE object) {
  static const char *const names[] = {"timeout", NULL};
  Publisher *self = publisher_of(object);
  Claim *claim = NULL;
  VALUE made = Qnil;
  VALUE given[2];
  int64_t timeout_ns = 0;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  parse_arguments(argc, argv, 1, 0, names, given);
  timeout_ns = parse_timeout(given[1]);
  made = TypedData_Make_Struct(claim_class, Claim, &claim_type, claim);
  claim->room.size = parse_u64(given[0], "size");
  handle_enter(&self->base);
  claim->publisher = self;
  ++self->references;
  code = wait_for(&self->base, 0, timeout_ns, ROOM_SLICES, try_claim, claim, &detail);
  if (code == LEAT_OK) self->open = claim->room.id;
  if (!handle_leave(&self->base) && code == LEAT_OK) code = LEAT_ERR_STOPPED;
  if (code == LEAT_ERR_TIMEOUT && timeout_ns == 0) code = LEAT_ERR_FULL;
  if (code != LEAT_OK) raise_code(code, detail);
  return rb_block_given_p() ? rb_ensure(run_block, made, leave_block, made) : made;
}

void add_claims(void) {
  claim_class = rb_define_class_under(leat_module, "Claim", rb_cObject);
  rb_undef_alloc_func(claim_class);
  rb_define_method(claim_class, "write", write_bytes, -1);
  rb_define_method(claim_class, "<<", append, 1);
  rb_define_method(claim_class, "commit", commit, -1);
  rb_define_method(claim_class, "abort", abort_claim, 0);
  rb_define_method(claim_class, "size", get_size, 0);
  rb_define_method(claim_class, "offset", get_offset, 0);
}
