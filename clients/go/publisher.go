package leat

// #include "shim.h"
import "C"

import (
	"context"
	"encoding/binary"
	"math"
	"runtime"
	"unsafe"
)

// Publisher publishes to a topic. Goroutines may share one; each is faster with its own.
type Publisher struct {
	handle
	first attempt // At publishing.
	// Batches are packed into these.
	packed  []byte
	sizes   []C.uint32_t
	records []C.leatgo_new_record
}

var publisherKind = &kind{
	stop:   func(c unsafe.Pointer) { C.leat_publisher_stop((*C.leat_publisher)(c)) },
	resume: func(c unsafe.Pointer) { C.leat_publisher_resume((*C.leat_publisher)(c)) },
	close: func(c unsafe.Pointer) C.int32_t {
		publisher := (*C.leat_publisher)(c)
		return C.leat_publisher_close(&publisher)
	},
}

// Publisher makes a publisher. ErrBusy: an exclusive one exists, or this one wants to be.
func (t *Topic) Publisher(options PublisherOptions) (*Publisher, error) {
	if err := t.enter(); err != nil {
		return nil, err
	}
	defer t.lock.RUnlock()
	given := C.leat_publisher_options{
		size:        C.sizeof_leat_publisher_options,
		partition:   options.Partition.c(),
		exclusive:   flag(options.Exclusive),
		acknowledge: C.uint32_t(options.Acknowledge),
	}
	info := C.leat_topic_info{size: C.sizeof_leat_topic_info}
	var detail C.int32_t
	if code := C.leat_topic_get_info(t.c, &info, nil, 0, nil, 0, &detail); code != C.LEAT_OK {
		return nil, errorOf(code, detail)
	}
	var c *C.leat_publisher
	if code := C.leat_topic_publisher(t.c, &given, &c, &detail); code != C.LEAT_OK {
		return nil, t.partitionError(code, detail, options.Partition)
	}
	p := &Publisher{}
	p.init(publisherKind, unsafe.Pointer(c))
	p.first = firstAttempt(options, &info)
	if p.first == noAttempt {
		p.steady = 1
	}
	runtime.SetFinalizer(p, func(p *Publisher) { _ = p.close() })
	return p, nil
}

func firstAttempt(options PublisherOptions, info *C.leat_topic_info) attempt {
	switch {
	case options.Acknowledge == StageDurable,
		options.Acknowledge == StageDefault && info.durable == C.LEAT_DURABILITY_FSYNC:
		return noAttempt // It may have published and only not waited for the disk.
	case info.policy == C.LEAT_POLICY_FAIL, info.retain_all != 0:
		return untilTimeout // Full is full.
	}
	return untilFull
}

// Close leaves the topic. An open claim is aborted as soon as its function returns.
func (p *Publisher) Close() error {
	err := p.close()
	if err == nil { // Of a zero value, which may lie anywhere, the runtime would not take this.
		runtime.SetFinalizer(p, nil)
	}
	return err
}

func (p *Publisher) publisher() *C.leat_publisher { return (*C.leat_publisher)(p.c) }

// Publish publishes a record and returns its offset. If the topic is full, it waits, if its policy says so.
func (p *Publisher) Publish(value []byte) (offset uint64, err error) {
	if err := p.enter(nil); err != nil {
		return 0, err
	}
	stops := p.stops.Load()
	result := C.leatgo_publish(p.publisher(), addressOf(value), C.uint64_t(len(value)), forever)
	if result.code != C.LEAT_OK {
		return p.goOn(stops, result, func(timeoutNs C.int64_t) C.leatgo_result {
			return C.leatgo_publish(p.publisher(), addressOf(value), C.uint64_t(len(value)), timeoutNs)
		})
	}
	p.leave()
	return uint64(result.number), nil
}

// After a failure: publishes again if the wait was interrupted for others. Leaves.
func (p *Publisher) goOn(stops uint32, result C.leatgo_result, publish func(timeoutNs C.int64_t) C.leatgo_result) (uint64, error) {
	defer p.leave()
	err := p.why(nil, stops, result.code, result.detail)
	if err == nil {
		err = p.yield(nil)
	}
	if err != nil {
		return uint64(result.number), err
	}
	return p.publishing(stops, nil, publish)
}

// PublishContext is Publish, for as long as the context allows. If the context ends first, nothing was
// published, with one exception: an error that is ErrNotDurable too says that the record was published, and
// only the wait for stable storage ended.
func (p *Publisher) PublishContext(ctx context.Context, value []byte) (offset uint64, err error) {
	if err := p.enter(ctx); err != nil {
		return 0, err
	}
	defer p.leave()
	return p.publishing(p.stops.Load(), ctx, func(timeoutNs C.int64_t) C.leatgo_result {
		return C.leatgo_publish(p.publisher(), addressOf(value), C.uint64_t(len(value)), timeoutNs)
	})
}

// Calls what publishes, for as long as the context allows. The caller has entered.
func (p *Publisher) publishing(stops uint32, ctx context.Context, publish func(timeoutNs C.int64_t) C.leatgo_result) (uint64, error) {
	var result C.leatgo_result
	err := p.awaitSince(stops, ctx, p.first, func(timeoutNs C.int64_t) (code, detail C.int32_t) {
		result = publish(timeoutNs)
		return result.code, result.detail
	})
	return uint64(result.number), err
}

// PublishRecord publishes a record with a key, headers, a partition, or any of these.
func (p *Publisher) PublishRecord(ctx context.Context, record NewRecord) (offset uint64, err error) {
	if err := p.enter(ctx); err != nil {
		return 0, err
	}
	defer p.leave()
	if err := p.pack([]NewRecord{record}); err != nil {
		return 0, err
	}
	return p.publishing(p.stops.Load(), ctx, func(timeoutNs C.int64_t) C.leatgo_result {
		return C.leatgo_publish_record(p.publisher(), addressOf(p.packed), &p.records[0], timeoutNs)
	})
}

// PublishBatch publishes values as one batch: they become visible together, with consecutive offsets, in the
// publisher's partition. All are published, or none. Returns the offset of the first. Together they take at
// most half a segment.
func (p *Publisher) PublishBatch(ctx context.Context, values [][]byte) (offset uint64, err error) {
	if err := p.enter(ctx); err != nil {
		return 0, err
	}
	defer p.leave()
	if err := p.packValues(values); err != nil {
		return 0, err
	}
	return p.publishing(p.stops.Load(), ctx, func(timeoutNs C.int64_t) C.leatgo_result {
		return C.leatgo_publish_values(p.publisher(), addressOf(p.packed), &p.sizes[0],
			C.uint64_t(len(values)), AnyPartition.c(), timeoutNs)
	})
}

// PublishRecordBatch publishes records as one batch, in one partition (AnyPartition: the publisher's; keys select
// none).
func (p *Publisher) PublishRecordBatch(ctx context.Context, records []NewRecord, partition Partition) (offset uint64, err error) {
	if err := p.enter(ctx); err != nil {
		return 0, err
	}
	defer p.leave()
	if len(records) == 0 {
		return 0, errEmptyBatch
	}
	if err := p.pack(records); err != nil {
		return 0, err
	}
	return p.publishing(p.stops.Load(), ctx, func(timeoutNs C.int64_t) C.leatgo_result {
		return C.leatgo_publish_records(p.publisher(), addressOf(p.packed), &p.records[0],
			C.uint64_t(len(records)), partition.c(), timeoutNs)
	})
}

// ---- Packing ------------------------------------------------------------------------------------

// Buffers that became larger than this are not kept for the next batch.
const maxKept = 1 << 20

// Whether so many bytes cannot be a batch, which takes at most half a segment: they are not even copied.
func (p *Publisher) isFarTooMuch(total uint64) bool {
	return total > maxKept && (total > math.MaxUint32 || total > 4*p.maxRecordSize())
}

func (p *Publisher) maxRecordSize() uint64 {
	var bytes C.uint64_t
	C.leat_publisher_max_record_size(p.publisher(), &bytes)
	return uint64(bytes)
}

func (p *Publisher) tooLarge() error {
	most := p.maxRecordSize()
	if most > math.MaxInt32 {
		most = math.MaxInt32
	}
	return &Error{Code: CodeTooLarge, Detail: int32(most)}
}

func (p *Publisher) packValues(values [][]byte) error {
	if len(values) == 0 {
		return errEmptyBatch
	}
	total := uint64(0)
	for _, value := range values {
		total += uint64(len(value))
	}
	if p.isFarTooMuch(total) {
		return p.tooLarge()
	}
	p.packed = emptied(p.packed)
	p.sizes = p.sizes[:0]
	for _, value := range values {
		p.packed = append(p.packed, value...)
		p.sizes = append(p.sizes, C.uint32_t(len(value)))
	}
	// Where all are empty, they have an address too.
	p.packed = append(p.packed, 0)
	return nil
}

func emptied(buffer []byte) []byte {
	if cap(buffer) > maxKept {
		return nil
	}
	return buffer[:0]
}

func (p *Publisher) pack(records []NewRecord) error {
	total := uint64(0)
	for i := range records {
		total += records[i].size()
	}
	if p.isFarTooMuch(total) {
		return p.tooLarge()
	}
	p.packed = emptied(p.packed)
	p.records = p.records[:0]
	for i := range records {
		record := &records[i]
		p.packed = append(p.packed, record.Value...)
		p.packed = append(p.packed, record.Key...)
		for _, header := range record.Headers {
			p.packed = appendUint32(p.packed, len(header.Name))
			p.packed = appendUint32(p.packed, len(header.Value))
			p.packed = append(p.packed, header.Name...)
			p.packed = append(p.packed, header.Value...)
		}
		p.records = append(p.records, C.leatgo_new_record{
			value_size:   C.uint32_t(len(record.Value)),
			key_size:     C.uint32_t(len(record.Key)),
			header_count: C.uint32_t(len(record.Headers)),
			partition:    record.Partition.c(),
			has_key:      flag(record.Key != nil),
		})
	}
	// An empty key has an address too.
	p.packed = append(p.packed, 0)
	return nil
}

// The sum of its bytes.
func (r *NewRecord) size() uint64 {
	size := uint64(len(r.Value)) + uint64(len(r.Key))
	for i := range r.Headers {
		size += 8 + uint64(len(r.Headers[i].Name)) + uint64(len(r.Headers[i].Value))
	}
	return size
}

func appendUint32(to []byte, number int) []byte {
	var bytes [4]byte
	binary.LittleEndian.PutUint32(bytes[:], uint32(number))
	return append(to, bytes[:]...)
}

// ---- Durable topics -----------------------------------------------------------------------------

// Flush waits until everything that this publisher has published is on stable storage. If the context ends
// first, the error is ErrNotDurable too.
func (p *Publisher) Flush(ctx context.Context) error {
	if err := p.enter(ctx); err != nil {
		return err
	}
	defer p.leave()
	return p.await(ctx, noAttempt, func(timeoutNs C.int64_t) (code, detail C.int32_t) {
		code = C.leat_publisher_flush(p.publisher(), timeoutNs, &detail)
		return code, detail
	})
}

// RequestSync asks for the same, and does not wait; see DurableOffset.
func (p *Publisher) RequestSync() error {
	if err := p.enterBriefly(); err != nil {
		return err
	}
	defer p.leave()
	var detail C.int32_t
	return errorOf(C.leat_publisher_request_sync(p.publisher(), &detail), detail)
}

// DurableOffset is the offset of a partition (AnyPartition: the publisher's) before which everything is on
// stable storage. 0 for topics that are not durable.
func (p *Publisher) DurableOffset(partition Partition) (uint64, error) {
	if err := p.enterBriefly(); err != nil {
		return 0, err
	}
	defer p.leave()
	var offset C.uint64_t
	code := C.leat_publisher_durable_offset(p.publisher(), partition.c(), &offset)
	return uint64(offset), errorOf(code, 0)
}

// LastOffset is the offset of the record that was published last with StageDurable, with or without an error of
// the disk.
func (p *Publisher) LastOffset() (uint64, error) {
	if err := p.enterBriefly(); err != nil {
		return 0, err
	}
	defer p.leave()
	var offset C.uint64_t
	code := C.leat_publisher_last_offset(p.publisher(), &offset)
	return uint64(offset), errorOf(code, 0)
}

// MaxRecordSize is as that of Topic.
func (p *Publisher) MaxRecordSize() (uint64, error) {
	if err := p.enterBriefly(); err != nil {
		return 0, err
	}
	defer p.leave()
	return p.maxRecordSize(), nil
}

// Partition is the partition of records that have no key.
func (p *Publisher) Partition() (int, error) {
	if err := p.enterBriefly(); err != nil {
		return 0, err
	}
	defer p.leave()
	var partition C.uint32_t
	code := C.leat_publisher_partition(p.publisher(), &partition)
	return int(partition), errorOf(code, 0)
}
