// Publishers.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "leat_lua.h"

static void close_publisher(void *pointer) {
  leat_publisher *publisher = pointer;
  (void)leat_publisher_close(&publisher);
}
static int32_t stop_publisher(void *pointer) { return leat_publisher_stop(pointer); }
static int32_t resume_publisher(void *pointer) { return leat_publisher_resume(pointer); }
static int32_t is_publisher_stopped(void *pointer, uint32_t *answer) {
  return leat_publisher_is_stopped(pointer, answer);
}
const HandleKind publisher_kind = {"publisher",    0,                close_publisher,
                                   stop_publisher, resume_publisher, is_publisher_stopped};

static const char *const stages[] = {"", "committed", "durable", NULL};
static const Option publisher_options[] = {
    {"partition", OPTION_PARTITION, offsetof(leat_publisher_options, partition), 0, NULL},
    {"exclusive", OPTION_FLAG, offsetof(leat_publisher_options, exclusive), 0, NULL},
    {"acknowledge", OPTION_CHOICE, offsetof(leat_publisher_options, acknowledge), 0, stages},
    {NULL, OPTION_FLAG, 0, 0, NULL},
};

int topic_publisher(lua_State *L) {
  Handle *topic = self_of(L);
  Handle *made = NULL;
  leat_publisher_options options = LEAT_PUBLISHER_OPTIONS_INIT;
  leat_publisher *publisher = NULL;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  parse_options(L, 2, publisher_options, &options);
  options.interruptible = 1;
  made = handle_prepare(L, &publisher_kind);
  HANDLE_ENTER(L, topic);
  code = leat_topic_publisher(topic->pointer, &options, &publisher, &detail);
  (void)handle_leave(topic);
  if (code != LEAT_OK) {
    const Subject subject = {.act = "make a publisher", .partition = &options.partition};
    return fail_about(L, &subject, code, detail);
  }
  handle_fill(made, publisher);
  return 1;
}

// ---- What is published --------------------------------------------------------------------------

// One of the pointers is set, or else `value` is published. The bytes are those of strings, which a hook may drop:
// so a call that waits copies them first.
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

static int publish_it(lua_State *L, Handle *self, Publishing *it, int64_t timeout_ns) {
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  HANDLE_ENTER(L, self);
  it->publisher = self->pointer;
  code = try_publish(it, 0, &detail);
  if (code == LEAT_ERR_TIMEOUT && timeout_ns != 0) {
    code = copy_bytes(it) ? wait_for(L, self, timeout_ns, ROOM_SLICES, try_publish, it, &detail) : LEAT_ERR_NO_MEMORY;
    free(it->copy);
  }
  (void)handle_leave(self);
  if (code == LEAT_ERR_TIMEOUT && it->is_published) code = LEAT_ERR_NOT_DURABLE;
  if (code == LEAT_ERR_TIMEOUT && it->was_full && timeout_ns == 0) code = LEAT_ERR_FULL;
  if (code == LEAT_ERR_INVALID_ARGUMENT) {
    const Subject subject = {.act = "publish",
                             .is_empty = it->is_batch && it->count == 0,
                             .partition = it->is_batch || it->records == NULL ? &it->partition : &it->records->partition};
    return fail_about(L, &subject, code, detail);
  }
  return number_or(L, code, detail, it->offset);
}

// ---- Headers ------------------------------------------------------------------------------------

// A list of pairs, or a table of values by name.
static uint64_t count_headers(lua_State *L, int index) {
  uint64_t count = 0;
  if (lua_isnil(L, index)) return 0;
  if (lua_type(L, index) != LUA_TTABLE) luaL_error(L, "headers must be a table, not a %s", luaL_typename(L, index));
  if (lua_rawlen(L, index) != 0) return lua_rawlen(L, index);
  lua_pushnil(L);
  while (lua_next(L, index)) {
    ++count;
    lua_pop(L, 1);
  }
  return count;
}

static void read_pair(lua_State *L, leat_new_header *header) {
  if (lua_type(L, -1) != LUA_TTABLE || lua_rawlen(L, -1) != 2)
    luaL_error(L, "headers must be pairs of a name and a value");
  lua_rawgeti(L, -1, 1);
  header->name = parse_bytes(L, -1, "a header's name");
  lua_rawgeti(L, -2, 2);
  header->value = parse_bytes(L, -1, "a header's value");
  lua_pop(L, 2);
}

// A finalizer that ran since they were counted may have changed them.
static void check_room(lua_State *L, uint64_t count, uint64_t room) {
  if (count >= room) luaL_error(L, "the headers were changed meanwhile");
}

// Into `to`, which has room for so many. Makes no objects. The table holds the texts.
static uint64_t read_headers(lua_State *L, int index, leat_new_header *to, uint64_t room) {
  const uint64_t pairs = lua_type(L, index) == LUA_TTABLE ? lua_rawlen(L, index) : 0;
  uint64_t count = 0;
  if (lua_type(L, index) != LUA_TTABLE) return 0;
  for (; count < pairs; ++count) {
    check_room(L, count, room);
    lua_rawgeti(L, index, (int)count + 1);
    read_pair(L, &to[count]);
    lua_pop(L, 1);
  }
  if (pairs != 0) return pairs;
  lua_pushnil(L);
  while (lua_next(L, index)) {
    check_room(L, count, room);
    to[count].name = parse_bytes(L, -2, "a header's name");
    to[count].value = parse_bytes(L, -1, "a header's value");
    ++count;
    lua_pop(L, 1);
  }
  return count;
}

static void read_key(lua_State *L, int index, leat_new_record *record) {
  if (lua_isnil(L, index)) return;
  record->key = parse_bytes(L, index, "key");
}

// ---- One record ---------------------------------------------------------------------------------

static void refuse_unknown(lua_State *L, int index, const char *const *names) {
  lua_pushnil(L);
  while (lua_next(L, index)) {
    const char *given = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "[number]";
    int i = 0;
    while (names[i] != NULL && strcmp(names[i], given) != 0) ++i;
    if (names[i] == NULL) luaL_error(L, "unknown option '%s'", given);
    lua_pop(L, 1);
  }
}

// With a table of options at 3.
static int publish_with(lua_State *L, Handle *self) {
  static const char *const names[] = {"key", "headers", "partition", "timeout", NULL};
  leat_new_record record = LEAT_NEW_RECORD_INIT;
  Publishing it = {.records = &record, .count = 1};
  int64_t timeout_ns = 0;
  uint64_t room = 0;
  int i = 0;
  if (lua_type(L, 3) != LUA_TTABLE) return luaL_error(L, "options must be a table, not a %s", luaL_typename(L, 3));
  lua_settop(L, 3);
  refuse_unknown(L, 3, names);
  for (; names[i] != NULL; ++i) lua_getfield(L, 3, names[i]);  // At 4 to 7.
  record.partition = parse_partition(L, 6);
  timeout_ns = parse_timeout(L, 7);
  room = count_headers(L, 5);
  it.headers = lua_newuserdatauv(L, (room + 1) * sizeof(leat_new_header), 0);
  // From here on, nothing makes objects, so that no finalizer runs.
  record.value = parse_bytes(L, 2, "value");
  read_key(L, 4, &record);
  it.header_count = read_headers(L, 5, it.headers, room);
  record.headers = it.header_count == 0 ? NULL : it.headers;
  record.header_count = (uint32_t)it.header_count;
  return publish_it(L, self, &it, timeout_ns);
}

static int publish(lua_State *L) {
  Handle *self = self_of(L);
  Publishing it = {.count = 0};
  if (!lua_isnoneornil(L, 3)) return publish_with(L, self);
  it.value = parse_bytes(L, 2, "value");
  return publish_it(L, self, &it, LEAT_FOREVER);
}

// ---- Batches ------------------------------------------------------------------------------------

enum { BATCH = 2, FIRST_NAME = 4 };  // Where they are on the stack: the list, and the names of a record's parts.

// Pushes a part of the record at `index`.
static void push_part(lua_State *L, int index, int which) {
  lua_pushvalue(L, FIRST_NAME + which);
  lua_rawget(L, index);
}

// `room`: of all headers of the batch.
static void read_record(lua_State *L, leat_new_record *record, Publishing *it, uint64_t room) {
  static const leat_new_record none = LEAT_NEW_RECORD_INIT;
  leat_new_header *headers = it->headers + it->header_count;
  const int at = lua_gettop(L);
  uint64_t count = 0;
  *record = none;
  if (lua_type(L, -1) != LUA_TTABLE) {
    record->value = parse_bytes(L, -1, "value");
    return;
  }
  push_part(L, at, 0);
  push_part(L, at, 1);
  push_part(L, at, 2);
  record->value = parse_bytes(L, -3, "value");
  read_key(L, -2, record);
  count = read_headers(L, lua_gettop(L), headers, room - it->header_count);
  record->headers = count == 0 ? NULL : headers;
  record->header_count = (uint32_t)count;
  it->header_count += count;
  lua_pop(L, 3);
}

// Of strings, and tables with value, key and headers.
static int publish_records(lua_State *L, Handle *self, Publishing *it, int64_t timeout_ns) {
  static const char *const names[] = {"value", "key", "headers", NULL};
  uint64_t room = 0;
  uint64_t i = 0;
  lua_settop(L, FIRST_NAME - 1);
  for (i = 0; i < 3; ++i) lua_pushstring(L, names[i]);
  for (i = 0; i < it->count; ++i) {
    lua_rawgeti(L, BATCH, (int)i + 1);
    if (lua_type(L, -1) == LUA_TTABLE) {
      refuse_unknown(L, lua_gettop(L), names);
      lua_pushvalue(L, FIRST_NAME + 2);
      lua_rawget(L, -2);
      room += count_headers(L, lua_gettop(L));
      lua_pop(L, 1);
    }
    lua_pop(L, 1);
  }
  it->headers = lua_newuserdatauv(L, (room + 1) * sizeof(leat_new_header), 0);
  it->records = lua_newuserdatauv(L, it->count * sizeof(leat_new_record), 0);
  it->values = NULL;
  for (i = 0; i < it->count; ++i) {
    lua_rawgeti(L, BATCH, (int)i + 1);
    read_record(L, &it->records[i], it, room);
    lua_pop(L, 1);
  }
  return publish_it(L, self, it, timeout_ns);
}

typedef struct BatchOptions {
  int64_t timeout_ns;
  uint32_t partition;
} BatchOptions;

static int publish_batch(lua_State *L) {
  static const Option list[] = {{"timeout", OPTION_TIMEOUT, offsetof(BatchOptions, timeout_ns), 0, NULL},
                                {"partition", OPTION_PARTITION, offsetof(BatchOptions, partition), 0, NULL},
                                {NULL, OPTION_FLAG, 0, 0, NULL}};
  Handle *self = self_of(L);
  BatchOptions options = {LEAT_FOREVER, LEAT_ANY_PARTITION};
  Publishing it = {.is_batch = 1};
  leat_bytes few[DEFAULT_LIMIT];
  uint64_t i = 0;
  if (lua_type(L, BATCH) != LUA_TTABLE)
    return luaL_error(L, "a batch is a list of values, not a %s", luaL_typename(L, BATCH));
  parse_options(L, 3, list, &options);
  it.partition = options.partition;
  it.count = lua_rawlen(L, BATCH);
  it.values = it.count <= DEFAULT_LIMIT ? few : lua_newuserdatauv(L, it.count * sizeof(leat_bytes), 0);
  luaL_checkstack(L, DEFAULT_LIMIT + 20, "too many values");
  for (; i < it.count; ++i) {
    size_t size = 0;
    const int kind = push_element(L, BATCH, (int)i + 1);
    if (kind == LUA_TTABLE) return publish_records(L, self, &it, options.timeout_ns);
    if (kind != LUA_TSTRING) (void)parse_bytes(L, -1, "value");  // Raises.
    it.values[i].data = lua_tolstring(L, -1, &size);
    it.values[i].size = size;
    if (it.values != few) lua_pop(L, 1);
  }
  return publish_it(L, self, &it, options.timeout_ns);
}

// ---- Durable topics -----------------------------------------------------------------------------

static int32_t try_flush(void *context, int64_t timeout_ns, int32_t *detail) {
  int32_t code = LEAT_OK;
  *detail = 0;
  code = leat_publisher_flush(context, timeout_ns, detail);
  return is_just_late(context, code, *detail) ? LEAT_ERR_TIMEOUT : code;
}

static int flush(lua_State *L) {
  Handle *self = self_of(L);
  const int64_t timeout_ns = parse_timeout(L, 2);
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  HANDLE_ENTER(L, self);
  code = wait_for(L, self, timeout_ns, SHORT_SLICES, try_flush, self->pointer, &detail);
  (void)handle_leave(self);
  return nothing_or(L, code == LEAT_ERR_TIMEOUT ? LEAT_ERR_NOT_DURABLE : code, detail);
}

// The calls below end at once, and nothing else runs meanwhile.
static Handle *usable(lua_State *L) {
  Handle *self = self_of(L);
  if (!handle_is_usable(self)) handle_refuse(L, self);
  return self;
}

static int request_sync(lua_State *L) {
  int32_t detail = 0;
  const int32_t code = leat_publisher_request_sync(usable(L)->pointer, &detail);
  return nothing_or(L, code, detail);
}

static int durable_offset(lua_State *L) {
  Handle *self = usable(L);
  uint64_t offset = 0;
  const int32_t code = leat_publisher_durable_offset(self->pointer, parse_partition(L, 2), &offset);
  return number_or(L, code, 0, offset);
}

static int last_offset(lua_State *L) {
  uint64_t offset = 0;
  const int32_t code = leat_publisher_last_offset(usable(L)->pointer, &offset);
  return number_or(L, code, 0, offset);
}

static int max_record_size(lua_State *L) {
  uint64_t bytes = 0;
  const int32_t code = leat_publisher_max_record_size(usable(L)->pointer, &bytes);
  return number_or(L, code, 0, bytes);
}

static int get_partition(lua_State *L) {
  uint32_t partition = 0;
  const int32_t code = leat_publisher_partition(usable(L)->pointer, &partition);
  return number_or(L, code, 0, partition);
}

void add_publishers(lua_State *L) {
  static const luaL_Reg methods[] = {
      {"publish", publish},           {"publish_batch", publish_batch},
      {"claim", publisher_claim},     {"flush", flush},
      {"request_sync", request_sync}, {"durable_offset", durable_offset},
      {"last_offset", last_offset},   {"max_record_size", max_record_size},
      {"partition", get_partition},   {NULL, NULL}};
  add_class(L, &publisher_kind, methods);
}
