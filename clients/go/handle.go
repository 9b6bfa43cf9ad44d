package leat

// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"context"
	"sync"
	"time"
	"unsafe"
)

// What a kind of handle needs from C.
type kind struct {
	stop   func(c unsafe.Pointer)
	resume func(c unsafe.Pointer)
	close  func(c unsafe.Pointer) C.int32_t
}

// What publishers, subscribers and members have in common: one goroutine at a time uses the object of C, any
// may end its wait, and it is closed when nobody uses it.
type handle struct {
	lock lock
	// Changed while both lock and signals are held, so that one of them suffices for reading. Nil: closed.
	c    unsafe.Pointer
	kind *kind

	// Under lock.
	buffer     unsafe.Pointer    // Memory of C for what one call reads.
	mirrors    *C.leatgo_mirrors // Nil as long as nothing was read in place.
	pinned     bool              // A function of the user works with its memory, and the lock is not held.
	closeLater bool              // It was closed meanwhile.

	// Under signals, which is held for a moment only.
	signals   sync.Mutex
	closing   bool
	stopped   bool // By Stop.
	cancelled bool // By the context of the call that is waiting.
	isStopped bool // What C was told.
}

func (h *handle) init(k *kind, c unsafe.Pointer) {
	h.lock.wake = make(chan struct{}, 1)
	h.kind = k
	h.c = c
}

// Begins a call that uses C: afterwards leave must be called, if there is no error.
func (h *handle) enter(ctx context.Context) error {
	if !h.lock.tryAcquire() {
		if err := h.lock.acquire(ctx); err != nil {
			return err
		}
	}
	if h.c == nil || h.closeLater {
		h.lock.release()
		return ErrHandleClosed
	}
	return nil
}

func (h *handle) leave() { h.lock.release() }

// Keeps the handle from being closed while the lock is not held. The caller holds it, and does so after both.
func (h *handle) pin() {
	h.pinned = true
	h.lock.release()
}

func (h *handle) unpin() {
	_ = h.lock.acquire(nil)
	h.pinned = false
	if h.closeLater {
		h.destroy()
	}
}

// Ends all waits, waits for the call that is running, and closes. Does not wait for a function of the user,
// which may be the caller: then the handle is closed behind it.
func (h *handle) close() error {
	h.signals.Lock()
	if h.closing || h.c == nil {
		h.signals.Unlock()
		return ErrHandleClosed
	}
	h.closing = true
	h.applySignals()
	h.signals.Unlock()

	_ = h.lock.acquire(nil)
	defer h.lock.release()
	if h.pinned {
		h.closeLater = true
		return nil
	}
	return h.destroy()
}

func (h *handle) destroy() error {
	h.signals.Lock()
	c := h.c
	h.c = nil
	h.signals.Unlock()
	code := h.kind.close(c)
	C.free(h.buffer)
	C.leatgo_mirrors_free(h.mirrors)
	h.buffer, h.mirrors = nil, nil
	return errorOf(code, 0)
}

// ---- Ending waits -------------------------------------------------------------------------------

func (h *handle) applySignals() {
	want := h.closing || h.stopped || h.cancelled
	if h.c == nil || want == h.isStopped {
		return
	}
	if want {
		h.kind.stop(h.c)
	} else {
		h.kind.resume(h.c)
	}
	h.isStopped = want
}

func (h *handle) setStopped(stopped bool) error {
	h.signals.Lock()
	defer h.signals.Unlock()
	if h.closing || h.c == nil {
		return ErrHandleClosed
	}
	h.stopped = stopped
	h.applySignals()
	return nil
}

// Stop makes waits return ErrStopped, now and later, until Resume. What is available is still delivered.
// Any goroutine may call it.
func (h *handle) Stop() error { return h.setStopped(true) }

// Resume ends Stop.
func (h *handle) Resume() error { return h.setStopped(false) }

// IsStopped tells whether waits are stopped.
func (h *handle) IsStopped() bool {
	h.signals.Lock()
	defer h.signals.Unlock()
	return h.stopped
}

func (h *handle) setCancelled(cancelled bool) {
	h.signals.Lock()
	h.cancelled = cancelled
	h.applySignals()
	h.signals.Unlock()
}

// Ends the handle's waits when the context ends, until the function that it returns was called.
func (h *handle) watch(ctx context.Context) (unwatch func()) {
	over, finished := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(finished)
		select {
		case <-ctx.Done():
			h.setCancelled(true)
		case <-over:
		}
	}()
	return func() {
		close(over)
		<-finished
		h.setCancelled(false)
	}
}

// ---- Waiting for as long as a context allows ----------------------------------------------------

// The longest wait that C can be told of.
const forever = C.int64_t(-1)

// NoWait is a context for calls that shall not wait at all: if they would have to, they return ErrTimeout, or
// ErrFull from a topic that is full.
var NoWait context.Context = noWait{context.Background()}

type noWait struct{ context.Context }

func doneOf(ctx context.Context) <-chan struct{} {
	if ctx == nil {
		return nil
	}
	return ctx.Done()
}

func timeoutOf(ctx context.Context) C.int64_t {
	deadline, ok := ctx.Deadline()
	if !ok {
		return forever
	}
	if left := time.Until(deadline); left > 0 {
		return C.int64_t(left)
	}
	return 0
}

// Whether a call is made without waiting first, and what then says that it would have to wait.
type attempt int

const (
	noAttempt attempt = iota // It would have an effect.
	untilTimeout
	untilFull // Or timeout.
)

// Calls C until it need not wait or may not: once without waiting, and then, watched, for as long as the context
// allows. The caller has entered.
func (h *handle) await(ctx context.Context, first attempt, call func(timeoutNs C.int64_t) (code, detail C.int32_t)) error {
	if ctx == NoWait {
		return errorOf(call(0))
	}
	if doneOf(ctx) == nil {
		code, detail := call(forever)
		return h.why(nil, code, detail)
	}
	if ctx.Err() != nil {
		return endOf(ctx, nil)
	}
	if first != noAttempt {
		code, detail := call(0)
		if code != C.LEAT_ERR_TIMEOUT && (code != C.LEAT_ERR_FULL || first != untilFull) {
			return errorOf(code, detail)
		}
	}
	defer h.watch(ctx)()
	code, detail := call(timeoutOf(ctx))
	return h.why(ctx, code, detail)
}

// The error of a call that may have waited.
func (h *handle) why(ctx context.Context, code, detail C.int32_t) error {
	err := errorOf(code, detail)
	if err == nil {
		return nil
	}
	h.signals.Lock()
	defer h.signals.Unlock()
	switch {
	case h.closing && code == C.LEAT_ERR_STOPPED:
		return ErrHandleClosed
	case ctx == nil:
		return err
	case code == C.LEAT_ERR_TIMEOUT, h.cancelled && !h.stopped && code == C.LEAT_ERR_STOPPED,
		code == C.LEAT_ERR_NOT_DURABLE && (h.cancelled || timeoutOf(ctx) == 0):
		return endOf(ctx, err)
	}
	return err
}
