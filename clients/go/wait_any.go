package leat

// #include "shim.h"
import "C"

import "context"

// WaitAny waits until Poll of one of the subscribers may have something to do, and returns its index. At
// most 64 subscribers, each of them once. ErrBusy: another goroutine uses one of them; while this waits, others
// that use one wait for it.
func WaitAny(ctx context.Context, subscribers ...*Subscriber) (int, error) {
	if len(subscribers) == 0 || len(subscribers) > C.LEAT_MAX_WAIT_ANY {
		return 0, invalid("WaitAny got %d subscribers, and waits for 1 to %d", len(subscribers), C.LEAT_MAX_WAIT_ANY)
	}
	if !areDistinct(subscribers) {
		return 0, invalid("WaitAny got a nil subscriber, or one twice")
	}
	all := make([]*C.leat_subscriber, len(subscribers))
	stops := make([]uint32, len(subscribers))
	for i, s := range subscribers {
		if err := s.enterToWait(); err != nil {
			return 0, err
		}
		defer s.leaveWait()
		all[i] = s.subscriber()
		stops[i] = s.stops.Load()
	}
	if ctx != nil && ctx.Err() != nil {
		return 0, endOf(ctx, nil)
	}
	var index C.uint32_t
	// Memory of pointers of C only, which Go lets C see.
	wait := func(timeoutNs C.int64_t) (code, detail C.int32_t) {
		return C.leat_subscriber_wait_any(&all[0], C.uint32_t(len(all)), timeoutNs, &index), 0
	}
	code, detail := wait(0)
	if code == C.LEAT_ERR_TIMEOUT && !isNoWait(ctx) {
		code, detail = subscribers[0].callWatched(ctx, wait)
	}
	if code == C.LEAT_OK {
		return int(index), nil
	}
	for i, s := range subscribers[1:] { // Whether it was another one that was stopped or closed.
		if err := s.why(nil, stops[i+1], code, detail); err != nil && code == C.LEAT_ERR_STOPPED {
			return 0, err
		}
	}
	if isNoWait(ctx) {
		return 0, errorOf(code, detail)
	}
	err := subscribers[0].why(ctx, stops[0], code, detail)
	if err == nil {
		err = errorOf(code, detail)
	}
	return 0, err
}

func areDistinct(subscribers []*Subscriber) bool {
	for i, s := range subscribers {
		if s == nil {
			return false
		}
		for _, other := range subscribers[:i] {
			if other == s {
				return false
			}
		}
	}
	return true
}

// As enter, but does not wait for others: two that each hold what the other one wants would wait forever.
// Nobody interrupts the wait for a moment, because it cannot go on.
func (s *Subscriber) enterToWait() error {
	if !s.lock.tryAcquire() {
		return ErrBusy
	}
	if err := s.entered(); err != nil {
		return err
	}
	if s.pinned {
		s.leave()
		return ErrBusy
	}
	s.setSteady(1)
	return nil
}

func (s *Subscriber) leaveWait() {
	s.setSteady(-1)
	s.leave()
}
