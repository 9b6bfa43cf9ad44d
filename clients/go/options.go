package leat

// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"time"
	"unsafe"
)

// Policy says what happens when a topic is full.
type Policy uint32

// What happens when a topic is full.
const (
	PolicyBlock     Policy = C.LEAT_POLICY_BLOCK     // publishers wait for room
	PolicyFail      Policy = C.LEAT_POLICY_FAIL      // they get ErrFull at once
	PolicyOverwrite Policy = C.LEAT_POLICY_OVERWRITE // the room of the oldest records is reused
	PolicyGrow      Policy = C.LEAT_POLICY_GROW      // memory is added, up to a maximum, before anybody waits
)

// Durability says what survives what.
type Durability uint32

// What survives what.
const (
	DurabilityNone     Durability = C.LEAT_DURABILITY_NONE     // gone when the machine restarts
	DurabilityOS       Durability = C.LEAT_DURABILITY_OS       // also written to disk: survives all processes
	DurabilityInterval Durability = C.LEAT_DURABILITY_INTERVAL // also synced to stable storage at intervals
	DurabilityFsync    Durability = C.LEAT_DURABILITY_FSYNC    // on stable storage before publishing returns
)

// Stage says how far a record has come.
type Stage uint32

// How far a record has come.
const (
	StageDefault   Stage = C.LEAT_STAGE_DEFAULT   // durable with DurabilityFsync, otherwise committed
	StageCommitted Stage = C.LEAT_STAGE_COMMITTED // subscribers can see it
	StageDurable   Stage = C.LEAT_STAGE_DURABLE   // durable topics: it is on stable storage
)

// From says where a subscriber or a group begins. The zero value: at the end.
type From struct {
	where uint32
	value uint64
}

// Where a subscriber or a group begins, or moves to.
var (
	FromEnd       = From{where: C.LEAT_FROM_END}       // only records claimed from now on
	FromBeginning = From{where: C.LEAT_FROM_BEGINNING} // the oldest record that can be read
)

// FromOffset begins with the record with this offset.
func FromOffset(offset uint64) From { return From{C.LEAT_FROM_OFFSET, offset} }

// FromLast begins with the last so many records of each partition.
func FromLast(count uint64) From { return From{C.LEAT_FROM_LAST, count} }

// FromTime begins with the first record that is not older.
func FromTime(t time.Time) From { return From{C.LEAT_FROM_TIME, uint64(t.UnixMilli())} }

// Place says where topics are, if not in the default directories.
type Place struct {
	Directory     string // "": $LEAT_DIR, else /dev/shm/leat-<uid>
	DataDirectory string // durable topics; "": $LEAT_DATA_DIR, else the user's data directory
}

// TopicOptions are the options of a new topic. What is 0 is the default. Sizes in bytes.
type TopicOptions struct {
	Place
	Policy           Policy        // what happens when it is full; PolicyBlock
	CapacityBytes    uint64        // per partition; 8 MiB, durable topics 32 MiB
	SegmentBytes     uint64        // an eighth of the capacity; at most 1 GiB
	MaxCapacityBytes uint64        // PolicyGrow, per partition; 8 times the capacity
	GrowBelowBytes   uint64        // PolicyGrow: adds memory at so little free; a segment
	Partitions       int           // how many, at most 1024; 1
	Participants     int           // publishers, subscribers and members at a time; 256, at most 4096
	RetainAll        bool          // never reuse room; publishing returns ErrFull at the end
	SingleWriter     bool          // every publisher is exclusive
	Timestamps       bool          // records have timestamps
	DeleteWhenUnused bool          // once it was used, delete it when the last process closes it
	RevokeAfter      time.Duration // revoke a claim open for so long while a subscriber waits; never
	EvictAfter       time.Duration // make a gating subscriber lossy that blocks for so long; never
	Mode             uint32        // permission bits of the files; 0600
	FileGroup        string        // Unix group of the files; the caller's
	Durable          Durability    // what survives what; DurabilityNone
	SyncInterval     time.Duration // DurabilityInterval; 1 ms to 1 h
	FileBytes        uint64        // durable topics: size of a file with records; 64 MiB
	RetentionBytes   uint64        // durable topics: keep so much on disk, in whole files; no limit
	Retention        time.Duration // and for so long; no limit
}

// PublisherOptions are the options of a publisher.
type PublisherOptions struct {
	Partition   Partition // of records that have no key; AnyPartition: in turn
	Exclusive   bool      // the topic's only publisher; cheaper per record
	Acknowledge Stage     // how far a record has come when publishing returns
}

// SubscriberOptions are the options of a subscriber. The zero value: gating, all partitions, from the end.
type SubscriberOptions struct {
	From      From          // where it begins
	Partition Partition     // AnyPartition: all
	Lossy     bool          // may be overtaken; otherwise publishers keep what it has not read
	InPlace   bool          // with Lossy: pins the segment that it reads instead of copying
	Read      Stage         // how far a record must have come to be delivered
	Spin      time.Duration // how long a wait spins before it sleeps; 0: 20 µs; below 0: it does not
	Patience  time.Duration // pause of an empty poll after many records; 0: 20 µs; below 0: none
}

// GroupMode says when a record counts as done.
type GroupMode uint32

// When a record counts as done.
const (
	AtLeastOnce GroupMode = C.LEAT_GROUP_AT_LEAST_ONCE // what was not acknowledged is delivered again
	AtMostOnce  GroupMode = C.LEAT_GROUP_AT_MOST_ONCE  // what a dead member had in its hands is not
)

// OnExpired says where a group goes on whose next record was deleted by retention.
type OnExpired uint32

// Where a group goes on whose next record was deleted by retention.
const (
	ExpiredStart OnExpired = C.LEAT_EXPIRED_START // at the oldest record
	ExpiredEnd   OnExpired = C.LEAT_EXPIRED_END   // behind everything that is there now
	ExpiredStop  OnExpired = C.LEAT_EXPIRED_STOP  // nowhere: members get ErrExpired
)

// GroupOptions are the options of a new group. What is 0 is the default.
type GroupOptions struct {
	From          From          // where it begins
	Mode          GroupMode     // when a record counts as done
	ByKey         bool          // records of one key go to one member at a time, in order
	Members       int           // at a time; 64, at most 255
	InFlight      int           // unacknowledged records that a member may hold; 1024, at most 65536
	MaxDeliveries int           // then a record goes to the dead-letter topic; at most 65534; no limit
	OnExpired     OnExpired     // durable topics: where it goes on if its next record was deleted
	Lease         time.Duration // a record held for longer goes to another member; never
}

// MemberOptions are the options of a member.
type MemberOptions struct {
	Name     string        // informational; at most 63 bytes
	Spin     time.Duration // as in SubscriberOptions
	Patience time.Duration // as in SubscriberOptions
}

// ---- For C --------------------------------------------------------------------------------------

// Texts in memory of C, for the time of a call.
type texts []unsafe.Pointer

func (t *texts) bytes(text string) C.leat_bytes {
	if text == "" {
		return C.leat_bytes{}
	}
	copied, size := t.name(text)
	return C.leat_bytes{data: unsafe.Pointer(copied), size: size}
}

// Names and paths are shorter. Of longer texts, which C refuses, so much is copied as shows it that.
const maxText = 1 << 16

// A name, and its size. Never nil, so that an empty one is told from none.
func (t *texts) name(text string) (*C.char, C.uint64_t) {
	if len(text) > maxText {
		text = text[:maxText]
	}
	copied := C.CString(text)
	*t = append(*t, unsafe.Pointer(copied))
	return copied, C.uint64_t(len(text))
}

func (t *texts) free() {
	for _, text := range *t {
		C.free(text)
	}
}

func flag(is bool) C.uint32_t {
	if is {
		return 1
	}
	return 0
}

// A number, or the default for 0. What C cannot hold becomes what it refuses.
func number(given int, otherwise C.uint32_t) C.uint32_t {
	if given == 0 {
		return otherwise
	}
	if given < 0 || given >= 1<<31 {
		return 1 << 31
	}
	return C.uint32_t(given)
}

func duration(given time.Duration) C.int64_t {
	switch {
	case given == 0:
		return 20000
	case given < 0:
		return 0
	}
	return C.int64_t(given)
}

func (p Place) c(t *texts, force bool) C.leat_place {
	return C.leat_place{
		size:           C.sizeof_leat_place,
		force:          flag(force),
		directory:      t.bytes(p.Directory),
		data_directory: t.bytes(p.DataDirectory),
	}
}

func (o *TopicOptions) c(t *texts) C.leat_topic_options {
	options := C.leat_topic_options{
		size:               C.sizeof_leat_topic_options,
		policy:             C.uint32_t(o.Policy),
		capacity_bytes:     C.uint64_t(o.CapacityBytes),
		segment_bytes:      C.uint64_t(o.SegmentBytes),
		max_capacity_bytes: C.uint64_t(o.MaxCapacityBytes),
		grow_below_bytes:   C.uint64_t(o.GrowBelowBytes),
		partitions:         number(o.Partitions, 1),
		participants:       number(o.Participants, 256),
		retain_all:         flag(o.RetainAll),
		single_writer:      flag(o.SingleWriter),
		timestamps:         flag(o.Timestamps),
		delete_when_unused: flag(o.DeleteWhenUnused),
		revoke_after_ns:    C.int64_t(o.RevokeAfter),
		evict_after_ns:     C.int64_t(o.EvictAfter),
		mode:               C.uint32_t(o.Mode),
		durable:            C.uint32_t(o.Durable),
		sync_interval_ns:   C.int64_t(o.SyncInterval),
		file_bytes:         C.uint64_t(o.FileBytes),
		retention_bytes:    C.uint64_t(o.RetentionBytes),
		retention_ms:       C.int64_t(o.Retention.Milliseconds()),
		file_group:         t.bytes(o.FileGroup),
		directory:          t.bytes(o.Directory),
		data_directory:     t.bytes(o.DataDirectory),
	}
	if o.Mode == 0 {
		options.mode = 0o600
	}
	if o.FileBytes == 0 {
		options.file_bytes = 64 << 20
	}
	return options
}
