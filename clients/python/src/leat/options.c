// Keyword arguments into the library's structs of options, and texts out of it.
#include <stdlib.h>
#include <string.h>

#include "_leat.h"

static int wrong_choice(const Option *option, PyObject *given) {
  char all[160] = "";
  size_t size = 0;
  Py_ssize_t i = 0;
  for (; option->choices[i] != NULL; ++i) {
    if (option->choices[i][0] == '\0') continue;
    size += (size_t)PyOS_snprintf(all + size, sizeof all - size, "%s'%s'", size == 0 ? "" : ", ",
                                  option->choices[i]);
  }
  PyErr_Format(PyExc_ValueError, "%s must be one of %s, not %R", option->name, all, given);
  return 0;
}

static int parse_choice(const Option *option, PyObject *given, uint32_t *into) {
  Py_ssize_t i = 0;
  if (!PyUnicode_Check(given)) {
    PyErr_Format(PyExc_TypeError, "%s must be a str, not %R", option->name, Py_TYPE(given));
    return 0;
  }
  for (; option->choices[i] != NULL; ++i) {
    if (option->choices[i][0] == '\0') continue;  // Stands for the default, which has no name.
    if (PyUnicode_CompareWithASCIIString(given, option->choices[i]) != 0) continue;
    *into = (uint32_t)i;
    return 1;
  }
  return wrong_choice(option, given);
}

int parse_from(PyObject *object, uint32_t *from, uint64_t *value) {
  uint64_t kind = 0;
  *value = 0;
  if (PyUnicode_Check(object)) {
    static const char *const names[] = {"end", "beginning", NULL};
    const Option option = {"from_", OPTION_CHOICE, 0, 0, names};
    return parse_choice(&option, object, from);
  }
  if (!PyTuple_Check(object) || PyTuple_Size(object) != 2) {
    PyErr_Format(PyExc_TypeError, "from_ must be 'end', 'beginning' or a leat.From, not %R",
                 Py_TYPE(object));
    return 0;
  }
  if (!parse_u64(PyTuple_GetItem(object, 0), "from_", &kind) ||
      !parse_u64(PyTuple_GetItem(object, 1), "from_", value))
    return 0;
  *from = kind < UINT32_MAX ? (uint32_t)kind : UINT32_MAX;  // The library refuses those that it does not know.
  return 1;
}

// A str, or a path.
static int parse_text(PyObject *object, leat_bytes *into, Arena *arena) {
  PyObject *path = PyOS_FSPath(object);
  PyObject *encoded = NULL;
  int done = 0;
  if (path == NULL) return 0;
  if (PyUnicode_FSConverter(path, &encoded)) {
    done = arena_bytes(arena, encoded, "a path", into);
    Py_DECREF(encoded);  // The arena holds it.
  }
  Py_DECREF(path);
  return done;
}

static int parse_u32(const Option *option, PyObject *given, uint32_t *into) {
  uint64_t value = 0;
  if (!parse_u64(given, option->name, &value)) return 0;
  if (value > UINT32_MAX) {
    PyErr_Format(PyExc_ValueError, "%s must be below 2**32, not %R", option->name, given);
    return 0;
  }
  *into = (uint32_t)value;
  return 1;
}

static int parse_option(const Option *option, PyObject *given, void *into, Arena *arena) {
  void *at = (char *)into + option->at;
  int truth = 0;
  switch (option->kind) {
    case OPTION_FLAG:
      truth = PyObject_IsTrue(given);
      *(uint32_t *)at = truth > 0;
      return truth >= 0;
    case OPTION_U32:
      return parse_u32(option, given, at);
    case OPTION_U64:
      return parse_u64(given, option->name, at);
    case OPTION_SECONDS:
      return parse_seconds(given, option->name, at);
    case OPTION_TIMEOUT:
      return parse_timeout(given, at);
    case OPTION_MILLISECONDS:
      if (!parse_seconds(given, option->name, at)) return 0;
      *(int64_t *)at /= 1000000;
      return 1;
    case OPTION_TEXT:
      return parse_text(given, at, arena);
    case OPTION_CHOICE:
      return parse_choice(option, given, at);
    case OPTION_PARTITION:
      return parse_partition(given, at);
    case OPTION_FROM:
      return parse_from(given, at, (uint64_t *)((char *)into + option->second));
  }
  return 0;
}

int parse_options(const char *function, PyObject *arguments, const Option *table, void *into,
                  Arena *arena) {
  PyObject *name = NULL;
  PyObject *given = NULL;
  Py_ssize_t position = 0;
  while (arguments != NULL && PyDict_Next(arguments, &position, &name, &given)) {
    const Option *option = table;
    if (!PyUnicode_Check(name)) {  // Python looks at this only for functions of its own.
      PyErr_SetString(PyExc_TypeError, "keywords must be strings");
      return 0;
    }
    while (option->name != NULL && PyUnicode_CompareWithASCIIString(name, option->name) != 0)
      ++option;
    if (option->name == NULL) {
      PyErr_Format(PyExc_TypeError, "%s() got an unexpected argument %R", function, name);
      return 0;
    }
    if (given == Py_None && option->kind != OPTION_TIMEOUT) continue;
    if (!parse_option(option, given, into, arena)) return 0;
  }
  return 1;
}

const char *parse_name(PyObject *object, uint64_t *size) {
  Py_ssize_t length = 0;
  const char *name = NULL;
  if (!PyUnicode_Check(object)) {
    PyErr_Format(PyExc_TypeError, "a name must be a str, not %R", Py_TYPE(object));
    return NULL;
  }
  name = PyUnicode_AsUTF8AndSize(object, &length);
  *size = (uint64_t)length;
  return name;
}

const char *name_argument(const char *function, PyObject *arguments, uint64_t *size) {
  if (PyTuple_Size(arguments) == 1) return parse_name(PyTuple_GetItem(arguments, 0), size);
  PyErr_Format(PyExc_TypeError, "%s() takes a name, and options by keyword", function);
  return NULL;
}

// ---- Texts ------------------------------------------------------------------------------------

PyObject *text_of(WriteText write, void *context) {
  char small[512];
  char *buffer = small;
  uint64_t capacity = sizeof small;
  uint64_t size = 0;
  int32_t detail = 0;
  int32_t code = write(context, buffer, capacity, &size, &detail);
  PyObject *text = NULL;
  while (code == LEAT_ERR_BUFFER_TOO_SMALL) {  // It may have grown meanwhile.
    char *larger = NULL;
    capacity = size + 256;
    larger = realloc(buffer == small ? NULL : buffer, capacity);
    if (larger == NULL) break;
    buffer = larger;
    code = write(context, buffer, capacity, &size, &detail);
  }
  if (code == LEAT_OK)
    text = PyUnicode_DecodeUTF8(buffer, (Py_ssize_t)size, "surrogateescape");
  else
    raise_code(code == LEAT_ERR_BUFFER_TOO_SMALL ? LEAT_ERR_NO_MEMORY : code, detail);
  if (buffer != small) free(buffer);
  return text;
}

PyObject *handle_text(PyObject *self, WriteText write) {
  Handle *handle = (Handle *)self;
  PyObject *text = NULL;
  if (!handle_enter(handle)) return NULL;
  text = text_of(write, handle->pointer);
  handle_leave(handle);
  return text;
}

PyObject *list_of_lines(PyObject *text) {
  PyObject *lines = NULL;
  if (text == NULL) return NULL;
  lines = PyUnicode_Splitlines(text, 0);
  Py_DECREF(text);
  return lines;
}
