// What subscribers and members deliver: Record, Gap, and Delivery, which is a Record that a member holds.
#include <string.h>

#include "_leat.h"

typedef struct Record {
  PyObject_HEAD
  PyObject *value;    // bytes
  PyObject *key;      // bytes; NULL: none
  PyObject *headers;  // Tuple of pairs; NULL: none
  uint64_t offset;
  int64_t timestamp_ms;  // -1: none
  unsigned short partition;
} Record;

typedef struct Delivery {
  Record base;
  leat_delivery given;
  uint64_t owner;  // The member's number.
} Delivery;

typedef struct Gap {
  PyObject_HEAD
  uint64_t offset;
  uint64_t count;
  uint32_t reason;
  unsigned short partition;
} Gap;

PyTypeObject *record_type;
PyTypeObject *delivery_type;
static PyTypeObject *gap_type;

// Records that were dropped and may be used again: allocating one costs half as much as reading it.
enum { MAX_SPARE = 256 };
static Record *spare[MAX_SPARE];
static int spare_count;

// ---- Parts of a record --------------------------------------------------------------------------

PyObject *key_of(const leat_record *record) {
  if ((record->flags & LEAT_RECORD_HAS_KEY) == 0) Py_RETURN_NONE;
  return PyBytes_FromStringAndSize((const char *)leat_record_key(record),
                                   (Py_ssize_t)record->key_size);
}

PyObject *timestamp_of(const leat_record *record) {
  const int64_t ms = leat_record_timestamp_ms(record);
  if (ms < 0) Py_RETURN_NONE;
  return PyLong_FromLongLong(ms);
}

PyObject *headers_of(const leat_record *record) {
  leat_headers headers = leat_record_headers(record);
  leat_header header = {NULL, NULL, 0, 0};
  PyObject *list = NULL;
  PyObject *tuple = NULL;
  if ((record->flags & LEAT_RECORD_HAS_HEADERS) == 0) return PyTuple_New(0);
  list = PyList_New(0);
  while (list != NULL && leat_next_header(&headers, &header)) {
    PyObject *pair =
        Py_BuildValue("(y#y#)", header.name, (Py_ssize_t)header.name_size, header.value,
                      (Py_ssize_t)header.value_size);
    if (pair == NULL || PyList_Append(list, pair) != 0) Py_CLEAR(list);
    Py_XDECREF(pair);
  }
  if (list == NULL) return NULL;
  tuple = PyList_AsTuple(list);
  Py_DECREF(list);
  return tuple;
}

// ---- Record -----------------------------------------------------------------------------------

// Copies what the library delivered. `to` is new. 0 with an exception if there is no memory.
static int fill(Record *to, const leat_record *from) {
  to->key = NULL;
  to->headers = NULL;
  to->offset = from->offset;
  to->timestamp_ms = -1;
  to->partition = from->partition;
  to->value = PyBytes_FromStringAndSize((const char *)from->value, (Py_ssize_t)from->value_size);
  if (to->value == NULL) return 0;
  if (from->flags == 0) return 1;
  to->timestamp_ms = leat_record_timestamp_ms(from);
  if ((from->flags & LEAT_RECORD_HAS_KEY) != 0) {
    to->key = key_of(from);
    if (to->key == NULL) return 0;
  }
  if ((from->flags & LEAT_RECORD_HAS_HEADERS) != 0) {
    to->headers = headers_of(from);
    if (to->headers == NULL) return 0;
  }
  return 1;
}

PyObject *entry_new(const leat_record *record) {
  Record *made = NULL;
  if ((record->flags & LEAT_RECORD_IS_GAP) != 0) return gap_new(record);
  if (spare_count > 0) {
    made = (Record *)PyObject_Init((PyObject *)spare[--spare_count], record_type);
  } else {
    made = PyObject_New(Record, record_type);
    if (made == NULL) return NULL;
  }
  if (!fill(made, record)) Py_CLEAR(made);
  return (PyObject *)made;
}

static void drop_record(PyObject *self) {
  Record *record = (Record *)self;
  PyTypeObject *type = Py_TYPE(self);
  Py_XDECREF(record->value);
  Py_XDECREF(record->key);
  Py_XDECREF(record->headers);
  if (type == record_type && spare_count < MAX_SPARE) {
    spare[spare_count++] = record;
  } else {
    PyObject_Free(self);
  }
  Py_DECREF(type);
}

PyObject *value_of(PyObject *entry) {
  return Py_TYPE(entry) == gap_type ? NULL : ((Record *)entry)->value;
}

uint64_t offset_of(PyObject *entry, uint32_t *partition) {
  const int is_gap = Py_TYPE(entry) == gap_type;
  *partition = is_gap ? ((Gap *)entry)->partition : ((Record *)entry)->partition;
  return is_gap ? ((Gap *)entry)->offset : ((Record *)entry)->offset;
}

static PyObject *get_headers(PyObject *self, void *closure) {
  const Record *record = (Record *)self;
  (void)closure;
  return record->headers != NULL ? Py_NewRef(record->headers) : PyTuple_New(0);
}

static PyObject *get_timestamp(PyObject *self, void *closure) {
  const Record *record = (Record *)self;
  (void)closure;
  if (record->timestamp_ms < 0) Py_RETURN_NONE;
  return PyLong_FromLongLong(record->timestamp_ms);
}

static PyObject *show_record(PyObject *self) {
  const Record *record = (Record *)self;
  PyObject *name = PyObject_GetAttrString((PyObject *)Py_TYPE(self), "__name__");
  PyObject *text = NULL;
  if (name == NULL) return NULL;
  text = PyUnicode_FromFormat("%U(partition=%d, offset=%llu, key=%R, value=%R)", name,
                              (int)record->partition, (unsigned long long)record->offset,
                              record->key != NULL ? record->key : Py_None, record->value);
  Py_DECREF(name);
  return text;
}

static PyMemberDef record_members[] = {
    {"value", T_OBJECT_EX, offsetof(Record, value), READONLY, PyDoc_STR("The bytes.")},
    {"key", T_OBJECT, offsetof(Record, key), READONLY, PyDoc_STR("Bytes, or None.")},
    {"offset", T_ULONGLONG, offsetof(Record, offset), READONLY, PyDoc_STR("Its number in the partition.")},
    {"partition", T_USHORT, offsetof(Record, partition), READONLY, PyDoc_STR("The number of its partition.")},
    {NULL, 0, 0, 0, NULL},
};
static PyGetSetDef record_fields[] = {
    {"headers", get_headers, NULL, PyDoc_STR("Pairs of a name and a value, both bytes."), NULL},
    {"timestamp_ms", get_timestamp, NULL, PyDoc_STR("Since 1970; None without a timestamp."), NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot record_slots[] = {
    {Py_tp_dealloc, (void *)drop_record}, {Py_tp_repr, (void *)show_record},
    {Py_tp_members, record_members},      {Py_tp_getset, record_fields},
    {Py_tp_doc, "A record, copied."},     {0, NULL},
};
static PyType_Spec record_spec = {
    "leat.Record", sizeof(Record), 0,
    BASE_TYPE, record_slots};

// ---- Delivery ---------------------------------------------------------------------------------

PyObject *delivery_new(const leat_delivery *delivery, uint64_t owner) {
  Delivery *made = NULL;
  if ((delivery->record.flags & LEAT_RECORD_IS_GAP) != 0) return gap_new(&delivery->record);
  made = PyObject_New(Delivery, delivery_type);
  if (made == NULL) return NULL;
  made->given = *delivery;
  made->owner = owner;
  if (!fill(&made->base, &delivery->record)) Py_CLEAR(made);
  return (PyObject *)made;
}

const leat_delivery *delivery_of(PyObject *object, uint64_t owner) {
  const Delivery *delivery = (const Delivery *)object;
  if (Py_TYPE(object) != delivery_type) {
    PyErr_Format(PyExc_TypeError, "must be a Delivery, not %R", Py_TYPE(object));
    return NULL;
  }
  if (delivery->owner != owner) {
    raise_code(LEAT_ERR_NOT_IN_FLIGHT, 0);
    return NULL;
  }
  return &delivery->given;
}

int is_delivery_of(PyObject *object, uint64_t owner) {
  return Py_TYPE(object) == delivery_type && ((const Delivery *)object)->owner == owner;
}

static PyMemberDef delivery_members[] = {
    {"deliveries", T_UINT, offsetof(Delivery, given) + offsetof(leat_delivery, deliveries), READONLY,
     PyDoc_STR("1: the first delivery.")},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot delivery_slots[] = {
    {Py_tp_members, delivery_members},
    {Py_tp_doc, "A record, copied, that a member holds until it is acknowledged or requeued."},
    {0, NULL},
};
static PyType_Spec delivery_spec = {"leat.Delivery", sizeof(Delivery), 0,
                                    LEAF_TYPE,
                                    delivery_slots};

// ---- Gap --------------------------------------------------------------------------------------

PyObject *gap_new(const leat_record *record) {
  Gap *made = PyObject_New(Gap, gap_type);
  if (made == NULL) return NULL;
  made->offset = record->offset;
  made->count = leat_gap_count(record);
  made->reason = leat_gap_reason(record);
  made->partition = record->partition;
  return (PyObject *)made;
}

int is_gap_object(PyObject *object) { return Py_TYPE(object) == gap_type; }

static void drop_gap(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(type);
}

static PyObject *get_reason(PyObject *self, void *closure) {
  (void)closure;
  return PyUnicode_FromString(leat_gap_reason_name(((Gap *)self)->reason));
}

static PyObject *show_gap(PyObject *self) {
  const Gap *gap = (Gap *)self;
  return PyUnicode_FromFormat("Gap(partition=%d, offset=%llu, count=%llu, reason='%s')",
                              (int)gap->partition, (unsigned long long)gap->offset,
                              (unsigned long long)gap->count, leat_gap_reason_name(gap->reason));
}

static PyMemberDef gap_members[] = {
    {"offset", T_ULONGLONG, offsetof(Gap, offset), READONLY, PyDoc_STR("The first one.")},
    {"count", T_ULONGLONG, offsetof(Gap, count), READONLY, PyDoc_STR("How many offsets.")},
    {"partition", T_USHORT, offsetof(Gap, partition), READONLY, PyDoc_STR("The number of its partition.")},
    {NULL, 0, 0, 0, NULL},
};
static PyGetSetDef gap_fields[] = {
    {"reason", get_reason, NULL, PyDoc_STR("Such as 'aborted' or 'overwritten'."), NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot gap_slots[] = {
    {Py_tp_dealloc, (void *)drop_gap}, {Py_tp_repr, (void *)show_gap},
    {Py_tp_members, gap_members},      {Py_tp_getset, gap_fields},
    {Py_tp_doc, "Offsets that will not be delivered."}, {0, NULL},
};
static PyType_Spec gap_spec = {"leat.Gap", sizeof(Gap), 0,
                               LEAF_TYPE, gap_slots};

int add_records(PyObject *module) {
  record_type = add_type(module, &record_spec, NULL);
  if (record_type == NULL) return -1;
  delivery_type = add_type(module, &delivery_spec, record_type);
  gap_type = add_type(module, &gap_spec, NULL);
  return delivery_type == NULL || gap_type == NULL ? -1 : 0;
}
