// Reading values alone: into a list, or into the rows of an array.
//
// Neither can show a gap, nor a row a value of another size. Such an entry stays, with what was read behind it,
// for the next call: `pending`. If it is the first one, that is an error.
#include <string.h>

#include "_leat.h"
// ---- Values only --------------------------------------------------------------------------------

static int refuse_gap(void) {
  PyErr_SetString(PyExc_ValueError, "the next entry is a Gap: receive() returns it");
  return 0;
}

// Those of the list's entries that are records, up to the first that is none.
static PyObject *pending_values(Subscriber *self, uint32_t limit) {
  PyObject *values = PyList_New(0);
  if (values == NULL) return NULL;
  if (is_gap_object(pending_peek(&self->base)) && !refuse_gap()) Py_CLEAR(values);
  while (values != NULL && self->base.pending != NULL && limit-- > 0) {
    PyObject *entry = pending_peek(&self->base);
    if (is_gap_object(entry)) break;
    if (PyList_Append(values, value_of(entry)) != 0)
      Py_CLEAR(values);
    else
      Py_DECREF(pending_take(&self->base));
  }
  return values;
}

static PyObject *values_of(Reading *reading) {
  PyObject *values = NULL;
  uint32_t usable = 0;
  uint32_t i = 0;
  const uint64_t distance = leat_next_batch(reading->records, reading->count, reading->capacity);
  while (usable < reading->count && !leat_record_is_gap(&reading->records[usable])) ++usable;
  if (!pending_keep(reading, usable)) return NULL;
  if (usable == 0 && reading->count != 0) {
    refuse_gap();
    return NULL;
  }
  values = PyList_New((Py_ssize_t)usable);
  for (; values != NULL && i < usable; ++i) {
    leat_prefetch(&reading->records[i], distance);
    PyObject *value = PyBytes_FromStringAndSize((const char *)reading->records[i].value,
                                                (Py_ssize_t)reading->records[i].value_size);
    if (value == NULL)
      Py_CLEAR(values);
    else
      PyList_SetItem(values, (Py_ssize_t)i, value);
  }
  return values;
}

PyObject *subscriber_read_values(PyObject *object, PyObject *const *args, Py_ssize_t count,
                             PyObject *names) {
  static const char *const wanted[] = {"limit", "timeout", NULL};
  Subscriber *self = (Subscriber *)object;
  PyObject *given[2] = {NULL};
  Reading reading;
  uint32_t limit = 0;
  int64_t timeout_ns = 0;
  PyObject *values = NULL;
  if (!parse_arguments("read_values", args, count, names, wanted, 0, given)) return NULL;
  if (!parse_limit(given[0], &limit)) return NULL;
  if (given[1] != NULL && !parse_timeout(given[1], &timeout_ns)) return NULL;
  if (!reading_begin(self, &reading, limit)) return NULL;
  if (self->base.pending != NULL)
    values = pending_values(self, limit);
  else if (reading_some(&reading, timeout_ns, timeout_ns == 0))
    values = values_of(&reading);
  if (values != NULL && !reading_check_signals(&reading)) Py_CLEAR(values);
  reading_end(&reading);
  return values;
}

// An array of rows that values fill.
typedef struct Rows {
  char *at;
  uint64_t row_bytes;
  uint64_t left;
  uint64_t done;
} Rows;

static int refuse_size(const Rows *rows, uint64_t size) {
  PyErr_Format(PyExc_ValueError,
               "the next value has %llu bytes, and a row %llu: receive() returns it",
               (unsigned long long)size, (unsigned long long)rows->row_bytes);
  return 0;
}

static void put_row(Rows *rows, const void *value) {
  memcpy(rows->at, value, rows->row_bytes);
  rows->at += rows->row_bytes;
  --rows->left;
  ++rows->done;
}

// 0 with an exception: the first entry does not fit. 1: go on. 2: a later one does not fit.
static int put_pending(Subscriber *self, Rows *rows) {
  while (self->base.pending != NULL && rows->left > 0) {
    PyObject *value = value_of(pending_peek(&self->base));
    if (value == NULL || (uint64_t)PyBytes_Size(value) != rows->row_bytes) {
      if (rows->done != 0) return 2;
      return value == NULL ? refuse_gap() : refuse_size(rows, (uint64_t)PyBytes_Size(value));
    }
    put_row(rows, PyBytes_AsString(value));
    Py_DECREF(pending_take(&self->base));
  }
  return 1;
}

static int put_read(Reading *reading, Rows *rows) {
  uint32_t i = 0;
  for (; i < reading->count; ++i) {
    const leat_record *record = &reading->records[i];
    const int is_gap = leat_record_is_gap(record);
    if (is_gap || record->value_size != rows->row_bytes) {
      if (!pending_keep(reading, i)) return 0;
      if (rows->done != 0) return 2;
      return is_gap ? refuse_gap() : refuse_size(rows, record->value_size);
    }
    put_row(rows, record->value);
  }
  return 1;
}

static int fill_rows(Subscriber *self, Rows *rows, int64_t timeout_ns) {
  Reading reading;
  int going = 0;
  if (!reading_begin(self, &reading, rows->left < MAX_LIMIT ? (uint32_t)rows->left : MAX_LIMIT))
    return 0;
  going = put_pending(self, rows);
  while (going == 1 && rows->left > 0) {
    reading.capacity = rows->left < MAX_LIMIT ? (uint32_t)rows->left : MAX_LIMIT;
    reading.count = 0;
    if (!reading_some(&reading, rows->done == 0 ? timeout_ns : 0,
                   rows->done != 0 || timeout_ns == 0)) {
      // What is in the array already counts; the error comes with the next call.
      going = rows->done != 0;
      if (going) PyErr_Clear();
      break;
    }
    if (reading.count == 0) break;
    if (rows->done == 0 && !reading_check_signals(&reading)) {
      going = 0;
      break;
    }
    going = put_read(&reading, rows);
  }
  reading_end(&reading);
  return going;
}

// Whether a buffer's format has references to Python objects. Names of fields stand between colons.
static int holds_objects(const char *format) {
  int is_name = 0;
  for (; format != NULL && *format != '\0'; ++format) {
    if (*format == ':') is_name = !is_name;
    if (*format == 'O' && !is_name) return 1;
  }
  return 0;
}

PyObject *subscriber_read_into(PyObject *object, PyObject *const *args, Py_ssize_t count,
                           PyObject *names) {
  static const char *const wanted[] = {"array", "timeout", NULL};
  PyObject *given[2] = {NULL};
  Py_buffer buffer;
  Rows rows = {NULL, 0, 0, 0};
  int64_t timeout_ns = 0;
  int done = 0;
  if (!parse_arguments("read_into", args, count, names, wanted, 1, given)) return NULL;
  if (given[1] != NULL && !parse_timeout(given[1], &timeout_ns)) return NULL;
  if (PyObject_GetBuffer(given[0], &buffer, PyBUF_CONTIG | PyBUF_FORMAT) != 0) return NULL;
  if (holds_objects(buffer.format)) {
    PyErr_SetString(PyExc_TypeError, "the array holds Python objects, not bytes");
  } else if (buffer.ndim == 0 || buffer.shape == NULL || buffer.shape[0] == 0 || buffer.len == 0) {
    PyErr_SetString(PyExc_ValueError, "the array has no rows");
  } else {
    rows.at = buffer.buf;
    rows.left = (uint64_t)buffer.shape[0];
    rows.row_bytes = (uint64_t)buffer.len / rows.left;
    done = fill_rows((Subscriber *)object, &rows, timeout_ns);
  }
  PyBuffer_Release(&buffer);
  return done ? PyLong_FromUnsignedLongLong(rows.done) : NULL;
}
