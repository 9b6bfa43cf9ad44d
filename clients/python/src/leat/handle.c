// What topics, publishers, subscribers, groups and members have in common: opened, used by one thread at a
// time, stopped, closed.
#include <unistd.h>

#include "_leat.h"
#include "docs.h"

PyTypeObject *handle_type;
PyTypeObject *stoppable_type;

PyTypeObject *add_type(PyObject *module, PyType_Spec *spec, PyTypeObject *base) {
  PyObject *made = NULL;
  if (base == NULL) {
    made = PyType_FromSpec(spec);
  } else {
    PyObject *bases = PyTuple_Pack(1, base);
    if (bases == NULL) return NULL;
    made = PyType_FromSpecWithBases(spec, bases);
    Py_DECREF(bases);
  }
  if (made != NULL && PyModule_AddType(module, (PyTypeObject *)made) != 0) Py_CLEAR(made);
  return (PyTypeObject *)made;
}

PyObject *handle_new(PyTypeObject *type, const HandleKind *kind, void *pointer) {
  const allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
  Handle *made = (Handle *)allocate(type, 0);
  if (made == NULL) {
    kind->close(pointer);
    return NULL;
  }
  made->pointer = pointer;
  made->kind = kind;
  made->pid = getpid();
  return (PyObject *)made;
}

// Calls that a fork interrupted: whoever made them is not in this process. What they had half done stays as
// it is, so the handle's memory is given up.
static int is_left_by_fork(Handle *handle) {
  if ((handle->users == 0 && handle->awaited_by == NULL) || handle->pid == getpid()) return 0;
  handle->awaited_by = NULL;
  return handle->users != 0;
}

int handle_refuse(Handle *handle) {
  if (handle->pointer == NULL || handle->is_closing) {
    PyErr_Format(PyExc_ValueError, "the %s is closed", handle->kind->name);
  } else if (is_left_by_fork(handle)) {
    raise_code(LEAT_ERR_FORKED, 0);
  } else {
    char sentence[80];
    PyOS_snprintf(sentence, sizeof sentence, "the %s is in use by another thread",
                  handle->kind->name);
    raise_busy(sentence);
  }
  return 0;
}

static int unused_handles;

void handle_mark_unused(PyObject *self) {
  ((Handle *)self)->is_unused = 1;
  ++unused_handles;
}

void handle_mark_used(Handle *handle) {
  unused_handles -= handle->is_unused;
  handle->is_unused = 0;
}

int are_handles_unused(void) { return unused_handles != 0; }

static void close_now(Handle *handle) {
  void *const pointer = handle->pointer;
  handle_mark_used(handle);
  handle->pointer = NULL;
  handle->is_closing = 0;
  Py_BEGIN_ALLOW_THREADS
  handle->kind->close(pointer);
  Py_END_ALLOW_THREADS
}

void handle_settle(Handle *handle) {
  if (handle->pointer == NULL || !handle->is_closing) return;
  if (handle->users != 0 || handle->awaited_by != NULL) return;
  if (handle->kind->let_go != NULL) handle->kind->let_go(handle);  // Which may have closed it already.
  if (handle->pointer != NULL && handle->lent == 0) close_now(handle);
}

int handle_close(Handle *handle) {
  if (handle->pointer == NULL) return 0;
  if (is_left_by_fork(handle)) {
    handle->pointer = NULL;
    return 0;
  }
  handle->is_closing = 1;
  if (handle->users != 0 || handle->awaited_by != NULL) {
    if (handle->kind->stop != NULL) (void)handle->kind->stop(handle->pointer);
    return 0;
  }
  handle_settle(handle);
  if (handle->pointer == NULL) return 0;
  PyErr_Format(PyExc_BufferError, "%zd views of the %s's memory exist: it is closed with the last",
               handle->lent, handle->kind->name);
  return -1;
}

// The last reference is gone, so nobody uses it.
void handle_dealloc(PyObject *self) {
  Handle *handle = (Handle *)self;
  PyTypeObject *type = Py_TYPE(self);
  const freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
  if (handle->pointer != NULL && !is_left_by_fork(handle)) close_now(handle);
  Py_CLEAR(handle->pending);
  release(self);
  Py_DECREF(type);
}

static PyObject *close_handle(PyObject *self, PyObject *none) {
  (void)none;
  if (handle_close((Handle *)self) != 0) return NULL;
  Py_RETURN_NONE;
}

static PyObject *enter_handle(PyObject *self, PyObject *none) {
  (void)none;
  if (((Handle *)self)->pointer == NULL) {
    handle_refuse((Handle *)self);
    return NULL;
  }
  return Py_NewRef(self);
}

// An exception that is on its way is not replaced by another one, about views that its traceback holds.
static PyObject *exit_handle(PyObject *self, PyObject *args) {
  if (handle_close((Handle *)self) != 0) {
    if (PyTuple_Size(args) == 0 || PyTuple_GetItem(args, 0) == Py_None) return NULL;
    PyErr_Clear();
  }
  Py_RETURN_NONE;
}

static PyObject *is_closed(PyObject *self, void *closure) {
  const Handle *handle = (Handle *)self;
  (void)closure;
  return PyBool_FromLong(handle->pointer == NULL || handle->is_closing);
}

static PyMethodDef handle_methods[] = {
    {"close", close_handle, METH_NOARGS, SIGNED("close($self, /)",
            "Ends it. Closing twice does nothing.")},
    {"__enter__", enter_handle, METH_NOARGS, NULL},
    {"__exit__", exit_handle, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef handle_fields[] = {
    {"closed", is_closed, NULL, PyDoc_STR("Whether close() was called."), NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot handle_slots[] = {
    {Py_tp_dealloc, (void *)handle_dealloc},
    {Py_tp_methods, handle_methods},
    {Py_tp_getset, handle_fields},
    {0, NULL},
};
static PyType_Spec handle_spec = {
    "leat._leat.Handle", sizeof(Handle), 0,
    BASE_TYPE, handle_slots};

// ---- Stop -------------------------------------------------------------------------------------

static int is_usable(Handle *handle) {
  if (handle->pointer != NULL && !handle->is_closing) return 1;
  return handle_refuse(handle);
}

static PyObject *nothing_or(int32_t code) {
  if (code != LEAT_OK) return raise_code(code, 0);
  Py_RETURN_NONE;
}

static PyObject *stop(PyObject *self, PyObject *none) {
  Handle *handle = (Handle *)self;
  (void)none;
  return is_usable(handle) ? nothing_or(handle->kind->stop(handle->pointer)) : NULL;
}

static PyObject *resume(PyObject *self, PyObject *none) {
  Handle *handle = (Handle *)self;
  (void)none;
  return is_usable(handle) ? nothing_or(handle->kind->resume(handle->pointer)) : NULL;
}

static PyObject *is_stopped(PyObject *self, PyObject *none) {
  Handle *handle = (Handle *)self;
  uint32_t answer = 0;
  int32_t code = LEAT_OK;
  (void)none;
  if (!is_usable(handle)) return NULL;
  code = handle->kind->is_stopped(handle->pointer, &answer);
  return code != LEAT_OK ? raise_code(code, 0) : PyBool_FromLong((long)answer);
}

// For asyncio: only one task may wait, and closing waits for it. The task names itself by an object of its own, so
// ending a wait that did not begin does nothing: a signal may come between the two.
static PyObject *begin_wait(PyObject *self, PyObject *task) {
  Handle *handle = (Handle *)self;
  if (!is_usable(handle)) return NULL;
  if (handle->awaited_by != NULL && handle->pid == getpid())
    return raise_busy("another task waits for it already");
  handle->awaited_by = task;
  Py_RETURN_NONE;
}

static PyObject *end_wait(PyObject *self, PyObject *task) {
  Handle *handle = (Handle *)self;
  if (handle->awaited_by == task) {
    handle->awaited_by = NULL;
    handle_settle(handle);
  }
  Py_RETURN_NONE;
}

static PyMethodDef stoppable_methods[] = {
    {"stop", stop, METH_NOARGS,
     SIGNED("stop($self, /)",
            "Makes waits raise Stopped, now and later, until resume(). Any thread.")},
    {"resume", resume, METH_NOARGS, SIGNED("resume($self, /)",
            "Allows waits again.")},
    {"is_stopped", is_stopped, METH_NOARGS, SIGNED("is_stopped($self, /)",
            "Whether waits are stopped.")},
    {"_begin_wait", begin_wait, METH_O, NULL},
    {"_end_wait", end_wait, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot stoppable_slots[] = {
    {Py_tp_methods, stoppable_methods},
    {0, NULL},
};
static PyType_Spec stoppable_spec = {
    "leat._leat.Stoppable", sizeof(Handle), 0,
    BASE_TYPE, stoppable_slots};

int add_handles(PyObject *module) {
  handle_type = add_type(module, &handle_spec, NULL);
  if (handle_type == NULL) return -1;
  stoppable_type = add_type(module, &stoppable_spec, handle_type);
  return stoppable_type == NULL ? -1 : 0;
}
