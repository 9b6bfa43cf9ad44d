// Topics: create, open, delete, list, and what one can do with an open one.
#include <errno.h>

#include "_leat.h"
#include "docs.h"

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

// What a call that names a topic is about. It points to the options.
static Subject about(const char *act, const char *name, uint64_t size, leat_bytes directory, leat_bytes data_directory) {
  const Subject subject = {.act = act, .name = {name, size}, .is_topic = 1, .directory = directory,
                           .data_directory = data_directory};
  return subject;
}

static PyObject *create_with(const char *function, Create how, PyObject *args, PyObject *given) {
  Subject subject = {NULL};
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
  subject = about("create topic", name, size, options.directory, options.data_directory);
  subject.topic = &options;
  subject.makes_directory = 1;
  if (code != LEAT_OK) raise_about(&subject, code, detail);
  arena_end(&arena);
  return code != LEAT_OK ? NULL : handle_new(topic_type, &topic_kind, topic);
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
  Subject subject = {NULL};
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
  code = wait_for(NULL, place.timeout_ns, LONG_SLICES, try_open, &opening, &detail);
  subject = about("open topic", opening.name, opening.size, place.place.directory, place.place.data_directory);
  if (code != LEAT_OK && code != -1)
    raise_about(&subject, code == LEAT_ERR_TIMEOUT ? LEAT_ERR_NOT_FOUND : code, detail);
  arena_end(&arena);
  return code != LEAT_OK ? NULL : handle_new(topic_type, &topic_kind, opening.topic);
}

static PyObject *delete_topic(PyObject *none, PyObject *args, PyObject *options) {
  Subject subject = {NULL};
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
  subject = about("delete topic", name, size, place.place.directory, place.place.data_directory);
  if (code != LEAT_OK) raise_about(&subject, code, detail);
  arena_end(&arena);
  if (code != LEAT_OK) return NULL;
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
  code = leat_topic_repair_interruptible(topic, timeout_ns, detail);
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
  code = wait_for(handle, timeout_ns, SHORT_SLICES, try_repair, handle->pointer, &detail);
  handle_leave(handle);
  if (code == -1) return NULL;
  if (code != LEAT_OK)
    return raise_code(code == LEAT_ERR_TIMEOUT ? LEAT_ERR_NOT_DURABLE : code, detail);
  Py_RETURN_NONE;
}

#define WITH_OPTIONS (METH_VARARGS | METH_KEYWORDS)
static PyMethodDef topic_methods[] = {
    {"create", (PyCFunction)(void (*)(void))create, WITH_OPTIONS | METH_STATIC,
     SIGNED("create" TOPIC_SIGNATURE,
            "Creates a topic and opens it. Makes the directory if it is missing.\n\n" TOPIC_OPTIONS)},
    {"open", (PyCFunction)(void (*)(void))open_topic, WITH_OPTIONS | METH_STATIC,
     SIGNED("open(name, /, *, timeout=0, directory=None, data_directory=None)",
            "Opens a topic, and waits until it was created.\n\ntimeout: seconds; None waits for ever\n" PLACE_OPTIONS)},
    {"open_or_create", (PyCFunction)(void (*)(void))open_or_create, WITH_OPTIONS | METH_STATIC,
     SIGNED("open_or_create" TOPIC_SIGNATURE,
            "Opens the topic if it exists, whatever its options are; otherwise creates it.\n\n" TOPIC_OPTIONS)},
    {"delete", (PyCFunction)(void (*)(void))delete_topic, WITH_OPTIONS | METH_STATIC,
     SIGNED("delete(name, /, *, force=False, directory=None, data_directory=None)",
            "Deletes a topic and frees its name.\n\nforce: also while it is in use; its users get Deleted\n" PLACE_OPTIONS)},
    {"list", (PyCFunction)(void (*)(void))list_topics, WITH_OPTIONS | METH_STATIC,
     SIGNED("list(*, directory=None, data_directory=None)",
            "The names of all topics.\n\n" PLACE_OPTIONS)},
    {"publisher", (PyCFunction)(void (*)(void))topic_publisher, WITH_OPTIONS,
     SIGNED("publisher($self, /, *, partition=None, exclusive=False, acknowledge=None)",
            "Makes a Publisher.\n\npartition: of records without a key; None: in turn\nexclusive: the topic's only publisher, which is faster\nacknowledge: when publishing returns: 'committed', or 'durable': the record is on stable storage;\n    None: as the topic says")},
    {"subscriber", (PyCFunction)(void (*)(void))topic_subscriber, WITH_OPTIONS,
     SIGNED("subscriber($self, /, *, from_='end', partition=None, gating=True, in_place=False, read=None, spin=2e-05, patience=2e-05)",
            "Makes a Subscriber.\n\nfrom_: 'end', 'beginning', or leat.From.offset(n), .last(n), .time_ms(ms)\npartition: only this one; None: all\ngating: publishers keep what it has not read; otherwise it may be overtaken\nin_place: not gating, but keeps the segment that it reads instead of copying\nread: 'committed', or 'durable': only what is on stable storage; None: as the topic says\n" READER_OPTIONS)},
    {"group", (PyCFunction)(void (*)(void))topic_group, WITH_OPTIONS,
     SIGNED("group($self, name, /, *, from_='end', mode='at_least_once', by_key=False, members=64, in_flight=1024, max_deliveries=0, on_expired='start', lease=0)",
            "Opens the consumer group, or creates it; the options apply only then.\n\nfrom_: as of subscriber()\nmode: 'at_least_once' or 'at_most_once'\nby_key: records of one key go to one member at a time, in order\nmembers: at a time; 1 to 255\nin_flight: records that a member may hold; 1 to 65536\nmax_deliveries: then a record goes to the dead-letter topic; at most 65534; 0: no limit\non_expired: durable topics: where a group goes on whose next record retention has deleted: 'start',\n    'end', or 'stop'\nlease: seconds; a record that is held for longer goes to another member; 0: never")},
    {"find_group", topic_find_group, METH_O, SIGNED("find_group($self, name, /)",
            "Opens a consumer group that exists.")},
    {"delete_group", (PyCFunction)(void (*)(void))topic_delete_group, WITH_OPTIONS,
     SIGNED("delete_group($self, name, /, *, force=False)",
            "Deletes a consumer group.\n\nforce: also while it has members; they get Closed")},
    {"group_names", topic_group_names, METH_NOARGS, SIGNED("group_names($self, /)",
            "The names of its consumer groups.")},
    {"info", info, METH_NOARGS, SIGNED("info($self, /)",
            "What `leat topic info --json` prints, as a dict.")},
    {"set_max_capacity", set_max_capacity, METH_O,
     SIGNED("set_max_capacity($self, max_capacity_bytes, /)",
            "Policy grow: how far each partition may grow, in bytes.")},
    {"shrink", shrink, METH_NOARGS, SIGNED("shrink($self, /)",
            "Policy grow: frees idle memory. Returns how many bytes.")},
    {"repair", (PyCFunction)(void (*)(void))repair, METH_FASTCALL | METH_KEYWORDS,
     SIGNED("repair($self, /, timeout=None)",
            "Makes a durable topic writable again after its disk had failed. Waits so many seconds.")},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef topic_fields[] = {
    {"name", get_name, NULL, PyDoc_STR("Its name."), NULL},
    {"max_record_size", get_max_record_size, NULL,
     PyDoc_STR("In bytes: key, headers, timestamp and value together, encoded."), NULL},
    {"partitions", get_partitions, NULL, PyDoc_STR("How many there are."), NULL},
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
