// Consumer groups.
#include <string.h>

#include "leat_lua.h"

static void close_group(void *pointer) {
  leat_group *group = pointer;
  (void)leat_group_close(&group);
}
const HandleKind group_kind = {"group", 1, close_group, NULL, NULL, NULL};

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

// Nothing else runs during the calls of this file: they make what they return before or afterwards.
static Handle *usable(lua_State *L) {
  Handle *self = self_of(L);
  if (!handle_is_usable(self)) handle_refuse(L, self);
  return self;
}

// ---- Of topics ----------------------------------------------------------------------------------

static int fail_at(lua_State *L, const char *act, leat_bytes name, const leat_group_options *options, int32_t code,
                   int32_t detail) {
  const Subject subject = {.act = act, .name = name, .is_group = 1, .group = options};
  return fail_about(L, &subject, code, detail);
}

int topic_group(lua_State *L) {
  leat_group_options options = LEAT_GROUP_OPTIONS_INIT;
  const leat_bytes name = parse_bytes(L, 2, "a name");
  leat_group *group = NULL;
  Handle *made = NULL;
  uint32_t was_created = 0;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  parse_options(L, 3, group_options, &options);
  made = handle_prepare(L, &group_kind);
  code = leat_topic_group(usable(L)->pointer, name.data, name.size, &options, &group, &was_created, &detail);
  if (code != LEAT_OK) return fail_at(L, "open group", name, &options, code, detail);
  handle_fill(made, group);
  made->was_created = was_created != 0;
  return 1;
}

int topic_find_group(lua_State *L) {
  const leat_bytes name = parse_bytes(L, 2, "a name");
  leat_group *group = NULL;
  Handle *made = handle_prepare(L, &group_kind);
  int32_t detail = 0;
  const int32_t code = leat_topic_find_group(usable(L)->pointer, name.data, name.size, &group, &detail);
  if (code != LEAT_OK) return fail_at(L, "open group", name, NULL, code, detail);
  handle_fill(made, group);
  return 1;
}

int topic_delete_group(lua_State *L) {
  static const Option list[] = {{"force", OPTION_FLAG, 0, 0, NULL}, {NULL, OPTION_FLAG, 0, 0, NULL}};
  const leat_bytes name = parse_bytes(L, 2, "a name");
  uint32_t force = 0;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  parse_options(L, 3, list, &force);
  code = leat_topic_delete_group(usable(L)->pointer, name.data, name.size, force, &detail);
  return code == LEAT_OK ? nothing_or(L, code, 0) : fail_at(L, "delete group", name, NULL, code, detail);
}

static int32_t write_names(void *topic, char *buffer, uint64_t capacity, uint64_t *size,
                           int32_t *detail) {
  return leat_topic_group_names(topic, buffer, capacity, size, detail);
}
int topic_group_names(lua_State *L) { return push_lines(L, self_of(L), write_names, NULL); }

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

static int get_name(lua_State *L) { return push_text(L, self_of(L), write_name, NULL); }
static int dead_letter_topic(lua_State *L) { return push_text(L, self_of(L), write_dead_letters, NULL); }
static int was_created(lua_State *L) {
  lua_pushboolean(L, self_of(L)->was_created);
  return 1;
}

enum { MOST_MEMBERS = 255, MOST_PARTITIONS = 65536 };

// What a snapshot is stored in.
typedef struct Snapshot {
  leat_group_info info;
  leat_member_info members[MOST_MEMBERS];
  uint64_t offsets[MOST_PARTITIONS];
} Snapshot;

static void set(lua_State *L, const char *name, uint64_t number) {
  push_u64(L, number);
  lua_setfield(L, -2, name);
}
static void set_text(lua_State *L, const char *name, const char *text) {
  lua_pushstring(L, text);
  lua_setfield(L, -2, name);
}

static void push_members(lua_State *L, const Snapshot *taken) {
  uint32_t i = 0;
  lua_newtable(L);
  for (; i < taken->info.member_count && i < MOST_MEMBERS; ++i) {
    lua_createtable(L, 0, 3);
    set_text(L, "name", taken->members[i].name);
    set(L, "pid", taken->members[i].pid);
    set(L, "in_flight", taken->members[i].in_flight);
    lua_rawseti(L, -2, (int)i + 1);
  }
}

static int info(lua_State *L) {
  Snapshot *taken = lua_newuserdatauv(L, sizeof(Snapshot), 0);
  const leat_group_info *info = &taken->info;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  uint32_t i = 0;
  memset(&taken->info, 0, sizeof taken->info);
  taken->info.size = sizeof(leat_group_info);
  code = leat_group_get_info(usable(L)->pointer, &taken->info, taken->members, MOST_MEMBERS,
                             taken->offsets, MOST_PARTITIONS, &detail);
  if (code != LEAT_OK) return fail(L, code, detail);
  lua_createtable(L, 0, 16);
  set_text(L, "mode", modes[info->mode & 1]);
  set_text(L, "on_expired", expired[info->on_expired < 3 ? info->on_expired : 0]);
  set_text(L, "taking", leat_error_name(info->taking));
  lua_pushboolean(L, (int)info->by_key);
  lua_setfield(L, -2, "by_key");
  lua_pushnumber(L, (lua_Number)info->lease_ns / 1e9);
  lua_setfield(L, -2, "lease");
  set(L, "max_deliveries", info->max_deliveries);
  set(L, "in_flight_limit", info->in_flight_limit);
  set(L, "lag", info->lag);
  set(L, "in_flight", info->in_flight);
  set(L, "redelivered", info->redelivered);
  set(L, "returned", info->returned);
  set(L, "returned_limit", info->returned_limit);
  set(L, "dead_letters", info->dead_letters);
  push_members(L, taken);
  lua_setfield(L, -2, "members");
  lua_newtable(L);
  for (; i < info->partition_count && i < MOST_PARTITIONS; ++i) {
    push_u64(L, taken->offsets[i]);
    lua_rawseti(L, -2, (int)i + 1);
  }
  lua_setfield(L, -2, "offsets");
  return 1;
}

// ---- Position -----------------------------------------------------------------------------------

static int seek(lua_State *L) {
  Handle *self = usable(L);
  const uint32_t partition = parse_partition(L, 3);
  uint32_t from = 0;
  uint64_t value = 0;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  parse_from(L, 2, &from, &value);
  code = leat_group_seek(self->pointer, from, value, partition, &detail);
  return nothing_or(L, code, detail);
}

static int position(lua_State *L) {
  Handle *self = usable(L);
  uint64_t offset = 0;
  const uint32_t partition = lua_isnoneornil(L, 2) ? 0 : parse_partition(L, 2);
  const int32_t code = leat_group_position(self->pointer, partition, &offset);
  return number_or(L, code, 0, offset);
}

static int released(lua_State *L) {
  Handle *self = usable(L);
  uint64_t count = 0;
  const uint32_t partition = lua_isnoneornil(L, 2) ? 0 : parse_partition(L, 2);
  const int32_t code = leat_group_released(self->pointer, partition, &count);
  return number_or(L, code, 0, count);
}

void add_groups(lua_State *L) {
  static const luaL_Reg methods[] = {
      {"join", group_join}, {"info", info},           {"name", get_name},
      {"seek", seek},       {"position", position},   {"released", released},
      {"was_created", was_created}, {"dead_letter_topic", dead_letter_topic}, {NULL, NULL}};
  add_class(L, &group_kind, methods);
}
