// Reading in place: a batch of records whose values are memoryviews of the topic's memory.
//
// They end with the batch. While one exists the batch refuses to end: BufferError. It then ends with the last
// one, and until then nothing else can be read.
#include <stdlib.h>

#include "_leat.h"
#include "docs.h"

struct View {
  PyObject_HEAD
  Subscriber *subscriber;
  leat_record *entries;
  uint32_t count;
  Py_ssize_t lent;
  int is_ending;  // Nothing more is lent.
  int is_done;
};

// A record of a batch. It lends the memory of its value.
typedef struct RecordView {
  PyObject_HEAD
  View *view;
  leat_record record;
} RecordView;

static PyTypeObject *view_type;
static PyTypeObject *record_view_type;

PyObject *view_new(Subscriber *subscriber, leat_record *entries, uint32_t count) {
  View *view = PyObject_New(View, view_type);
  if (view == NULL) {
    free(entries);
    return NULL;
  }
  view->subscriber = (Subscriber *)Py_NewRef((PyObject *)subscriber);
  view->entries = entries;
  view->count = count;
  view->lent = 0;
  view->is_ending = 0;
  view->is_done = 0;
  subscriber->view = view;
  return (PyObject *)view;
}

void view_let_go(View *view) {
  view->is_ending = 1;
  if (view->is_done || view->lent != 0) return;
  view->is_done = 1;
  view->subscriber->view = NULL;
}

static void drop_view(PyObject *self) {
  View *view = (View *)self;
  PyTypeObject *type = Py_TYPE(self);
  view_let_go(view);
  free(view->entries);
  Py_DECREF(view->subscriber);
  PyObject_Free(self);
  Py_DECREF(type);
}

static int is_over(const View *view) {
  if (!view->is_ending) return 0;
  PyErr_SetString(PyExc_ValueError, "the batch has ended");
  return 1;
}

// 0 with a BufferError if something is lent.
static int end(View *view) {
  view_let_go(view);
  if (view->is_done) return 1;
  PyErr_Format(PyExc_BufferError, "%zd views of the batch's records exist: it ends with the last",
               view->lent);
  return 0;
}

static PyObject *enter(PyObject *self, PyObject *none) {
  (void)none;
  return is_over((View *)self) ? NULL : Py_NewRef(self);
}

// An exception that is on its way is not replaced by another one, about views that its traceback holds.
static PyObject *leave(PyObject *self, PyObject *args) {
  const int has_failed = PyTuple_Size(args) > 0 && PyTuple_GetItem(args, 0) != Py_None;
  if (!end((View *)self)) {
    if (!has_failed) return NULL;
    PyErr_Clear();
  }
  Py_RETURN_NONE;
}

static PyObject *release(PyObject *self, PyObject *none) {
  (void)none;
  if (!end((View *)self)) return NULL;
  Py_RETURN_NONE;
}

static Py_ssize_t size_of(PyObject *self) { return (Py_ssize_t)((View *)self)->count; }

static PyObject *item(PyObject *self, Py_ssize_t index) {
  View *view = (View *)self;
  RecordView *made = NULL;
  if (is_over(view)) return NULL;
  if (index < 0 || index >= (Py_ssize_t)view->count) {
    PyErr_SetString(PyExc_IndexError, "the batch has no entry there");
    return NULL;
  }
  if (leat_record_is_gap(&view->entries[index])) return gap_new(&view->entries[index]);
  made = PyObject_New(RecordView, record_view_type);
  if (made == NULL) return NULL;
  made->view = (View *)Py_NewRef(self);
  made->record = view->entries[index];
  return (PyObject *)made;
}

static PyMethodDef view_methods[] = {
    {"release", release, METH_NOARGS, SIGNED("release($self, /)",
            "Ends the batch.")},
    {"__enter__", enter, METH_NOARGS, NULL},
    {"__exit__", leave, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot view_slots[] = {
    {Py_tp_dealloc, (void *)drop_view}, {Py_tp_methods, view_methods},
    {Py_sq_length, (void *)size_of},    {Py_sq_item, (void *)item},
    {Py_tp_doc, "Entries to be read in place, until the batch ends."},
    {0, NULL},
};
static PyType_Spec view_spec = {"leat.View", sizeof(View), 0, LEAF_TYPE, view_slots};

// ---- Records ------------------------------------------------------------------------------------

static int lend(PyObject *self, Py_buffer *buffer, int flags) {
  RecordView *record = (RecordView *)self;
  if (record->view->is_ending) {
    PyErr_SetString(PyExc_BufferError, "the batch has ended");
    return -1;
  }
  if (PyBuffer_FillInfo(buffer, self, (void *)(uintptr_t)record->record.value,
                        (Py_ssize_t)record->record.value_size, 1, flags) != 0)
    return -1;
  ++record->view->lent;
  ++record->view->subscriber->base.lent;
  return 0;
}

static void take_back(PyObject *self, Py_buffer *buffer) {
  View *view = ((RecordView *)self)->view;
  Handle *subscriber = &view->subscriber->base;
  (void)buffer;
  --view->lent;
  --subscriber->lent;
  if (view->is_ending) view_let_go(view);
  if (subscriber->is_closing) handle_settle(subscriber);
}

static void drop_record(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  Py_DECREF(((RecordView *)self)->view);
  PyObject_Free(self);
  Py_DECREF(type);
}

static PyObject *get_value(PyObject *self, void *closure) {
  (void)closure;
  return is_over(((RecordView *)self)->view) ? NULL : PyMemoryView_FromObject(self);
}
static PyObject *get_key(PyObject *self, void *closure) {
  const RecordView *record = (RecordView *)self;
  (void)closure;
  return is_over(record->view) ? NULL : key_of(&record->record);
}
static PyObject *get_headers(PyObject *self, void *closure) {
  const RecordView *record = (RecordView *)self;
  (void)closure;
  return is_over(record->view) ? NULL : headers_of(&record->record);
}
static PyObject *get_timestamp(PyObject *self, void *closure) {
  const RecordView *record = (RecordView *)self;
  (void)closure;
  return is_over(record->view) ? NULL : timestamp_of(&record->record);
}

static PyGetSetDef record_fields[] = {
    {"value", get_value, NULL, PyDoc_STR("A read-only memoryview, to be dropped with the batch."),
     NULL},
    {"key", get_key, NULL, PyDoc_STR("Bytes, copied, or None."), NULL},
    {"headers", get_headers, NULL, PyDoc_STR("Pairs of a name and a value, both bytes, copied."),
     NULL},
    {"timestamp_ms", get_timestamp, NULL, PyDoc_STR("Since 1970; None without a timestamp."), NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
#define AT(name) (offsetof(RecordView, record) + offsetof(leat_record, name))
static PyMemberDef record_members[] = {
    {"offset", T_ULONGLONG, AT(offset), READONLY, PyDoc_STR("Its number in the partition.")},
    {"partition", T_USHORT, AT(partition), READONLY, PyDoc_STR("The number of its partition.")},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot record_slots[] = {
    {Py_tp_dealloc, (void *)drop_record},
    {Py_tp_members, record_members},
    {Py_tp_getset, record_fields},
    {Py_bf_getbuffer, (void *)lend},
    {Py_bf_releasebuffer, (void *)take_back},
    {Py_tp_doc, "A record where it lies in the topic."},
    {0, NULL},
};
static PyType_Spec record_spec = {"leat.RecordView", sizeof(RecordView), 0, LEAF_TYPE, record_slots};

int add_views(PyObject *module) {
  view_type = add_type(module, &view_spec, NULL);
  record_view_type = add_type(module, &record_spec, NULL);
  return view_type == NULL || record_view_type == NULL ? -1 : 0;
}
