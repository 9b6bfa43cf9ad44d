// Entries that a subscriber or member has read and not delivered: its next calls return them. Some do not fit what
// read_into() and read_values() return; others were read just when the handler of a signal raised an exception.
#include <unistd.h>

#include "_leat.h"

int pending_is_own(const Handle *self) {
  if (self->pending == NULL || self->pid == getpid()) return 1;
  raise_code(LEAT_ERR_FORKED, 0);
  return 0;
}

PyObject *pending_peek(const Handle *self) {
  return PyList_GetItem(self->pending, self->pending_at);
}

PyObject *pending_take(Handle *self) {
  PyObject *entry = Py_NewRef(pending_peek(self));
  if (++self->pending_at == PyList_Size(self->pending)) Py_CLEAR(self->pending);
  return entry;
}

PyObject *pending_take_some(Handle *self, uint32_t limit) {
  PyObject *list = PyList_GetSlice(self->pending, self->pending_at, self->pending_at + limit);
  if (list == NULL) return NULL;
  self->pending_at += PyList_Size(list);
  if (self->pending_at == PyList_Size(self->pending)) Py_CLEAR(self->pending);
  return list;
}

// Puts a list in front of what is there. Without memory it is lost.
static void put_back(Handle *self, PyObject *list) {
  if (list == NULL || PyList_Size(list) == 0) return;
  if (self->pending == NULL)
    self->pending = Py_NewRef(list);
  else
    (void)PyList_SetSlice(self->pending, 0, self->pending_at, list);
  self->pending_at = 0;
}

PyObject *deliver(Handle *self, PyObject *made, int is_single) {
  PyObject *type = NULL;
  PyObject *value = NULL;
  PyObject *trace = NULL;
  PyObject *list = made;
  if (made == NULL || PyErr_CheckSignals() == 0) return made;
  PyErr_Fetch(&type, &value, &trace);
  if (is_single) {
    list = PyList_New(1);
    if (list != NULL) PyList_SetItem(list, 0, Py_NewRef(made));
  }
  put_back(self, list);
  if (is_single) Py_XDECREF(list);
  Py_DECREF(made);
  PyErr_Restore(type, value, trace);
  return NULL;
}
