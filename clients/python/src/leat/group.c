// Consumer groups.
#include <stdlib.h>
#include <string.h>

#include "_leat.h"
#include "docs.h"

static PyTypeObject *group_type;

static void close_group(void *pointer) {
  leat_group *group = pointer;
  (void)leat_group_close(&group);
}
static const HandleKind group_kind = {"group", 1, close_group, NULL, NULL, NULL, NULL};

typedef struct Group {
  Handle base;
  char was_created;
} Group;

static const char *const modes[] = {"at_least_once", "at_most_once", NULL};
static const char *const expired[] = {"start", "end", "stop", NULL};
#define AT(name) offsetof(leat_group_options, name)
static const Option group_options[] = {
    {"from_", OPTION_FROM, AT(from), AT(from_value), NULL},
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

static Subject about(const char *act, const char *name, uint64_t size) {
  const Subject subject = {.act = act, .name = {name, size}, .is_group = 1};
  return subject;
}

static PyObject *group_or(int32_t code, const Subject *subject, int32_t detail, leat_group *group,
                          uint32_t was_created) {
  PyObject *made = NULL;
  if (code != LEAT_OK) return raise_about(subject, code, detail);
  made = handle_new(group_type, &group_kind, group);
  if (made != NULL) ((Group *)made)->was_created = was_created != 0;
  return made;
}

PyObject *topic_group(PyObject *self, PyObject *args, PyObject *given) {
  Subject subject = {NULL};
  Handle *topic = (Handle *)self;
  leat_group_options options = LEAT_GROUP_OPTIONS_INIT;
  leat_group *group = NULL;
  Arena arena = {NULL};
  uint32_t was_created = 0;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  uint64_t size = 0;
  const char *name = name_argument("group", args, &size);
  if (name == NULL || !parse_options("group", given, group_options, &options, &arena)) return NULL;
  if (!handle_enter(topic)) return NULL;
  Py_BEGIN_ALLOW_THREADS
  code = leat_topic_group(topic->pointer, name, size, &options, &group, &was_created, &detail);
  Py_END_ALLOW_THREADS
  handle_leave(topic);
  subject = about("open group", name, size);
  subject.group = &options;
  return group_or(code, &subject, detail, group, was_created);
}

PyObject *topic_find_group(PyObject *self, PyObject *object) {
  Subject subject = {NULL};
  Handle *topic = (Handle *)self;
  leat_group *group = NULL;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  uint64_t size = 0;
  const char *name = parse_name(object, &size);
  if (name == NULL || !handle_enter(topic)) return NULL;
  Py_BEGIN_ALLOW_THREADS
  code = leat_topic_find_group(topic->pointer, name, size, &group, &detail);
  Py_END_ALLOW_THREADS
  handle_leave(topic);
  subject = about("open group", name, size);
  return group_or(code, &subject, detail, group, 0);
}

PyObject *topic_delete_group(PyObject *self, PyObject *args, PyObject *given) {
  Subject subject = {NULL};
  Handle *topic = (Handle *)self;
  Arena arena = {NULL};
  uint32_t force = 0;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  uint64_t size = 0;
  const char *name = name_argument("delete_group", args, &size);
  if (name == NULL || !parse_options("delete_group", given, delete_options, &force, &arena))
    return NULL;
  if (!handle_enter(topic)) return NULL;
  Py_BEGIN_ALLOW_THREADS
  code = leat_topic_delete_group(topic->pointer, name, size, force, &detail);
  Py_END_ALLOW_THREADS
  handle_leave(topic);
  subject = about("delete group", name, size);
  if (code != LEAT_OK) return raise_about(&subject, code, detail);
  Py_RETURN_NONE;
}

static int32_t write_names(void *topic, char *buffer, uint64_t capacity, uint64_t *size,
                           int32_t *detail) {
  return leat_topic_group_names(topic, buffer, capacity, size, detail);
}

PyObject *topic_group_names(PyObject *self, PyObject *none) {
  (void)none;
  return list_of_lines(handle_text(self, write_names));
}

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

static PyObject *get_name(PyObject *self, void *closure) {
  (void)closure;
  return handle_text(self, write_name);
}
static PyObject *get_dead_letter_topic(PyObject *self, void *closure) {
  (void)closure;
  return handle_text(self, write_dead_letters);
}

enum { MOST_MEMBERS = 255, MOST_PARTITIONS = 65536 };

// What a snapshot is stored in.
typedef struct Snapshot {
  leat_group_info info;
  leat_member_info members[MOST_MEMBERS];
  uint64_t offsets[MOST_PARTITIONS];
} Snapshot;

static PyObject *members_of(const Snapshot *taken) {
  PyObject *list = PyList_New(0);
  uint32_t i = 0;
  for (; list != NULL && i < taken->info.member_count && i < MOST_MEMBERS; ++i) {
    const leat_member_info *member = &taken->members[i];
    PyObject *name = PyUnicode_DecodeUTF8(member->name, (Py_ssize_t)strlen(member->name), "replace");
    PyObject *one = name == NULL ? NULL
                                 : Py_BuildValue("{s:O,s:I,s:K}", "name", name, "pid", member->pid,
                                                 "in_flight", (unsigned long long)member->in_flight);
    if (one == NULL || PyList_Append(list, one) != 0) Py_CLEAR(list);
    Py_XDECREF(one);
    Py_XDECREF(name);
  }
  return list;
}

static PyObject *offsets_of(const Snapshot *taken) {
  PyObject *list = PyList_New(0);
  uint32_t i = 0;
  for (; list != NULL && i < taken->info.partition_count && i < MOST_PARTITIONS; ++i) {
    PyObject *one = PyLong_FromUnsignedLongLong(taken->offsets[i]);
    if (one == NULL || PyList_Append(list, one) != 0) Py_CLEAR(list);
    Py_XDECREF(one);
  }
  return list;
}

static PyObject *dict_of(const Snapshot *taken) {
  const leat_group_info *info = &taken->info;
  PyObject *members = members_of(taken);
  PyObject *offsets = members == NULL ? NULL : offsets_of(taken);
  PyObject *dict = NULL;
  if (offsets != NULL)
    dict = Py_BuildValue(
        "{s:s,s:O,s:I,s:d,s:s,s:I,s:K,s:K,s:K,s:K,s:K,s:K,s:s,s:O,s:O}", "mode", modes[info->mode & 1],
        "by_key", info->by_key ? Py_True : Py_False, "max_deliveries", info->max_deliveries, "lease",
        (double)info->lease_ns / 1e9, "on_expired", expired[info->on_expired < 3 ? info->on_expired : 0],
        "in_flight_limit", info->in_flight_limit, "lag", (unsigned long long)info->lag, "in_flight",
        (unsigned long long)info->in_flight, "redelivered", (unsigned long long)info->redelivered,
        "returned", (unsigned long long)info->returned, "returned_limit",
        (unsigned long long)info->returned_limit, "dead_letters",
        (unsigned long long)info->dead_letters, "taking", leat_error_name(info->taking),
        "members", members, "offsets", offsets);
  Py_XDECREF(offsets);
  Py_XDECREF(members);
  return dict;
}

static PyObject *info(PyObject *self, PyObject *none) {
  Handle *handle = (Handle *)self;
  Snapshot *taken = malloc(sizeof(Snapshot));
  PyObject *dict = NULL;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  (void)none;
  if (taken == NULL) return PyErr_NoMemory();
  taken->info.size = sizeof(leat_group_info);
  if (handle_enter(handle)) {
    code = leat_group_get_info(handle->pointer, &taken->info, taken->members, MOST_MEMBERS,
                               taken->offsets, MOST_PARTITIONS, &detail);
    handle_leave(handle);
    dict = code == LEAT_OK ? dict_of(taken) : raise_code(code, detail);
  }
  free(taken);
  return dict;
}

// ---- Position -----------------------------------------------------------------------------------

static PyObject *seek(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
  static const char *const wanted[] = {"to", "partition", NULL};
  Handle *handle = (Handle *)self;
  PyObject *given[2] = {NULL};
  uint32_t from = 0;
  uint64_t value = 0;
  uint32_t partition = 0;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  if (!parse_arguments("seek", args, count, names, wanted, 1, given)) return NULL;
  if (!parse_from(given[0], &from, &value) || !parse_partition(given[1], &partition)) return NULL;
  if (!handle_enter(handle)) return NULL;
  Py_BEGIN_ALLOW_THREADS
  code = leat_group_seek(handle->pointer, from, value, partition, &detail);
  Py_END_ALLOW_THREADS
  handle_leave(handle);
  if (code != LEAT_OK) return raise_code(code, detail);
  Py_RETURN_NONE;
}

typedef int32_t (*OfPartition)(leat_group *group, uint32_t partition, uint64_t *number);

static PyObject *of_partition(const char *function, OfPartition get, PyObject *self,
                              PyObject *const *args, Py_ssize_t count, PyObject *names) {
  static const char *const wanted[] = {"partition", NULL};
  Handle *handle = (Handle *)self;
  PyObject *given = NULL;
  uint32_t partition = 0;
  uint64_t number = 0;
  int32_t code = LEAT_OK;
  if (!parse_arguments(function, args, count, names, wanted, 0, &given)) return NULL;
  if (given != NULL && !parse_partition(given, &partition)) return NULL;
  if (!handle_enter(handle)) return NULL;
  code = get(handle->pointer, partition, &number);
  handle_leave(handle);
  return code != LEAT_OK ? raise_code(code, 0) : PyLong_FromUnsignedLongLong(number);
}

static PyObject *position(PyObject *self, PyObject *const *args, Py_ssize_t count,
                          PyObject *names) {
  return of_partition("position", leat_group_position, self, args, count, names);
}
static PyObject *released(PyObject *self, PyObject *const *args, Py_ssize_t count,
                          PyObject *names) {
  return of_partition("released", leat_group_released, self, args, count, names);
}

#define FAST (METH_FASTCALL | METH_KEYWORDS)
static PyMethodDef group_methods[] = {
    {"join", (PyCFunction)(void (*)(void))group_join, METH_VARARGS | METH_KEYWORDS,
     SIGNED("join($self, /, *, name=None, spin=2e-05, patience=2e-05)",
            "Makes a Member.\n\nname: for people, at most 63 bytes\n" READER_OPTIONS)},
    {"info", info, METH_NOARGS, SIGNED("info($self, /)",
            "A snapshot, as a dict.")},
    {"seek", (PyCFunction)(void (*)(void))seek, FAST,
     SIGNED("seek($self, /, to, partition=None)",
            "Moves the group's position: as from_ of Topic.subscriber().")},
    {"position", (PyCFunction)(void (*)(void))position, FAST,
     SIGNED("position($self, /, partition=0)",
            "Offset of the next record to be taken.")},
    {"released", (PyCFunction)(void (*)(void))released, FAST,
     SIGNED("released($self, /, partition=0)",
            "How many records, at least, the group is done with.")},
    {NULL, NULL, 0, NULL},
};
static PyMemberDef group_members[] = {
    {"was_created", T_BOOL, offsetof(Group, was_created), READONLY,
     PyDoc_STR("Whether the call that returned it created the group.")},
    {NULL, 0, 0, 0, NULL},
};
static PyGetSetDef group_fields[] = {
    {"name", get_name, NULL, PyDoc_STR("Its name."), NULL},
    {"dead_letter_topic", get_dead_letter_topic, NULL, PyDoc_STR("Empty without max_deliveries."),
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot group_slots[] = {
    {Py_tp_methods, group_methods},
    {Py_tp_members, group_members},
    {Py_tp_getset, group_fields},
    {Py_tp_doc, "An open consumer group. Several threads may use it at once."},
    {0, NULL},
};
static PyType_Spec group_spec = {"leat.Group", sizeof(Group), 0, LEAF_TYPE, group_slots};

int add_groups(PyObject *module) {
  group_type = add_type(module, &group_spec, handle_type);
  return group_type == NULL ? -1 : 0;
}
