// Waits that interrupts end and that let other threads run.
#include <pthread.h>
#include <ruby/thread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "leat_ruby.h"

// A signal that arrives in the microseconds before a sleep does not end it: the slice has to end. At random moments most
// of those hit the first sleep, so that is short. The later ones are long, because waking up is all that an idle wait
// costs: 50 to 90 us, so four times a second are 0.04 % of a CPU at most.
enum { FIRST_SLICE_NS = 5 * 1000 * 1000, LONGEST_SLICE_NS = 250 * 1000 * 1000 };

typedef struct Waiting {
  Attempt attempt;
  void *context;
  int64_t spin_until_ns;
  int64_t deadline_ns;  // INT64_MAX: none.
  int64_t slice_ns;     // The next one's.
  int32_t *detail;
  int32_t code;
  int is_interrupted;
  pthread_t thread;
} Waiting;

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

// Without the GVL.
static void *wait_slices(void *context) {
  Waiting *waiting = context;
  int64_t now = now_ns();
  do {
    const int64_t left = waiting->deadline_ns - now;
    if (now < waiting->spin_until_ns || left <= 0) {
      waiting->code = waiting->attempt(waiting->context, 0, waiting->detail);
    } else {
      const int64_t slice = left < waiting->slice_ns ? left : waiting->slice_ns;
      waiting->code = waiting->attempt(waiting->context, slice, waiting->detail);
      waiting->slice_ns = slice * 4 < LONGEST_SLICE_NS ? slice * 4 : LONGEST_SLICE_NS;
    }
    now = now_ns();
  } while (waiting->code == LEAT_ERR_TIMEOUT && now < waiting->deadline_ns &&
           !__atomic_load_n(&waiting->is_interrupted, __ATOMIC_RELAXED));
  return NULL;
}

// In another thread, as long as the one that waits does.
static void interrupt(void *context) {
  Waiting *waiting = context;
  struct sigaction handling;
  // relaxed, pairs with nothing: all that it says is that Ruby wants to be asked.
  __atomic_store_n(&waiting->is_interrupted, 1, __ATOMIC_RELAXED);
  // Ruby interrupts its own sleeps with this signal; its handler does nothing.
  if (sigaction(SIGVTALRM, NULL, &handling) == 0 && handling.sa_handler != SIG_DFL)
    (void)pthread_kill(waiting->thread, SIGVTALRM);
}

// What an attempt brought is returned before anything else is raised, so that nothing is lost. It is also made
// once if interrupts are pending that Ruby does not let through now.
static VALUE wait_until_done(VALUE context) {
  Waiting *waiting = (Waiting *)context;
  while (1) {
    waiting->is_interrupted = 0;
    waiting->thread = pthread_self();
    rb_thread_call_without_gvl2(wait_slices, waiting, interrupt, waiting);
    if (waiting->code != LEAT_ERR_TIMEOUT && waiting->code != LEAT_ERR_INTERRUPTED) return Qnil;
    rb_thread_check_ints();
    if (now_ns() >= waiting->deadline_ns) break;
  }
  (void)wait_slices(waiting);  // If there was no time for it at all.
  if (waiting->code == LEAT_ERR_INTERRUPTED) waiting->code = LEAT_ERR_TIMEOUT;
  return Qnil;
}

static int32_t wait_protected(int64_t spin_ns, int64_t timeout_ns, Attempt attempt, void *context, int32_t *detail) {
  const int64_t now = now_ns();
  Waiting waiting = {.attempt = attempt, .context = context, .detail = detail, .code = LEAT_ERR_TIMEOUT};
  int state = 0;
  waiting.slice_ns = FIRST_SLICE_NS;
  waiting.deadline_ns = timeout_ns == LEAT_FOREVER ? INT64_MAX : now + timeout_ns;
  waiting.spin_until_ns = spin_ns == 0 ? 0 : now + spin_ns;
  rb_protect(wait_until_done, (VALUE)&waiting, &state);
  if (state == 0) return waiting.code;
  *detail = state;
  return ENDED_BY_RUBY;
}

int32_t wait_unlocked(int64_t timeout_ns, Attempt attempt, void *context, int32_t *detail) {
  return wait_protected(0, timeout_ns, attempt, context, detail);
}

int32_t wait_for(int64_t spin_ns, int64_t timeout_ns, Attempt attempt, void *context, int32_t *detail) {
  const int32_t code = attempt(context, 0, detail);
  if (code != LEAT_ERR_TIMEOUT || timeout_ns == 0) return code;
  return wait_protected(spin_ns, timeout_ns, attempt, context, detail);
}

int64_t take_spin(int64_t *option) {
  const int64_t spin_ns = sysconf(_SC_NPROCESSORS_ONLN) > 1 ? *option : 0;  // Whether somebody can run meanwhile.
  *option = 0;
  return spin_ns;
}
