package leat

// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"context"
	"runtime"
	"unsafe"
)

// Subscriber reads a topic: all its records, or those of one partition.
type Subscriber struct {
	handle
	arena arena
	room  int // How many records have room in the handle's buffer.
	views []RecordView
	skip  C.uint32_t // See leatgo_view.
	one   [1]Record
}

// The most entries that one call reads.
const maxBatch = 4096

var subscriberKind = &kind{
	stop:   func(c unsafe.Pointer) { C.leat_subscriber_stop((*C.leat_subscriber)(c)) },
	resume: func(c unsafe.Pointer) { C.leat_subscriber_resume((*C.leat_subscriber)(c)) },
	close: func(c unsafe.Pointer) C.int32_t {
		subscriber := (*C.leat_subscriber)(c)
		return C.leat_subscriber_close(&subscriber)
	},
}

// Subscriber makes a subscriber.
func (t *Topic) Subscriber(options SubscriberOptions) (*Subscriber, error) {
	if err := t.enter(); err != nil {
		return nil, err
	}
	defer t.lock.RUnlock()
	given := C.leat_subscriber_options{
		size:        C.sizeof_leat_subscriber_options,
		from:        C.uint32_t(options.From.where),
		from_value:  C.uint64_t(options.From.value),
		partition:   options.Partition.c(),
		gating:      flag(!options.Lossy),
		in_place:    flag(options.InPlace),
		read:        C.uint32_t(options.Read),
		any_thread:  1,
		spin_ns:     duration(options.Spin),
		patience_ns: duration(options.Patience),
	}
	var c *C.leat_subscriber
	var detail C.int32_t
	if code := C.leat_topic_subscriber(t.c, &given, &c, &detail); code != C.LEAT_OK {
		return nil, t.partitionError(code, detail, options.Partition)
	}
	s := &Subscriber{}
	s.init(subscriberKind, unsafe.Pointer(c))
	if s.mirrors = t.mirrors; s.mirrors != nil {
		C.leatgo_mirrors_hold(s.mirrors)
	}
	runtime.SetFinalizer(s, func(s *Subscriber) { _ = s.close() })
	return s, nil
}

// Close leaves the topic.
func (s *Subscriber) Close() error {
	err := s.close()
	if err == nil { // Of a zero value, which may lie anywhere, the runtime would not take this.
		runtime.SetFinalizer(s, nil)
	}
	return err
}

func (s *Subscriber) subscriber() *C.leat_subscriber { return (*C.leat_subscriber)(s.c) }

func (s *Subscriber) records() *C.leat_record { return (*C.leat_record)(s.buffer) }

// As that of the handle, for calls that would end the views of a batch.
func (s *Subscriber) enter(ctx context.Context) error {
	err := s.handle.enter(ctx)
	if err == nil && s.pinned {
		s.leave()
		err = ErrBusy
	}
	return err
}

// Has room for so many records, or for as many as one call reads.
func (s *Subscriber) reserve(count int) int {
	if count > maxBatch {
		count = maxBatch
	}
	if count > s.room {
		C.free(s.buffer)
		s.buffer = C.malloc(C.size_t(count) * C.sizeof_leat_record)
		s.room = count
	}
	return count
}

// Reads into `records`, at least one. With LEATGO_POLL instead of a timeout there may be none.
func (s *Subscriber) read(records []Record, timeoutNs C.int64_t) (int, C.int32_t, C.int32_t) {
	buffer, room := s.arena.room()
	batch := C.leatgo_read(s.subscriber(), s.records(), C.uint32_t(len(records)), timeoutNs,
		buffer, room)
	if batch.count == 0 {
		return 0, batch.code, batch.detail
	}
	bytes, isThere := s.arena.take(uint64(batch.bytes))
	if !isThere {
		C.leatgo_copy(s.records(), batch.count, addressOf(bytes), batch.bytes)
	}
	for i, view := range unsafe.Slice((*RecordView)(s.buffer), int(batch.count)) {
		bytes = records[i].unpack(&view, bytes)
	}
	return int(batch.count), batch.code, batch.detail
}

// Poll stores available records and gaps, oldest first within a partition, and returns how many; 0 if nothing is
// there. It never waits.
func (s *Subscriber) Poll(records []Record) (int, error) {
	if len(records) == 0 {
		return 0, invalid("records is empty: there must be room for at least one")
	}
	if err := s.enter(NoWait); err != nil {
		return 0, err
	}
	defer s.leave()
	count, code, detail := s.read(records[:s.reserve(len(records))], C.LEATGO_POLL)
	return count, errorOf(code, detail)
}

// Receive waits for the next record or gap.
func (s *Subscriber) Receive(ctx context.Context) (Record, error) {
	if err := s.enter(ctx); err != nil {
		return Record{}, err
	}
	defer s.leave()
	s.reserve(1)
	err := s.await(ctx, untilTimeout, func(timeoutNs C.int64_t) (code, detail C.int32_t) {
		_, code, detail = s.read(s.one[:], timeoutNs)
		return code, detail
	})
	received := s.one[0]
	s.one[0] = Record{}
	return received, err
}

// ReceiveBatch waits for the next records or gaps, and returns up to `limit` of those that are there.
func (s *Subscriber) ReceiveBatch(ctx context.Context, limit int) ([]Record, error) {
	if limit <= 0 {
		return nil, invalid("limit is %d, and must be at least 1", limit)
	}
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	records := make([]Record, s.reserve(limit))
	count := 0
	err := s.await(ctx, untilTimeout, func(timeoutNs C.int64_t) (code, detail C.int32_t) {
		count, code, detail = s.read(records, timeoutNs)
		return code, detail
	})
	if err != nil {
		return nil, err
	}
	return records[:count], nil
}

// Wait waits until Poll may have something to do.
func (s *Subscriber) Wait(ctx context.Context) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	return s.await(ctx, untilTimeout, func(timeoutNs C.int64_t) (code, detail C.int32_t) {
		return C.leat_subscriber_wait(s.subscriber(), timeoutNs), 0
	})
}

// WaitFd is a descriptor that becomes readable when Poll may have something to do; then poll until there is
// nothing. It belongs to the subscriber.
func (s *Subscriber) WaitFd() (int, error) {
	if err := s.handle.enterBriefly(); err != nil {
		return -1, err
	}
	defer s.leave()
	var fd, detail C.int32_t
	code := C.leat_subscriber_wait_fd(s.subscriber(), &fd, &detail)
	return int(fd), errorOf(code, detail)
}

// Offset is the offset of the next record in a partition; 0 if it does not read that partition.
func (s *Subscriber) Offset(partition int) (uint64, error) {
	if err := s.handle.enterBriefly(); err != nil {
		return 0, err
	}
	defer s.leave()
	var offset C.uint64_t
	code := C.leat_subscriber_offset(s.subscriber(), number(partition, 0), &offset)
	return uint64(offset), errorOf(code, 0)
}

// IsLossy tells whether it may be overtaken: it was made lossy, or was evicted.
func (s *Subscriber) IsLossy() (bool, error) {
	if err := s.handle.enterBriefly(); err != nil {
		return false, err
	}
	defer s.leave()
	var isLossy C.uint32_t
	code := C.leat_subscriber_is_lossy(s.subscriber(), &isLossy)
	return isLossy != 0, errorOf(code, 0)
}
