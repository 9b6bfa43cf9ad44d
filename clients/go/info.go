package leat

// #include "shim.h"
import "C"

import (
	"time"
	"unsafe"
)

// TopicInfo is a snapshot of a topic. Sizes in bytes.
type TopicInfo struct {
	// ID is a UUID, which tells the topic from earlier and later ones of its name; save it with an offset that
	// you save. All 0: the topic was made by a version of Leat without ids.
	ID               [16]byte
	Policy           Policy        // what happens when it is full
	CapacityBytes    uint64        // per partition, now
	MaxCapacityBytes uint64        // how far a partition may grow
	MinCapacityBytes uint64        // at creation; Shrink does not go below it
	MaxCapacityLimit uint64        // the most that SetMaxCapacity accepts
	SegmentBytes     uint64        // of a segment
	MaxRecordBytes   uint64        // of the largest record, encoded
	RetainAll        bool          // room is never reused
	SingleWriter     bool          // every publisher is exclusive
	Timestamps       bool          // records have timestamps
	DeleteWhenUnused bool          // the last process that closes it deletes it
	RevokeAfter      time.Duration // 0: never
	EvictAfter       time.Duration // 0: never

	// Durable topics.
	Durable        Durability
	State          error         // why nothing is written to disk; nil: it is
	ArchiverPid    int           // 0: no archiver is needed yet
	SyncInterval   time.Duration // of DurabilityInterval
	CreatedMs      int64         // when it was created, in milliseconds since 1970
	FileBytes      uint64        // of a file with records
	RetentionBytes uint64        // kept on disk, in whole files; 0: no limit
	Retention      time.Duration // how long records are kept; 0: no limit
	DiskBytes      uint64        // of all its files
	CutBytes       uint64        // of records that recovery cut off, because they were never written whole
	CutRecords     uint64        // how many these were
	Damaged        uint64        // offsets whose records recovery could not read

	Partitions   []PartitionInfo   // by number
	Participants []ParticipantInfo // alive now
}

// PartitionInfo is a snapshot of a partition.
type PartitionInfo struct {
	Start         uint64 // oldest offset that can be read
	End           uint64 // offset of the next claim
	CapacityBytes uint64 // room for records, now
	UsedBytes     uint64 // from the oldest segment that can be read to the end
	Written       uint64 // durable topics: everything before can be read from disk,
	Durable       uint64 // and everything before is on stable storage
}

// Role is what a participant does.
type Role uint32

// What participants do.
const (
	RolePublisher          Role = C.LEAT_ROLE_PUBLISHER
	RoleExclusivePublisher Role = C.LEAT_ROLE_EXCLUSIVE_PUBLISHER
	RoleSubscriber         Role = C.LEAT_ROLE_SUBSCRIBER
	RoleLossySubscriber    Role = C.LEAT_ROLE_LOSSY_SUBSCRIBER
	RoleMember             Role = C.LEAT_ROLE_MEMBER
)

// ParticipantInfo is a snapshot of a publisher, subscriber or member.
type ParticipantInfo struct {
	Pid      int    // in its own PID namespace
	Role     Role   // what it does
	Offset   uint64 // subscribers: next offset, summed over partitions
	Lag      uint64 // subscribers: records not read yet
	Blocking bool   // others wait for it
}

// Info takes a snapshot of the topic. It holds up nobody.
func (t *Topic) Info() (TopicInfo, error) {
	if err := t.enter(); err != nil {
		return TopicInfo{}, err
	}
	defer t.lock.RUnlock()
	partitions := make([]C.leat_partition_info, 16)
	participants := make([]C.leat_participant_info, 64)
	for {
		info := C.leat_topic_info{size: C.sizeof_leat_topic_info}
		var detail C.int32_t
		code := C.leat_topic_get_info(t.c, &info, &partitions[0], C.uint32_t(len(partitions)),
			&participants[0], C.uint32_t(len(participants)), &detail)
		if code != C.LEAT_OK {
			return TopicInfo{}, errorOf(code, detail)
		}
		partitionCount, participantCount := int(info.partition_count), int(info.participant_count)
		if partitionCount <= len(partitions) && participantCount <= len(participants) {
			return topicInfo(&info, partitions[:partitionCount], participants[:participantCount]), nil
		}
		if partitionCount > len(partitions) {
			partitions = make([]C.leat_partition_info, partitionCount)
		}
		if participantCount > len(participants) {
			participants = make([]C.leat_participant_info, 2*participantCount)
		}
	}
}

func topicInfo(c *C.leat_topic_info, partitions []C.leat_partition_info, participants []C.leat_participant_info) TopicInfo {
	info := TopicInfo{
		ID:               *(*[16]byte)(unsafe.Pointer(&c.id)),
		Policy:           Policy(c.policy),
		CapacityBytes:    uint64(c.capacity_bytes),
		MaxCapacityBytes: uint64(c.max_capacity_bytes),
		MinCapacityBytes: uint64(c.min_capacity_bytes),
		MaxCapacityLimit: uint64(c.max_capacity_limit),
		SegmentBytes:     uint64(c.segment_bytes),
		MaxRecordBytes:   uint64(c.max_record_bytes),
		RetainAll:        c.retain_all != 0,
		SingleWriter:     c.single_writer != 0,
		Timestamps:       c.timestamps != 0,
		DeleteWhenUnused: c.delete_when_unused != 0,
		RevokeAfter:      time.Duration(c.revoke_after_ns),
		EvictAfter:       time.Duration(c.evict_after_ns),
		Durable:          Durability(c.durable),
		State:            errorOf(c.state, c.state_detail),
		ArchiverPid:      int(c.archiver_pid),
		SyncInterval:     time.Duration(c.sync_interval_ns),
		CreatedMs:        int64(c.created_ms),
		FileBytes:        uint64(c.file_bytes),
		RetentionBytes:   uint64(c.retention_bytes),
		Retention:        time.Duration(c.retention_ms) * time.Millisecond,
		DiskBytes:        uint64(c.disk_bytes),
		CutBytes:         uint64(c.cut_bytes),
		CutRecords:       uint64(c.cut_records),
		Damaged:          uint64(c.damaged),
	}
	for i := range partitions {
		p := &partitions[i]
		info.Partitions = append(info.Partitions, PartitionInfo{
			Start: uint64(p.start), End: uint64(p.end),
			CapacityBytes: uint64(p.capacity_bytes), UsedBytes: uint64(p.used_bytes),
			Written: uint64(p.written), Durable: uint64(p.durable),
		})
	}
	for i := range participants {
		p := &participants[i]
		info.Participants = append(info.Participants, ParticipantInfo{
			Pid: int(p.pid), Role: Role(p.role), Offset: uint64(p.offset), Lag: uint64(p.lag),
			Blocking: p.blocking != 0,
		})
	}
	return info
}

// JSON is the same snapshot, and the groups, as `leat topic info --json` prints it.
func (t *Topic) JSON() ([]byte, error) {
	if err := t.enter(); err != nil {
		return nil, err
	}
	defer t.lock.RUnlock()
	return readText(func(buffer *C.char, capacity C.uint64_t, size *C.uint64_t, detail *C.int32_t) C.int32_t {
		return C.leat_topic_get_json(t.c, buffer, capacity, size, detail)
	})
}

// Where bytes are, nil if there are none.
func pointerTo(bytes []byte) unsafe.Pointer { return unsafe.Pointer(addressOf(bytes)) }
