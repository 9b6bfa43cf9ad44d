// Publishers.
#include <errno.h>
#include <string.h>

#include "_leat.h"
#include "docs.h"

PyTypeObject *publisher_type;

static void close_publisher(void *pointer) {
  leat_publisher *publisher = pointer;
  (void)leat_publisher_close(&publisher);
}
static int32_t stop_publisher(void *pointer) { return leat_publisher_stop(pointer); }
static int32_t resume_publisher(void *pointer) { return leat_publisher_resume(pointer); }
static int32_t is_publisher_stopped(void *pointer, uint32_t *answer) {
  return leat_publisher_is_stopped(pointer, answer);
}
static void let_go(Handle *handle) {
  if (((Publisher *)handle)->claim != NULL) claim_let_go(((Publisher *)handle)->claim);
}
static const HandleKind publisher_kind = {
    "publisher",      0,      close_publisher, stop_publisher, resume_publisher,
    is_publisher_stopped, let_go};

static const char *const stages[] = {"", "committed", "durable", NULL};
static const Option publisher_options[] = {
    {"partition", OPTION_PARTITION, offsetof(leat_publisher_options, partition), 0, NULL},
    {"exclusive", OPTION_FLAG, offsetof(leat_publisher_options, exclusive), 0, NULL},
    {"acknowledge", OPTION_CHOICE, offsetof(leat_publisher_options, acknowledge), 0, stages},
    {NULL, OPTION_FLAG, 0, 0, NULL},
};

PyObject *topic_publisher(PyObject *self, PyObject *args, PyObject *given) {
  Handle *topic = (Handle *)self;
  leat_publisher_options options = LEAT_PUBLISHER_OPTIONS_INIT;
  leat_publisher *publisher = NULL;
  PyObject *made = NULL;
  Arena arena = {NULL};
  uint32_t partitions = 1;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  if (PyTuple_Size(args) != 0) {
    PyErr_SetString(PyExc_TypeError, "publisher() takes options by keyword");
    return NULL;
  }
  if (!parse_options("publisher", given, publisher_options, &options, &arena)) return NULL;
  options.interruptible = 1;
  if (!handle_enter(topic)) return NULL;
  Py_BEGIN_ALLOW_THREADS
  code = leat_topic_publisher(topic->pointer, &options, &publisher, &detail);
  Py_END_ALLOW_THREADS
  (void)leat_topic_partitions(topic->pointer, &partitions);
  handle_leave(topic);
  if (code != LEAT_OK) {
    const Subject subject = {.act = "make a publisher", .partition = &options.partition};
    return raise_about(&subject, code, detail);
  }
  made = handle_new(publisher_type, &publisher_kind, publisher);
  if (made != NULL) ((Publisher *)made)->partitions = partitions;
  return made;
}

// ---- Publish ------------------------------------------------------------------------------------

// What is published, and how far that is. One of the pointers is set, or else `value` is published.
typedef struct Publishing {
  leat_publisher *publisher;
  leat_bytes value;
  const leat_new_record *record;
  const NewBatch *batch;
  uint32_t partition;  // Of the batch.
  int is_published;    // What remains is to wait for stable storage.
  int was_full;        // LEAT_ERR_FULL instead of waiting.
  uint64_t offset;
} Publishing;

static int32_t publish_once(Publishing *it, int64_t timeout_ns, int32_t *detail) {
  if (it->record != NULL)
    return leat_publisher_publish_record(it->publisher, it->record, timeout_ns, &it->offset, detail);
  if (it->batch == NULL)
    return leat_publisher_publish(it->publisher, it->value.data, it->value.size, timeout_ns,
                                  &it->offset, detail);
  if (it->batch->values != NULL)
    return leat_publisher_publish_batch(it->publisher, it->batch->values, it->batch->count,
                                        it->partition, timeout_ns, &it->offset, detail);
  return leat_publisher_publish_record_batch(it->publisher, it->batch->records, it->batch->count,
                                             it->partition, timeout_ns, &it->offset, detail);
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
    if (leat_publisher_last_offset(it->publisher, &it->offset) == LEAT_OK && it->batch != NULL)
      it->offset -= it->batch->count - 1;
    return LEAT_ERR_TIMEOUT;
  }
  it->was_full = code == LEAT_ERR_FULL;
  return it->was_full && timeout_ns == 0 ? LEAT_ERR_TIMEOUT : code;
}

// Publishes and ends the call.
static PyObject *publish_it(Publisher *self, Publishing *it, int64_t timeout_ns) {
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  it->publisher = self->base.pointer;
  code = wait_for(&self->base, timeout_ns, ROOM_SLICES, try_publish, it, &detail);
  publisher_leave(self);
  if (code == LEAT_OK) return PyLong_FromUnsignedLongLong(it->offset);
  if (code == -1) return NULL;
  if (code == LEAT_ERR_TIMEOUT && it->is_published) code = LEAT_ERR_NOT_DURABLE;
  if (code == LEAT_ERR_TIMEOUT && it->was_full && timeout_ns == 0) code = LEAT_ERR_FULL;
  if (code == LEAT_ERR_INVALID_ARGUMENT) {
    const Subject subject = {.act = "publish",
                             .is_empty = it->batch != NULL && it->batch->count == 0,
                             .partition = it->record != NULL ? &it->record->partition : &it->partition};
    return raise_about(&subject, code, detail);
  }
  return raise_code(code, detail);
}

enum { VALUE, KEY, HEADERS, PARTITION, TIMEOUT, PUBLISH_ARGUMENTS };

static PyObject *publish_with(Publisher *self, PyObject **given) {
  Publishing it = {.partition = LEAT_ANY_PARTITION};
  leat_new_record record = LEAT_NEW_RECORD_INIT;
  Arena arena = {NULL};
  int64_t timeout_ns = LEAT_FOREVER;
  uint32_t partition = LEAT_ANY_PARTITION;
  PyObject *result = NULL;
  if (!parse_timeout(given[TIMEOUT], &timeout_ns) ||
      !parse_partition(given[PARTITION], &partition))
    return NULL;
  if (arena_record(&arena, given[VALUE], given[KEY], given[HEADERS], &record) &&
      handle_enter(&self->base)) {
    record.partition = partition;
    it.record = &record;
    result = publish_it(self, &it, timeout_ns);
  }
  arena_end(&arena);
  return result;
}

static PyObject *publish(PyObject *object, PyObject *const *args, Py_ssize_t count,
                         PyObject *names) {
  static const char *const wanted[] = {"value", "key", "headers", "partition", "timeout", NULL};
  Publisher *self = (Publisher *)object;
  PyObject *given[PUBLISH_ARGUMENTS] = {NULL};
  if (count == 1 && names == NULL && PyBytes_Check(args[0])) {  // The usual case.
    Publishing it = {.partition = LEAT_ANY_PARTITION};
    it.value.data = PyBytes_AsString(args[0]);
    it.value.size = (uint64_t)PyBytes_Size(args[0]);
    return handle_enter(&self->base) ? publish_it(self, &it, LEAT_FOREVER) : NULL;
  }
  if (!parse_arguments("publish", args, count, names, wanted, 1, given)) return NULL;
  return publish_with(self, given);
}

static PyObject *publish_batch(PyObject *object, PyObject *const *args, Py_ssize_t count,
                               PyObject *names) {
  static const char *const wanted[] = {"values", "partition", "timeout", NULL};
  Publisher *self = (Publisher *)object;
  PyObject *given[3] = {NULL};
  Publishing it = {.partition = LEAT_ANY_PARTITION};
  NewBatch batch = {NULL, NULL, 0};
  Arena arena = {NULL};
  int64_t timeout_ns = LEAT_FOREVER;
  PyObject *tuple = NULL;
  PyObject *result = NULL;
  if (!parse_arguments("publish_batch", args, count, names, wanted, 1, given)) return NULL;
  if (!parse_partition(given[1], &it.partition) || !parse_timeout(given[2], &timeout_ns))
    return NULL;
  if (PyObject_CheckBuffer(given[0]) || PyUnicode_Check(given[0])) {
    PyErr_Format(PyExc_TypeError, "a batch is an iterable of values, not one %R",
                 Py_TYPE(given[0]));
    return NULL;
  }
  tuple = PySequence_Tuple(given[0]);  // Which nobody changes meanwhile.
  if (tuple == NULL) return NULL;
  if (arena_batch(&arena, tuple, &batch) && handle_enter(&self->base)) {
    it.batch = &batch;
    result = publish_it(self, &it, timeout_ns);
  }
  arena_end(&arena);
  Py_DECREF(tuple);
  return result;
}

// ---- Durable topics -----------------------------------------------------------------------------

static int32_t try_flush(void *context, int64_t timeout_ns, int32_t *detail) {
  int32_t code = LEAT_OK;
  *detail = 0;
  code = leat_publisher_flush(context, timeout_ns, detail);
  return is_just_late(context, code, *detail) ? LEAT_ERR_TIMEOUT : code;
}

static PyObject *flush(PyObject *object, PyObject *const *args, Py_ssize_t count, PyObject *names) {
  static const char *const wanted[] = {"timeout", NULL};
  Handle *self = (Handle *)object;
  PyObject *timeout = NULL;
  int64_t timeout_ns = LEAT_FOREVER;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  if (!parse_arguments("flush", args, count, names, wanted, 0, &timeout)) return NULL;
  if (!parse_timeout(timeout, &timeout_ns) || !handle_enter(self)) return NULL;
  code = wait_for(self, timeout_ns, SHORT_SLICES, try_flush, self->pointer, &detail);
  publisher_leave((Publisher *)object);
  if (code == -1) return NULL;
  if (code != LEAT_OK)
    return raise_code(code == LEAT_ERR_TIMEOUT ? LEAT_ERR_NOT_DURABLE : code, detail);
  Py_RETURN_NONE;
}

static PyObject *request_sync(PyObject *object, PyObject *none) {
  Handle *self = (Handle *)object;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  (void)none;
  if (!handle_enter(self)) return NULL;
  code = leat_publisher_request_sync(self->pointer, &detail);
  handle_leave(self);
  if (code != LEAT_OK) return raise_code(code, detail);
  Py_RETURN_NONE;
}

static PyObject *durable_offset(PyObject *object, PyObject *const *args, Py_ssize_t count,
                                PyObject *names) {
  static const char *const wanted[] = {"partition", NULL};
  Handle *self = (Handle *)object;
  PyObject *given = NULL;
  uint32_t partition = LEAT_ANY_PARTITION;
  uint64_t offset = 0;
  int32_t code = LEAT_OK;
  if (!parse_arguments("durable_offset", args, count, names, wanted, 0, &given)) return NULL;
  if (!parse_partition(given, &partition) || !handle_enter(self)) return NULL;
  code = leat_publisher_durable_offset(self->pointer, partition, &offset);
  handle_leave(self);
  return code != LEAT_OK ? raise_code(code, 0) : PyLong_FromUnsignedLongLong(offset);
}

static PyObject *last_offset(PyObject *object, PyObject *none) {
  Handle *self = (Handle *)object;
  uint64_t offset = 0;
  int32_t code = LEAT_OK;
  (void)none;
  if (!handle_enter(self)) return NULL;
  code = leat_publisher_last_offset(self->pointer, &offset);
  handle_leave(self);
  if (code == LEAT_ERR_NOT_FOUND) Py_RETURN_NONE;
  return code != LEAT_OK ? raise_code(code, 0) : PyLong_FromUnsignedLongLong(offset);
}

static PyObject *fd_or(int32_t code, int32_t fd, int32_t detail) {
  return code != LEAT_OK ? raise_code(code, detail) : PyLong_FromLong(fd);
}

static PyObject *durable_fd(PyObject *object, PyObject *none) {
  Handle *self = (Handle *)object;
  int32_t fd = -1;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  (void)none;
  if (!handle_enter(self)) return NULL;
  code = leat_publisher_durable_fd(self->pointer, &fd, &detail);
  handle_leave(self);
  return fd_or(code, fd, detail);
}

static PyObject *room_fd(PyObject *object, PyObject *const *args, Py_ssize_t count,
                         PyObject *names) {
  static const char *const wanted[] = {"partition", NULL};
  Handle *self = (Handle *)object;
  PyObject *given = NULL;
  uint32_t partition = LEAT_ANY_PARTITION;
  int32_t fd = -1;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  if (!parse_arguments("room_fd", args, count, names, wanted, 0, &given)) return NULL;
  if (!parse_partition(given, &partition) || !handle_enter(self)) return NULL;
  code = leat_publisher_room_fd(self->pointer, partition, &fd, &detail);
  handle_leave(self);
  return fd_or(code, fd, detail);
}

// The partition of a key, as the library computes it (and Kafka).
static uint32_t partition_of_key(leat_bytes key, uint32_t partitions) {
  const uint32_t multiplier = 0x5bd1e995;
  const uint8_t *at = key.data;
  uint32_t size = (uint32_t)key.size;
  uint32_t hash = 0x9747b28c ^ size;
  for (; size >= 4; at += 4, size -= 4) {
    uint32_t word = 0;
    memcpy(&word, at, sizeof word);
    word *= multiplier;
    word ^= word >> 24;
    hash = (hash * multiplier) ^ (word * multiplier);
  }
  if (size >= 3) hash ^= (uint32_t)at[2] << 16;
  if (size >= 2) hash ^= (uint32_t)at[1] << 8;
  if (size >= 1) hash = (hash ^ at[0]) * multiplier;
  hash = (hash ^ (hash >> 13)) * multiplier;
  hash ^= hash >> 15;
  return (hash & 0x7fffffff) % partitions;
}

// _room_fd(partition, key), for asyncio: of the partition that a record with these goes to.
static PyObject *room_fd_of(PyObject *object, PyObject *args) {
  Publisher *self = (Publisher *)object;
  PyObject *number = NULL;
  PyObject *key = NULL;
  leat_bytes bytes = {NULL, 0};
  Arena arena = {NULL};
  uint32_t partition = LEAT_ANY_PARTITION;
  int32_t fd = -1;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  if (!PyArg_ParseTuple(args, "OO", &number, &key) || !parse_partition(number, &partition)) return NULL;
  if (number == Py_None && key != Py_None) {
    if (!arena_bytes(&arena, key, "key", &bytes)) return NULL;
    partition = partition_of_key(bytes, self->partitions);
    arena_end(&arena);
  }
  if (!handle_enter(&self->base)) return NULL;
  code = leat_publisher_room_fd(self->base.pointer, partition, &fd, &detail);
  handle_leave(&self->base);
  return fd_or(code, fd, detail);
}

static PyObject *get_max_record_size(PyObject *object, void *closure) {
  Handle *self = (Handle *)object;
  uint64_t bytes = 0;
  int32_t code = LEAT_OK;
  (void)closure;
  if (!handle_enter(self)) return NULL;
  code = leat_publisher_max_record_size(self->pointer, &bytes);
  handle_leave(self);
  return code != LEAT_OK ? raise_code(code, 0) : PyLong_FromUnsignedLongLong(bytes);
}

static PyObject *get_partition(PyObject *object, void *closure) {
  Handle *self = (Handle *)object;
  uint32_t partition = 0;
  int32_t code = LEAT_OK;
  (void)closure;
  if (!handle_enter(self)) return NULL;
  code = leat_publisher_partition(self->pointer, &partition);
  handle_leave(self);
  return code != LEAT_OK ? raise_code(code, 0) : PyLong_FromUnsignedLong(partition);
}

#define FAST (METH_FASTCALL | METH_KEYWORDS)
static PyMethodDef publisher_methods[] = {
    {"publish", (PyCFunction)(void (*)(void))publish, FAST,
     SIGNED("publish($self, /, value, key=None, headers=None, partition=None, timeout=None)",
            "Publishes one record and returns its offset.\n\nvalue, key: bytes-like\nheaders: a dict of bytes, or pairs\npartition: None: that of the key, or the publisher's\ntimeout: seconds to wait for room, and for stable storage; None: for ever; 0: raises Full")},
    {"publish_batch", (PyCFunction)(void (*)(void))publish_batch, FAST,
     SIGNED("publish_batch($self, /, values, partition=None, timeout=None)",
            "Publishes several records, which become visible together. Returns the offset of the first.\n\nvalues: bytes-like objects, or records as NewRecord; together at most half a segment\npartition: None: the publisher's; keys choose none\ntimeout: as of publish()")},
    {"claim", (PyCFunction)(void (*)(void))publisher_claim, FAST,
     SIGNED("claim($self, /, size, timeout=None)",
            "Room to write a value of `size` bytes in place, for `with`.")},
    {"flush", (PyCFunction)(void (*)(void))flush, FAST,
     SIGNED("flush($self, /, timeout=None)",
            "Waits until all that it published is on stable storage; NotDurable if it is not in time.")},
    {"request_sync", request_sync, METH_NOARGS, SIGNED("request_sync($self, /)",
            "Asks for what flush() waits for, and does not wait.")},
    {"durable_offset", (PyCFunction)(void (*)(void))durable_offset, FAST,
     SIGNED("durable_offset($self, /, partition=None)",
            "Everything in the partition before this offset is on stable storage.")},
    {"last_offset", last_offset, METH_NOARGS,
     SIGNED("last_offset($self, /)",
            "Of what was published last with acknowledge='durable', or None.")},
    {"durable_fd", durable_fd, METH_NOARGS,
     SIGNED("durable_fd($self, /)",
            "A descriptor that is readable when durable_offset() may have moved.")},
    {"room_fd", (PyCFunction)(void (*)(void))room_fd, FAST,
     SIGNED("room_fd($self, /, partition=None)",
            "A descriptor that is readable when there may be room after Full.")},
    {"publish_async", (PyCFunction)(void (*)(void))publish_async, METH_VARARGS | METH_KEYWORDS,
     SIGNED("publish_async($self, /, value, key=None, headers=None, partition=None, timeout=None)",
            "publish() for asyncio: other tasks run while it waits. Tasks publish in the order of their calls.\n\nA task that is cancelled while it waits for room has published nothing.")},
    {"publish_batch_async", (PyCFunction)(void (*)(void))publish_batch_async, METH_VARARGS | METH_KEYWORDS,
     SIGNED("publish_batch_async($self, /, values, partition=None, timeout=None)",
            "publish_batch() for asyncio, as publish_async().")},
    {"flush_async", (PyCFunction)(void (*)(void))flush_async, METH_VARARGS | METH_KEYWORDS,
     SIGNED("flush_async($self, /, timeout=None)",
            "flush() for asyncio.")},
    {"_room_fd", room_fd_of, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef publisher_fields[] = {
    {"max_record_size", get_max_record_size, NULL,
     PyDoc_STR("In bytes: key, headers, timestamp and value together, encoded."), NULL},
    {"partition", get_partition, NULL, PyDoc_STR("Of records that have no key."), NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot publisher_slots[] = {
    {Py_tp_methods, publisher_methods},
    {Py_tp_getset, publisher_fields},
    {Py_tp_doc, "Appends records to a topic. One thread at a time uses it."},
    {0, NULL},
};
static PyType_Spec publisher_spec = {"leat.Publisher", sizeof(Publisher), 0, LEAF_TYPE,
                                     publisher_slots};

int add_publishers(PyObject *module) {
  publisher_type = add_type(module, &publisher_spec, stoppable_type);
  return publisher_type == NULL ? -1 : 0;
}
