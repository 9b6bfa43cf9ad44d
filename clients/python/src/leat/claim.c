// Claims: room for one record, to be written in place.
//
// A claim lends its memory to memoryviews and arrays. It can be committed only when they are gone, because
// afterwards the memory belongs to subscribers. The memoryview `data` is the claim's own, so it takes
// that back itself.
#include "_leat.h"
#include "docs.h"

struct Claim {
  PyObject_HEAD
  Publisher *publisher;
  PyObject *data;  // The memoryview, once somebody asked for it.
  leat_claim room;
  Py_ssize_t lent;
  int is_done;    // Committed, aborted, or its publisher is closed.
  int is_left;    // To be aborted when nothing is lent.
};

static PyTypeObject *claim_type;

typedef struct Claiming {
  leat_publisher *publisher;
  uint64_t size;
  leat_claim room;
} Claiming;

static int32_t try_claim(void *context, int64_t timeout_ns, int32_t *detail) {
  Claiming *it = context;
  const int32_t code =
      leat_publisher_claim(it->publisher, it->size, timeout_ns, &it->room, detail);
  return code == LEAT_ERR_FULL && timeout_ns == 0 ? LEAT_ERR_TIMEOUT : code;
}

// A claim of nothing.
static Claim *claim_new(Publisher *publisher) {
  const allocfunc allocate = (allocfunc)PyType_GetSlot(claim_type, Py_tp_alloc);
  Claim *claim = (Claim *)allocate(claim_type, 0);
  if (claim == NULL) return NULL;
  claim->publisher = (Publisher *)Py_NewRef((PyObject *)publisher);
  claim->is_done = 1;
  return claim;
}

PyObject *publisher_claim(PyObject *object, PyObject *const *args, Py_ssize_t count,
                          PyObject *names) {
  static const char *const wanted[] = {"size", "timeout", NULL};
  Publisher *self = (Publisher *)object;
  PyObject *given[2] = {NULL};
  Claiming it = {0};
  int64_t timeout_ns = LEAT_FOREVER;
  Claim *claim = NULL;
  int32_t detail = 0;
  int32_t code = -1;
  if (!parse_arguments("claim", args, count, names, wanted, 1, given)) return NULL;
  if (!parse_u64(given[0], "size", &it.size) || !parse_timeout(given[1], &timeout_ns)) return NULL;
  claim = claim_new(self);  // May run the garbage collector, which may abort the claim before.
  if (claim == NULL) return NULL;
  if (handle_enter(&self->base)) {
    it.publisher = self->base.pointer;
    code = wait_for(&self->base, timeout_ns, ROOM_SLICES, try_claim, &it, &detail);
    if (code == LEAT_OK) {
      claim->room = it.room;
      claim->is_done = 0;
      self->claim = claim;
    }
    publisher_leave(self);
  }
  if (code == LEAT_OK) return (PyObject *)claim;
  Py_DECREF(claim);
  if (code == LEAT_ERR_TIMEOUT && timeout_ns == 0) code = LEAT_ERR_FULL;
  return code == -1 ? NULL : raise_code(code, detail);
}

// Takes the memoryview back. It stays if something else was made from it.
static void take_data_back(Claim *claim) {
  PyObject *type = NULL;
  PyObject *value = NULL;
  PyObject *trace = NULL;
  PyObject *done = NULL;
  if (claim->data == NULL) return;
  PyErr_Fetch(&type, &value, &trace);
  done = PyObject_CallMethod(claim->data, "release", NULL);
  if (done == NULL) PyErr_Clear();
  Py_XDECREF(done);
  PyErr_Restore(type, value, trace);
}

static void mark_done(Claim *claim) {
  claim->is_done = 1;
  if (claim->publisher->claim == claim) claim->publisher->claim = NULL;
}

// Of the publisher that will be closed, which aborts the claim. Its memoryview may be all that refers to it.
void claim_let_go(Claim *claim) {
  Py_INCREF((PyObject *)claim);
  take_data_back(claim);
  if (claim->lent == 0) mark_done(claim);
  Py_DECREF((PyObject *)claim);
}

// Raises why the claim cannot be finished now; 0 then.
static int can_finish(Claim *claim) {
  if (claim->is_done || claim->is_left) {
    raise_code(LEAT_ERR_NOT_IN_FLIGHT, 0);
    return 0;
  }
  take_data_back(claim);
  if (claim->lent == 0) return 1;
  PyErr_Format(PyExc_BufferError, "%zd views of the claim's memory exist", claim->lent);
  return 0;
}

static PyObject *commit_size(Claim *claim, uint64_t size) {
  Handle *publisher = &claim->publisher->base;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  if (!can_finish(claim) || !handle_enter(publisher)) return NULL;
  code = leat_publisher_commit(publisher->pointer, &claim->room, size, &detail);
  if (code != LEAT_ERR_INVALID_ARGUMENT) mark_done(claim);
  handle_leave(publisher);
  return code != LEAT_OK ? raise_code(code, detail)
                         : PyLong_FromUnsignedLongLong(claim->room.offset);
}

static PyObject *commit(PyObject *object, PyObject *const *args, Py_ssize_t count,
                        PyObject *names) {
  static const char *const wanted[] = {"size", NULL};
  Claim *claim = (Claim *)object;
  PyObject *given = NULL;
  uint64_t size = claim->room.size;
  if (!parse_arguments("commit", args, count, names, wanted, 0, &given)) return NULL;
  if (given != NULL && given != Py_None && !parse_u64(given, "size", &size)) return NULL;
  return commit_size(claim, size);
}

static PyObject *abort_claim(PyObject *object, PyObject *none) {
  Claim *claim = (Claim *)object;
  Handle *publisher = &claim->publisher->base;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  (void)none;
  if (!can_finish(claim) || !handle_enter(publisher)) return NULL;
  code = leat_publisher_abort(publisher->pointer, &claim->room, &detail);
  mark_done(claim);
  handle_leave(publisher);
  if (code != LEAT_OK) return raise_code(code, detail);
  Py_RETURN_NONE;
}

void publisher_leave(Publisher *publisher) {
  const leat_claim left = publisher->left;
  if (left.data != NULL && publisher->base.users <= 1) {
    publisher->left.data = NULL;
    (void)leat_publisher_abort(publisher->base.pointer, &left, NULL);
  }
  handle_leave(&publisher->base);
}

// Aborts a claim that nobody will finish, if nothing is lent; if another thread uses the publisher, when it
// ends that. Raises nothing.
static void abort_left(Claim *claim) {
  Publisher *publisher = claim->publisher;
  if (claim->is_done || claim->lent != 0) return;
  if (publisher->base.users != 0) {
    publisher->left = claim->room;
  } else if (publisher->base.pointer != NULL) {
    (void)leat_publisher_abort(publisher->base.pointer, &claim->room, NULL);
  }
  mark_done(claim);
}

static PyObject *enter(PyObject *object, PyObject *none) {
  (void)none;
  if (((Claim *)object)->is_done) return raise_code(LEAT_ERR_NOT_IN_FLIGHT, 0);
  return Py_NewRef(object);
}

static PyObject *leave(PyObject *object, PyObject *args) {
  Claim *claim = (Claim *)object;
  const int has_failed = PyTuple_Size(args) > 0 && PyTuple_GetItem(args, 0) != Py_None;
  PyObject *done = NULL;
  if (claim->is_done) Py_RETURN_NONE;
  if (!has_failed) {
    done = commit_size(claim, claim->room.size);
    if (done != NULL) {
      Py_DECREF(done);
      Py_RETURN_NONE;
    }
  }
  claim->is_left = !claim->is_done;
  take_data_back(claim);
  abort_left(claim);
  if (!has_failed) return NULL;
  Py_RETURN_NONE;
}

// ---- Memory -------------------------------------------------------------------------------------

static int lend(PyObject *object, Py_buffer *buffer, int flags) {
  Claim *claim = (Claim *)object;
  if (claim->is_done || claim->is_left) {
    PyErr_SetString(PyExc_BufferError, "the claim was committed or aborted");
    return -1;
  }
  if (PyBuffer_FillInfo(buffer, object, claim->room.data, (Py_ssize_t)claim->room.size, 0, flags) !=
      0)
    return -1;
  ++claim->lent;
  ++claim->publisher->base.lent;
  return 0;
}

static void take_back(PyObject *object, Py_buffer *buffer) {
  Claim *claim = (Claim *)object;
  Handle *publisher = &claim->publisher->base;
  (void)buffer;
  --claim->lent;
  --publisher->lent;
  if (claim->lent != 0) return;
  if (claim->is_left) abort_left(claim);
  if (publisher->is_closing) {
    if (publisher->lent == 0) mark_done(claim);
    handle_settle(publisher);
  }
}

static PyObject *get_data(PyObject *object, void *closure) {
  Claim *claim = (Claim *)object;
  (void)closure;
  if (claim->is_done || claim->is_left) {
    PyErr_SetString(PyExc_ValueError, "the claim was committed or aborted");
    return NULL;
  }
  if (claim->data == NULL) {
    PyObject *made = PyMemoryView_FromObject(object);
    if (claim->data == NULL)
      claim->data = made;
    else  // Making it ran the garbage collector, and that a finalizer, which made one.
      Py_XDECREF(made);
  }
  return claim->data == NULL ? NULL : Py_NewRef(claim->data);
}

static Py_ssize_t size_of(PyObject *object) { return (Py_ssize_t)((Claim *)object)->room.size; }

static int traverse(PyObject *object, visitproc visit, void *arg) {
  Claim *claim = (Claim *)object;
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(claim->data);
  Py_VISIT(claim->publisher);
  return 0;
}

// Breaks the circle of claim and memoryview; the publisher is needed until the end.
static int clear(PyObject *object) {
  Py_CLEAR(((Claim *)object)->data);
  return 0;
}

static void drop(PyObject *object) {
  Claim *claim = (Claim *)object;
  PyTypeObject *type = Py_TYPE(object);
  const freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
  PyObject_GC_UnTrack(object);
  Py_CLEAR(claim->data);
  if (claim->publisher != NULL) abort_left(claim);
  Py_XDECREF((PyObject *)claim->publisher);
  release(object);
  Py_DECREF(type);
}

static PyMethodDef claim_methods[] = {
    {"commit", (PyCFunction)(void (*)(void))commit, METH_FASTCALL | METH_KEYWORDS,
     SIGNED("commit($self, /, size=None)",
            "Publishes the first `size` bytes, or all. Returns the offset.")},
    {"abort", abort_claim, METH_NOARGS, SIGNED("abort($self, /)",
            "Gives the room up: subscribers see a Gap.")},
    {"__enter__", enter, METH_NOARGS, NULL},
    {"__exit__", leave, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyMemberDef claim_members[] = {
    {"offset", T_ULONGLONG, offsetof(Claim, room) + offsetof(leat_claim, offset), READONLY, PyDoc_STR("Its number in the partition.")},
    {NULL, 0, 0, 0, NULL},
};
static PyGetSetDef claim_fields[] = {
    {"data", get_data, NULL, PyDoc_STR("Where to write: a memoryview, released at the end."), NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot claim_slots[] = {
    {Py_tp_dealloc, (void *)drop},
    {Py_tp_traverse, (void *)traverse},
    {Py_tp_clear, (void *)clear},
    {Py_tp_methods, claim_methods},
    {Py_tp_members, claim_members},
    {Py_tp_getset, claim_fields},
    {Py_sq_length, (void *)size_of},
    {Py_bf_getbuffer, (void *)lend},
    {Py_bf_releasebuffer, (void *)take_back},
    {Py_tp_doc, "Room for one record. `with` commits it at its end, and aborts it if it fails."},
    {0, NULL},
};
static PyType_Spec claim_spec = {"leat.Claim", sizeof(Claim), 0, LEAF_TYPE | Py_TPFLAGS_HAVE_GC,
                                 claim_slots};

int add_claims(PyObject *module) {
  claim_type = add_type(module, &claim_spec, NULL);
  return claim_type == NULL ? -1 : 0;
}
