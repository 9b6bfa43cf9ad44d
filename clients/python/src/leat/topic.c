// Topics: create, open, delete, list, and what one can do with an open one.
#include <errno.h>

#include "_leat.h"

PyTypeObject *topic_type;

static void close_topic(void *pointer) {
  leat_topic *topic = pointer;
  (void)leat_topic_close(&topic);
}
const HandleKind topic_kind = {"topic", 1, close_topic, NULL, NULL, NULL, NULL};

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

static PyObject *create_with(const char *function, Create how, PyObject *args, PyObject *given) {
  leat_topic_options options = LEAT_TOPIC_OPTIONS_INIT;
  Arena arena = {NULL};
  leat_topic *topic = NULL;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  uint64_t size = 0;
  const char *name = name_argument(function, args, &size);
  if (name == NULL) return NULL;
  if (!parse_options(function, given, topic_options, &options, &arena)) {
    arena_end(&arena);
    return NULL;
  }
  Py_BEGIN_ALLOW_THREADS
  code = how(name, size, &options, &topic, &detail);
  Py_END_ALLOW_THREADS
  arena_end(&arena);
  if (code != LEAT_OK) return raise_code(code, detail);
  return handle_new(topic_type, &topic_kind, topic);
}

static PyObject *create(PyObject *none, PyObject *args, PyObject *options) {
  (void)none;
  return create_with("create", leat_topic_create, args, options);
}

static PyObject *open_or_create(PyObject *none, PyObject *args, PyObject *options) {
  (void)none;
  return create_with("open_or_create", leat_topic_open_or_create, args, options);
}

typedef struct Opening {
  const char *name;
  uint64_t size;
  leat_place place;
  leat_topic *topic;
} Opening;

static int32_t try_open(void *context, int64_t timeout_ns, int32_t *detail) {
  Opening *it = context;
  const int32_t code = leat_topic_open(it->name, it->size, timeout_ns, &it->place, &it->topic, detail);
  return code == LEAT_ERR_NOT_FOUND ? LEAT_ERR_TIMEOUT : code;  // Not created yet.
}

// Where to look for topics.
typedef struct Place {
  leat_place place;
  int64_t timeout_ns;
} Place;
static const Option open_options[] = {
    {"timeout", OPTION_TIMEOUT, offsetof(Place, timeout_ns), 0, NULL},
    {"directory", OPTION_TEXT, offsetof(Place, place.directory), 0, NULL},
    {"data_directory", OPTION_TEXT, offsetof(Place, place.data_directory), 0, NULL},
    {"force", OPTION_FLAG, offsetof(Place, place.force), 0, NULL},
    {NULL, OPTION_FLAG, 0, 0, NULL},
};
static const Option *const place_options = open_options + 1;  // Of functions that do not wait.

// `arguments` may be NULL.
static int parse_place(const char *function, PyObject *arguments, const Option *table, Place *place,
                       Arena *arena) {
  const Place nothing = {LEAT_PLACE_INIT, 0};
  *place = nothing;
  if (parse_options(function, arguments, table, place, arena)) return 1;
  arena_end(arena);
  return 0;
}

static PyObject *open_topic(PyObject *none, PyObject *args, PyObject *options) {
  Opening opening = {NULL, 0, LEAT_PLACE_INIT, NULL};
  Place place;
  Arena arena = {NULL};
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  (void)none;
  opening.name = name_argument("open", args, &opening.size);
  if (opening.name == NULL || !parse_place("open", options, open_options, &place, &arena))
    return NULL;
  opening.place = place.place;
  opening.place.interruptible = 1;
  code = wait_for(NULL, place.timeout_ns, try_open, &opening, &detail);
  arena_end(&arena);
  if (code == -1) return NULL;
  if (code != LEAT_OK)
    return raise_code(code == LEAT_ERR_TIMEOUT ? LEAT_ERR_NOT_FOUND : code, detail);
  return handle_new(topic_type, &topic_kind, opening.topic);
}

static PyObject *delete_topic(PyObject *none, PyObject *args, PyObject *options) {
  Place place;
  Arena arena = {NULL};
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  uint64_t size = 0;
  const char *name = name_argument("delete", args, &size);
  (void)none;
  if (name == NULL || !parse_place("delete", options, place_options, &place, &arena)) return NULL;
  Py_BEGIN_ALLOW_THREADS
  code = leat_topic_delete(name, size, &place.place, &detail);
  Py_END_ALLOW_THREADS
  arena_end(&arena);
  if (code != LEAT_OK) return raise_code(code, detail);
  Py_RETURN_NONE;
}

static int32_t write_list(void *place, char *buffer, uint64_t capacity, uint64_t *size,
                          int32_t *detail) {
  return leat_topic_list(place, buffer, capacity, size, detail);
}

static PyObject *list_topics(PyObject *none, PyObject *args, PyObject *options) {
  Place place;
  Arena arena = {NULL};
  PyObject *names = NULL;
  (void)none;
  if (PyTuple_Size(args) != 0) {
    PyErr_SetString(PyExc_TypeError, "list() takes options by keyword");
    return NULL;
  }
  if (!parse_place("list", options, place_options, &place, &arena)) return NULL;
  names = list_of_lines(text_of(write_list, &place.place));
  arena_end(&arena);
  return names;
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

static PyObject *get_name(PyObject *self, void *closure) {
  (void)closure;
  return handle_text(self, write_name);
}

static PyObject *info(PyObject *self, PyObject *none) {
  PyObject *json = NULL;
  PyObject *parsed = NULL;
  PyObject *text = handle_text(self, write_json);
  (void)none;
  if (text != NULL) json = PyImport_ImportModule("json");
  if (json != NULL) parsed = PyObject_CallMethod(json, "loads", "O", text);
  Py_XDECREF(json);
  Py_XDECREF(text);
  return parsed;
}

static PyObject *get_max_record_size(PyObject *self, void *closure) {
  Handle *handle = (Handle *)self;
  uint64_t bytes = 0;
  int32_t code = LEAT_OK;
  (void)closure;
  if (!handle_enter(handle)) return NULL;
  code = leat_topic_max_record_size(handle->pointer, &bytes);
  handle_leave(handle);
  return code != LEAT_OK ? raise_code(code, 0) : PyLong_FromUnsignedLongLong(bytes);
}

static PyObject *get_partitions(PyObject *self, void *closure) {
  Handle *handle = (Handle *)self;
  uint32_t count = 0;
  int32_t code = LEAT_OK;
  (void)closure;
  if (!handle_enter(handle)) return NULL;
  code = leat_topic_partitions(handle->pointer, &count);
  handle_leave(handle);
  return code != LEAT_OK ? raise_code(code, 0) : PyLong_FromUnsignedLong(count);
}

static PyObject *set_max_capacity(PyObject *self, PyObject *number) {
  Handle *handle = (Handle *)self;
  uint64_t bytes = 0;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  if (!parse_u64(number, "max_capacity_bytes", &bytes) || !handle_enter(handle)) return NULL;
  code = leat_topic_set_max_capacity(handle->pointer, bytes, &detail);
  handle_leave(handle);
  if (code != LEAT_OK) return raise_code(code, detail);
  Py_RETURN_NONE;
}

static PyObject *shrink(PyObject *self, PyObject *none) {
  Handle *handle = (Handle *)self;
  uint64_t bytes = 0;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  (void)none;
  if (!handle_enter(handle)) return NULL;
  Py_BEGIN_ALLOW_THREADS
  code = leat_topic_shrink(handle->pointer, &bytes, &detail);
  Py_END_ALLOW_THREADS
  handle_leave(handle);
  return code != LEAT_OK ? raise_code(code, detail) : PyLong_FromUnsignedLongLong(bytes);
}

// LEAT_ERR_NOT_DURABLE without a reason: the time has passed. With EINTR: a signal came.
static int32_t try_repair(void *topic, int64_t timeout_ns, int32_t *detail) {
  int32_t code = LEAT_OK;
  *detail = 0;
  code = leat_topic_repair_interruptible(topic, short_slice(timeout_ns), detail);
  return code == LEAT_ERR_NOT_DURABLE && (*detail == 0 || *detail == EINTR) ? LEAT_ERR_TIMEOUT : code;
}

static PyObject *repair(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
  static const char *const wanted[] = {"timeout", NULL};
  Handle *handle = (Handle *)self;
  PyObject *timeout = NULL;
  int64_t timeout_ns = 0;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  if (!parse_arguments("repair", args, count, names, wanted, 0, &timeout)) return NULL;
  if (!parse_timeout(timeout, &timeout_ns) || !handle_enter(handle)) return NULL;
  code = wait_for(handle, timeout_ns, try_repair, handle->pointer, &detail);
  handle_leave(handle);
  if (code == -1) return NULL;
  if (code != LEAT_OK)
    return raise_code(code == LEAT_ERR_TIMEOUT ? LEAT_ERR_NOT_DURABLE : code, detail);
  Py_RETURN_NONE;
}

#define WITH_OPTIONS (METH_VARARGS | METH_KEYWORDS)
static PyMethodDef topic_methods[] = {
    {"create", (PyCFunction)(void (*)(void))create, WITH_OPTIONS | METH_STATIC,
     PyDoc_STR("create(name, **options): creates a topic and opens it.")},
    {"open", (PyCFunction)(void (*)(void))open_topic, WITH_OPTIONS | METH_STATIC,
     PyDoc_STR("open(name, *, timeout=0, ...): opens it; waits until it was created.")},
    {"open_or_create", (PyCFunction)(void (*)(void))open_or_create, WITH_OPTIONS | METH_STATIC,
     PyDoc_STR("open_or_create(name, **options): options apply only if it creates the topic.")},
    {"delete", (PyCFunction)(void (*)(void))delete_topic, WITH_OPTIONS | METH_STATIC,
     PyDoc_STR("delete(name, *, force=False, ...): deletes it and frees its name.")},
    {"list", (PyCFunction)(void (*)(void))list_topics, WITH_OPTIONS | METH_STATIC,
     PyDoc_STR("list(...): the names of all topics.")},
    {"publisher", (PyCFunction)(void (*)(void))topic_publisher, WITH_OPTIONS,
     PyDoc_STR("publisher(*, exclusive, partition, acknowledge): makes a Publisher.")},
    {"subscriber", (PyCFunction)(void (*)(void))topic_subscriber, WITH_OPTIONS,
     PyDoc_STR("subscriber(*, from_, gating, in_place, ...): makes a Subscriber.")},
    {"group", (PyCFunction)(void (*)(void))topic_group, WITH_OPTIONS,
     PyDoc_STR("group(name, **options): opens a group or creates it.")},
    {"find_group", topic_find_group, METH_O, PyDoc_STR("find_group(name): opens a group.")},
    {"delete_group", (PyCFunction)(void (*)(void))topic_delete_group, WITH_OPTIONS,
     PyDoc_STR("delete_group(name, *, force=False)")},
    {"group_names", topic_group_names, METH_NOARGS, NULL},
    {"info", info, METH_NOARGS, PyDoc_STR("What `leat topic info --json` prints, as a dict.")},
    {"set_max_capacity", set_max_capacity, METH_O,
     PyDoc_STR("Policy grow: how far each partition may grow, in bytes.")},
    {"shrink", shrink, METH_NOARGS, PyDoc_STR("Policy grow: frees idle memory.")},
    {"repair", (PyCFunction)(void (*)(void))repair, METH_FASTCALL | METH_KEYWORDS,
     PyDoc_STR("repair(timeout=None): makes a durable topic writable again.")},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef topic_fields[] = {
    {"name", get_name, NULL, NULL, NULL},
    {"max_record_size", get_max_record_size, NULL,
     PyDoc_STR("In bytes: key, headers, timestamp and value together, encoded."), NULL},
    {"partitions", get_partitions, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot topic_slots[] = {
    {Py_tp_methods, topic_methods},
    {Py_tp_getset, topic_fields},
    {Py_tp_doc, "An open topic. Several threads may use it at once."},
    {0, NULL},
};
static PyType_Spec topic_spec = {"leat.Topic", sizeof(Handle), 0, LEAF_TYPE, topic_slots};

int add_topics(PyObject *module) {
  topic_type = add_type(module, &topic_spec, handle_type);
  return topic_type == NULL ? -1 : 0;
}
