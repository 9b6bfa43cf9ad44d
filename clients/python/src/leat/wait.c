// Waits that signals end and that let other threads run; and the arguments that most calls have.
#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "_leat.h"

// A signal that arrives in the microseconds before a sleep does not end it: the slice has to end. At random moments most
// of those hit the first sleep, so that is short. The later ones are long, because waking up is all that an idle wait
// costs: 50 to 90 us, so four times a second are 0.04 % of a CPU at most.
enum {
  FIRST_SLICE_NS = 5 * 1000 * 1000,
  SHORT_SLICE_NS = 50 * 1000 * 1000,
  LONG_SLICE_NS = 250 * 1000 * 1000,
  HANDED_OVER_NS = 2000 * 1000 * 1000,
  // Between two attempts of a publisher whose room its own thread's readers hold, while another thread may take these.
  OTHERS_NS = 2 * 1000 * 1000
};

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

// Whether somebody else can run while a wait spins.
static int can_spin(void) {
  static long processors;
  if (processors == 0) processors = sysconf(_SC_NPROCESSORS_ONLN);
  return processors > 1;
}

static int32_t spin(Attempt attempt, void *context, int64_t until, int32_t *detail) {
  int32_t code = LEAT_OK;
  do {
    code = attempt(context, 0, detail);
  } while (code == LEAT_ERR_TIMEOUT && now_ns() < until);
  return code;
}

// Whether no other thread runs code of Python.
static int is_only_thread(void) {
  PyObject *function = PySys_GetObject("_current_frames");  // Borrowed.
  PyObject *frames = function == NULL ? NULL : PyObject_CallNoArgs(function);
  const Py_ssize_t count = frames == NULL ? 0 : PyDict_Size(frames);
  Py_XDECREF(frames);
  PyErr_Clear();
  return count == 1;
}

static int64_t longest_slice(Slices slices, int is_alone) {
  if (slices == LONG_SLICES) return LONG_SLICE_NS;
  return is_alone && are_handles_unused() ? HANDED_OVER_NS : SHORT_SLICE_NS;
}

// What the attempt returned, or LEAT_ERR_TIMEOUT, after a pause, if other threads may change that: `is_alone` says
// whether there was none before it. The library does not look for a stop then.
static int32_t unless_others_read(const Handle *handle, int32_t code, int64_t slice, int *is_alone) {
  const struct timespec pause = {0, slice < OTHERS_NS ? slice : OTHERS_NS};
  uint32_t is_stopped = 0;
  const int was_alone = *is_alone;
  if (code != LEAT_ERR_WOULD_DEADLOCK) return code;
  *is_alone = is_only_thread();
  if (was_alone && *is_alone) return code;
  Py_BEGIN_ALLOW_THREADS
  (void)nanosleep(&pause, NULL);
  Py_END_ALLOW_THREADS
  (void)handle->kind->is_stopped(handle->pointer, &is_stopped);
  return is_stopped ? LEAT_ERR_STOPPED : LEAT_ERR_TIMEOUT;
}

int32_t wait_for(Handle *handle, int64_t timeout_ns, Slices slices, Attempt attempt, void *context,
                 int32_t *detail) {
  int64_t now = 0;
  int64_t deadline = INT64_MAX;
  int64_t spin_until = 0;
  int64_t next = FIRST_SLICE_NS;
  int64_t longest = 0;
  int is_alone = 0;
  int32_t code = LEAT_ERR_TIMEOUT;
  if (handle != NULL) {
    code = attempt(context, 0, detail);
    if (code != LEAT_ERR_TIMEOUT || timeout_ns == 0) return code;
  }
  is_alone = slices == ROOM_SLICES && is_only_thread();
  longest = longest_slice(slices, is_alone);
  now = now_ns();
  if (timeout_ns != LEAT_FOREVER) deadline = now + timeout_ns;
  if (handle != NULL && handle->spin_ns != 0 && can_spin()) spin_until = now + handle->spin_ns;
  while (1) {
    const int64_t slice = deadline - now < next ? deadline - now : next;
    const int is_spinning = now < spin_until;
    if (PyErr_CheckSignals() != 0) return -1;
    if (handle != NULL && handle->is_closing) return LEAT_ERR_STOPPED;
    Py_BEGIN_ALLOW_THREADS
    code = is_spinning ? spin(attempt, context, spin_until - now < slice ? spin_until : now + slice, detail)
                       : attempt(context, slice, detail);
    Py_END_ALLOW_THREADS
    code = unless_others_read(handle, code, slice, &is_alone);
    if (code != LEAT_ERR_TIMEOUT && code != LEAT_ERR_INTERRUPTED) return code;
    now = now_ns();
    if (now >= deadline) return PyErr_CheckSignals() != 0 ? -1 : LEAT_ERR_TIMEOUT;
    if (!is_spinning) next = next * 4 < longest && longest <= LONG_SLICE_NS ? next * 4 : longest;
  }
}

// ---- Arguments --------------------------------------------------------------------------------

int parse_seconds(PyObject *object, const char *what, int64_t *ns) {
  double seconds = 0;
  if (!PyFloat_Check(object) && !PyIndex_Check(object)) {
    PyErr_Format(PyExc_TypeError, "%s must be a number of seconds, not %R", what, Py_TYPE(object));
    return 0;
  }
  seconds = PyFloat_AsDouble(object);
  if (seconds == -1 && PyErr_Occurred()) return 0;
  if (isnan(seconds) || seconds < 0) {
    PyErr_Format(PyExc_ValueError, "%s must be seconds from 0 on, not %R", what, object);
    return 0;
  }
  // Beyond a hundred years it is for ever, and would overflow soon.
  *ns = seconds > 3e9 ? (int64_t)3e18 : (int64_t)ceil(seconds * 1e9);
  return 1;
}

int parse_timeout(PyObject *seconds, int64_t *timeout_ns) {
  if (seconds == NULL || seconds == Py_None) {
    *timeout_ns = LEAT_FOREVER;
    return 1;
  }
  if (!parse_seconds(seconds, "timeout", timeout_ns)) return 0;
  if (*timeout_ns == (int64_t)3e18) *timeout_ns = LEAT_FOREVER;
  return 1;
}

int parse_u64(PyObject *number, const char *what, uint64_t *value) {
  PyObject *index = PyNumber_Index(number);
  if (index == NULL) {
    if (PyErr_ExceptionMatches(PyExc_TypeError))
      PyErr_Format(PyExc_TypeError, "%s must be an int, not %R", what, Py_TYPE(number));
    return 0;
  }
  *value = PyLong_AsUnsignedLongLong(index);
  Py_DECREF(index);
  if (*value == (uint64_t)-1 && PyErr_Occurred()) {
    PyErr_Format(PyExc_ValueError, "%s must be from 0 to 2**64 - 1, not %R", what, number);
    return 0;
  }
  return 1;
}

int parse_partition(PyObject *number, uint32_t *partition) {
  uint64_t value = 0;
  if (number == NULL || number == Py_None) {
    *partition = LEAT_ANY_PARTITION;
    return 1;
  }
  if (!parse_u64(number, "partition", &value)) return 0;
  // Beyond all partitions that a topic can have, so the library answers.
  *partition = value < UINT32_MAX - 1 ? (uint32_t)value : UINT32_MAX - 1;
  return 1;
}

int parse_limit(PyObject *number, uint32_t *limit) {
  uint64_t value = DEFAULT_LIMIT;
  if (number != NULL && !parse_u64(number, "limit", &value)) return 0;
  if (value == 0) {
    PyErr_SetString(PyExc_ValueError, "limit must not be 0");
    return 0;
  }
  *limit = value < MAX_LIMIT ? (uint32_t)value : MAX_LIMIT;
  return 1;
}

// The argument of that name; -1: none.
static Py_ssize_t find_argument(PyObject *name, const char *const *wanted) {
  Py_ssize_t i = 0;
  for (; wanted[i] != NULL; ++i) {
    if (PyUnicode_CompareWithASCIIString(name, wanted[i]) == 0) return i;
  }
  return -1;
}

int parse_arguments(const char *function, PyObject *const *args, Py_ssize_t count, PyObject *names,
                    const char *const *wanted, Py_ssize_t required, PyObject **out) {
  const Py_ssize_t named = names == NULL ? 0 : PyTuple_Size(names);
  Py_ssize_t most = 0;
  Py_ssize_t i = 0;
  while (wanted[most] != NULL) ++most;
  if (count > most) {
    PyErr_Format(PyExc_TypeError, "%s() takes at most %zd arguments, not %zd", function, most,
                 count);
    return 0;
  }
  for (i = 0; i < count; ++i) out[i] = args[i];
  for (i = 0; i < named; ++i) {
    PyObject *name = PyTuple_GetItem(names, i);
    const Py_ssize_t at = find_argument(name, wanted);
    if (at < 0 || out[at] != NULL) {
      PyErr_Format(PyExc_TypeError,
                   at < 0 ? "%s() got an unexpected argument %R" : "%s() got %R twice", function,
                   name);
      return 0;
    }
    out[at] = args[count + i];
  }
  for (i = 0; i < required; ++i) {
    if (out[i] != NULL) continue;
    PyErr_Format(PyExc_TypeError, "%s() needs the argument '%s'", function, wanted[i]);
    return 0;
  }
  return 1;
}
