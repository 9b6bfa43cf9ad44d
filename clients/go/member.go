package leat

// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"context"
	"runtime"
	"time"
	"unsafe"
)

// Member receives records as part of a group. What it does not acknowledge goes to other members when it is
// closed or its process dies.
type Member struct {
	handle
	arena   arena
	room    int // How many deliveries have room in the handle's buffer.
	one     [1]Delivery
	settled []C.leatgo_delivery
}

// The longest name of a member, in bytes.
const maxMemberName = 63

var memberKind = &kind{
	stop:   func(c unsafe.Pointer) { C.leat_member_stop((*C.leat_member)(c)) },
	resume: func(c unsafe.Pointer) { C.leat_member_resume((*C.leat_member)(c)) },
	close: func(c unsafe.Pointer) C.int32_t {
		member := (*C.leat_member)(c)
		return C.leat_member_close(&member)
	},
}

// Delivery is a record that a member holds until it is acknowledged or requeued; or (durable topics) a
// gap, which is held by nobody. It may be copied: any copy acknowledges it.
type Delivery struct {
	Record
	Deliveries int // 1: the first delivery. 0: a gap.
	state      uint64
	position   uint64
	entry      uint64
}

func (d *Delivery) c() C.leatgo_delivery {
	given := C.leatgo_delivery{
		offset:     C.uint64_t(d.Offset),
		partition:  C.uint16_t(d.Partition),
		state:      C.uint64_t(d.state),
		position:   C.uint64_t(d.position),
		entry:      C.uint64_t(d.entry),
		deliveries: C.uint32_t(d.Deliveries),
	}
	if d.IsGap() {
		given.flags = C.LEAT_RECORD_IS_GAP
	}
	return given
}

// Join makes a member of the group.
func (g *Group) Join(options MemberOptions) (*Member, error) {
	if err := g.enter(); err != nil {
		return nil, err
	}
	defer g.lock.RUnlock()
	var held texts
	defer held.free()
	given := C.leat_member_options{
		size:        C.sizeof_leat_member_options,
		any_thread:  1,
		spin_ns:     duration(options.Spin),
		patience_ns: duration(options.Patience),
		name:        held.bytes(options.Name),
	}
	var c *C.leat_member
	var detail C.int32_t
	if code := C.leat_group_join(g.c, &given, &c, &detail); code != C.LEAT_OK {
		if code == C.LEAT_ERR_INVALID_ARGUMENT && len(options.Name) > maxMemberName {
			return nil, invalid("name of a member has %d bytes, and at most %d are allowed", len(options.Name), maxMemberName)
		}
		return nil, errorOf(code, detail)
	}
	m := &Member{}
	m.init(memberKind, unsafe.Pointer(c))
	runtime.SetFinalizer(m, func(m *Member) { _ = m.close() })
	return m, nil
}

// Close leaves the group. Records that were not acknowledged go to other members.
func (m *Member) Close() error {
	err := m.close()
	if err == nil { // Of a zero value, which may lie anywhere, the runtime would not take this.
		runtime.SetFinalizer(m, nil)
	}
	return err
}

func (m *Member) member() *C.leat_member { return (*C.leat_member)(m.c) }

func (m *Member) deliveries() *C.leat_delivery { return (*C.leat_delivery)(m.buffer) }

func (m *Member) reserve(count int) int {
	if count > maxBatch {
		count = maxBatch
	}
	if count > m.room {
		C.free(m.buffer)
		m.buffer = C.malloc(C.size_t(count) * C.sizeof_leat_delivery)
		m.room = count
	}
	return count
}

func (m *Member) receive(deliveries []Delivery, timeoutNs C.int64_t) (int, C.int32_t, C.int32_t) {
	buffer, room := m.arena.room()
	batch := C.leatgo_receive(m.member(), m.deliveries(), C.uint32_t(len(deliveries)), timeoutNs,
		buffer, room)
	if batch.count == 0 {
		return 0, batch.code, batch.detail
	}
	bytes, isThere := m.arena.take(uint64(batch.bytes))
	if !isThere {
		C.leatgo_copy_delivered(m.deliveries(), batch.count, addressOf(bytes), batch.bytes)
	}
	all := unsafe.Slice(m.deliveries(), int(batch.count))
	for i := range all {
		d, from := &deliveries[i], &all[i]
		bytes = d.unpack((*RecordView)(unsafe.Pointer(&from.record)), bytes)
		d.Deliveries = int(from.deliveries)
		d.state, d.position, d.entry = uint64(from.state), uint64(from.position), uint64(from.entry)
	}
	return int(batch.count), batch.code, batch.detail
}

// Receive waits for a record.
func (m *Member) Receive(ctx context.Context) (Delivery, error) {
	if err := m.enter(ctx); err != nil {
		return Delivery{}, err
	}
	defer m.leave()
	m.reserve(1)
	err := m.await(ctx, untilTimeout, func(timeoutNs C.int64_t) (code, detail C.int32_t) {
		_, code, detail = m.receive(m.one[:], timeoutNs)
		return code, detail
	})
	received := m.one[0]
	m.one[0] = Delivery{}
	return received, err
}

// ReceiveBatch waits for a record, and returns up to `limit` of those that are there.
func (m *Member) ReceiveBatch(ctx context.Context, limit int) ([]Delivery, error) {
	if limit <= 0 {
		return nil, invalid("limit is %d, and must be at least 1", limit)
	}
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	defer m.leave()
	deliveries := make([]Delivery, m.reserve(limit))
	count := 0
	err := m.await(ctx, untilTimeout, func(timeoutNs C.int64_t) (code, detail C.int32_t) {
		count, code, detail = m.receive(deliveries, timeoutNs)
		return code, detail
	})
	if err != nil {
		return nil, err
	}
	return deliveries[:count], nil
}

// ReceiveCopy waits for a record, copies its value into the buffer, returns its size, and acknowledges it. With
// ErrBufferTooSmall the size is what it needs, and the next call returns the same record. Gaps are kept for
// Receive.
func (m *Member) ReceiveCopy(ctx context.Context, buffer []byte) (size int, err error) {
	if err := m.enter(ctx); err != nil {
		return 0, err
	}
	defer m.leave()
	var copied C.leatgo_result
	err = m.await(ctx, untilTimeout, func(timeoutNs C.int64_t) (code, detail C.int32_t) {
		copied = C.leatgo_receive_copy(m.member(), addressOf(buffer), C.uint64_t(len(buffer)), timeoutNs)
		return copied.code, copied.detail
	})
	return int(copied.number), err
}

// Wait waits until Receive may have something to do.
func (m *Member) Wait(ctx context.Context) error {
	if err := m.enter(ctx); err != nil {
		return err
	}
	defer m.leave()
	return m.await(ctx, untilTimeout, func(timeoutNs C.int64_t) (code, detail C.int32_t) {
		return C.leat_member_wait(m.member(), timeoutNs), 0
	})
}

// WaitFd is as that of Subscriber; then receive, with NoWait, until ErrTimeout.
func (m *Member) WaitFd() (int, error) {
	if err := m.enterBriefly(); err != nil {
		return -1, err
	}
	defer m.leave()
	var fd, detail C.int32_t
	code := C.leat_member_wait_fd(m.member(), &fd, &detail)
	return int(fd), errorOf(code, detail)
}

// Acknowledge tells the group that these records are done: they are never delivered again. Returns how many of
// them this member held; an error only if there were records and it held none.
func (m *Member) Acknowledge(deliveries ...Delivery) (int, error) {
	if err := m.enterBriefly(); err != nil {
		return 0, err
	}
	defer m.leave()
	switch len(deliveries) {
	case 0:
		return 0, nil
	case 1:
		return m.settle(&deliveries[0], C.LEATGO_ACKNOWLEDGE, 0)
	}
	m.settled = m.settled[:0]
	for i := range deliveries {
		m.settled = append(m.settled, deliveries[i].c())
	}
	result := C.leatgo_acknowledge_some(m.member(), &m.settled[0], C.uint64_t(len(m.settled)))
	return int(result.number), errorOf(result.code, result.detail)
}

// AcknowledgeUpTo acknowledges the record and all that this member received before it; returns how many.
func (m *Member) AcknowledgeUpTo(delivery Delivery) (int, error) {
	if err := m.enterBriefly(); err != nil {
		return 0, err
	}
	defer m.leave()
	return m.settle(&delivery, C.LEATGO_ACKNOWLEDGE_UP_TO, 0)
}

// AcknowledgeAll acknowledges all that the member holds; returns how many.
func (m *Member) AcknowledgeAll() (int, error) {
	if err := m.enterBriefly(); err != nil {
		return 0, err
	}
	defer m.leave()
	var count C.uint64_t
	code := C.leat_member_acknowledge_all(m.member(), &count)
	return int(count), errorOf(code, 0)
}

// Requeue makes the record available to any member again, after a delay.
func (m *Member) Requeue(delivery Delivery, delay time.Duration) error {
	if err := m.enterBriefly(); err != nil {
		return err
	}
	defer m.leave()
	_, err := m.settle(&delivery, C.LEATGO_REQUEUE, delay)
	return err
}

func (m *Member) settle(delivery *Delivery, how C.uint32_t, delay time.Duration) (int, error) {
	result := C.leatgo_settle(m.member(), delivery.c(), how, C.int64_t(delay))
	if result.code != C.LEAT_OK {
		return 0, errorOf(result.code, result.detail)
	}
	return int(result.number), nil
}

// InFlight is how many records the member holds or has taken in advance for its next calls.
func (m *Member) InFlight() (int, error) {
	if err := m.enterBriefly(); err != nil {
		return 0, err
	}
	defer m.leave()
	var count C.uint64_t
	code := C.leat_member_in_flight(m.member(), &count)
	return int(count), errorOf(code, 0)
}
