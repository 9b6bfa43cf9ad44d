package leat

// #include "shim.h"
import "C"

import (
	"context"
	"encoding/binary"
	"unsafe"
)

// RecordView is a record, or a gap, whose bytes lie in the topic itself. Its slices must not be written: that
// ends the program. Whoever keeps one longer than the batch reads bytes of other records.
type RecordView struct {
	value       unsafe.Pointer // As leat_record, and of the same layout.
	offset      uint64
	valueSize   uint32
	keySize     uint32
	headersSize uint32
	partition   uint16
	flags       uint16
}

var _ = [1]struct{}{}[unsafe.Sizeof(RecordView{})-C.sizeof_leat_record]

// Offset is the record's offset. Of a gap: the first one.
func (v *RecordView) Offset() uint64 { return v.offset }

// Partition is the record's partition.
func (v *RecordView) Partition() int { return int(v.partition) }

// IsGap tells whether this stands for offsets without a record.
func (v *RecordView) IsGap() bool { return v.flags&C.LEAT_RECORD_IS_GAP != 0 }

// Gap describes a gap.
func (v *RecordView) Gap() Gap {
	if !v.IsGap() {
		return Gap{}
	}
	return Gap{Count: uint64(v.keySize)<<32 | uint64(v.valueSize), Reason: GapReason(v.headersSize)}
}

// Value is the record's value; nil for a gap.
func (v *RecordView) Value() []byte {
	if v.IsGap() || v.value == nil {
		return nil
	}
	return unsafe.Slice((*byte)(v.value), int(v.valueSize))
}

// Key is the record's key; nil without one, which is not the same as an empty one.
func (v *RecordView) Key() []byte {
	if v.flags&C.LEAT_RECORD_HAS_KEY == 0 {
		return nil
	}
	return v.before(uintptr(v.headersSize)+uintptr(v.keySize), int(v.keySize))
}

// Headers decodes the headers. Their names are copies.
func (v *RecordView) Headers() []Header {
	if v.flags&C.LEAT_RECORD_HAS_HEADERS == 0 {
		return nil
	}
	return decodeHeaders(v.before(uintptr(v.headersSize), int(v.headersSize)))
}

// TimestampMs is when it was published, in milliseconds since 1970; -1 without a timestamp.
func (v *RecordView) TimestampMs() int64 {
	if v.flags&C.LEAT_RECORD_HAS_TIMESTAMP == 0 {
		return -1
	}
	return int64(binary.LittleEndian.Uint64(v.before(uintptr(v.prefix()), 8)))
}

// Bytes that begin so far before the value.
func (v *RecordView) before(distance uintptr, size int) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(v.value, -int(distance))), size)
}

// Copy makes a record with bytes of its own.
func (v *RecordView) Copy() Record {
	record := Record{
		Offset: v.offset, Partition: v.Partition(), TimestampMs: v.TimestampMs(), Gap: v.Gap(),
	}
	if v.IsGap() {
		return record
	}
	before := int(v.keySize + v.headersSize)
	bytes := make([]byte, before+int(v.valueSize))
	copy(bytes, v.before(uintptr(before), len(bytes)))
	if v.flags&C.LEAT_RECORD_HAS_KEY != 0 {
		record.Key = bytes[:v.keySize:v.keySize]
	}
	record.headers = bytes[v.keySize:before:before]
	record.Value = bytes[before:]
	return record
}

// View waits for the next records or gaps, and calls the function with up to `limit` of them, to read them
// where they lie. The batch and its slices end with the function. While it runs, other calls that read
// with this subscriber return ErrBusy. Returns its error; the records count as delivered all the same.
//
// A lossy subscriber without InPlace, and one that reads old records of a durable topic from disk, has
// copies anyway: then so are the views, and all are where the process's addresses are limited (RLIMIT_AS).
func (s *Subscriber) View(ctx context.Context, limit int, do func(batch []RecordView) error) error {
	if limit <= 0 {
		return invalid("limit is %d, and must be at least 1", limit)
	}
	if do == nil {
		return invalid("View needs a function")
	}
	batch, err := s.view(ctx, limit)
	if err != nil {
		return err
	}
	defer func() { // Also if the function panics.
		s.unpin()
		s.leave()
	}()
	return do(batch)
}

// Reads a batch, and keeps the subscriber from being used until it is unpinned.
func (s *Subscriber) view(ctx context.Context, limit int) ([]RecordView, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	if s.mirrors == nil {
		s.leave()
		return nil, ErrNoMemory
	}
	limit = s.reserve(limit)
	var read C.leatgo_batch
	err := s.await(ctx, untilTimeout, func(timeoutNs C.int64_t) (code, detail C.int32_t) {
		read = C.leatgo_view(s.subscriber(), s.records(), C.uint32_t(limit), timeoutNs, s.mirrors,
			&s.skip)
		return read.code, read.detail
	})
	if err != nil {
		s.leave()
		return nil, err
	}
	count := int(read.count)
	if cap(s.views) < count {
		s.views = make([]RecordView, limit)
	}
	s.views = s.views[:count]
	copy(s.views, unsafe.Slice((*RecordView)(s.buffer), count))
	if read.bytes != 0 {
		copyViews(s.views, make([]byte, read.bytes+1))
	}
	s.pin()
	return s.views, nil
}

// Makes those views that do not lie in shared memory lie in `room`, which holds all of them and a byte more,
// so that nothing points behind it.
func copyViews(views []RecordView, room []byte) {
	for i := range views {
		v := &views[i]
		if v.flags&C.LEATGO_COPY_ME == 0 {
			continue
		}
		v.flags &^= C.LEATGO_COPY_ME
		prefix := v.prefix()
		size := prefix + int(v.valueSize)
		copy(room, v.before(uintptr(prefix), size))
		// Of a value without bytes, this is the end of what lies before it.
		v.value = unsafe.Add(unsafe.Pointer(&room[0]), prefix)
		room = room[size:]
	}
}

// How many bytes before the value belong to the record.
func (v *RecordView) prefix() int {
	prefix := int(v.keySize) + int(v.headersSize)
	if v.flags&C.LEAT_RECORD_HAS_TIMESTAMP == 0 {
		return prefix
	}
	prefix += 8
	if v.flags&C.LEAT_RECORD_HAS_KEY != 0 {
		prefix += 4
	}
	if v.flags&C.LEAT_RECORD_HAS_HEADERS != 0 {
		prefix += 4
	}
	return prefix
}
