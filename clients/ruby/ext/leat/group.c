// Consumer groups.
#include "leat_ruby.h"

static VALUE group_class;

typedef struct Group {
  Handle base;
  int was_created;
} Group;

static void close_group(void *pointer) {
  leat_group *group = pointer;
  (void)leat_group_close(&group);
}
static const HandleKind group_kind = {"group", 1, close_group, NULL, NULL, NULL, NULL};
static HANDLE_TYPE(group_type, "Leat::Group", handle_size, handle_release);

static const char *const modes[] = {"at_least_once", "at_most_once", NULL};
static const char *const expired[] = {"start", "end", "stop", NULL};
#define AT(name) offsetof(leat_group_options, name)
static const Option group_options[] = {
    {"from", OPTION_FROM, AT(from), AT(from_value), NULL},
    {"mode", OPTION_CHOICE, AT(mode), 0, modes},
    {"by_key", OPTION_FLAG, AT(by_key), 0, NULL},
    {"members", OPTION_U32, AT(members), 0, NULL},
    {"in_flight", OPTION_U32, AT(in_flight), 0, NULL},
    {"max_deliveries", OPTION_U32, AT(max_deliveries), 0, NULL},
    {"on_expired", OPTION_CHOICE, AT(on_expired), 0, expired},
    {"lease", OPTION_SECONDS, AT(lease_ns), 0, NULL},
    {NULL, OPTION_FLAG, 0, 0, NULL},
};
static const Option delete_options[] = {
    {"force", OPTION_FLAG, 0, 0, NULL},
    {NULL, OPTION_FLAG, 0, 0, NULL},
};

// ---- Of topics ----------------------------------------------------------------------------------

// Another process that works on groups may hold these calls up for seconds: so they run without the GVL.
typedef struct Asking {
  void *topic;
  leat_bytes name;
  leat_group_options options;
  uint32_t force;
  uint32_t was_created;
  leat_group *group;
} Asking;

static int32_t try_group(void *context, int64_t timeout_ns, int32_t *detail) {
  Asking *it = context;
  (void)timeout_ns;
  return leat_topic_group(it->topic, it->name.data, it->name.size, &it->options, &it->group, &it->was_created,
                          detail);
}

static int32_t try_find(void *context, int64_t timeout_ns, int32_t *detail) {
  Asking *it = context;
  (void)timeout_ns;
  return leat_topic_find_group(it->topic, it->name.data, it->name.size, &it->group, detail);
}

static int32_t try_delete(void *context, int64_t timeout_ns, int32_t *detail) {
  Asking *it = context;
  (void)timeout_ns;
  return leat_topic_delete_group(it->topic, it->name.data, it->name.size, it->force, detail);
}

static void ask(VALUE object, const char *act, Attempt attempt, Asking *it) {
  Handle *topic = handle_of(object);
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  handle_enter(topic);
  it->topic = topic->pointer;
  code = wait_unlocked(NULL, 0, LONG_SLICES, attempt, it, &detail);
  handle_leave(topic);
  if (code != LEAT_OK) {
    const Subject subject = {.act = act, .name = it->name, .is_group = 1, .group = attempt == try_group ? &it->options : NULL};
    raise_about(&subject, code, detail);
  }
}

static VALUE give(VALUE made, const Asking *it) {
  handle_fill(made, &group_kind, it->group);
  ((Group *)RTYPEDDATA_DATA(made))->was_created = it->was_created != 0;
  return handle_lend(made);
}

VALUE topic_group(int argc, VALUE *argv, VALUE object) {
  static const leat_group_options defaults = LEAT_GROUP_OPTIONS_INIT;
  Asking it = {.options = defaults};
  Texts texts = {{Qnil, Qnil, Qnil, Qnil}, 0};
  const VALUE made = handle_prepare(group_class, &group_type, sizeof(Group));
  it.name = parse_options(argc, argv, 1, group_options, &it.options, &texts);
  ask(object, "open group", try_group, &it);
  return give(made, &it);
}

VALUE topic_find_group(VALUE object, VALUE text) {
  static const Option none = {NULL, OPTION_FLAG, 0, 0, NULL};
  Asking it = {.force = 0};
  Texts texts = {{Qnil, Qnil, Qnil, Qnil}, 0};
  const VALUE made = handle_prepare(group_class, &group_type, sizeof(Group));
  it.name = parse_options(1, &text, 1, &none, NULL, &texts);
  ask(object, "open group", try_find, &it);
  return give(made, &it);
}

VALUE topic_delete_group(int argc, VALUE *argv, VALUE object) {
  Asking it = {.force = 0};
  Texts texts = {{Qnil, Qnil, Qnil, Qnil}, 0};
  it.name = parse_options(argc, argv, 1, delete_options, &it.force, &texts);
  ask(object, "delete group", try_delete, &it);
  return Qnil;
}

static int32_t write_names(void *topic, char *buffer, uint64_t capacity, uint64_t *size,
                           int32_t *detail) {
  return leat_topic_group_names(topic, buffer, capacity, size, detail);
}
VALUE topic_group_names(VALUE object) { return lines_of(text_of_handle(object, write_names)); }

// ---- Snapshot -----------------------------------------------------------------------------------

static int32_t write_name(void *group, char *buffer, uint64_t capacity, uint64_t *size,
                          int32_t *detail) {
  (void)detail;
  return leat_group_name(group, buffer, capacity, size);
}
static int32_t write_dead_letters(void *group, char *buffer, uint64_t capacity, uint64_t *size,
                                  int32_t *detail) {
  (void)detail;
  return leat_group_dead_letter_topic(group, buffer, capacity, size);
}

static VALUE get_name(VALUE object) { return text_of_handle(object, write_name); }
static VALUE dead_letter_topic(VALUE object) { return text_of_handle(object, write_dead_letters); }
static VALUE was_created(VALUE object) {
  return ((Group *)rb_check_typeddata(object, &group_type))->was_created ? Qtrue : Qfalse;
}

enum { MOST_MEMBERS = 255, MOST_PARTITIONS = 65536 };

static void set(VALUE hash, const char *name, VALUE value) { rb_hash_aset(hash, rb_utf8_str_new_cstr(name), value); }

static VALUE members_of(const leat_member_info *members, uint32_t count) {
  const VALUE list = rb_ary_new();
  uint32_t i = 0;
  for (; i < count && i < MOST_MEMBERS; ++i) {
    const VALUE one = rb_hash_new();
    set(one, "name", rb_utf8_str_new_cstr(members[i].name));
    set(one, "pid", UINT2NUM(members[i].pid));
    set(one, "in_flight", ULL2NUM(members[i].in_flight));
    rb_ary_push(list, one);
  }
  return list;
}

static VALUE hash_of(const leat_group_info *info) {
  const VALUE hash = rb_hash_new();
  set(hash, "mode", rb_utf8_str_new_cstr(modes[info->mode & 1]));
  set(hash, "by_key", info->by_key != 0 ? Qtrue : Qfalse);
  set(hash, "max_deliveries", UINT2NUM(info->max_deliveries));
  set(hash, "lease", rb_float_new((double)info->lease_ns / 1e9));
  set(hash, "on_expired", rb_utf8_str_new_cstr(expired[info->on_expired < 3 ? info->on_expired : 0]));
  set(hash, "in_flight_limit", UINT2NUM(info->in_flight_limit));
  set(hash, "lag", ULL2NUM(info->lag));
  set(hash, "in_flight", ULL2NUM(info->in_flight));
  set(hash, "redelivered", ULL2NUM(info->redelivered));
  set(hash, "returned", ULL2NUM(info->returned));
  set(hash, "returned_limit", ULL2NUM(info->returned_limit));
  set(hash, "dead_letters", ULL2NUM(info->dead_letters));
  set(hash, "taking", rb_utf8_str_new_cstr(leat_error_name(info->taking)));
  return hash;
}

static VALUE info(VALUE object) {
  Handle *handle = handle_of(object);
  leat_group_info taken = {.size = sizeof(leat_group_info)};
  VALUE first = Qnil;
  VALUE second = Qnil;
  leat_member_info *members = ALLOCV_N(leat_member_info, first, MOST_MEMBERS);
  uint64_t *offsets = ALLOCV_N(uint64_t, second, MOST_PARTITIONS);
  VALUE hash = Qnil;
  VALUE list = Qnil;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  uint32_t i = 0;
  handle_enter(handle);
  code = leat_group_get_info(handle->pointer, &taken, members, MOST_MEMBERS, offsets,
                             MOST_PARTITIONS, &detail);
  handle_leave(handle);
  if (code != LEAT_OK) raise_code(code, detail);
  hash = hash_of(&taken);
  set(hash, "members", members_of(members, taken.member_count));
  list = rb_ary_new();
  for (; i < taken.partition_count && i < MOST_PARTITIONS; ++i) rb_ary_push(list, ULL2NUM(offsets[i]));
  set(hash, "offsets", list);
  ALLOCV_END(second);
  ALLOCV_END(first);
  return hash;
}

// ---- Position -----------------------------------------------------------------------------------

static VALUE seek(int argc, VALUE *argv, VALUE object) {
  static const char *const names[] = {"partition", NULL};
  Handle *handle = handle_of(object);
  VALUE given[2] = {Qundef, Qundef};
  uint32_t from = 0;
  uint64_t value = 0;
  uint32_t partition = 0;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  parse_arguments(argc, argv, 1, 0, names, given);
  parse_from(given[0], &from, &value);
  partition = parse_partition(given[1]);
  handle_enter(handle);
  code = leat_group_seek(handle->pointer, from, value, partition, &detail);
  handle_leave(handle);
  if (code != LEAT_OK) raise_code(code, detail);
  return Qnil;
}

typedef int32_t (*OfPartition)(leat_group *group, uint32_t partition, uint64_t *number);

static VALUE of_partition(OfPartition get, int argc, VALUE *argv, VALUE object) {
  static const char *const names[] = {"partition", NULL};
  Handle *handle = handle_of(object);
  VALUE given = Qundef;
  uint32_t partition = 0;
  uint64_t number = 0;
  int32_t code = LEAT_OK;
  parse_arguments(argc, argv, 0, 0, names, &given);
  if (given != Qundef) partition = parse_partition(given);
  handle_enter(handle);
  code = get(handle->pointer, partition, &number);
  handle_leave(handle);
  if (code != LEAT_OK) raise_code(code, 0);
  return ULL2NUM(number);
}

static VALUE position(int argc, VALUE *argv, VALUE object) {
  return of_partition(leat_group_position, argc, argv, object);
}
static VALUE released(int argc, VALUE *argv, VALUE object) {
  return of_partition(leat_group_released, argc, argv, object);
}

void add_groups(void) {
  group_class = rb_define_class_under(leat_module, "Group", handle_class);
  rb_define_method(group_class, "join", group_join, -1);
  rb_define_method(group_class, "info", info, 0);
  rb_define_method(group_class, "name", get_name, 0);
  rb_define_method(group_class, "dead_letter_topic", dead_letter_topic, 0);
  rb_define_method(group_class, "created?", was_created, 0);
  rb_define_method(group_class, "seek", seek, -1);
  rb_define_method(group_class, "position", position, -1);
  rb_define_method(group_class, "released", released, -1);
}
