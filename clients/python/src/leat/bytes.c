// Bytes that a call publishes: the buffers that it holds meanwhile, and what it makes of records.
#include <stdlib.h>
#include <string.h>

#include "_leat.h"

// A buffer that is held, or memory.
struct Block {
  Block *next;
  Py_buffer buffer;  // obj NULL: memory follows.
};

static Block *add_block(Arena *arena, size_t size) {
  Block *block = size < PY_SSIZE_T_MAX / 2 ? malloc(sizeof(Block) + size) : NULL;
  if (block == NULL) {
    PyErr_NoMemory();
    return NULL;
  }
  block->buffer.obj = NULL;
  block->next = arena->blocks;
  arena->blocks = block;
  return block;
}

void *arena_memory(Arena *arena, size_t size) {
  Block *block = add_block(arena, size);
  return block == NULL ? NULL : block + 1;
}

void arena_end(Arena *arena) {
  while (arena->blocks != NULL) {
    Block *block = arena->blocks;
    arena->blocks = block->next;
    if (block->buffer.obj != NULL) PyBuffer_Release(&block->buffer);
    free(block);
  }
}

static int refuse(PyObject *object, const char *what) {
  if (PyUnicode_Check(object)) {
    PyErr_Format(PyExc_TypeError,
                 "%s must be bytes-like, not str: encode it first, as in text.encode()", what);
  } else {
    PyErr_Format(PyExc_TypeError, "%s must be bytes-like, not %R", what, Py_TYPE(object));
  }
  return 0;
}

int arena_bytes(Arena *arena, PyObject *object, const char *what, leat_bytes *bytes) {
  Block *block = NULL;
  if (!PyObject_CheckBuffer(object)) return refuse(object, what);
  block = add_block(arena, 0);
  if (block == NULL) return 0;
  if (PyObject_GetBuffer(object, &block->buffer, PyBUF_SIMPLE) != 0) {
    block->buffer.obj = NULL;
    return 0;
  }
  bytes->data = block->buffer.buf;
  bytes->size = (uint64_t)block->buffer.len;
  if (bytes->data == NULL) bytes->data = "";  // Empty, and not none.
  return 1;
}

// ---- Records ----------------------------------------------------------------------------------

// A pair of bytes-like objects.
static int read_header(Arena *arena, PyObject *pair, leat_new_header *header) {
  PyObject *items = PySequence_Tuple(pair);
  int done = 0;
  if (items == NULL) return 0;
  if (PyTuple_Size(items) != 2) {
    PyErr_SetString(PyExc_TypeError, "headers must be pairs of a name and a value");
  } else {
    done = arena_bytes(arena, PyTuple_GetItem(items, 0), "a header's name", &header->name) &&
           arena_bytes(arena, PyTuple_GetItem(items, 1), "a header's value", &header->value);
  }
  Py_DECREF(items);
  return done;
}

// A dict, or an iterable of pairs.
static int read_headers(Arena *arena, PyObject *object, leat_new_record *record) {
  PyObject *list = PyDict_Check(object) ? PyDict_Items(object) : PySequence_List(object);
  leat_new_header *headers = NULL;
  Py_ssize_t count = 0;
  Py_ssize_t i = 0;
  if (list == NULL) return 0;
  count = PyList_Size(list);
  if (count > 0 && count < UINT32_MAX)
    headers = arena_memory(arena, (size_t)count * sizeof(leat_new_header));
  for (; headers != NULL && i < count; ++i) {
    if (!read_header(arena, PyList_GetItem(list, i), &headers[i])) break;
  }
  Py_DECREF(list);
  if (i < count) return 0;
  record->headers = headers;
  record->header_count = (uint32_t)count;
  return 1;
}

int arena_record(Arena *arena, PyObject *value, PyObject *key, PyObject *headers,
                 leat_new_record *record) {
  const leat_new_record none = LEAT_NEW_RECORD_INIT;
  *record = none;
  if (!arena_bytes(arena, value, "value", &record->value)) return 0;
  if (key != NULL && key != Py_None && !arena_bytes(arena, key, "key", &record->key)) return 0;
  if (headers != NULL && headers != Py_None && !read_headers(arena, headers, record)) return 0;
  return 1;
}

// ---- Batches ----------------------------------------------------------------------------------

// Whether it is to be published as it is.
static int is_value(PyObject *object) {
  return PyBytes_Check(object) || PyObject_CheckBuffer(object) || PyUnicode_Check(object);
}

static int read_object(Arena *arena, PyObject *object, leat_new_record *record) {
  PyObject *value = NULL;
  PyObject *key = NULL;
  PyObject *headers = NULL;
  int done = 0;
  if (is_value(object)) return arena_record(arena, object, NULL, NULL, record);
  value = PyObject_GetAttrString(object, "value");
  if (value != NULL) key = PyObject_GetAttrString(object, "key");
  if (key != NULL) headers = PyObject_GetAttrString(object, "headers");
  if (headers != NULL) {
    done = arena_record(arena, value, key, headers, record);
  } else if (PyErr_ExceptionMatches(PyExc_AttributeError)) {
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError,
                 "a batch has bytes-like values, or records with value, key and headers, not %R",
                 Py_TYPE(object));
  }
  Py_XDECREF(value);  // The arena holds their buffers.
  Py_XDECREF(key);
  Py_XDECREF(headers);
  return done;
}

static int read_records(Arena *arena, PyObject *tuple, NewBatch *batch) {
  uint64_t i = 0;
  batch->values = NULL;
  batch->records = arena_memory(arena, batch->count * sizeof(leat_new_record));
  if (batch->records == NULL) return 0;
  for (; i < batch->count; ++i) {
    if (!read_object(arena, PyTuple_GetItem(tuple, (Py_ssize_t)i), &batch->records[i])) return 0;
  }
  return 1;
}

int arena_batch(Arena *arena, PyObject *tuple, NewBatch *batch) {
  uint64_t i = 0;
  batch->count = (uint64_t)PyTuple_Size(tuple);
  batch->records = NULL;
  batch->values = arena_memory(arena, batch->count * sizeof(leat_bytes));
  if (batch->values == NULL) return 0;
  for (; i < batch->count; ++i) {
    PyObject *object = PyTuple_GetItem(tuple, (Py_ssize_t)i);
    if (PyBytes_Check(object)) {  // The tuple holds it.
      batch->values[i].data = PyBytes_AsString(object);
      batch->values[i].size = (uint64_t)PyBytes_Size(object);
    } else if (!is_value(object)) {
      return read_records(arena, tuple, batch);
    } else if (!arena_bytes(arena, object, "value", &batch->values[i])) {
      return 0;
    }
  }
  return 1;
}
