package leat

// #include "shim.h"
import "C"

import (
	"context"
	"runtime"
	"unsafe"
)

// Claim claims room for a value of `size` bytes in the topic itself, and calls the function to write it there.
// What it returns, at most `size`, is how many bytes are published. If it returns an error or panics, the claim
// is aborted: subscribers see a gap.
//
// Until it returns, subscribers wait, and the publisher's other calls that publish return ErrBusy. The
// room must not be touched afterwards: it is the memory of other processes.
func (p *Publisher) Claim(ctx context.Context, size int, write func(room []byte) (int, error)) (offset uint64, err error) {
	if write == nil {
		return 0, invalid("Claim needs a function")
	}
	claim, err := p.BeginClaim(ctx, size)
	if err != nil {
		return 0, err
	}
	defer claim.Abort() // Of what is still open then, also if the function panics.
	used, err := write(claim.Room)
	if err != nil {
		return 0, err
	}
	return claim.Offset, claim.Commit(used)
}

// OpenClaim is room for one record, of which Commit or Abort must be called, soon: until then subscribers
// wait. If it is dropped, the garbage collector aborts it. Publisher.Claim takes care of all that.
type OpenClaim struct {
	Room   []byte // Where to write the value; nil when it was committed or aborted.
	Offset uint64 // The record's offset.

	state *claimState
}

// What copies of a claim share.
type claimState struct {
	publisher *Publisher
	c         C.leat_claim
	isSettled bool // Under the publisher's lock.
}

// BeginClaim claims room for a value of `size` bytes. A publisher has at most one open claim. Closing it
// aborts the claim, but takes effect only when that is committed or aborted, or was dropped.
func (p *Publisher) BeginClaim(ctx context.Context, size int) (*OpenClaim, error) {
	if size < 0 {
		return nil, invalid("size is %d, and must be at least 0", size)
	}
	if err := p.enter(ctx); err != nil {
		return nil, err
	}
	var claimed C.leatgo_claimed
	err := p.await(ctx, p.claimAttempt(), func(timeoutNs C.int64_t) (code, detail C.int32_t) {
		claimed = C.leatgo_claim(p.publisher(), C.uint64_t(size), timeoutNs)
		return claimed.code, claimed.detail
	})
	if err != nil {
		p.leave()
		return nil, err
	}
	p.pin()
	state := &claimState{publisher: p, c: claimed.claim}
	runtime.SetFinalizer(state, func(state *claimState) { _ = state.settle(abortIt) })
	room := unsafe.Slice((*byte)(unsafe.Pointer(claimed.claim.data)), size)
	return &OpenClaim{Room: room, Offset: uint64(claimed.claim.offset), state: state}, nil
}

// Claiming does not wait for the disk.
func (p *Publisher) claimAttempt() attempt {
	if p.first == noAttempt {
		return untilFull
	}
	return p.first
}

// Commit publishes the first `used` bytes. It never waits. ErrInvalidArgument: these are more than were claimed,
// and the claim stays open. ErrNotInFlight: it was committed or aborted already.
func (claim *OpenClaim) Commit(used int) error {
	if used < 0 {
		return ErrInvalidArgument
	}
	return claim.settle(used)
}

// Abort gives the room up: subscribers see a gap.
func (claim *OpenClaim) Abort() error { return claim.settle(abortIt) }

const abortIt = -1

func (claim *OpenClaim) settle(used int) error {
	if claim.state == nil {
		return ErrNotInFlight // Made by nobody.
	}
	err := claim.state.settle(used)
	if err != ErrInvalidArgument && err != ErrNotInFlight { // This call settled it.
		claim.Room = nil
	}
	return err
}

func (state *claimState) settle(used int) error {
	p := state.publisher
	p.acquireBriefly()
	defer p.leave()
	if state.isSettled {
		return ErrNotInFlight
	}
	var result C.leatgo_result
	if used == abortIt || p.closeLater {
		result = C.leatgo_abort(p.publisher(), state.c)
	} else {
		result = C.leatgo_commit(p.publisher(), state.c, C.uint64_t(used))
	}
	if result.code == C.LEAT_ERR_INVALID_ARGUMENT {
		return ErrInvalidArgument
	}
	state.isSettled = true
	runtime.SetFinalizer(state, nil)
	p.pinned = false
	if p.closeLater {
		_ = p.destroy()
		return ErrHandleClosed
	}
	return errorOf(result.code, result.detail)
}
