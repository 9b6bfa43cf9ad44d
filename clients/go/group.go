package leat

// #include "shim.h"
import "C"

import (
	"runtime"
	"sync"
	"time"
	"unsafe"
)

// Group is a consumer group: its members share the records of a topic. Several goroutines may use it at once.
type Group struct {
	lock       sync.RWMutex // Held for writing while it is closed.
	c          *C.leat_group
	wasCreated bool
}

func newGroup(c *C.leat_group, wasCreated bool) *Group {
	g := &Group{c: c, wasCreated: wasCreated}
	runtime.SetFinalizer(g, func(g *Group) { _ = g.Close() })
	return g
}

func (g *Group) enter() error {
	g.lock.RLock()
	if g.c == nil {
		g.lock.RUnlock()
		return ErrHandleClosed
	}
	return nil
}

func (o *GroupOptions) c() C.leat_group_options {
	return C.leat_group_options{
		size:           C.sizeof_leat_group_options,
		from:           C.uint32_t(o.From.where),
		from_value:     C.uint64_t(o.From.value),
		mode:           C.uint32_t(o.Mode),
		by_key:         flag(o.ByKey),
		members:        number(o.Members, 64),
		in_flight:      number(o.InFlight, 1024),
		max_deliveries: number(o.MaxDeliveries, 0),
		on_expired:     C.uint32_t(o.OnExpired),
		lease_ns:       C.int64_t(o.Lease),
	}
}

// Group opens the consumer group of that name, or creates it; the options apply only then.
func (t *Topic) Group(name string, options GroupOptions) (*Group, error) {
	if err := t.enter(); err != nil {
		return nil, err
	}
	defer t.lock.RUnlock()
	var held texts
	defer held.free()
	given := options.c()
	text, size := held.name(name)
	var c *C.leat_group
	var wasCreated C.uint32_t
	var detail C.int32_t
	if code := C.leat_topic_group(t.c, text, size, &given, &c, &wasCreated, &detail); code != C.LEAT_OK {
		return nil, aboutNewGroup(name, &options).errorOf(code, detail)
	}
	return newGroup(c, wasCreated != 0), nil
}

// FindGroup opens an existing group; otherwise returns ErrNotFound.
func (t *Topic) FindGroup(name string) (*Group, error) {
	if err := t.enter(); err != nil {
		return nil, err
	}
	defer t.lock.RUnlock()
	var held texts
	defer held.free()
	text, size := held.name(name)
	var c *C.leat_group
	var detail C.int32_t
	if code := C.leat_topic_find_group(t.c, text, size, &c, &detail); code != C.LEAT_OK {
		return nil, subject{action: "find group", name: name}.errorOf(code, detail)
	}
	return newGroup(c, false), nil
}

// DeleteGroup deletes a group: with `force` also while it has members, which get ErrClosed from their next call
// on.
func (t *Topic) DeleteGroup(name string, force bool) error {
	if err := t.enter(); err != nil {
		return err
	}
	defer t.lock.RUnlock()
	var held texts
	defer held.free()
	text, size := held.name(name)
	var detail C.int32_t
	code := C.leat_topic_delete_group(t.c, text, size, flag(force), &detail)
	return subject{action: "delete group", name: name}.errorOf(code, detail)
}

// GroupNames are the names of the topic's groups, sorted.
func (t *Topic) GroupNames() ([]string, error) {
	if err := t.enter(); err != nil {
		return nil, err
	}
	defer t.lock.RUnlock()
	text, err := readText(func(buffer *C.char, capacity C.uint64_t, size *C.uint64_t, detail *C.int32_t) C.int32_t {
		return C.leat_topic_group_names(t.c, buffer, capacity, size, detail)
	})
	return linesOf(text), err
}

// Close closes the handle. The group stays until it is deleted.
func (g *Group) Close() error {
	g.lock.Lock()
	defer g.lock.Unlock()
	if g.c == nil {
		return ErrHandleClosed
	}
	runtime.SetFinalizer(g, nil)
	c := g.c
	g.c = nil
	return errorOf(C.leat_group_close(&c), 0)
}

// WasCreated tells whether the call that made this handle created the group.
func (g *Group) WasCreated() bool { return g.wasCreated }

// Name is the group's name; "" once it was closed.
func (g *Group) Name() string {
	if g.enter() != nil {
		return ""
	}
	defer g.lock.RUnlock()
	name, _ := readText(func(buffer *C.char, capacity C.uint64_t, size *C.uint64_t, _ *C.int32_t) C.int32_t {
		return C.leat_group_name(g.c, buffer, capacity, size)
	})
	return string(name)
}

// DeadLetterTopic is the name of the dead-letter topic; "" without MaxDeliveries.
func (g *Group) DeadLetterTopic() (string, error) {
	if err := g.enter(); err != nil {
		return "", err
	}
	defer g.lock.RUnlock()
	name, err := readText(func(buffer *C.char, capacity C.uint64_t, size *C.uint64_t, _ *C.int32_t) C.int32_t {
		return C.leat_group_dead_letter_topic(g.c, buffer, capacity, size)
	})
	return string(name), err
}

// Seek moves the group's position, in one partition or in all. Records that members hold stay theirs.
func (g *Group) Seek(to From, partition Partition) error {
	if err := g.enter(); err != nil {
		return err
	}
	defer g.lock.RUnlock()
	var detail C.int32_t
	code := C.leat_group_seek(g.c, C.uint32_t(to.where), C.uint64_t(to.value), partition.c(), &detail)
	return errorOf(code, detail)
}

// Position is the offset of the next record to be taken in a partition.
func (g *Group) Position(partition int) (uint64, error) {
	if err := g.enter(); err != nil {
		return 0, err
	}
	defer g.lock.RUnlock()
	var offset C.uint64_t
	code := C.leat_group_position(g.c, number(partition, 0), &offset)
	return uint64(offset), errorOf(code, 0)
}

// Released is how many records of a partition, at least, the group is done with.
func (g *Group) Released(partition int) (uint64, error) {
	if err := g.enter(); err != nil {
		return 0, err
	}
	defer g.lock.RUnlock()
	var count C.uint64_t
	code := C.leat_group_released(g.c, number(partition, 0), &count)
	return uint64(count), errorOf(code, 0)
}

// ---- Snapshots ----------------------------------------------------------------------------------

// GroupInfo is a snapshot of a group.
type GroupInfo struct {
	Mode          GroupMode     // when a record counts as done
	ByKey         bool          // records of one key go to one member at a time
	MaxDeliveries int           // 0: no limit
	Lease         time.Duration // 0: never ends
	OnExpired     OnExpired     // where it goes on if retention deleted its next record
	InFlightLimit int           // for each member
	Lag           uint64        // records that no member has taken yet
	InFlight      uint64        // taken or returned, and not acknowledged
	Redelivered   uint64        // deliveries after the first
	Returned      uint64        // waiting for redelivery or for their key
	ReturnedLimit uint64        // how many may wait so at a time
	DeadLetters   uint64        // records that went to the dead-letter topic
	Taking        error         // ErrRedeliveryFull: no room for returned records; otherwise nil
	Members       []MemberInfo  // alive now
	Offsets       []uint64      // by partition, of the next record to be taken
}

// MemberInfo is a snapshot of a living member.
type MemberInfo struct {
	Name     string // informational; may be empty
	InFlight uint64 // records that it has taken or received, and not acknowledged
	Pid      int    // in its own PID namespace
}

// Info takes a snapshot of the group. It holds up nobody.
func (g *Group) Info() (GroupInfo, error) {
	if err := g.enter(); err != nil {
		return GroupInfo{}, err
	}
	defer g.lock.RUnlock()
	members := make([]C.leat_member_info, 256)
	offsets := make([]C.uint64_t, 16)
	for {
		c := C.leat_group_info{size: C.sizeof_leat_group_info}
		var detail C.int32_t
		code := C.leat_group_get_info(g.c, &c, &members[0], C.uint32_t(len(members)), &offsets[0],
			C.uint32_t(len(offsets)), &detail)
		if code != C.LEAT_OK {
			return GroupInfo{}, errorOf(code, detail)
		}
		if int(c.partition_count) > len(offsets) {
			offsets = make([]C.uint64_t, c.partition_count)
			continue
		}
		return groupInfo(&c, members[:c.member_count], offsets[:c.partition_count]), nil
	}
}

func groupInfo(c *C.leat_group_info, members []C.leat_member_info, offsets []C.uint64_t) GroupInfo {
	info := GroupInfo{
		Mode:          GroupMode(c.mode),
		ByKey:         c.by_key != 0,
		MaxDeliveries: int(c.max_deliveries),
		Lease:         time.Duration(c.lease_ns),
		OnExpired:     OnExpired(c.on_expired),
		InFlightLimit: int(c.in_flight_limit),
		Lag:           uint64(c.lag),
		InFlight:      uint64(c.in_flight),
		Redelivered:   uint64(c.redelivered),
		Returned:      uint64(c.returned),
		ReturnedLimit: uint64(c.returned_limit),
		DeadLetters:   uint64(c.dead_letters),
		Taking:        errorOf(c.taking, 0),
	}
	for i := range members {
		info.Members = append(info.Members, MemberInfo{
			Name:     C.GoString((*C.char)(unsafe.Pointer(&members[i].name[0]))),
			InFlight: uint64(members[i].in_flight),
			Pid:      int(members[i].pid),
		})
	}
	for _, offset := range offsets {
		info.Offsets = append(info.Offsets, uint64(offset))
	}
	return info
}
