package leat

// #include "shim.h"
import "C"

import (
	"context"
	"time"
)

// The longest wait that C can be told of.
const forever = C.int64_t(-1)

// NoWait is a context for calls that shall not wait at all: if they would have to, they return ErrTimeout, or
// ErrFull from a topic that is full. Contexts derived from it, for example by context.WithValue or
// context.WithTimeout, do not wait either, whatever their deadline is.
var NoWait context.Context = noWait{context.Background()}

type noWait struct{ context.Context }

type noWaitKey struct{}

// Value makes NoWait recognizable in the contexts that are derived from it.
func (n noWait) Value(key any) any {
	if key == (noWaitKey{}) {
		return true
	}
	return n.Context.Value(key)
}

// Reports whether the context is NoWait, or derived from it.
func isNoWait(ctx context.Context) bool {
	return ctx == NoWait || ctx != nil && ctx.Value(noWaitKey{}) != nil
}

func doneOf(ctx context.Context) <-chan struct{} {
	if ctx == nil {
		return nil
	}
	return ctx.Done()
}

func timeoutOf(ctx context.Context) C.int64_t {
	if ctx == nil {
		return forever
	}
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
	noAttempt attempt = iota // It would have an effect, and so has an interruption.
	untilTimeout
	untilFull // Or timeout.
)

// A call into C that may wait.
type waitingCall func(timeoutNs C.int64_t) (code, detail C.int32_t)

// Calls C until it need not wait or may not: once without waiting, and then, watched, for as long as the context
// allows. The caller has entered.
func (h *handle) await(ctx context.Context, first attempt, call waitingCall) error {
	return h.awaitSince(h.stops.Load(), ctx, first, call)
}

// The same, for a wait that began when Stop had been called so often.
func (h *handle) awaitSince(stops uint32, ctx context.Context, first attempt, call waitingCall) error {
	if ctx != nil && ctx.Err() != nil {
		return endOf(ctx, nil)
	}
	if isNoWait(ctx) {
		return h.attemptOnly(stops, call)
	}
	if first == noAttempt {
		h.setSteady(1)
		defer h.setSteady(-1)
	} else if doneOf(ctx) != nil {
		code, detail := call(0)
		switch {
		case code == C.LEAT_ERR_TIMEOUT, code == C.LEAT_ERR_STOPPED, code == C.LEAT_ERR_FULL && first == untilFull:
		default:
			return errorOf(code, detail)
		}
	}
	for {
		code, detail := h.callWatched(ctx, call)
		if code == C.LEAT_OK {
			return nil
		}
		if err := h.why(ctx, stops, code, detail); err != nil {
			return err
		}
		if err := h.yield(ctx); err != nil {
			return err
		}
	}
}

func (h *handle) attemptOnly(stops uint32, call waitingCall) error {
	code, detail := call(0)
	if code == C.LEAT_ERR_STOPPED {
		if err := h.why(nil, stops, code, detail); err != nil {
			return err
		}
		code = C.LEAT_ERR_TIMEOUT // Stopped for somebody who wants the lock: not what the caller asks about.
	}
	return errorOf(code, detail)
}

func (h *handle) callWatched(ctx context.Context, call waitingCall) (code, detail C.int32_t) {
	if doneOf(ctx) == nil {
		return call(forever)
	}
	defer h.watch(ctx)()
	return call(timeoutOf(ctx))
}

// The error of a call that may have waited. Nil: it was interrupted for others, and is to go on.
func (h *handle) why(ctx context.Context, stops uint32, code, detail C.int32_t) error {
	hasEnded := ctx != nil && (ctx.Err() != nil || timeoutOf(ctx) == 0)
	h.signals.Lock()
	defer h.signals.Unlock()
	switch code {
	case C.LEAT_ERR_STOPPED:
		switch {
		case h.closing.Load():
			return ErrHandleClosed
		case h.stopped, h.stops.Load() != stops:
			return errorOf(code, detail)
		case hasEnded:
			return endOf(ctx, nil) // Of a deadline that is ErrTimeout, whoever saw it first.
		}
		return nil
	case C.LEAT_ERR_TIMEOUT:
		if ctx != nil {
			return endOf(ctx, nil)
		}
	case C.LEAT_ERR_NOT_DURABLE:
		if hasEnded {
			return endOf(ctx, errorOf(code, detail))
		}
	}
	return errorOf(code, detail)
}

// Lets others have the lock who want it for a moment, and takes it again.
func (h *handle) yield(ctx context.Context) error {
	h.lock.release()
	h.signals.Lock()
	for h.wanted > 0 {
		h.calm.Wait()
	}
	h.signals.Unlock()
	err := h.lock.acquire(ctx)
	if err != nil {
		h.acquireBriefly() // The caller leaves.
	}
	switch {
	case err != nil:
		return err
	case h.c == nil || h.closing.Load():
		return ErrHandleClosed
	case h.pinned:
		return ErrBusy // Somebody reads in place, or has an open claim.
	}
	return nil
}

func (h *handle) setSteady(change int) {
	h.signals.Lock()
	h.steady += change
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

func (h *handle) setCancelled(cancelled bool) {
	h.signals.Lock()
	h.cancelled = cancelled
	h.applySignals()
	h.signals.Unlock()
}
