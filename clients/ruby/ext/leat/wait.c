// Waits that interrupts end and that let other threads and fibers run.
#include <pthread.h>
#include <ruby/fiber/scheduler.h>
#include <ruby/io.h>
#include <ruby/thread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "leat_ruby.h"

// A signal that arrives in the microseconds before a sleep does not end it: the slice has to end. At random moments most
// of those hit the first sleep, so that is short. The later ones are long, because waking up is all that an idle wait
// costs: 50 to 90 us, so four times a second are 0.04 % of a CPU at most.
enum {
  FIRST_SLICE_NS = 5 * 1000 * 1000,
  SHORT_SLICE_NS = 50 * 1000 * 1000,
  LONG_SLICE_NS = 250 * 1000 * 1000,
  HANDED_OVER_NS = 2000 * 1000 * 1000,
  // Between two attempts of a publisher whose room its own thread's readers hold, while another thread may take these.
  OTHERS_NS = 2 * 1000 * 1000,
  // Between two attempts of a fiber that has no descriptor to wait for: at first, and later.
  FIRST_PAUSE_NS = 1000 * 1000,
  LONGEST_PAUSE_NS = 20 * 1000 * 1000
};

typedef struct Waiting {
  Handle *handle;  // NULL: none
  Slices slices;
  Attempt attempt;
  void *context;
  int64_t spin_until_ns;
  int64_t deadline_ns;  // INT64_MAX: none.
  int64_t slice_ns;     // The next one's.
  int64_t longest_ns;
  int32_t *detail;
  int32_t code;
  int is_interrupted;
  int is_alone;  // There was no other thread before the last attempt.
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
      const int grows = slice * 4 < waiting->longest_ns && waiting->longest_ns <= LONG_SLICE_NS;
      waiting->code = waiting->attempt(waiting->context, slice, waiting->detail);
      waiting->slice_ns = grows ? slice * 4 : waiting->longest_ns;
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

static int64_t longest_slice(Slices slices) {
  if (slices == LONG_SLICES) return LONG_SLICE_NS;
  return slices == ROOM_SLICES && are_handles_unused() && rb_thread_alone() ? HANDED_OVER_NS : SHORT_SLICE_NS;
}

// The library does not look in an attempt that does not wait, nor in one that finds LEAT_ERR_WOULD_DEADLOCK.
static int is_stopped(const Handle *handle) {
  uint32_t answer = 0;
  if (handle == NULL || handle->kind->is_stopped == NULL) return 0;
  return handle->kind->is_stopped(handle->pointer, &answer) == LEAT_OK && answer != 0;
}

// Whether the attempt is to be made again. Pauses if only what other threads do can make another one of it.
static int goes_on(Waiting *waiting) {
  if (waiting->code == LEAT_ERR_WOULD_DEADLOCK && !waiting->is_alone) {
    struct timeval pause = {0, OTHERS_NS / 1000};
    rb_thread_wait_for(pause);
    if (is_stopped(waiting->handle)) waiting->code = LEAT_ERR_STOPPED;
    return waiting->code != LEAT_ERR_STOPPED;
  }
  return waiting->code == LEAT_ERR_TIMEOUT || waiting->code == LEAT_ERR_INTERRUPTED;
}

// What an attempt brought is returned before anything else is raised, so that nothing is lost. It is also made
// once if interrupts are pending that Ruby does not let through now.
static VALUE wait_until_done(VALUE context) {
  Waiting *waiting = (Waiting *)context;
  waiting->longest_ns = longest_slice(waiting->slices);
  while (1) {
    waiting->is_interrupted = 0;
    waiting->is_alone = rb_thread_alone();
    waiting->thread = pthread_self();
    rb_thread_call_without_gvl2(wait_slices, waiting, interrupt, waiting);
    if (!goes_on(waiting)) return Qnil;
    rb_thread_check_ints();
    if (now_ns() >= waiting->deadline_ns) break;
  }
  (void)wait_slices(waiting);  // If there was no time for it at all.
  if (waiting->code == LEAT_ERR_INTERRUPTED) waiting->code = LEAT_ERR_TIMEOUT;
  return Qnil;
}

// ---- Fibers -------------------------------------------------------------------------------------

// The descriptor that is readable when there may be something, as an IO; nil: there is none.
static VALUE io_of(const Waiting *waiting) {
  const Handle *handle = waiting->handle;
  int32_t fd = -1;
  int32_t detail = 0;
  VALUE io = Qnil;
  if (handle == NULL || handle->kind->wait_fd == NULL) return Qnil;
  if (handle->kind->wait_fd(handle->pointer, &fd, &detail) != LEAT_OK) return Qnil;
  io = rb_funcall(rb_cIO, rb_intern("for_fd"), 1, INT2NUM(fd));
  rb_funcall(io, rb_intern("autoclose="), 1, Qfalse);
  return io;
}

// The scheduler runs other fibers of this thread meanwhile.
static VALUE wait_in_fiber(VALUE context) {
  Waiting *waiting = (Waiting *)context;
  const VALUE scheduler = rb_fiber_scheduler_current();
  const VALUE io = io_of(waiting);
  int64_t pause = FIRST_PAUSE_NS;
  while (1) {
    const int64_t left = waiting->deadline_ns - now_ns();
    const int64_t longest = io != Qnil ? LONG_SLICE_NS : pause;
    const VALUE seconds = DBL2NUM((double)(left < longest ? left : longest) / 1e9);
    waiting->code = waiting->attempt(waiting->context, 0, waiting->detail);
    if (waiting->code != LEAT_ERR_TIMEOUT || left <= 0) return Qnil;
    if (is_stopped(waiting->handle)) {
      waiting->code = LEAT_ERR_STOPPED;
      return Qnil;
    }
    if (io != Qnil)
      rb_fiber_scheduler_io_wait(scheduler, io, RB_UINT2NUM(RUBY_IO_READABLE), seconds);
    else
      rb_fiber_scheduler_kernel_sleep(scheduler, seconds);
    pause = pause * 2 < LONGEST_PAUSE_NS ? pause * 2 : LONGEST_PAUSE_NS;
  }
}

// ---- Both ---------------------------------------------------------------------------------------

static int32_t wait_protected(Handle *handle, int64_t spin_ns, int64_t timeout_ns, Slices slices, Attempt attempt,
                              void *context, int32_t *detail) {
  const int64_t now = now_ns();
  const int in_fiber = timeout_ns != 0 && rb_fiber_scheduler_current() != Qnil;
  Waiting waiting = {.handle = handle, .slices = slices, .attempt = attempt, .context = context, .detail = detail};
  int state = 0;
  waiting.code = LEAT_ERR_TIMEOUT;
  waiting.slice_ns = FIRST_SLICE_NS;
  waiting.deadline_ns = timeout_ns == LEAT_FOREVER ? INT64_MAX : now + timeout_ns;
  waiting.spin_until_ns = spin_ns == 0 ? 0 : now + spin_ns;
  rb_protect(in_fiber ? wait_in_fiber : wait_until_done, (VALUE)&waiting, &state);
  if (state == 0) return waiting.code;
  *detail = state;
  return ENDED_BY_RUBY;
}

int32_t wait_unlocked(Handle *handle, int64_t timeout_ns, Slices slices, Attempt attempt, void *context,
                      int32_t *detail) {
  return wait_protected(handle, 0, timeout_ns, slices, attempt, context, detail);
}

int32_t wait_for(Handle *handle, int64_t spin_ns, int64_t timeout_ns, Slices slices, Attempt attempt, void *context,
                 int32_t *detail) {
  const int32_t code = attempt(context, 0, detail);
  if (code != LEAT_ERR_TIMEOUT || timeout_ns == 0) return code;
  return wait_protected(handle, spin_ns, timeout_ns, slices, attempt, context, detail);
}

int64_t take_spin(int64_t *option) {
  const int64_t spin_ns = sysconf(_SC_NPROCESSORS_ONLN) > 1 ? *option : 0;  // Whether somebody can run meanwhile.
  *option = 0;
  return spin_ns;
}
