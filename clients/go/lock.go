package leat

import (
	"context"
	"runtime"
	"sync/atomic"
)

// A mutex that one can stop waiting for. Free it costs as much as sync.Mutex.
type lock struct {
	state atomic.Int32  // 0: free, 1: held, 2: held, and somebody may be waiting
	wake  chan struct{} // room for one; nil: the handle was not made by this package
}

func (l *lock) tryAcquire() bool { return l.state.CompareAndSwap(0, 1) }

// Waits for the lock, or for the context.
func (l *lock) acquire(ctx context.Context) error {
	if l.tryAcquire() {
		return nil
	}
	if l.wake == nil {
		return ErrHandleClosed
	}
	done := doneOf(ctx)
	for l.state.Swap(2) != 0 {
		select {
		case <-l.wake:
		case <-done:
			return endOf(ctx, nil)
		}
	}
	return nil
}

func (l *lock) release() {
	if l.state.Swap(0) == 2 {
		select {
		case l.wake <- struct{}{}:
		default: // Somebody is being woken already.
		}
		runtime.Gosched() // Or else this goroutine would have it again before that one runs.
	}
}
