// Waits that interrupts end and that let other threads run.
#include <ruby/thread.h>
#include <time.h>

#include "leat_ruby.h"

// Whoever interrupts a thread sets a flag, which is looked at so often. A signal ends a slice at once.
enum { SLICE_NS = 50 * 1000 * 1000 };

typedef struct Waiting {
  Attempt attempt;
  void *context;
  int64_t timeout_ns;
  int64_t deadline_ns;
  int32_t *detail;
  int32_t code;
  int is_interrupted;
} Waiting;

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int64_t left_ns(const Waiting *waiting) {
  int64_t left = SLICE_NS;
  if (waiting->timeout_ns == LEAT_FOREVER) return left;
  left = waiting->deadline_ns - now_ns();
  return left < 0 ? 0 : left;
}

// Without the GVL.
static void *wait_slices(void *context) {
  Waiting *waiting = context;
  int64_t left = left_ns(waiting);
  do {
    waiting->code = waiting->attempt(waiting->context, left < SLICE_NS ? left : SLICE_NS, waiting->detail);
    left = left_ns(waiting);
  } while (waiting->code == LEAT_ERR_TIMEOUT && left > 0 &&
           !__atomic_load_n(&waiting->is_interrupted, __ATOMIC_RELAXED));
  return NULL;
}

static void interrupt(void *context) {
  // relaxed, pairs with nothing: all that it says is that Ruby wants to be asked.
  __atomic_store_n(&((Waiting *)context)->is_interrupted, 1, __ATOMIC_RELAXED);
}

// What an attempt brought is returned before anything else is raised, so that nothing is lost. It is also made
// once if interrupts are pending that Ruby does not let through now.
static VALUE wait_until_done(VALUE context) {
  Waiting *waiting = (Waiting *)context;
  while (1) {
    waiting->is_interrupted = 0;
    rb_thread_call_without_gvl2(wait_slices, waiting, interrupt, waiting);
    if (waiting->code != LEAT_ERR_TIMEOUT && waiting->code != LEAT_ERR_INTERRUPTED) return Qnil;
    rb_thread_check_ints();
    if (left_ns(waiting) == 0) break;
  }
  (void)wait_slices(waiting);  // If there was no time for it at all.
  if (waiting->code == LEAT_ERR_INTERRUPTED) waiting->code = LEAT_ERR_TIMEOUT;
  return Qnil;
}

int32_t wait_unlocked(int64_t timeout_ns, Attempt attempt, void *context, int32_t *detail) {
  Waiting waiting = {attempt, context, timeout_ns, 0, detail, LEAT_ERR_TIMEOUT, 0};
  int state = 0;
  if (timeout_ns != LEAT_FOREVER) waiting.deadline_ns = now_ns() + timeout_ns;
  rb_protect(wait_until_done, (VALUE)&waiting, &state);
  if (state == 0) return waiting.code;
  *detail = state;
  return ENDED_BY_RUBY;
}

int32_t wait_for(int64_t timeout_ns, Attempt attempt, void *context, int32_t *detail) {
  const int32_t code = attempt(context, 0, detail);
  if (code != LEAT_ERR_TIMEOUT || timeout_ns == 0) return code;
  return wait_unlocked(timeout_ns, attempt, context, detail);
}
