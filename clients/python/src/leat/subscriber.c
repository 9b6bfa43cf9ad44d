// Subscribers.
//
// Entries are read in batches into an array of the library's records, and copied into objects before
// anything else can be called on the subscriber.
#include <stdlib.h>
#include <string.h>

#include "_leat.h"
#include "docs.h"

PyTypeObject *subscriber_type;

static void close_subscriber(void *pointer) {
  leat_subscriber *subscriber = pointer;
  (void)leat_subscriber_close(&subscriber);
}
static int32_t stop_subscriber(void *pointer) { return leat_subscriber_stop(pointer); }
static int32_t resume_subscriber(void *pointer) { return leat_subscriber_resume(pointer); }
static int32_t is_subscriber_stopped(void *pointer, uint32_t *answer) {
  return leat_subscriber_is_stopped(pointer, answer);
}
static void let_go(Handle *handle) {
  if (((Subscriber *)handle)->view != NULL) view_let_go(((Subscriber *)handle)->view);
}
static const HandleKind subscriber_kind = {
    "subscriber",          0,     close_subscriber, stop_subscriber, resume_subscriber,
    is_subscriber_stopped, let_go};

static const char *const stages[] = {"", "committed", "durable", NULL};
#define AT(name) offsetof(leat_subscriber_options, name)
static const Option subscriber_options[] = {
    {"from_", OPTION_FROM, AT(from), AT(from_value), NULL},
    {"partition", OPTION_PARTITION, AT(partition), 0, NULL},
    {"gating", OPTION_FLAG, AT(gating), 0, NULL},
    {"in_place", OPTION_FLAG, AT(in_place), 0, NULL},
    {"read", OPTION_CHOICE, AT(read), 0, stages},
    {"spin", OPTION_SECONDS, AT(spin_ns), 0, NULL},
    {"patience", OPTION_SECONDS, AT(patience_ns), 0, NULL},
    {NULL, OPTION_FLAG, 0, 0, NULL},
};

PyObject *topic_subscriber(PyObject *self, PyObject *args, PyObject *given) {
  Handle *topic = (Handle *)self;
  int64_t spin_ns = 0;
  leat_subscriber_options options = LEAT_SUBSCRIBER_OPTIONS_INIT;
  leat_subscriber *subscriber = NULL;
  PyObject *made = NULL;
  Arena arena = {NULL};
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  if (PyTuple_Size(args) != 0) {
    PyErr_SetString(PyExc_TypeError, "subscriber() takes options by keyword");
    return NULL;
  }
  if (!parse_options("subscriber", given, subscriber_options, &options, &arena)) return NULL;
  spin_ns = options.spin_ns;
  options.spin_ns = 0;
  options.interruptible = 1;
  if (!handle_enter(topic)) return NULL;
  Py_BEGIN_ALLOW_THREADS
  code = leat_topic_subscriber(topic->pointer, &options, &subscriber, &detail);
  Py_END_ALLOW_THREADS
  handle_leave(topic);
  if (code != LEAT_OK) {
    const Subject subject = {.act = "make a subscriber", .subscriber = &options, .partition = &options.partition};
    return raise_about(&subject, code, detail);
  }
  made = handle_new(subscriber_type, &subscriber_kind, subscriber);
  if (made == NULL) return NULL;
  ((Handle *)made)->spin_ns = spin_ns;
  handle_mark_unused(made);
  return made;
}

// ---- Reading ------------------------------------------------------------------------------------

static int32_t try_receive(void *context, int64_t timeout_ns, int32_t *detail) {
  Reading *reading = context;
  return leat_subscriber_receive(reading->subscriber->base.pointer, reading->records,
                                 reading->capacity, &reading->count, timeout_ns, detail);
}

// Begins a call that reads; 0 with an exception.
int reading_begin(Subscriber *self, Reading *reading, uint32_t limit) {
  reading->subscriber = self;
  reading->records = reading->few;
  reading->capacity = limit;
  reading->count = 0;
  reading->is_ready = 1;
  if (self->view != NULL && self->base.users == 0 && !self->base.is_closing) {
    PyErr_SetString(PyExc_BufferError, "the batch of view() has not ended");
    return 0;
  }
  if (!pending_is_own(&self->base)) return 0;
  if (limit > DEFAULT_LIMIT) reading->records = malloc(limit * sizeof(leat_record));
  if (reading->records == NULL) {
    PyErr_NoMemory();
    return 0;
  }
  if (handle_enter(&self->base)) {
    handle_mark_used(&self->base);
    return 1;
  }
  if (reading->records != reading->few) free(reading->records);
  return 0;
}

void reading_end(Reading *reading) {
  if (reading->records != reading->few) free(reading->records);
  handle_leave(&reading->subscriber->base);
}

// Takes nothing in a call that waits. What a view shows cannot be kept for a later call: so signals are handled between
// waiting and taking.
static int32_t try_view(void *context, int64_t timeout_ns, int32_t *detail) {
  Reading *reading = context;
  int32_t code = LEAT_OK;
  if (reading->is_ready) {
    reading->is_ready = 0;
    return try_receive(reading, 0, detail);
  }
  code = leat_subscriber_wait(reading->subscriber->base.pointer, timeout_ns);
  reading->is_ready = code == LEAT_OK;
  return code == LEAT_OK ? LEAT_ERR_INTERRUPTED : code;
}

// Waits for records. 0 with an exception, except that there need not be any in time if `may_be_none`.
int reading_some(Reading *reading, int64_t timeout_ns, int may_be_none) {
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  if (timeout_ns == 0 && may_be_none)
    code = leat_subscriber_poll(reading->subscriber->base.pointer, reading->records,
                                reading->capacity, &reading->count, &detail);
  else
    code = wait_for(&reading->subscriber->base, timeout_ns, LONG_SLICES, try_receive, reading, &detail);
  if (code == LEAT_OK) return 1;
  if (may_be_none && (code == LEAT_ERR_TIMEOUT || code == LEAT_ERR_STOPPED)) return 1;
  if (code != -1) raise_code(code, detail);
  return 0;
}

// A list of what was read, from `first` on.
static PyObject *list_of(const Reading *reading, uint32_t first) {
  PyObject *list = PyList_New((Py_ssize_t)(reading->count - first));
  const uint64_t distance = leat_next_batch(reading->records, reading->count, reading->capacity);
  uint32_t i = first;
  for (; list != NULL && i < reading->count; ++i) {
    leat_prefetch(&reading->records[i], distance);
    PyObject *entry = entry_new(&reading->records[i]);
    if (entry == NULL)
      Py_CLEAR(list);
    else
      PyList_SetItem(list, (Py_ssize_t)(i - first), entry);
  }
  return list;
}

// Keeps what was read from `first` on for the next call. 0 with an exception.
int pending_keep(Reading *reading, uint32_t first) {
  Subscriber *self = reading->subscriber;
  if (first == reading->count) return 1;
  self->base.pending = list_of(reading, first);
  self->base.pending_at = 0;
  return self->base.pending != NULL;
}

int reading_check_signals(Reading *reading) {
  PyObject *type = NULL;
  PyObject *value = NULL;
  PyObject *trace = NULL;
  if (reading->count == 0 || PyErr_CheckSignals() == 0) return 1;
  PyErr_Fetch(&type, &value, &trace);
  Py_CLEAR(reading->subscriber->base.pending);  // What is there was read with it.
  (void)pending_keep(reading, 0);
  PyErr_Restore(type, value, trace);
  return 0;
}

// ---- Calls that read ----------------------------------------------------------------------------

static PyObject *read_list(Subscriber *self, uint32_t limit, int64_t timeout_ns, int may_be_none) {
  Reading reading;
  PyObject *list = NULL;
  if (!reading_begin(self, &reading, limit)) return NULL;
  if (self->base.pending != NULL)
    list = pending_take_some(&self->base, limit);
  else if (reading_some(&reading, timeout_ns, may_be_none))
    list = list_of(&reading, 0);
  list = deliver(&self->base, list, 0);
  reading_end(&reading);
  return list;
}

static PyObject *poll(PyObject *object, PyObject *const *args, Py_ssize_t count, PyObject *names) {
  static const char *const wanted[] = {"limit", NULL};
  PyObject *given = NULL;
  uint32_t limit = 0;
  if (!parse_arguments("poll", args, count, names, wanted, 0, &given)) return NULL;
  return parse_limit(given, &limit) ? read_list((Subscriber *)object, limit, 0, 1) : NULL;
}

static PyObject *receive_batch(PyObject *object, PyObject *const *args, Py_ssize_t count,
                               PyObject *names) {
  static const char *const wanted[] = {"limit", "timeout", NULL};
  PyObject *given[2] = {NULL};
  uint32_t limit = 0;
  int64_t timeout_ns = 0;
  if (!parse_arguments("receive_batch", args, count, names, wanted, 0, given)) return NULL;
  if (!parse_limit(given[0], &limit) || !parse_timeout(given[1], &timeout_ns)) return NULL;
  return read_list((Subscriber *)object, limit, timeout_ns, 0);
}

static PyObject *read_one(Subscriber *self, int64_t timeout_ns) {
  Reading reading;
  PyObject *entry = NULL;
  if (!reading_begin(self, &reading, 1)) return NULL;
  if (self->base.pending != NULL)
    entry = pending_take(&self->base);
  else if (reading_some(&reading, timeout_ns, 0))
    entry = entry_new(&reading.records[0]);
  entry = deliver(&self->base, entry, 1);
  reading_end(&reading);
  return entry;
}

static PyObject *receive(PyObject *object, PyObject *const *args, Py_ssize_t count,
                         PyObject *names) {
  static const char *const wanted[] = {"timeout", NULL};
  PyObject *given = NULL;
  int64_t timeout_ns = LEAT_FOREVER;
  if (!parse_arguments("receive", args, count, names, wanted, 0, &given)) return NULL;
  return parse_timeout(given, &timeout_ns) ? read_one((Subscriber *)object, timeout_ns) : NULL;
}

static PyObject *itself(PyObject *object) { return Py_NewRef(object); }

static PyObject *next_entry(PyObject *object) {
  return end_iteration(read_one((Subscriber *)object, LEAT_FOREVER));
}

static int reading_view(Reading *reading, int64_t timeout_ns) {
  int32_t detail = 0;
  const int32_t code = wait_for(&reading->subscriber->base, timeout_ns, LONG_SLICES, try_view, reading, &detail);
  if (code != LEAT_OK && code != -1) raise_code(code, detail);
  return code == LEAT_OK;
}

static PyObject *view(PyObject *object, PyObject *const *args, Py_ssize_t count, PyObject *names) {
  static const char *const wanted[] = {"limit", "timeout", NULL};
  Subscriber *self = (Subscriber *)object;
  PyObject *given[2] = {NULL};
  Reading reading;
  uint32_t limit = 0;
  int64_t timeout_ns = 0;
  leat_record *entries = NULL;
  PyObject *made = NULL;
  if (!parse_arguments("view", args, count, names, wanted, 0, given)) return NULL;
  if (!parse_limit(given[0], &limit) || !parse_timeout(given[1], &timeout_ns)) return NULL;
  if (!reading_begin(self, &reading, limit)) return NULL;
  if (self->base.pending != NULL) {
    PyErr_SetString(PyExc_ValueError, "the subscriber has kept entries of an earlier call: receive() them first");
  } else if (reading_view(&reading, timeout_ns)) {
    entries = malloc(reading.count * sizeof(leat_record));
    if (entries != NULL) {
      memcpy(entries, reading.records, reading.count * sizeof(leat_record));
      made = view_new(self, entries, reading.count);
    } else {
      PyErr_NoMemory();
    }
  }
  reading_end(&reading);
  return made;
}

// ---- Waiting ------------------------------------------------------------------------------------

static int32_t try_wait(void *context, int64_t timeout_ns, int32_t *detail) {
  (void)detail;
  return leat_subscriber_wait(context, timeout_ns);
}

static PyObject *wait(PyObject *object, PyObject *const *args, Py_ssize_t count, PyObject *names) {
  static const char *const wanted[] = {"timeout", NULL};
  Subscriber *self = (Subscriber *)object;
  PyObject *given = NULL;
  int64_t timeout_ns = LEAT_FOREVER;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  if (!parse_arguments("wait", args, count, names, wanted, 0, &given)) return NULL;
  if (!parse_timeout(given, &timeout_ns) || !handle_enter(&self->base)) return NULL;
  if (self->base.pending == NULL)
    code = wait_for(&self->base, timeout_ns, LONG_SLICES, try_wait, self->base.pointer, &detail);
  handle_leave(&self->base);
  if (code == -1) return NULL;
  if (code != LEAT_OK) return raise_code(code, detail);
  Py_RETURN_NONE;
}

typedef struct WaitAny {
  leat_subscriber *all[LEAT_MAX_WAIT_ANY];
  Subscriber *objects[LEAT_MAX_WAIT_ANY];
  uint32_t count;
  uint32_t index;
} WaitAny;

static int32_t try_wait_any(void *context, int64_t timeout_ns, int32_t *detail) {
  WaitAny *any = context;
  uint32_t i = 0;
  (void)detail;
  for (; i < any->count; ++i) {  // Closed by another thread meanwhile.
    if (any->objects[i]->base.is_closing) return LEAT_ERR_STOPPED;
  }
  return leat_subscriber_wait_any(any->all, any->count, timeout_ns, &any->index);
}

// Enters all of them; those before any->count are entered. 0 with an exception.
static int enter_all(PyObject *tuple, WaitAny *any) {
  const Py_ssize_t count = PyTuple_Size(tuple);
  Py_ssize_t i = 0;
  if (count == 0 || count > LEAT_MAX_WAIT_ANY) {
    PyErr_Format(PyExc_ValueError, "wait_any() takes 1 to %d subscribers", LEAT_MAX_WAIT_ANY);
    return 0;
  }
  for (; i < count; ++i) {
    PyObject *object = PyTuple_GetItem(tuple, i);
    if (Py_TYPE(object) != subscriber_type) {
      PyErr_Format(PyExc_TypeError, "must be a Subscriber, not %R", Py_TYPE(object));
      return 0;
    }
    if (!handle_enter((Handle *)object)) return 0;
    any->objects[i] = (Subscriber *)object;
    any->all[i] = any->objects[i]->base.pointer;
    ++any->count;
  }
  return 1;
}

// The first that has entries already; -1: none.
static int has_pending(const WaitAny *any) {
  uint32_t i = 0;
  for (; i < any->count; ++i) {
    if (any->objects[i]->base.pending != NULL) return (int)i;
  }
  return -1;
}

PyObject *subscriber_wait_any(PyObject *module, PyObject *const *args, Py_ssize_t count,
                              PyObject *names) {
  static const char *const wanted[] = {"subscribers", "timeout", NULL};
  PyObject *given[2] = {NULL};
  WaitAny any = {{NULL}, {NULL}, 0, 0};
  int64_t timeout_ns = LEAT_FOREVER;
  int32_t detail = 0;
  int32_t code = -1;
  PyObject *tuple = NULL;
  (void)module;
  if (!parse_arguments("wait_any", args, count, names, wanted, 1, given)) return NULL;
  if (!parse_timeout(given[1], &timeout_ns)) return NULL;
  if (Py_TYPE(given[0]) == subscriber_type) {  // Iterating over it would read it empty.
    PyErr_SetString(PyExc_TypeError, "wait_any() takes several subscribers, not one");
    return NULL;
  }
  tuple = PySequence_Tuple(given[0]);
  if (tuple == NULL) return NULL;
  if (enter_all(tuple, &any)) {
    const int pending = has_pending(&any);
    any.index = pending < 0 ? 0 : (uint32_t)pending;
    code = pending >= 0 ? LEAT_OK
                        : wait_for(&any.objects[0]->base, timeout_ns, LONG_SLICES, try_wait_any, &any, &detail);
  }
  while (any.count > 0) handle_leave(&any.objects[--any.count]->base);
  Py_DECREF(tuple);
  if (code == -1) return NULL;
  return code != LEAT_OK ? raise_code(code, detail) : PyLong_FromUnsignedLong(any.index);
}

static PyObject *wait_fd(PyObject *object, PyObject *none) {
  Handle *self = (Handle *)object;
  int32_t fd = -1;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  (void)none;
  if (!handle_enter(self)) return NULL;
  code = leat_subscriber_wait_fd(self->pointer, &fd, &detail);
  handle_leave(self);
  return code != LEAT_OK ? raise_code(code, detail) : PyLong_FromLong(fd);
}

// ---- Where it is --------------------------------------------------------------------------------

// The offset of the first entry of a partition that was read and not delivered yet.
static int find_pending(const Subscriber *self, uint32_t partition, uint64_t *offset) {
  const Py_ssize_t count = self->base.pending == NULL ? 0 : PyList_Size(self->base.pending);
  Py_ssize_t i = self->base.pending_at;
  for (; i < count; ++i) {
    uint32_t of = 0;
    *offset = offset_of(PyList_GetItem(self->base.pending, i), &of);
    if (of == partition) return 1;
  }
  return 0;
}

static PyObject *offset(PyObject *object, PyObject *const *args, Py_ssize_t count,
                        PyObject *names) {
  static const char *const wanted[] = {"partition", NULL};
  Subscriber *self = (Subscriber *)object;
  PyObject *given = NULL;
  uint32_t partition = 0;
  uint64_t next = 0;
  int32_t code = LEAT_OK;
  if (!parse_arguments("offset", args, count, names, wanted, 0, &given)) return NULL;
  if (given != NULL && !parse_partition(given, &partition)) return NULL;
  if (!handle_enter(&self->base)) return NULL;
  if (!find_pending(self, partition, &next))
    code = leat_subscriber_offset(self->base.pointer, partition, &next);
  handle_leave(&self->base);
  return code != LEAT_OK ? raise_code(code, 0) : PyLong_FromUnsignedLongLong(next);
}

static PyObject *is_lossy(PyObject *object, PyObject *none) {
  Handle *self = (Handle *)object;
  uint32_t answer = 0;
  int32_t code = LEAT_OK;
  (void)none;
  if (!handle_enter(self)) return NULL;
  code = leat_subscriber_is_lossy(self->pointer, &answer);
  handle_leave(self);
  return code != LEAT_OK ? raise_code(code, 0) : PyBool_FromLong((long)answer);
}

// ---- Type ---------------------------------------------------------------------------------------

#define FAST (METH_FASTCALL | METH_KEYWORDS)
static PyMethodDef subscriber_methods[] = {
    {"poll", (PyCFunction)(void (*)(void))poll, FAST,
     SIGNED("poll($self, /, limit=64)",
            "What is there now, oldest first: a list of Record and Gap.")},
    {"receive", (PyCFunction)(void (*)(void))receive, FAST,
     SIGNED("receive($self, /, timeout=None)",
            "The next Record or Gap. Waits so many seconds, or for ever.")},
    {"receive_batch", (PyCFunction)(void (*)(void))receive_batch, FAST,
     SIGNED("receive_batch($self, /, limit=64, timeout=None)",
            "A list of up to `limit` entries. Waits for the first.")},
    {"read_values", (PyCFunction)(void (*)(void))subscriber_read_values, FAST,
     SIGNED("read_values($self, /, limit=64, timeout=0)",
            "A list of values, as bytes. ValueError if a Gap comes next.")},
    {"read_into", (PyCFunction)(void (*)(void))subscriber_read_into, FAST,
     SIGNED("read_into($self, /, array, timeout=0)",
            "Fills the rows of an array with values of that size. Returns how many.")},
    {"view", (PyCFunction)(void (*)(void))view, FAST,
     SIGNED("view($self, /, limit=64, timeout=None)",
            "A batch to read in place, for `with`. Waits for the first entry.")},
    {"wait", (PyCFunction)(void (*)(void))wait, FAST,
     SIGNED("wait($self, /, timeout=None)",
            "Until poll() may have something to do.")},
    {"wait_fd", wait_fd, METH_NOARGS,
     SIGNED("wait_fd($self, /)",
            "A descriptor that is readable when there may be something; then poll until there is nothing.")},
    {"fileno", wait_fd, METH_NOARGS, SIGNED("fileno($self, /)",
            "The same as wait_fd(), for select and selectors.")},
    {"offset", (PyCFunction)(void (*)(void))offset, FAST,
     SIGNED("offset($self, /, partition=0)",
            "Of the next record.")},
    {"is_lossy", is_lossy, METH_NOARGS, SIGNED("is_lossy($self, /)",
            "Whether publishers may overtake it.")},
    {"receive_async", (PyCFunction)(void (*)(void))receive_async, METH_VARARGS | METH_KEYWORDS,
     SIGNED("receive_async($self, /, timeout=None)",
            "receive() for asyncio. A task that is cancelled has taken nothing.")},
    {"receive_batch_async", (PyCFunction)(void (*)(void))receive_batch_async,
     METH_VARARGS | METH_KEYWORDS,
     SIGNED("receive_batch_async($self, /, limit=64, timeout=None)",
            "receive_batch() for asyncio. A task that is cancelled has taken nothing.")},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot subscriber_slots[] = {
    {Py_tp_methods, subscriber_methods},
    {Py_tp_iter, (void *)itself},
    {Py_tp_iternext, (void *)next_entry},
    {Py_am_aiter, (void *)itself},
    {Py_am_anext, (void *)next_async},
    {Py_tp_doc, "Reads a topic. One thread at a time uses it. Iterating ends when waits are stopped."},
    {0, NULL},
};
static PyType_Spec subscriber_spec = {"leat.Subscriber", sizeof(Subscriber), 0, LEAF_TYPE,
                                      subscriber_slots};

int add_subscribers(PyObject *module) {
  subscriber_type = add_type(module, &subscriber_spec, stoppable_type);
  return subscriber_type == NULL ? -1 : 0;
}
