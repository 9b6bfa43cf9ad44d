// Members of consumer groups.
#include <stdlib.h>

#include "_leat.h"
#include "docs.h"

static PyTypeObject *member_type;

typedef struct Member {
  Handle base;
  uint64_t number;  // Never that of another member of this process; 0 is none.
} Member;

static void close_member(void *pointer) {
  leat_member *member = pointer;
  (void)leat_member_close(&member);
}
static int32_t stop_member(void *pointer) { return leat_member_stop(pointer); }
static int32_t resume_member(void *pointer) { return leat_member_resume(pointer); }
static int32_t is_member_stopped(void *pointer, uint32_t *answer) {
  return leat_member_is_stopped(pointer, answer);
}
static const HandleKind member_kind = {"member",          0,   close_member, stop_member,
                                       resume_member, is_member_stopped, NULL};

#define AT(name) offsetof(leat_member_options, name)
static const Option member_options[] = {
    {"name", OPTION_TEXT, AT(name), 0, NULL},
    {"spin", OPTION_SECONDS, AT(spin_ns), 0, NULL},
    {"patience", OPTION_SECONDS, AT(patience_ns), 0, NULL},
    {NULL, OPTION_FLAG, 0, 0, NULL},
};

PyObject *group_join(PyObject *self, PyObject *args, PyObject *given) {
  static uint64_t last_number;
  Handle *group = (Handle *)self;
  int64_t spin_ns = 0;
  leat_member_options options = LEAT_MEMBER_OPTIONS_INIT;
  leat_member *member = NULL;
  Arena arena = {NULL};
  PyObject *made = NULL;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  if (PyTuple_Size(args) != 0) {
    PyErr_SetString(PyExc_TypeError, "join() takes options by keyword");
    return NULL;
  }
  if (!parse_options("join", given, member_options, &options, &arena) || !handle_enter(group)) {
    arena_end(&arena);
    return NULL;
  }
  spin_ns = options.spin_ns;
  options.spin_ns = 0;
  options.interruptible = 1;
  Py_BEGIN_ALLOW_THREADS
  code = leat_group_join(group->pointer, &options, &member, &detail);
  Py_END_ALLOW_THREADS
  handle_leave(group);
  arena_end(&arena);
  if (code != LEAT_OK) return raise_code(code, detail);
  made = handle_new(member_type, &member_kind, member);
  if (made == NULL) return NULL;
  ((Handle *)made)->spin_ns = spin_ns;
  handle_mark_unused(made);
  ((Member *)made)->number = ++last_number;
  return made;
}

// ---- Receive ------------------------------------------------------------------------------------

// Deliveries that the library stores. Short arrays are on the stack.
enum { FEW = 64 };
typedef struct Receiving {
  Member *member;
  leat_delivery *deliveries;
  uint32_t capacity;
  uint32_t count;
  leat_delivery few[FEW];
} Receiving;

static int32_t try_receive(void *context, int64_t timeout_ns, int32_t *detail) {
  Receiving *it = context;
  return leat_member_receive(it->member->base.pointer, it->deliveries, it->capacity, &it->count,
                             timeout_ns, detail);
}

static PyObject *list_of(const Receiving *it) {
  PyObject *list = PyList_New((Py_ssize_t)it->count);
  uint32_t i = 0;
  for (; list != NULL && i < it->count; ++i) {
    PyObject *entry = delivery_new(&it->deliveries[i], it->member->number);
    if (entry == NULL)
      Py_CLEAR(list);
    else
      PyList_SetItem(list, (Py_ssize_t)i, entry);
  }
  return list;
}

static PyObject *receive_some(Member *self, uint32_t limit, int64_t timeout_ns, int is_single) {
  Receiving it;
  PyObject *result = NULL;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  if (!pending_is_own(&self->base)) return NULL;
  it.member = self;
  it.capacity = limit;
  it.count = 0;
  it.deliveries = limit <= FEW ? it.few : malloc(limit * sizeof(leat_delivery));
  if (it.deliveries == NULL) return PyErr_NoMemory();
  if (handle_enter(&self->base)) {
    handle_mark_used(&self->base);
    if (self->base.pending != NULL)
      result = is_single ? pending_take(&self->base) : pending_take_some(&self->base, limit);
    else if ((code = wait_for(&self->base, timeout_ns, LONG_SLICES, try_receive, &it, &detail)) == LEAT_OK)
      result = is_single ? delivery_new(&it.deliveries[0], self->number) : list_of(&it);
    else if (code != -1)
      raise_code(code, detail);
    result = deliver(&self->base, result, is_single);
    handle_leave(&self->base);
  }
  if (it.deliveries != it.few) free(it.deliveries);
  return result;
}

static PyObject *receive(PyObject *self, PyObject *const *args, Py_ssize_t count,
                         PyObject *names) {
  static const char *const wanted[] = {"timeout", NULL};
  PyObject *given = NULL;
  int64_t timeout_ns = LEAT_FOREVER;
  if (!parse_arguments("receive", args, count, names, wanted, 0, &given)) return NULL;
  return parse_timeout(given, &timeout_ns) ? receive_some((Member *)self, 1, timeout_ns, 1) : NULL;
}

static PyObject *receive_batch(PyObject *self, PyObject *const *args, Py_ssize_t count,
                               PyObject *names) {
  static const char *const wanted[] = {"limit", "timeout", NULL};
  PyObject *given[2] = {NULL};
  uint32_t limit = 0;
  int64_t timeout_ns = LEAT_FOREVER;
  if (!parse_arguments("receive_batch", args, count, names, wanted, 0, given)) return NULL;
  if (!parse_limit(given[0], &limit) || !parse_timeout(given[1], &timeout_ns)) return NULL;
  return receive_some((Member *)self, limit, timeout_ns, 0);
}

static PyObject *itself(PyObject *object) { return Py_NewRef(object); }

static PyObject *next_entry(PyObject *self) {
  return end_iteration(receive_some((Member *)self, 1, LEAT_FOREVER, 1));
}

// ---- Acknowledge --------------------------------------------------------------------------------

static PyObject *count_or(int32_t code, uint64_t count) {
  return code != LEAT_OK ? raise_code(code, 0) : PyLong_FromUnsignedLongLong(count);
}

static PyObject *acknowledge_one(Member *self, PyObject *object) {
  const leat_delivery *delivery = delivery_of(object, self->number);
  int32_t code = LEAT_OK;
  if (delivery == NULL || !handle_enter(&self->base)) return NULL;
  code = leat_member_acknowledge(self->base.pointer, delivery);
  handle_leave(&self->base);
  return count_or(code, 1);
}

// Those that this member holds count; an error only if none does.
static PyObject *acknowledge_some(Member *self, PyObject *tuple) {
  const Py_ssize_t count = PyTuple_Size(tuple);
  leat_delivery *all = malloc((size_t)(count + 1) * sizeof(leat_delivery));
  PyObject *result = NULL;
  uint64_t known = 0;
  uint64_t others = 0;
  uint64_t done = 0;
  Py_ssize_t i = 0;
  if (all == NULL) return PyErr_NoMemory();
  for (; i < count; ++i) {
    PyObject *object = PyTuple_GetItem(tuple, i);
    if (is_gap_object(object)) continue;
    if (is_delivery_of(object, self->number)) {
      all[known++] = *delivery_of(object, self->number);
    } else if (Py_TYPE(object) == delivery_type) {
      ++others;
    } else {
      (void)delivery_of(object, self->number);  // Raises.
      break;
    }
  }
  if (i == count && handle_enter(&self->base)) {
    int32_t code = leat_member_acknowledge_some(self->base.pointer, all, known, &done);
    if (code == LEAT_OK && known == 0 && others != 0) code = LEAT_ERR_NOT_IN_FLIGHT;
    handle_leave(&self->base);
    result = count_or(code, done);
  }
  free(all);
  return result;
}

static PyObject *acknowledge(PyObject *object, PyObject *what) {
  Member *self = (Member *)object;
  PyObject *tuple = NULL;
  PyObject *result = NULL;
  if (Py_TYPE(what) == delivery_type || is_gap_object(what)) {
    if (!is_gap_object(what)) return acknowledge_one(self, what);
    return raise_code(LEAT_ERR_NOT_IN_FLIGHT, 0);
  }
  tuple = PySequence_Tuple(what);
  if (tuple == NULL) return NULL;
  result = acknowledge_some(self, tuple);
  Py_DECREF(tuple);
  return result;
}

static PyObject *acknowledge_up_to(PyObject *object, PyObject *what) {
  Member *self = (Member *)object;
  const leat_delivery *delivery = delivery_of(what, self->number);
  uint64_t count = 0;
  int32_t code = LEAT_OK;
  if (delivery == NULL || !handle_enter(&self->base)) return NULL;
  code = leat_member_acknowledge_up_to(self->base.pointer, delivery, &count);
  handle_leave(&self->base);
  return count_or(code, count);
}

// Nobody has got these: so they go back to the group, and are not acknowledged with the others.
static void requeue_pending(Member *self) {
  PyObject *list = self->base.pending;
  Py_ssize_t i = list == NULL ? 0 : PyList_Size(list);
  while (i-- > self->base.pending_at) {
    PyObject *entry = PyList_GetItem(list, i);
    if (!is_delivery_of(entry, self->number)) continue;
    if (leat_member_requeue(self->base.pointer, delivery_of(entry, self->number), 0) == LEAT_OK)
      (void)PyList_SetSlice(list, i, i + 1, NULL);
  }
  if (list != NULL && PyList_Size(list) == self->base.pending_at) Py_CLEAR(self->base.pending);
}

static PyObject *acknowledge_all(PyObject *object, PyObject *none) {
  Handle *self = (Handle *)object;
  uint64_t count = 0;
  int32_t code = LEAT_OK;
  (void)none;
  if (!handle_enter(self)) return NULL;
  requeue_pending((Member *)object);
  code = leat_member_acknowledge_all(self->pointer, &count);
  handle_leave(self);
  return count_or(code, count);
}

static PyObject *requeue(PyObject *object, PyObject *const *args, Py_ssize_t count,
                         PyObject *names) {
  static const char *const wanted[] = {"delivery", "delay", NULL};
  Member *self = (Member *)object;
  PyObject *given[2] = {NULL};
  const leat_delivery *delivery = NULL;
  int64_t delay_ns = 0;
  int32_t code = LEAT_OK;
  if (!parse_arguments("requeue", args, count, names, wanted, 1, given)) return NULL;
  if (given[1] != NULL && !parse_seconds(given[1], "delay", &delay_ns)) return NULL;
  delivery = delivery_of(given[0], self->number);
  if (delivery == NULL || !handle_enter(&self->base)) return NULL;
  code = leat_member_requeue(self->base.pointer, delivery, delay_ns);
  handle_leave(&self->base);
  if (code != LEAT_OK) return raise_code(code, 0);
  Py_RETURN_NONE;
}

// ---- Wait ---------------------------------------------------------------------------------------

static int32_t try_wait(void *context, int64_t timeout_ns, int32_t *detail) {
  (void)detail;
  return leat_member_wait(context, timeout_ns);
}

static PyObject *wait(PyObject *object, PyObject *const *args, Py_ssize_t count, PyObject *names) {
  static const char *const wanted[] = {"timeout", NULL};
  Handle *self = (Handle *)object;
  PyObject *given = NULL;
  int64_t timeout_ns = LEAT_FOREVER;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  if (!parse_arguments("wait", args, count, names, wanted, 0, &given)) return NULL;
  if (!parse_timeout(given, &timeout_ns) || !handle_enter(self)) return NULL;
  if (self->pending == NULL)
    code = wait_for(self, timeout_ns, LONG_SLICES, try_wait, self->pointer, &detail);
  handle_leave(self);
  if (code == -1) return NULL;
  if (code != LEAT_OK) return raise_code(code, detail);
  Py_RETURN_NONE;
}

static PyObject *wait_fd(PyObject *object, PyObject *none) {
  Handle *self = (Handle *)object;
  int32_t fd = -1;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  (void)none;
  if (!handle_enter(self)) return NULL;
  code = leat_member_wait_fd(self->pointer, &fd, &detail);
  handle_leave(self);
  return code != LEAT_OK ? raise_code(code, detail) : PyLong_FromLong(fd);
}

static PyObject *in_flight(PyObject *object, PyObject *none) {
  Handle *self = (Handle *)object;
  uint64_t count = 0;
  int32_t code = LEAT_OK;
  (void)none;
  if (!handle_enter(self)) return NULL;
  code = leat_member_in_flight(self->pointer, &count);
  handle_leave(self);
  return count_or(code, count);
}

#define FAST (METH_FASTCALL | METH_KEYWORDS)
static PyMethodDef member_methods[] = {
    {"receive", (PyCFunction)(void (*)(void))receive, FAST,
     SIGNED("receive($self, /, timeout=None)",
            "The next Delivery, or (durable topics) Gap. Waits so many seconds, or for ever.")},
    {"receive_batch", (PyCFunction)(void (*)(void))receive_batch, FAST,
     SIGNED("receive_batch($self, /, limit=64, timeout=None)",
            "A list of up to `limit` deliveries. Waits for the first.")},
    {"acknowledge", acknowledge, METH_O,
     SIGNED("acknowledge($self, delivery, /)",
            "A delivery, or several, are done. Returns how many were this member's.")},
    {"acknowledge_up_to", acknowledge_up_to, METH_O,
     SIGNED("acknowledge_up_to($self, delivery, /)",
            "This delivery, and all received before it, are done. Returns how many.")},
    {"acknowledge_all", acknowledge_all, METH_NOARGS,
     SIGNED("acknowledge_all($self, /)",
            "All that it has returned is done. Returns how many.")},
    {"requeue", (PyCFunction)(void (*)(void))requeue, FAST,
     SIGNED("requeue($self, /, delivery, delay=0)",
            "Any member gets it again, after so many seconds.")},
    {"wait", (PyCFunction)(void (*)(void))wait, FAST,
     SIGNED("wait($self, /, timeout=None)",
            "Until receive() may have something to do.")},
    {"wait_fd", wait_fd, METH_NOARGS, SIGNED("wait_fd($self, /)",
            "A descriptor that is readable when there may be something; then receive_batch(timeout=0) until Timeout.")},
    {"fileno", wait_fd, METH_NOARGS, SIGNED("fileno($self, /)",
            "The same as wait_fd(), for select and selectors.")},
    {"in_flight", in_flight, METH_NOARGS,
     SIGNED("in_flight($self, /)",
            "How many records it holds or has taken for its next calls.")},
    {"receive_async", (PyCFunction)(void (*)(void))receive_async, METH_VARARGS | METH_KEYWORDS,
     SIGNED("receive_async($self, /, timeout=None)",
            "receive() for asyncio. A task that is cancelled has taken nothing.")},
    {"receive_batch_async", (PyCFunction)(void (*)(void))receive_batch_async,
     METH_VARARGS | METH_KEYWORDS,
     SIGNED("receive_batch_async($self, /, limit=64, timeout=None)",
            "receive_batch() for asyncio. A task that is cancelled has taken nothing.")},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot member_slots[] = {
    {Py_tp_methods, member_methods},
    {Py_tp_iter, (void *)itself},
    {Py_tp_iternext, (void *)next_entry},
    {Py_am_aiter, (void *)itself},
    {Py_am_anext, (void *)next_async},
    {Py_tp_doc, "A member of a group. One thread at a time uses it."},
    {0, NULL},
};
static PyType_Spec member_spec = {"leat.Member", sizeof(Member), 0, LEAF_TYPE, member_slots};

int add_members(PyObject *module) {
  member_type = add_type(module, &member_spec, stoppable_type);
  return member_type == NULL ? -1 : 0;
}
