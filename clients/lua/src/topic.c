// Topics: create, open, delete, list, and what one can do with an open one.
#include <errno.h>

#include "leat_lua.h"

static void close_topic(void *pointer) {
  leat_topic *topic = pointer;
  (void)leat_topic_close(&topic);
}
const HandleKind topic_kind = {"topic", 1, close_topic, NULL, NULL, NULL};

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

static int create_with(lua_State *L, Create how) {
  leat_topic_options options = LEAT_TOPIC_OPTIONS_INIT;
  const leat_bytes name = parse_bytes(L, 1, "a name");
  leat_topic *topic = NULL;
  Handle *made = NULL;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  parse_options(L, 2, topic_options, &options);
  made = handle_prepare(L, &topic_kind);
  code = how(name.data, name.size, &options, &topic, &detail);
  if (code != LEAT_OK) {
    const Subject subject = {.act = "create topic", .name = name, .is_topic = 1, .makes_directory = 1, .topic = &options,
                             .directory = options.directory, .data_directory = options.data_directory};
    return fail_about(L, &subject, code, detail);
  }
  handle_fill(made, topic);
  return 1;
}

static int create(lua_State *L) { return create_with(L, leat_topic_create); }
static int open_or_create(lua_State *L) { return create_with(L, leat_topic_open_or_create); }

// Options of functions that look for topics.
typedef struct Opening {
  leat_place place;
  int64_t timeout_ns;
  leat_bytes name;
  leat_topic *topic;
} Opening;
#define AT(name) offsetof(Opening, place.name)
static const Option place_options[] = {
    {"directory", OPTION_TEXT, AT(directory), 0, NULL},
    {"data_directory", OPTION_TEXT, AT(data_directory), 0, NULL},
    {"force", OPTION_FLAG, AT(force), 0, NULL},
    {"timeout", OPTION_TIMEOUT, offsetof(Opening, timeout_ns), 0, NULL},
    {NULL, OPTION_FLAG, 0, 0, NULL},
};

static int32_t try_open(void *context, int64_t timeout_ns, int32_t *detail) {
  Opening *it = context;
  const int32_t code = leat_topic_open(it->name.data, it->name.size, timeout_ns, &it->place, &it->topic, detail);
  return code == LEAT_ERR_NOT_FOUND ? LEAT_ERR_TIMEOUT : code;  // Not created yet.
}

static int fail_at(lua_State *L, const char *act, const Opening *it, int32_t code, int32_t detail) {
  const Subject subject = {.act = act, .name = it->name, .is_topic = 1, .directory = it->place.directory,
                           .data_directory = it->place.data_directory};
  return fail_about(L, &subject, code, detail);
}

static int open_topic(lua_State *L) {
  Opening it = {LEAT_PLACE_INIT, 0, {NULL, 0}, NULL};
  Handle *made = NULL;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  it.name = parse_bytes(L, 1, "a name");
  parse_options(L, 2, place_options, &it);
  it.place.interruptible = 1;
  made = handle_prepare(L, &topic_kind);
  code = wait_for(L, NULL, it.timeout_ns, LONG_SLICES, try_open, &it, &detail);
  if (code != LEAT_OK) return fail_at(L, "open topic", &it, code == LEAT_ERR_TIMEOUT ? LEAT_ERR_NOT_FOUND : code, detail);
  handle_fill(made, it.topic);
  return 1;
}

static int delete_topic(lua_State *L) {
  Opening it = {LEAT_PLACE_INIT, 0, {NULL, 0}, NULL};
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  it.name = parse_bytes(L, 1, "a name");
  parse_options(L, 2, place_options, &it);
  code = leat_topic_delete(it.name.data, it.name.size, &it.place, &detail);
  return code == LEAT_OK ? nothing_or(L, code, 0) : fail_at(L, "delete topic", &it, code, detail);
}

static int32_t write_list(void *place, char *buffer, uint64_t capacity, uint64_t *size,
                          int32_t *detail) {
  return leat_topic_list(place, buffer, capacity, size, detail);
}

static int list_topics(lua_State *L) {
  Opening it = {LEAT_PLACE_INIT, 0, {NULL, 0}, NULL};
  parse_options(L, 1, place_options, &it);
  return push_lines(L, NULL, write_list, &it.place);
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

static Handle *usable(lua_State *L) {
  Handle *self = self_of(L);
  if (!handle_is_usable(self)) handle_refuse(L, self);
  return self;
}

static int get_name(lua_State *L) { return push_text(L, self_of(L), write_name, NULL); }
static int info_json(lua_State *L) { return push_text(L, self_of(L), write_json, NULL); }

static int max_record_size(lua_State *L) {
  uint64_t bytes = 0;
  const int32_t code = leat_topic_max_record_size(usable(L)->pointer, &bytes);
  return number_or(L, code, 0, bytes);
}

static int partitions(lua_State *L) {
  uint32_t count = 0;
  const int32_t code = leat_topic_partitions(usable(L)->pointer, &count);
  return number_or(L, code, 0, count);
}

static void set(lua_State *L, const char *name, uint64_t number) {
  push_u64(L, number);
  lua_setfield(L, -2, name);
}

enum { MOST_PARTITIONS = 1024 };

static void push_partition(lua_State *L, const leat_partition_info *partition) {
  lua_createtable(L, 0, 6);
  set(L, "start", partition->start);
  set(L, "end", partition->end);
  set(L, "capacity_bytes", partition->capacity_bytes);
  set(L, "used_bytes", partition->used_bytes);
  set(L, "written", partition->written);
  set(L, "durable", partition->durable);
}

static int info(lua_State *L) {
  Handle *self = usable(L);
  leat_partition_info *all = lua_newuserdatauv(L, MOST_PARTITIONS * sizeof(leat_partition_info), 0);
  leat_topic_info taken = {.size = sizeof(leat_topic_info)};
  int32_t detail = 0;
  const int32_t code =
      leat_topic_get_info(self->pointer, &taken, all, MOST_PARTITIONS, NULL, 0, &detail);
  uint32_t i = 0;
  if (code != LEAT_OK) return fail(L, code, detail);
  lua_createtable(L, 0, 8);
  lua_pushstring(L, policies[taken.policy & 3]);
  lua_setfield(L, -2, "policy");
  lua_pushstring(L, durabilities[taken.durable & 3]);
  lua_setfield(L, -2, "durable");
  set(L, "capacity_bytes", taken.capacity_bytes);
  set(L, "segment_bytes", taken.segment_bytes);
  set(L, "max_record_bytes", taken.max_record_bytes);
  set(L, "participant_count", taken.participant_count);
  lua_newtable(L);
  for (; i < taken.partition_count && i < MOST_PARTITIONS; ++i) {
    push_partition(L, &all[i]);
    lua_rawseti(L, -2, (int)i + 1);
  }
  lua_setfield(L, -2, "partitions");
  return 1;
}

static int set_max_capacity(lua_State *L) {
  Handle *self = usable(L);
  int32_t detail = 0;
  const int32_t code =
      leat_topic_set_max_capacity(self->pointer, parse_u64(L, 2, "max_capacity_bytes"), &detail);
  return nothing_or(L, code, detail);
}

static int shrink(lua_State *L) {
  uint64_t bytes = 0;
  int32_t detail = 0;
  const int32_t code = leat_topic_shrink(usable(L)->pointer, &bytes, &detail);
  return number_or(L, code, detail, bytes);
}

// LEAT_ERR_NOT_DURABLE without a reason: the time has passed. With EINTR: a signal came.
static int32_t try_repair(void *topic, int64_t timeout_ns, int32_t *detail) {
  int32_t code = LEAT_OK;
  *detail = 0;
  code = leat_topic_repair_interruptible(topic, timeout_ns, detail);
  return code == LEAT_ERR_NOT_DURABLE && (*detail == 0 || *detail == EINTR) ? LEAT_ERR_TIMEOUT : code;
}

static int repair(lua_State *L) {
  Handle *self = self_of(L);
  const int64_t timeout_ns = parse_timeout(L, 2);
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  HANDLE_ENTER(L, self);
  code = wait_for(L, self, timeout_ns, SHORT_SLICES, try_repair, self->pointer, &detail);
  (void)handle_leave(self);
  return nothing_or(L, code == LEAT_ERR_TIMEOUT ? LEAT_ERR_NOT_DURABLE : code, detail);
}

void add_topics(lua_State *L) {
  static const luaL_Reg methods[] = {
      {"publisher", topic_publisher},   {"subscriber", topic_subscriber},
      {"group", topic_group},           {"find_group", topic_find_group},
      {"delete_group", topic_delete_group}, {"group_names", topic_group_names},
      {"name", get_name},               {"info", info},
      {"info_json", info_json},         {"max_record_size", max_record_size},
      {"partitions", partitions},       {"set_max_capacity", set_max_capacity},
      {"shrink", shrink},               {"repair", repair},
      {NULL, NULL}};
  static const luaL_Reg functions[] = {
      {"create", create}, {"open", open_topic}, {"open_or_create", open_or_create},
      {"delete", delete_topic}, {"list", list_topics}, {NULL, NULL}};
  const luaL_Reg *function = functions;
  add_class(L, &topic_kind, methods);
  for (; function->name != NULL; ++function) {
    lua_pushcfunction(L, function->func);
    lua_setfield(L, -2, function->name);
  }
}
