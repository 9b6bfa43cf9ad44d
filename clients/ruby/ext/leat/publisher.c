// Publishers.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "leat_ruby.h"

static VALUE publisher_class;

static void close_publisher(void *pointer) {
  leat_publisher *publisher = pointer;
  (void)leat_publisher_close(&publisher);
}
static int32_t stop_publisher(void *pointer) { return leat_publisher_stop(pointer); }
static int32_t resume_publisher(void *pointer) { return leat_publisher_resume(pointer); }
static int32_t is_publisher_stopped(void *pointer, uint32_t *answer) {
  return leat_publisher_is_stopped(pointer, answer);
}
static const HandleKind publisher_kind = {"publisher",      0,
                                          close_publisher,  stop_publisher,
                                          resume_publisher, is_publisher_stopped, NULL};

void publisher_drop(Publisher *publisher) {
  if (--publisher->references == 0) xfree(publisher);
}

static void release_publisher(void *memory) {
  Publisher *publisher = memory;
  handle_close(&publisher->base);
  publisher_drop(publisher);
}

static HANDLE_TYPE(publisher_type, "Leat::Publisher", handle_size, release_publisher);

Publisher *publisher_of(VALUE object) { return rb_check_typeddata(object, &publisher_type); }

static const char *const stages[] = {"", "committed", "durable", NULL};
static const Option publisher_options[] = {
    {"partition", OPTION_PARTITION, offsetof(leat_publisher_options, partition), 0, NULL},
    {"exclusive", OPTION_FLAG, offsetof(leat_publisher_options, exclusive), 0, NULL},
    {"acknowledge", OPTION_CHOICE, offsetof(leat_publisher_options, acknowledge), 0, stages},
    {NULL, OPTION_FLAG, 0, 0, NULL},
};

VALUE topic_publisher(int argc, VALUE *argv, VALUE object) {
  Handle *topic = handle_of(object);
  leat_publisher_options options = LEAT_PUBLISHER_OPTIONS_INIT;
  Texts texts = {{Qnil, Qnil, Qnil, Qnil}, 0};
  leat_publisher *publisher = NULL;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  const VALUE made = handle_prepare(publisher_class, &publisher_type, sizeof(Publisher));
  ((Publisher *)RTYPEDDATA_DATA(made))->references = 1;
  (void)parse_options(argc, argv, 0, publisher_options, &options, &texts);
  options.interruptible = 1;
  handle_enter(topic);
  code = leat_topic_publisher(topic->pointer, &options, &publisher, &detail);
  handle_leave(topic);
  if (code != LEAT_OK) {
    const Subject subject = {.act = "make a publisher", .partition = &options.partition};
    raise_about(&subject, code, detail);
  }
  handle_fill(made, &publisher_kind, publisher);
  return handle_lend(made);
}

void publisher_leave(Publisher *publisher) {
  const leat_claim left = publisher->left;
  if (left.data != NULL && publisher->base.users <= 1) {
    publisher->left.data = NULL;
    (void)leat_publisher_abort(publisher->base.pointer, &left, NULL);
  }
  handle_leave(&publisher->base);
}

// ---- What is published --------------------------------------------------------------------------

// One of the pointers is set, or else `value` is published. The bytes are those of Strings, which may change or
// move as soon as other code of Ruby runs: so a call that waits copies them first.
typedef struct Publishing {
  leat_publisher *publisher;
  leat_bytes value;
  leat_bytes *values;
  leat_new_record *records;
  leat_new_header *headers;  // Of all records.
  uint64_t count;            // Of values or records.
  uint64_t header_count;
  int is_batch;
  uint32_t partition;  // Of a batch.
  int is_published;    // What remains is to wait for stable storage.
  int was_full;        // LEAT_ERR_FULL instead of waiting.
  uint64_t offset;
  char *copy;
} Publishing;

static void move(leat_bytes *bytes, char **to) {
  if (bytes->data == NULL) return;
  memcpy(*to, bytes->data, bytes->size);
  bytes->data = *to;
  *to += bytes->size;
}

// Applies to all bytes: adds their sizes up, or (`to` is set) moves them there.
static uint64_t each_bytes(Publishing *it, char *to) {
  uint64_t size = it->value.size + 1;  // An empty one has an address, too.
  uint64_t i = 0;
  if (to != NULL) move(&it->value, &to);
  for (i = 0; i < it->count; ++i) {
    leat_bytes *value = it->records != NULL ? &it->records[i].value : &it->values[i];
    size += value->size;
    if (to != NULL) move(value, &to);
    if (it->records == NULL) continue;
    size += it->records[i].key.size;
    if (to != NULL) move(&it->records[i].key, &to);
  }
  for (i = 0; i < it->header_count; ++i) {
    size += it->headers[i].name.size + it->headers[i].value.size;
    if (to == NULL) continue;
    move(&it->headers[i].name, &to);
    move(&it->headers[i].value, &to);
  }
  return size;
}

static int copy_bytes(Publishing *it) {
  it->copy = malloc(each_bytes(it, NULL));
  if (it->copy == NULL) return 0;
  (void)each_bytes(it, it->copy);
  return 1;
}

// ---- Publish ------------------------------------------------------------------------------------

static int32_t publish_once(Publishing *it, int64_t timeout_ns, int32_t *detail) {
  if (it->is_batch && it->records != NULL)
    return leat_publisher_publish_record_batch(it->publisher, it->records, it->count, it->partition,
                                               timeout_ns, &it->offset, detail);
  if (it->is_batch)
    return leat_publisher_publish_batch(it->publisher, it->values, it->count, it->partition,
                                        timeout_ns, &it->offset, detail);
  if (it->records != NULL)
    return leat_publisher_publish_record(it->publisher, it->records, timeout_ns, &it->offset, detail);
  return leat_publisher_publish(it->publisher, it->value.data, it->value.size, timeout_ns,
                                &it->offset, detail);
}

// Whether a wait for stable storage ended only because its time slice was over, or a signal came.
static int is_just_late(leat_publisher *publisher, int32_t code, int32_t detail) {
  uint32_t is_stopped = 0;
  if (code != LEAT_ERR_NOT_DURABLE || (detail != 0 && detail != EINTR)) return 0;
  return leat_publisher_is_stopped(publisher, &is_stopped) == LEAT_OK && !is_stopped;
}

static int32_t try_publish(void *context, int64_t timeout_ns, int32_t *detail) {
  Publishing *it = context;
  int32_t code = LEAT_OK;
  *detail = 0;
  if (it->is_published) {
    code = leat_publisher_flush(it->publisher, timeout_ns, detail);
    return is_just_late(it->publisher, code, *detail) ? LEAT_ERR_TIMEOUT : code;
  }
  code = publish_once(it, timeout_ns, detail);
  if (is_just_late(it->publisher, code, *detail)) {  // Publishing it again would make a second one.
    it->is_published = 1;
    if (leat_publisher_last_offset(it->publisher, &it->offset) == LEAT_OK && it->is_batch)
      it->offset -= it->count - 1;
    return LEAT_ERR_TIMEOUT;
  }
  it->was_full = code == LEAT_ERR_FULL;
  return it->was_full && timeout_ns == 0 ? LEAT_ERR_TIMEOUT : code;
}

// Publishes, in a call that handle_enter() began, and ends that.
static VALUE publish_it(Publisher *self, Publishing *it, int64_t timeout_ns) {
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  it->publisher = self->base.pointer;
  code = try_publish(it, 0, &detail);
  if (code == LEAT_ERR_TIMEOUT && timeout_ns != 0) {
    code = copy_bytes(it) ? wait_unlocked(&self->base, timeout_ns, ROOM_SLICES, try_publish, it, &detail) : LEAT_ERR_NO_MEMORY;
    free(it->copy);
  }
  publisher_leave(self);
  if (code == LEAT_OK) return ULL2NUM(it->offset);
  if (code == LEAT_ERR_TIMEOUT && it->is_published) code = LEAT_ERR_NOT_DURABLE;
  if (code == LEAT_ERR_TIMEOUT && it->was_full && timeout_ns == 0) code = LEAT_ERR_FULL;
  if (code == LEAT_ERR_INVALID_ARGUMENT) {
    const Subject subject = {.act = "publish",
                             .is_empty = it->is_batch && it->count == 0,
                             .partition = it->is_batch || it->records == NULL ? &it->partition : &it->records->partition};
    raise_about(&subject, code, detail);
  }
  raise_code(code, detail);
}

// ---- Headers ------------------------------------------------------------------------------------

typedef struct Filling {
  leat_new_header *headers;
  uint64_t count;
} Filling;

static int add_header(VALUE name, VALUE value, VALUE context) {
  Filling *filling = (Filling *)context;
  leat_new_header *header = &filling->headers[filling->count++];
  header->name = parse_bytes(name, "a header's name");
  header->value = parse_bytes(value, "a header's value");
  return ST_CONTINUE;
}

static uint64_t count_headers(VALUE headers) {
  if (headers == Qundef || NIL_P(headers)) return 0;
  if (RB_TYPE_P(headers, T_HASH)) return RHASH_SIZE(headers);
  if (RB_TYPE_P(headers, T_ARRAY)) return (uint64_t)RARRAY_LEN(headers);
  rb_raise(rb_eTypeError, "headers must be a Hash or an Array of pairs, not %" PRIsVALUE,
           rb_obj_class(headers));
}

// Into `room`, which has enough of it. Makes no objects. Returns how many there are.
static uint64_t read_headers(VALUE headers, leat_new_header *room) {
  Filling filling = {room, 0};
  const uint64_t count = count_headers(headers);
  uint64_t i = 0;
  if (count == 0) return 0;
  if (RB_TYPE_P(headers, T_HASH)) {
    rb_hash_foreach(headers, add_header, (VALUE)&filling);
    return count;
  }
  for (; i < count; ++i) {
    const VALUE pair = rb_ary_entry(headers, (long)i);
    if (!RB_TYPE_P(pair, T_ARRAY) || RARRAY_LEN(pair) != 2)
      rb_raise(rb_eTypeError, "headers must be pairs of a name and a value");
    (void)add_header(rb_ary_entry(pair, 0), rb_ary_entry(pair, 1), (VALUE)&filling);
  }
  return count;
}

// ---- One record ---------------------------------------------------------------------------------

enum { VALUE_ARGUMENT, KEY, HEADERS, PARTITION, TIMEOUT, PUBLISH_ARGUMENTS };

static void read_key(VALUE key, leat_new_record *record) {
  if (key == Qundef || NIL_P(key)) return;
  record->key = parse_bytes(key, "key");
  if (record->key.data == NULL) record->key.data = "";  // Empty, and not none.
}

static VALUE publish_with(VALUE object, const VALUE *given) {
  static const leat_new_record none = LEAT_NEW_RECORD_INIT;
  Publisher *self = publisher_of(object);
  leat_new_record record = none;
  Publishing it = {.records = &record, .count = 1};
  const int64_t timeout_ns = parse_timeout(given[TIMEOUT]);
  const uint64_t room = count_headers(given[HEADERS]);
  VALUE memory = Qnil;
  VALUE result = Qnil;
  it.headers = ALLOCV_N(leat_new_header, memory, room + 1);
  record.partition = parse_partition(given[PARTITION]);
  // From here on, nothing makes objects, so that the collector moves nothing.
  record.value = parse_bytes(given[VALUE_ARGUMENT], "value");
  read_key(given[KEY], &record);
  it.header_count = read_headers(given[HEADERS], it.headers);
  record.headers = it.header_count == 0 ? NULL : it.headers;
  record.header_count = (uint32_t)it.header_count;
  handle_enter(&self->base);
  result = publish_it(self, &it, timeout_ns);
  ALLOCV_END(memory);
  return result;
}

static VALUE publish(int argc, VALUE *argv, VALUE object) {
  static const char *const names[] = {"key", "headers", "partition", "timeout", NULL};
  VALUE given[PUBLISH_ARGUMENTS];
  if (argc == 1 && RB_TYPE_P(argv[0], T_STRING)) {  // The usual case.
    Publisher *self = publisher_of(object);
    Publishing it = {.count = 0};
    it.value.data = RSTRING_PTR(argv[0]);
    it.value.size = (uint64_t)RSTRING_LEN(argv[0]);
    handle_enter(&self->base);
    return publish_it(self, &it, LEAT_FOREVER);
  }
  parse_arguments(argc, argv, 1, 0, names, given);
  return publish_with(object, given);
}

// ---- Batches ------------------------------------------------------------------------------------

// Of an Array of Strings, or of records: Hashes with value:, key: and headers:.
static VALUE part_of(VALUE hash, const char *name) {
  return rb_hash_lookup2(hash, ID2SYM(rb_intern(name)), Qnil);
}

static int is_known_part(VALUE name, VALUE value, VALUE context) {
  (void)value;
  (void)context;
  if (name != ID2SYM(rb_intern("value")) && name != ID2SYM(rb_intern("key")) &&
      name != ID2SYM(rb_intern("headers")))
    rb_raise(rb_eArgError, "a record of a batch has value:, key: and headers:, not %+" PRIsVALUE, name);
  return ST_CONTINUE;
}

static void read_record(VALUE object, leat_new_record *record, Publishing *it) {
  static const leat_new_record none = LEAT_NEW_RECORD_INIT;
  leat_new_header *headers = it->headers + it->header_count;
  uint64_t count = 0;
  *record = none;
  if (!RB_TYPE_P(object, T_HASH)) {
    record->value = parse_bytes(object, "value");
    return;
  }
  rb_hash_foreach(object, is_known_part, Qnil);
  record->value = parse_bytes(part_of(object, "value"), "value");
  read_key(part_of(object, "key"), record);
  count = read_headers(part_of(object, "headers"), headers);
  record->headers = count == 0 ? NULL : headers;
  record->header_count = (uint32_t)count;
  it->header_count += count;
}

static VALUE publish_records(Publisher *self, VALUE array, Publishing *it, int64_t timeout_ns) {
  uint64_t room = 1;
  uint64_t i = 0;
  VALUE first = Qnil;
  VALUE second = Qnil;
  VALUE result = Qnil;
  for (; i < it->count; ++i) {
    const VALUE object = rb_ary_entry(array, (long)i);
    if (RB_TYPE_P(object, T_HASH)) room += count_headers(part_of(object, "headers"));
  }
  it->headers = ALLOCV_N(leat_new_header, first, room);
  it->records = ALLOCV_N(leat_new_record, second, it->count);
  it->values = NULL;
  for (i = 0; i < it->count; ++i) read_record(rb_ary_entry(array, (long)i), &it->records[i], it);
  handle_enter(&self->base);
  result = publish_it(self, it, timeout_ns);
  ALLOCV_END(second);
  ALLOCV_END(first);
  return result;
}

static VALUE publish_batch(int argc, VALUE *argv, VALUE object) {
  static const char *const names[] = {"partition", "timeout", NULL};
  Publisher *self = publisher_of(object);
  Publishing it = {.is_batch = 1};
  VALUE given[3];
  VALUE memory = Qnil;
  VALUE result = Qnil;
  int64_t timeout_ns = LEAT_FOREVER;
  parse_arguments(argc, argv, 1, 0, names, given);
  if (RB_TYPE_P(given[0], T_STRING) || RB_TYPE_P(given[0], T_HASH))
    rb_raise(rb_eTypeError, "a batch is an Array of values, not one %" PRIsVALUE, rb_obj_class(given[0]));
  if (!RB_TYPE_P(given[0], T_ARRAY)) given[0] = rb_Array(given[0]);
  it.partition = parse_partition(given[1]);
  timeout_ns = parse_timeout(given[2]);
  it.count = (uint64_t)RARRAY_LEN(given[0]);
  it.values = ALLOCV_N(leat_bytes, memory, it.count);  // On the stack for as many as 64.
  for (uint64_t i = 0; i < it.count; ++i) {
    const VALUE value = RARRAY_AREF(given[0], (long)i);
    if (!RB_TYPE_P(value, T_STRING)) {
      if (RB_TYPE_P(value, T_HASH)) return publish_records(self, given[0], &it, timeout_ns);
      (void)parse_bytes(value, "value");  // Raises.
    }
    it.values[i].data = RSTRING_PTR(value);
    it.values[i].size = (uint64_t)RSTRING_LEN(value);
  }
  handle_enter(&self->base);
  result = publish_it(self, &it, timeout_ns);
  ALLOCV_END(memory);
  RB_GC_GUARD(given[0]);
  return result;
}

// ---- Durable topics -----------------------------------------------------------------------------

static int32_t try_flush(void *context, int64_t timeout_ns, int32_t *detail) {
  int32_t code = LEAT_OK;
  *detail = 0;
  code = leat_publisher_flush(context, timeout_ns, detail);
  return is_just_late(context, code, *detail) ? LEAT_ERR_TIMEOUT : code;
}

static VALUE flush(int argc, VALUE *argv, VALUE object) {
  static const char *const names[] = {"timeout", NULL};
  Publisher *self = publisher_of(object);
  VALUE timeout = Qundef;
  int64_t timeout_ns = 0;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  parse_arguments(argc, argv, 0, 0, names, &timeout);
  timeout_ns = parse_timeout(timeout);
  handle_enter(&self->base);
  code = wait_for(&self->base, 0, timeout_ns, SHORT_SLICES, try_flush, self->base.pointer, &detail);
  publisher_leave(self);
  if (code != LEAT_OK) raise_code(code == LEAT_ERR_TIMEOUT ? LEAT_ERR_NOT_DURABLE : code, detail);
  return Qnil;
}

static VALUE request_sync(VALUE object) {
  Handle *self = handle_of(object);
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  handle_enter(self);
  code = leat_publisher_request_sync(self->pointer, &detail);
  handle_leave(self);
  if (code != LEAT_OK) raise_code(code, detail);
  return Qnil;
}

static VALUE durable_offset(int argc, VALUE *argv, VALUE object) {
  static const char *const names[] = {"partition", NULL};
  Handle *self = handle_of(object);
  VALUE given = Qundef;
  uint32_t partition = 0;
  uint64_t offset = 0;
  int32_t code = LEAT_OK;
  parse_arguments(argc, argv, 0, 0, names, &given);
  partition = parse_partition(given);
  handle_enter(self);
  code = leat_publisher_durable_offset(self->pointer, partition, &offset);
  handle_leave(self);
  if (code != LEAT_OK) raise_code(code, 0);
  return ULL2NUM(offset);
}

static VALUE last_offset(VALUE object) {
  Handle *self = handle_of(object);
  uint64_t offset = 0;
  int32_t code = LEAT_OK;
  handle_enter(self);
  code = leat_publisher_last_offset(self->pointer, &offset);
  handle_leave(self);
  if (code == LEAT_ERR_NOT_FOUND) return Qnil;
  if (code != LEAT_OK) raise_code(code, 0);
  return ULL2NUM(offset);
}

static VALUE max_record_size(VALUE object) {
  Handle *self = handle_of(object);
  uint64_t bytes = 0;
  int32_t code = LEAT_OK;
  handle_enter(self);
  code = leat_publisher_max_record_size(self->pointer, &bytes);
  handle_leave(self);
  if (code != LEAT_OK) raise_code(code, 0);
  return ULL2NUM(bytes);
}

static VALUE get_partition(VALUE object) {
  Handle *self = handle_of(object);
  uint32_t partition = 0;
  int32_t code = LEAT_OK;
  handle_enter(self);
  code = leat_publisher_partition(self->pointer, &partition);
  handle_leave(self);
  if (code != LEAT_OK) raise_code(code, 0);
  return UINT2NUM(partition);
}

void add_publishers(void) {
  publisher_class = rb_define_class_under(leat_module, "Publisher", stoppable_class);
  rb_define_method(publisher_class, "publish", publish, -1);
  rb_define_method(publisher_class, "publish_batch", publish_batch, -1);
  rb_define_method(publisher_class, "claim", publisher_claim, -1);
  rb_define_method(publisher_class, "flush", flush, -1);
  rb_define_method(publisher_class, "request_sync", request_sync, 0);
  rb_define_method(publisher_class, "durable_offset", durable_offset, -1);
  rb_define_method(publisher_class, "last_offset", last_offset, 0);
  rb_define_method(publisher_class, "max_record_size", max_record_size, 0);
  rb_define_method(publisher_class, "partition", get_partition, 0);
}
