// Reading in place: records whose bytes are looked at where they lie in the topic, while a block runs.
//
// A String that pointed there could be kept, and so could what Ruby shares with it: so a view gives parts of the value
// as copies, and nothing once the block has ended.
#include <string.h>

#include "leat_ruby.h"

typedef struct RecordView {
  VALUE subscriber;
  uint64_t view;  // The number of the view that it is of.
  leat_record record;
} RecordView;

static VALUE view_class;

static void mark(void *memory) { rb_gc_mark(((RecordView *)memory)->subscriber); }

static const rb_data_type_t view_type = {
    "Leat::RecordView", {mark, RUBY_DEFAULT_FREE, NULL, NULL, {NULL}}, NULL, NULL, RUBY_TYPED_FREE_IMMEDIATELY};

static const leat_record *record_of(VALUE object) {
  const RecordView *view = rb_check_typeddata(object, &view_type);
  const Subscriber *subscriber = subscriber_of(view->subscriber);
  if (subscriber->base.pointer == NULL || subscriber->view != view->view) raise_closed("the batch has ended");
  if (subscriber->base.pid != this_process) raise_code(LEAT_ERR_FORKED, 0);
  return &view->record;
}

static VALUE get_value(VALUE object) {
  const leat_record *record = record_of(object);
  return bytes_of(record->value, record->value_size);
}
static VALUE get_size(VALUE object) { return UINT2NUM(record_of(object)->value_size); }
static VALUE get_key(VALUE object) { return key_of(record_of(object)); }
static VALUE get_headers(VALUE object) { return headers_of(record_of(object)); }
static VALUE get_offset(VALUE object) { return ULL2NUM(record_of(object)->offset); }
static VALUE get_partition(VALUE object) { return INT2FIX(record_of(object)->partition); }
static VALUE get_timestamp(VALUE object) { return timestamp_of(record_of(object)); }
static VALUE is_a_gap(VALUE object) {
  (void)object;
  return Qfalse;
}

// nil beyond the end, as String#getbyte and String#byteslice.
static VALUE get_byte(VALUE object, VALUE index) {
  const leat_record *record = record_of(object);
  const uint64_t at = parse_u64(index, "index");
  return at < record->value_size ? INT2FIX(record->value[at]) : Qnil;
}

static VALUE byte_slice(VALUE object, VALUE start, VALUE length) {
  const leat_record *record = record_of(object);
  const uint64_t at = parse_u64(start, "start");
  const uint64_t wanted = parse_u64(length, "length");
  if (at > record->value_size) return Qnil;
  return bytes_of(record->value + at, wanted < record->value_size - at ? wanted : record->value_size - at);
}

static VALUE is_equal_value(VALUE object, VALUE string) {
  const leat_record *record = record_of(object);
  const leat_bytes bytes = parse_bytes(string, "what is compared");
  return bytes.size == record->value_size && (bytes.size == 0 || memcmp(bytes.data, record->value, bytes.size) == 0)
             ? Qtrue
             : Qfalse;
}

// ---- Batches ------------------------------------------------------------------------------------

static VALUE make_views(VALUE subscriber, uint64_t number, const leat_record *records, uint32_t count) {
  const VALUE list = rb_ary_new_capa((long)count);
  uint32_t i = 0;
  for (; i < count; ++i) {
    RecordView *view = NULL;
    if (leat_record_is_gap(&records[i])) {
      rb_ary_push(list, entry_new(&records[i]));
      continue;
    }
    rb_ary_push(list, TypedData_Make_Struct(view_class, RecordView, &view_type, view));
    view->record = records[i];
    view->view = number;
    view->subscriber = subscriber;
  }
  return list;
}

static VALUE end_view(VALUE object) {
  subscriber_of(object)->view = 0;
  return Qnil;
}

VALUE subscriber_view(int argc, VALUE *argv, VALUE object) {
  static const char *const names[] = {"timeout", NULL};
  Subscriber *self = subscriber_of(object);
  VALUE given[2];
  VALUE memory = 0;
  VALUE batch = Qnil;
  leat_record few[DEFAULT_LIMIT];
  leat_record *records = few;
  uint32_t limit = 0;
  rb_need_block();
  parse_arguments(argc, argv, 0, 1, names, given);
  limit = parse_limit(given[0]);
  if (limit > DEFAULT_LIMIT) records = ALLOCV_N(leat_record, memory, limit);
  limit = subscriber_read(object, records, limit, parse_timeout(given[1]));
  batch = make_views(object, self->last_view + 1, records, limit);
  self->view = ++self->last_view;
  ALLOCV_END(memory);
  return rb_ensure(rb_yield, batch, end_view, object);
}

void add_views(void) {
  view_class = rb_define_class_under(leat_module, "RecordView", rb_cObject);
  rb_undef_alloc_func(view_class);
  rb_define_method(view_class, "value", get_value, 0);
  rb_define_method(view_class, "size", get_size, 0);
  rb_define_method(view_class, "getbyte", get_byte, 1);
  rb_define_method(view_class, "byteslice", byte_slice, 2);
  rb_define_method(view_class, "value?", is_equal_value, 1);
  rb_define_method(view_class, "key", get_key, 0);
  rb_define_method(view_class, "headers", get_headers, 0);
  rb_define_method(view_class, "offset", get_offset, 0);
  rb_define_method(view_class, "partition", get_partition, 0);
  rb_define_method(view_class, "timestamp_ms", get_timestamp, 0);
  rb_define_method(view_class, "gap?", is_a_gap, 0);
}
