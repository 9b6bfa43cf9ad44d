// The extension module leat._leat, over the C interface of Leat. The package's other half is Python: __init__.py.
#include "_leat.h"
#include "docs.h"

// Coroutine functions of _async.py.
enum { RECEIVE, RECEIVE_BATCH, NEXT, PUBLISH, PUBLISH_BATCH, FLUSH, ASYNC_FUNCTIONS };
static PyObject *async_functions[ASYNC_FUNCTIONS];

static PyObject *call_async(int which, PyObject *self, PyObject *args, PyObject *named) {
  PyObject *all = NULL;
  PyObject *result = NULL;
  Py_ssize_t i = 0;
  const Py_ssize_t count = args == NULL ? 0 : PyTuple_Size(args);
  all = PyTuple_New(count + 1);
  if (all == NULL) return NULL;
  PyTuple_SetItem(all, 0, Py_NewRef(self));
  for (; i < count; ++i) PyTuple_SetItem(all, i + 1, Py_NewRef(PyTuple_GetItem(args, i)));
  result = PyObject_Call(async_functions[which], all, named);
  Py_DECREF(all);
  return result;
}

PyObject *receive_async(PyObject *self, PyObject *args, PyObject *named) {
  return call_async(RECEIVE, self, args, named);
}
PyObject *receive_batch_async(PyObject *self, PyObject *args, PyObject *named) {
  return call_async(RECEIVE_BATCH, self, args, named);
}
PyObject *next_async(PyObject *self) { return call_async(NEXT, self, NULL, NULL); }
PyObject *publish_async(PyObject *self, PyObject *args, PyObject *named) {
  return call_async(PUBLISH, self, args, named);
}
PyObject *publish_batch_async(PyObject *self, PyObject *args, PyObject *named) {
  return call_async(PUBLISH_BATCH, self, args, named);
}
PyObject *flush_async(PyObject *self, PyObject *args, PyObject *named) {
  return call_async(FLUSH, self, args, named);
}

// The types are in static variables, and Python 3.11 gives another interpreter those of the first.
static int is_main_interpreter(void) {
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) == 0) return 1;
  PyErr_SetString(PyExc_ImportError, "leat works in the main interpreter only");
  return 0;
}

static PyObject *set_async(PyObject *module, PyObject *args) {
  Py_ssize_t i = 0;
  (void)module;
  if (!is_main_interpreter()) return NULL;
  for (; i < ASYNC_FUNCTIONS && i < PyTuple_Size(args); ++i)
    async_functions[i] = Py_NewRef(PyTuple_GetItem(args, i));
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"wait_any", (PyCFunction)(void (*)(void))subscriber_wait_any, METH_FASTCALL | METH_KEYWORDS,
     SIGNED("wait_any(subscribers, timeout=None)",
            "The index of a subscriber that may have something to do. Waits for the first.")},
    {"_set_async", set_async, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "leat._leat", NULL, -1, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__leat(void) {
  PyObject *module = NULL;
  if (!is_main_interpreter()) return NULL;
  if (leat_abi_check(LEAT_ABI_VERSION) != LEAT_OK) {
    PyErr_Format(PyExc_ImportError, "the Leat library %s is too old for this package",
                 leat_version());
    return NULL;
  }
  module = PyModule_Create(&definition);
  if (module == NULL) return NULL;
  if (add_errors(module) != 0 || add_handles(module) != 0 || add_records(module) != 0 ||
      add_topics(module) != 0 || add_claims(module) != 0 || add_publishers(module) != 0 ||
      add_views(module) != 0 || add_subscribers(module) != 0 || add_groups(module) != 0 ||
      add_members(module) != 0 ||
      PyModule_AddStringConstant(module, "__version__", leat_version()) != 0)
    Py_CLEAR(module);
  return module;
}
