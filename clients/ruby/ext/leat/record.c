// What subscribers and members deliver: Record, Gap, and Delivery, which is a Record that a member holds.
#include "leat_ruby.h"

typedef struct Record {
  VALUE value;
  VALUE key;      // nil: none
  VALUE headers;  // 0: none
  uint64_t offset;
  int64_t timestamp_ms;  // -1: none
  uint16_t partition;
} Record;

typedef struct Delivery {
  Record base;
  leat_delivery given;
  uint64_t owner;  // The member's number.
} Delivery;

typedef struct Gap {
  uint64_t offset;
  uint64_t count;
  uint32_t reason;
  uint16_t partition;
} Gap;

static VALUE record_class;
static VALUE delivery_class;
static VALUE gap_class;
static VALUE no_headers;

static void mark_record(void *memory) {
  const Record *record = memory;
  rb_gc_mark(record->value);
  rb_gc_mark(record->key);
  if (record->headers != 0) rb_gc_mark(record->headers);
}

#define FLAGS (RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_WB_PROTECTED)
static const rb_data_type_t record_type = {
    "Leat::Record", {mark_record, RUBY_DEFAULT_FREE, NULL, NULL, {NULL}}, NULL, NULL, FLAGS};
static const rb_data_type_t delivery_type = {
    "Leat::Delivery", {mark_record, RUBY_DEFAULT_FREE, NULL, NULL, {NULL}}, &record_type, NULL, FLAGS};
static const rb_data_type_t gap_type = {
    "Leat::Gap", {NULL, RUBY_DEFAULT_FREE, NULL, NULL, {NULL}}, NULL, NULL, FLAGS};

// ---- Parts of a record --------------------------------------------------------------------------

VALUE bytes_of(const void *data, uint64_t size) {
  return rb_obj_freeze(rb_str_new(data, (long)size));
}

VALUE key_of(const leat_record *record) {
  if ((record->flags & LEAT_RECORD_HAS_KEY) == 0) return Qnil;
  return bytes_of(leat_record_key(record), record->key_size);
}

VALUE timestamp_of(const leat_record *record) {
  const int64_t ms = leat_record_timestamp_ms(record);
  return ms < 0 ? Qnil : LL2NUM(ms);
}

VALUE headers_of(const leat_record *record) {
  leat_headers headers = leat_record_headers(record);
  leat_header header = {NULL, NULL, 0, 0};
  VALUE list = Qnil;
  if ((record->flags & LEAT_RECORD_HAS_HEADERS) == 0) return no_headers;
  list = rb_ary_new();
  while (leat_next_header(&headers, &header)) {
    const VALUE name = bytes_of(header.name, header.name_size);
    rb_ary_push(list, rb_obj_freeze(rb_assoc_new(name, bytes_of(header.value, header.value_size))));
  }
  return rb_obj_freeze(list);
}

// ---- Records and deliveries -----------------------------------------------------------------------

// Copies what the library delivered.
static void fill(VALUE object, Record *to, const leat_record *from) {
  to->key = Qnil;
  to->offset = from->offset;
  to->partition = from->partition;
  to->timestamp_ms = -1;
  RB_OBJ_WRITE(object, &to->value, bytes_of(from->value, from->value_size));
  if (from->flags == 0) return;
  to->timestamp_ms = leat_record_timestamp_ms(from);
  RB_OBJ_WRITE(object, &to->key, key_of(from));
  if ((from->flags & LEAT_RECORD_HAS_HEADERS) != 0)
    RB_OBJ_WRITE(object, &to->headers, headers_of(from));
}

static VALUE gap_new(const leat_record *record) {
  Gap *gap = NULL;
  const VALUE object = TypedData_Make_Struct(gap_class, Gap, &gap_type, gap);
  gap->offset = record->offset;
  gap->count = leat_gap_count(record);
  gap->reason = leat_gap_reason(record);
  gap->partition = record->partition;
  return object;
}

VALUE entry_new(const leat_record *from) {
  Record *record = NULL;
  VALUE object = Qnil;
  if ((from->flags & LEAT_RECORD_IS_GAP) != 0) return gap_new(from);
  object = TypedData_Make_Struct(record_class, Record, &record_type, record);
  fill(object, record, from);
  return object;
}

VALUE value_or_gap(const leat_record *from) {
  if ((from->flags & LEAT_RECORD_IS_GAP) != 0) return gap_new(from);
  return bytes_of(from->value, from->value_size);
}

VALUE delivery_new(const leat_delivery *from, uint64_t owner) {
  Delivery *delivery = NULL;
  VALUE object = Qnil;
  if ((from->record.flags & LEAT_RECORD_IS_GAP) != 0) return gap_new(&from->record);
  object = TypedData_Make_Struct(delivery_class, Delivery, &delivery_type, delivery);
  delivery->given = *from;
  delivery->owner = owner;
  fill(object, &delivery->base, &from->record);
  return object;
}

int is_delivery(VALUE object) { return rb_typeddata_is_kind_of(object, &delivery_type); }
int is_gap(VALUE object) { return rb_typeddata_is_kind_of(object, &gap_type); }
int is_delivery_of(VALUE object, uint64_t owner) {
  return is_delivery(object) && ((const Delivery *)RTYPEDDATA_DATA(object))->owner == owner;
}

const leat_delivery *delivery_of(VALUE object, uint64_t owner) {
  const Delivery *delivery = rb_check_typeddata(object, &delivery_type);
  if (delivery->owner != owner) raise_code(LEAT_ERR_NOT_IN_FLIGHT, 0);
  return &delivery->given;
}

static const Record *record_of(VALUE object) { return rb_check_typeddata(object, &record_type); }

static VALUE get_value(VALUE object) { return record_of(object)->value; }
static VALUE get_key(VALUE object) { return record_of(object)->key; }
static VALUE get_offset(VALUE object) { return ULL2NUM(record_of(object)->offset); }
static VALUE get_partition(VALUE object) { return INT2FIX(record_of(object)->partition); }
static VALUE get_headers(VALUE object) {
  const Record *record = record_of(object);
  return record->headers != 0 ? record->headers : no_headers;
}
static VALUE get_timestamp(VALUE object) {
  const Record *record = record_of(object);
  return record->timestamp_ms < 0 ? Qnil : LL2NUM(record->timestamp_ms);
}
static VALUE get_deliveries(VALUE object) {
  const Delivery *delivery = rb_check_typeddata(object, &delivery_type);
  return UINT2NUM(delivery->given.deliveries);
}
static VALUE record_is_gap(VALUE object) {
  (void)object;
  return Qfalse;
}

static VALUE show_record(VALUE object) {
  const Record *record = record_of(object);
  return rb_sprintf("#<%" PRIsVALUE " partition=%d offset=%llu key=%+" PRIsVALUE " value=%+" PRIsVALUE ">",
                    rb_obj_class(object), (int)record->partition, (unsigned long long)record->offset,
                    record->key, record->value);
}

// ---- Gaps -------------------------------------------------------------------------------------

static const Gap *gap_of(VALUE object) { return rb_check_typeddata(object, &gap_type); }

static VALUE gap_offset(VALUE object) { return ULL2NUM(gap_of(object)->offset); }
static VALUE gap_count(VALUE object) { return ULL2NUM(gap_of(object)->count); }
static VALUE gap_partition(VALUE object) { return INT2FIX(gap_of(object)->partition); }
static VALUE gap_reason(VALUE object) {
  return ID2SYM(rb_intern(leat_gap_reason_name(gap_of(object)->reason)));
}
static VALUE gap_is_gap(VALUE object) {
  (void)object;
  return Qtrue;
}
static VALUE show_gap(VALUE object) {
  const Gap *gap = gap_of(object);
  return rb_sprintf("#<Leat::Gap partition=%d offset=%llu count=%llu reason=%s>", (int)gap->partition,
                    (unsigned long long)gap->offset, (unsigned long long)gap->count,
                    leat_gap_reason_name(gap->reason));
}

void add_records(void) {
  no_headers = rb_obj_freeze(rb_ary_new());
  rb_gc_register_mark_object(no_headers);
  record_class = rb_define_class_under(leat_module, "Record", rb_cObject);
  rb_undef_alloc_func(record_class);
  rb_define_method(record_class, "value", get_value, 0);
  rb_define_method(record_class, "key", get_key, 0);
  rb_define_method(record_class, "headers", get_headers, 0);
  rb_define_method(record_class, "offset", get_offset, 0);
  rb_define_method(record_class, "partition", get_partition, 0);
  rb_define_method(record_class, "timestamp_ms", get_timestamp, 0);
  rb_define_method(record_class, "gap?", record_is_gap, 0);
  rb_define_method(record_class, "inspect", show_record, 0);
  delivery_class = rb_define_class_under(leat_module, "Delivery", record_class);
  rb_define_method(delivery_class, "deliveries", get_deliveries, 0);
  gap_class = rb_define_class_under(leat_module, "Gap", rb_cObject);
  rb_undef_alloc_func(gap_class);
  rb_define_method(gap_class, "offset", gap_offset, 0);
  rb_define_method(gap_class, "count", gap_count, 0);
  rb_define_method(gap_class, "partition", gap_partition, 0);
  rb_define_method(gap_class, "reason", gap_reason, 0);
  rb_define_method(gap_class, "gap?", gap_is_gap, 0);
  rb_define_method(gap_class, "inspect", show_gap, 0);
}
