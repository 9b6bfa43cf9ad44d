package leat

// #include "shim.h"
import "C"

import (
	"encoding/binary"
	"time"
	"unsafe"
)

// Partition names a partition, or any: the zero value.
type Partition struct{ next uint32 }

// AnyPartition names none: of records to publish, the one that the key selects, or else the publisher's; of
// subscribers, all.
var AnyPartition = Partition{}

// InPartition names one.
func InPartition(number int) Partition {
	if number < 0 || number >= 1<<31 {
		return Partition{next: 1 << 31} // No topic has it.
	}
	return Partition{next: uint32(number) + 1}
}

func (p Partition) c() C.uint32_t { return C.uint32_t(p.next - 1) } // LEAT_ANY_PARTITION is -1.

// Header is a named value that travels with a record. Names need not be unique, nor be text.
type Header struct {
	Name  string // most often a text
	Value []byte // what belongs to the name
}

// NewRecord is a record to publish.
type NewRecord struct {
	Value     []byte    // What is published.
	Key       []byte    // Also selects the partition. Nil: no key, which is not the same as an empty one.
	Headers   []Header  // In this order.
	Partition Partition // Overrides the one that the key selects.
}

// GapReason says why offsets hold no record.
type GapReason uint32

// Why offsets hold no record.
const (
	GapAborted     GapReason = C.LEAT_GAP_ABORTED     // the publisher aborted its claim
	GapDied        GapReason = C.LEAT_GAP_DIED        // the publisher died between claim and commit
	GapRevoked     GapReason = C.LEAT_GAP_REVOKED     // the publisher did not run for too long
	GapOverwritten GapReason = C.LEAT_GAP_OVERWRITTEN // a lossy subscriber was overtaken
	GapDamaged     GapReason = C.LEAT_GAP_DAMAGED     // a checksum on disk does not match
	GapLost        GapReason = C.LEAT_GAP_LOST        // the machine failed before they were on disk
)

// String is the reason's name, for example "aborted".
func (r GapReason) String() string { return C.GoString(C.leat_gap_reason_name(C.uint32_t(r))) }

// Gap describes offsets that hold no record.
type Gap struct {
	Count  uint64    // How many offsets, beginning with the record's.
	Reason GapReason // 0: not a gap.
}

// Record is a record as delivered, or a gap: offsets that will not be delivered. Its bytes are Go's. The
// records of one batch share memory, which is freed when none of them is used any more.
type Record struct {
	Value       []byte // Nil: a gap.
	Key         []byte // Nil without a key, which is not the same as an empty one.
	Offset      uint64 // Of a gap: the first one.
	Partition   int    // In which it lies.
	TimestampMs int64  // When it was published, in milliseconds since 1970; -1 without a timestamp.
	Gap         Gap    // If IsGap.
	headers     []byte
}

// IsGap tells whether this stands for offsets without a record.
func (r *Record) IsGap() bool { return r.Gap.Reason != 0 }

// Time is when it was published; the zero time without a timestamp.
func (r *Record) Time() time.Time { return timeOf(r.TimestampMs) }

// Headers decodes the headers.
func (r *Record) Headers() []Header { return decodeHeaders(r.headers) }

func timeOf(ms int64) time.Time {
	if ms == -1 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// Other processes wrote these bytes: a header that is not complete ends them.
func decodeHeaders(bytes []byte) []Header {
	var headers []Header
	for len(bytes) >= 8 {
		nameSize := uint64(binary.LittleEndian.Uint32(bytes))
		valueSize := uint64(binary.LittleEndian.Uint32(bytes[4:]))
		bytes = bytes[8:]
		if nameSize+valueSize > uint64(len(bytes)) {
			break
		}
		headers = append(headers, Header{
			Name:  string(bytes[:nameSize]),
			Value: bytes[nameSize : nameSize+valueSize : nameSize+valueSize],
		})
		bytes = bytes[nameSize+valueSize:]
	}
	return headers
}

// Makes a copy of what `from` tells, and of the bytes at the front of `bytes`, which are the record's. Returns the others.
func (r *Record) unpack(from *RecordView, bytes []byte) []byte {
	r.Offset = from.offset
	r.Partition = int(from.partition)
	r.TimestampMs = from.TimestampMs()
	r.Gap = from.Gap()
	// The collector is told of each pointer that is written, even of nil.
	if r.Key != nil {
		r.Key = nil
	}
	if r.headers != nil {
		r.headers = nil
	}
	if from.IsGap() {
		r.Value = nil
		return bytes
	}
	if from.flags&(C.LEAT_RECORD_HAS_KEY|C.LEAT_RECORD_HAS_HEADERS) != 0 {
		key, headers := uint(from.keySize), uint(from.headersSize)
		if from.flags&C.LEAT_RECORD_HAS_KEY != 0 {
			r.Key = bytes[:key:key]
		}
		r.headers = bytes[key : key+headers : key+headers]
		bytes = bytes[key+headers:]
	}
	value := uint(from.valueSize)
	r.Value = bytes[:value:value]
	return bytes[value:]
}

// ---- Memory for values --------------------------------------------------------------------------

// Memory for the bytes of batches. What one batch leaves of a chunk serves the next.
type arena struct {
	free []byte
	last int // What the last batch needed.
}

const chunkSize = 32 << 10

// Some room, in which the next batch probably fits.
func (a *arena) room() (*C.uint8_t, C.uint64_t) {
	if len(a.free) < a.last || len(a.free) == 0 {
		size := chunkSize
		if a.last > size {
			size = a.last
		}
		a.free = make([]byte, size)
	}
	return addressOf(a.free), C.uint64_t(len(a.free))
}

// Takes the first bytes. False: they are fewer than that, and the result is other memory. What is expected next
// has a limit: a large batch is worth a second call, and small records shall not keep memory for large ones.
func (a *arena) take(size uint64) ([]byte, bool) {
	a.last = int(size)
	if a.last > maxKept {
		a.last = maxKept
	}
	if size > uint64(len(a.free)) {
		return make([]byte, size), false
	}
	taken := a.free[:size:size]
	a.free = a.free[size:]
	return taken, true
}

// Where bytes are, nil if there are none.
func addressOf(bytes []byte) *C.uint8_t {
	if len(bytes) == 0 {
		return nil
	}
	return (*C.uint8_t)(unsafe.Pointer(&bytes[0]))
}
