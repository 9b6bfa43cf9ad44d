// Topics: create, open, delete, list, and what one can do with an open one.
#include <errno.h>

#include "leat_ruby.h"

static VALUE topic_class;

static void close_topic(void *pointer) {
  leat_topic *topic = pointer;
  (void)leat_topic_close(&topic);
}
static const HandleKind topic_kind = {"topic", 1, close_topic, NULL, NULL, NULL, NULL};
static HANDLE_TYPE(topic_type, "Leat::Topic", handle_size, handle_release);

// ---- Create and open ----------------------------------------------------------------------------

static const char *const policies[] = {"block", "fail", "overwrite", "grow", NULL};
static const char *const durabilities[] = {"none", "os", "interval", "fsync", NULL};

#define OPTION(name, kind) {#name, kind, offsetof(leat_topic_options, name), 0, NULL}
#define OPTION_NS(name) {#name, OPTION_SECONDS, offsetof(leat_topic_options, name##_ns), 0, NULL}
static const Option topic_options[] = {
    {"policy", OPTION_CHOICE, offsetof(leat_topic_options, policy), 0, policies},
    OPTION(capacity_bytes, OPTION_U64),
    OPTION(segment_bytes, OPTION_U64),
    OPTION(max_capacity_bytes, OPTION_U64),
    OPTION(grow_below_bytes, OPTION_U64),
    OPTION(partitions, OPTION_U32),
    OPTION(participants, OPTION_U32),
    OPTION(retain_all, OPTION_FLAG),
    OPTION(single_writer, OPTION_FLAG),
    OPTION(timestamps, OPTION_FLAG),
    OPTION(delete_when_unused, OPTION_FLAG),
    OPTION_NS(revoke_after),
    OPTION_NS(evict_after),
    OPTION(mode, OPTION_U32),
    {"durable", OPTION_CHOICE, offsetof(leat_topic_options, durable), 0, durabilities},
    OPTION_NS(sync_interval),
    OPTION(file_bytes, OPTION_U64),
    OPTION(retention_bytes, OPTION_U64),
    {"retention", OPTION_MILLISECONDS, offsetof(leat_topic_options, retention_ms), 0, NULL},
    OPTION(file_group, OPTION_TEXT),
    OPTION(directory, OPTION_TEXT),
    OPTION(data_directory, OPTION_TEXT),
    {NULL, OPTION_FLAG, 0, 0, NULL},
};
#undef OPTION
#undef OPTION_NS

typedef int32_t (*Create)(const char *, uint64_t, const leat_topic_options *, leat_topic **,
                          int32_t *);

// A topic to be opened, created or deleted, which may take a while.
typedef struct Opening {
  leat_bytes name;
  leat_topic_options options;
  leat_place place;
  Create create;
  leat_topic *topic;
} Opening;

static int32_t try_create(void *context, int64_t timeout_ns, int32_t *detail) {
  Opening *it = context;
  (void)timeout_ns;
  return it->create(it->name.data, it->name.size, &it->options, &it->topic, detail);
}

static int32_t try_open(void *context, int64_t timeout_ns, int32_t *detail) {
  Opening *it = context;
  const int32_t code = leat_topic_open(it->name.data, it->name.size, timeout_ns, &it->place, &it->topic, detail);
  return code == LEAT_ERR_NOT_FOUND ? LEAT_ERR_TIMEOUT : code;  // Not created yet.
}

static int32_t try_delete(void *context, int64_t timeout_ns, int32_t *detail) {
  Opening *it = context;
  (void)timeout_ns;
  return leat_topic_delete(it->name.data, it->name.size, &it->place, detail);
}

static VALUE create_with(Create how, int argc, VALUE *argv) {
  static const leat_topic_options defaults = LEAT_TOPIC_OPTIONS_INIT;
  Opening it = {.options = defaults, .create = how};
  Texts texts = {{Qnil, Qnil, Qnil, Qnil}, 0};
  const VALUE object = handle_prepare(topic_class, &topic_type, sizeof(Handle));
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  it.name = parse_options(argc, argv, 1, topic_options, &it.options, &texts);
  code = wait_unlocked(NULL, 0, LONG_SLICES, try_create, &it, &detail);
  if (code != LEAT_OK) {
    const Subject subject = {.act = "create topic", .name = it.name, .is_topic = 1, .makes_directory = 1,
                             .topic = &it.options, .directory = it.options.directory,
                             .data_directory = it.options.data_directory};
    raise_about(&subject, code, detail);
  }
  handle_fill(object, &topic_kind, it.topic);
  return handle_lend(object);
}

static VALUE create(int argc, VALUE *argv, VALUE class) {
  (void)class;
  return create_with(leat_topic_create, argc, argv);
}

static VALUE open_or_create(int argc, VALUE *argv, VALUE class) {
  (void)class;
  return create_with(leat_topic_open_or_create, argc, argv);
}

#define AT(name) offsetof(leat_place, name)
static const Option place_options[] = {
    {"directory", OPTION_TEXT, AT(directory), 0, NULL},
    {"data_directory", OPTION_TEXT, AT(data_directory), 0, NULL},
    {"force", OPTION_FLAG, AT(force), 0, NULL},
    {NULL, OPTION_FLAG, 0, 0, NULL},
};

// Options of a place, and a timeout, which is taken out. The keywords are a Hash of this call's own.
static int64_t take_timeout(int *argc, VALUE *argv) {
  VALUE timeout = Qnil;
  if (!rb_keyword_given_p()) return 0;
  argv[*argc - 1] = rb_hash_dup(argv[*argc - 1]);
  timeout = rb_hash_lookup2(argv[*argc - 1], ID2SYM(rb_intern("timeout")), INT2FIX(0));
  rb_hash_delete(argv[*argc - 1], ID2SYM(rb_intern("timeout")));
  return parse_timeout(timeout);
}

NORETURN(static void raise_at(const char *act, const Opening *it, int32_t code, int32_t detail));
static void raise_at(const char *act, const Opening *it, int32_t code, int32_t detail) {
  const Subject subject = {.act = act, .name = it->name, .is_topic = 1, .directory = it->place.directory,
                           .data_directory = it->place.data_directory};
  raise_about(&subject, code, detail);
}

static VALUE open_topic(int argc, VALUE *argv, VALUE class) {
  static const leat_place default_place = LEAT_PLACE_INIT;
  Opening it = {.place = default_place};
  Texts texts = {{Qnil, Qnil, Qnil, Qnil}, 0};
  const VALUE object = handle_prepare(topic_class, &topic_type, sizeof(Handle));
  VALUE own[2] = {Qnil, Qnil};
  int64_t timeout_ns = 0;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  (void)class;
  rb_check_arity(argc - rb_keyword_given_p(), 1, 1);
  own[0] = argv[0];
  if (argc == 2) own[1] = argv[1];
  timeout_ns = take_timeout(&argc, own);
  it.name = parse_options(argc, own, 1, place_options, &it.place, &texts);
  it.place.interruptible = 1;
  code = wait_unlocked(NULL, timeout_ns, LONG_SLICES, try_open, &it, &detail);
  if (code != LEAT_OK) raise_at("open topic", &it, code == LEAT_ERR_TIMEOUT ? LEAT_ERR_NOT_FOUND : code, detail);
  handle_fill(object, &topic_kind, it.topic);
  return handle_lend(object);
}

static VALUE delete_topic(int argc, VALUE *argv, VALUE class) {
  static const leat_place default_place = LEAT_PLACE_INIT;
  Opening it = {.place = default_place};
  Texts texts = {{Qnil, Qnil, Qnil, Qnil}, 0};
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  (void)class;
  it.name = parse_options(argc, argv, 1, place_options, &it.place, &texts);
  code = wait_unlocked(NULL, 0, LONG_SLICES, try_delete, &it, &detail);
  if (code != LEAT_OK) raise_at("delete topic", &it, code, detail);
  return Qnil;
}

static int32_t write_list(void *place, char *buffer, uint64_t capacity, uint64_t *size,
                          int32_t *detail) {
  return leat_topic_list(place, buffer, capacity, size, detail);
}

static VALUE list_topics(int argc, VALUE *argv, VALUE class) {
  leat_place place = LEAT_PLACE_INIT;
  Texts texts = {{Qnil, Qnil, Qnil, Qnil}, 0};
  (void)class;
  (void)parse_options(argc, argv, 0, place_options, &place, &texts);
  return lines_of(text_of(write_list, &place));
}

// ---- An open topic ------------------------------------------------------------------------------

static int32_t write_name(void *topic, char *buffer, uint64_t capacity, uint64_t *size,
                          int32_t *detail) {
  (void)detail;
  return leat_topic_name(topic, buffer, capacity, size);
}
static int32_t write_json(void *topic, char *buffer, uint64_t capacity, uint64_t *size,
                          int32_t *detail) {
  return leat_topic_get_json(topic, buffer, capacity, size, detail);
}

static VALUE get_name(VALUE object) { return text_of_handle(object, write_name); }
static VALUE info_json(VALUE object) { return text_of_handle(object, write_json); }

static VALUE max_record_size(VALUE object) {
  Handle *handle = handle_of(object);
  uint64_t bytes = 0;
  int32_t code = LEAT_OK;
  handle_enter(handle);
  code = leat_topic_max_record_size(handle->pointer, &bytes);
  handle_leave(handle);
  if (code != LEAT_OK) raise_code(code, 0);
  return ULL2NUM(bytes);
}

static VALUE partitions(VALUE object) {
  Handle *handle = handle_of(object);
  uint32_t count = 0;
  int32_t code = LEAT_OK;
  handle_enter(handle);
  code = leat_topic_partitions(handle->pointer, &count);
  handle_leave(handle);
  if (code != LEAT_OK) raise_code(code, 0);
  return UINT2NUM(count);
}

static VALUE set_max_capacity(VALUE object, VALUE number) {
  Handle *handle = handle_of(object);
  const uint64_t bytes = parse_u64(number, "max_capacity_bytes");
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  handle_enter(handle);
  code = leat_topic_set_max_capacity(handle->pointer, bytes, &detail);
  handle_leave(handle);
  if (code != LEAT_OK) raise_code(code, detail);
  return Qnil;
}

static VALUE shrink(VALUE object) {
  Handle *handle = handle_of(object);
  uint64_t bytes = 0;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  handle_enter(handle);
  code = leat_topic_shrink(handle->pointer, &bytes, &detail);
  handle_leave(handle);
  if (code != LEAT_OK) raise_code(code, detail);
  return ULL2NUM(bytes);
}

// LEAT_ERR_NOT_DURABLE without a reason: the time has passed. With EINTR: a signal came.
static int32_t try_repair(void *topic, int64_t timeout_ns, int32_t *detail) {
  int32_t code = LEAT_OK;
  *detail = 0;
  code = leat_topic_repair_interruptible(topic, timeout_ns, detail);
  return code == LEAT_ERR_NOT_DURABLE && (*detail == 0 || *detail == EINTR) ? LEAT_ERR_TIMEOUT : code;
}

static VALUE repair(int argc, VALUE *argv, VALUE object) {
  static const char *const names[] = {"timeout", NULL};
  Handle *handle = handle_of(object);
  VALUE timeout = Qundef;
  int64_t timeout_ns = 0;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  parse_arguments(argc, argv, 0, 0, names, &timeout);
  timeout_ns = parse_timeout(timeout);
  handle_enter(handle);
  code = wait_for(handle, 0, timeout_ns, SHORT_SLICES, try_repair, handle->pointer, &detail);
  handle_leave(handle);
  if (code != LEAT_OK) raise_code(code == LEAT_ERR_TIMEOUT ? LEAT_ERR_NOT_DURABLE : code, detail);
  return Qnil;
}

void add_topics(void) {
  topic_class = rb_define_class_under(leat_module, "Topic", handle_class);
  rb_define_singleton_method(topic_class, "create", create, -1);
  rb_define_singleton_method(topic_class, "open", open_topic, -1);
  rb_define_singleton_method(topic_class, "open_or_create", open_or_create, -1);
  rb_define_singleton_method(topic_class, "delete", delete_topic, -1);
  rb_define_singleton_method(topic_class, "list", list_topics, -1);
  rb_define_method(topic_class, "publisher", topic_publisher, -1);
  rb_define_method(topic_class, "subscriber", topic_subscriber, -1);
  rb_define_method(topic_class, "group", topic_group, -1);
  rb_define_method(topic_class, "find_group", topic_find_group, 1);
  rb_define_method(topic_class, "delete_group", topic_delete_group, -1);
  rb_define_method(topic_class, "group_names", topic_group_names, 0);
  rb_define_method(topic_class, "name", get_name, 0);
  rb_define_method(topic_class, "info_json", info_json, 0);
  rb_define_method(topic_class, "max_record_size", max_record_size, 0);
  rb_define_method(topic_class, "partitions", partitions, 0);
  rb_define_method(topic_class, "set_max_capacity", set_max_capacity, 1);
  rb_define_method(topic_class, "shrink", shrink, 0);
  rb_define_method(topic_class, "repair", repair, -1);
}
