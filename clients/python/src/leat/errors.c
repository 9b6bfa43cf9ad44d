// leat.Error, with one class and one constant for each code of the library.
#include <ctype.h>
#include <string.h>

#include "_leat.h"

enum { MAX_CODES = 256 };

static PyObject *error_type;
static PyObject *classes[MAX_CODES];

static PyObject *raise_with(int32_t code, int32_t detail, const char *sentence) {
  PyObject *type = code > 0 && code < MAX_CODES ? classes[code] : NULL;
  PyObject *text = PyUnicode_DecodeUTF8(sentence, (Py_ssize_t)strlen(sentence), "replace");
  PyObject *error = NULL;
  PyObject *number = NULL;
  if (type == NULL) type = error_type;
  if (text != NULL) error = PyObject_CallFunctionObjArgs(type, text, NULL);
  number = PyLong_FromLong(detail);
  if (error != NULL && number != NULL && PyObject_SetAttrString(error, "detail", number) == 0)
    PyErr_SetObject(type, error);
  Py_XDECREF(text);
  Py_XDECREF(number);
  Py_XDECREF(error);
  return NULL;
}

PyObject *raise_code(int32_t code, int32_t detail) {
  char sentence[LEAT_DESCRIPTION_SIZE] = "";
  (void)leat_describe(code, detail, sentence, sizeof sentence);
  return raise_with(code, detail, sentence);
}

PyObject *raise_about(const Subject *subject, int32_t code, int32_t detail) {
  char sentence[EXPLANATION_SIZE] = "";
  explain(subject, code, detail, sentence);
  return raise_with(code, detail, sentence);
}

PyObject *raise_busy(const char *sentence) {
  PyErr_SetString(classes[LEAT_ERR_BUSY], sentence);
  return NULL;
}

PyObject *end_iteration(PyObject *entry) {
  if (entry == NULL && PyErr_ExceptionMatches(classes[LEAT_ERR_STOPPED])) PyErr_Clear();
  return entry;
}

// "not_found" -> "NotFound"
static void class_name(const char *name, char *into, size_t capacity) {
  size_t size = 0;
  int starts = 1;
  for (; *name != '\0' && size + 1 < capacity; ++name) {
    if (*name == '_') {
      starts = 1;
      continue;
    }
    into[size++] = starts ? (char)toupper((unsigned char)*name) : *name;
    starts = 0;
  }
  into[size] = '\0';
}

// What else an error of this code is, in Python.
static PyObject *also(int32_t code) {
  if (code == LEAT_ERR_TIMEOUT) return PyExc_TimeoutError;
  if (code == LEAT_ERR_INVALID_ARGUMENT) return PyExc_ValueError;
  return NULL;
}

static PyObject *make_class(int32_t code, const char *name) {
  char full[80] = "leat.";
  char sentence[LEAT_DESCRIPTION_SIZE] = "";
  PyObject *builtin = also(code);
  PyObject *bases = NULL;
  PyObject *fields = NULL;
  PyObject *made = NULL;
  class_name(name, full + 5, sizeof full - 5);
  (void)leat_describe(code, 0, sentence, sizeof sentence);
  bases = builtin == NULL ? PyTuple_Pack(1, error_type) : PyTuple_Pack(2, error_type, builtin);
  fields = Py_BuildValue("{s:i,s:s}", "code", (int)code, "name", name);
  if (bases != NULL && fields != NULL)
    made = PyErr_NewExceptionWithDoc(full, sentence, bases, fields);
  Py_XDECREF(bases);
  Py_XDECREF(fields);
  return made;
}

static int add_class(PyObject *module, int32_t code, const char *name) {
  char text[80] = "ERR_";
  size_t size = 4;
  classes[code] = make_class(code, name);
  if (classes[code] == NULL) return -1;
  class_name(name, text, sizeof text);
  if (PyModule_AddObjectRef(module, text, classes[code]) != 0) return -1;
  memcpy(text, "ERR_", 4);
  for (; *name != '\0' && size + 1 < sizeof text; ++name)
    text[size++] = (char)toupper((unsigned char)*name);
  text[size] = '\0';
  return PyModule_AddIntConstant(module, text, code);
}

int add_errors(PyObject *module) {
  int32_t code = 0;
  PyObject *fields = Py_BuildValue("{s:i,s:s,s:i}", "code", 0, "name", "unknown", "detail", 0);
  if (fields == NULL) return -1;
  error_type = PyErr_NewExceptionWithDoc(
      "leat.Error",
      "What the library returned: `code` and `name` as in spec/errors.csv, and `detail`, which is\n"
      "the errno of the system call that failed, or the most bytes allowed, or 0.",
      NULL, fields);
  Py_DECREF(fields);
  if (error_type == NULL || PyModule_AddObjectRef(module, "Error", error_type) != 0) return -1;
  for (code = 1; code < MAX_CODES; ++code) {
    const char *name = leat_error_name(code);
    if (strcmp(name, "unknown") == 0) break;
    if (add_class(module, code, name) != 0) return -1;
  }
  return 0;
}
