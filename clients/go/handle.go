package leat

// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"context"
	"sync"
	"sync/atomic"
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
	mirrors    *C.leatgo_mirrors // Those of the topic. Nil: it reads nothing in place.
	pinned     bool              // A function of the user works with its memory, and the lock is not held.
	closeLater bool              // It was closed meanwhile.

	// Under signals, which is held for a moment only.
	signals   sync.Mutex
	calm      sync.Cond     // Nobody wants the lock for a moment any more.
	closing   atomic.Bool   // Only changed under signals.
	stopped   bool          // By Stop.
	stops     atomic.Uint32 // How often Stop was called: only changed under signals.
	cancelled bool          // By the context of the call that is waiting.
	wanted    int           // How many calls want the lock for a moment.
	steady    int           // Not 0: the call that is waiting cannot be interrupted for them and go on.
	isStopped bool          // What C was told.
}

func (h *handle) init(k *kind, c unsafe.Pointer) {
	h.lock.wake = make(chan struct{}, 1)
	h.calm.L = &h.signals
	h.kind = k
	h.c = c
}

// Begins a call that uses C, and may wait: afterwards leave must be called, if there is no error.
func (h *handle) enter(ctx context.Context) error {
	if !h.lock.tryAcquire() {
		if isNoWait(ctx) {
			return h.enterBriefly()
		}
		if err := h.lock.acquire(ctx); err != nil {
			return err
		}
	}
	return h.entered()
}

func (h *handle) entered() error {
	if h.c == nil || h.closing.Load() {
		h.lock.release()
		return ErrHandleClosed
	}
	return nil
}

// The same for a call that does not wait: one that waits meanwhile is interrupted for it. Else a goroutine
// that waits for records would keep others from acknowledging those that it handed to them.
func (h *handle) enterBriefly() error {
	if h.lock.wake == nil {
		return ErrHandleClosed
	}
	h.acquireBriefly()
	return h.entered()
}

// Takes the lock, and interrupts a call for it that waits. Only for handles that this package has made.
func (h *handle) acquireBriefly() {
	if h.lock.tryAcquire() {
		return
	}
	h.want(1)
	_ = h.lock.acquire(nil)
	h.want(-1)
}

func (h *handle) want(change int) {
	h.signals.Lock()
	h.wanted += change
	h.applySignals()
	if h.wanted == 0 {
		h.calm.Broadcast()
	}
	h.signals.Unlock()
}

func (h *handle) leave() { h.lock.release() }

// Keeps the handle from being closed while the lock is not held. The caller holds it, and does so after both.
func (h *handle) pin() {
	h.pinned = true
	h.lock.release()
}

func (h *handle) unpin() {
	h.acquireBriefly()
	h.pinned = false
	if h.closeLater {
		h.destroy()
	}
}

// Ends all waits, waits for the call that is running, and closes. Does not wait for a function of the user,
// which may be the caller: then the handle is closed behind it.
func (h *handle) close() error {
	h.signals.Lock()
	if h.closing.Load() || h.c == nil {
		h.signals.Unlock()
		return ErrHandleClosed
	}
	h.closing.Store(true)
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
	if h.mirrors != nil {
		C.leatgo_mirrors_drop(h.mirrors)
	}
	h.buffer, h.mirrors = nil, nil
	return errorOf(code, 0)
}

// ---- Ending waits -------------------------------------------------------------------------------

func (h *handle) applySignals() {
	want := h.closing.Load() || h.stopped || h.cancelled || h.wanted > 0 && h.steady == 0
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
	if h.closing.Load() || h.c == nil {
		return ErrHandleClosed
	}
	h.stopped = stopped
	if stopped {
		h.stops.Add(1)
	}
	h.applySignals()
	return nil
}

// Stop makes waits return ErrStopped, now and later, until Resume. What is available is still delivered.
// Any goroutine may call it. A wait may miss a Stop that a Resume follows at once.
func (h *handle) Stop() error { return h.setStopped(true) }

// Resume ends Stop.
func (h *handle) Resume() error { return h.setStopped(false) }

// IsStopped tells whether waits are stopped.
func (h *handle) IsStopped() bool {
	h.signals.Lock()
	defer h.signals.Unlock()
	return h.stopped
}
