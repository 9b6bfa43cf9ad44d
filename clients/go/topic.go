package leat

// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"time"
)

// Topic is an open topic. Several goroutines may use it at once.
type Topic struct {
	lock    sync.RWMutex // Held for writing while it is closed.
	c       *C.leat_topic
	mirrors *C.leatgo_mirrors // Nil: there was no memory for it.
}

func newTopic(c *C.leat_topic) *Topic {
	t := &Topic{c: c, mirrors: C.leatgo_mirrors_new()}
	runtime.SetFinalizer(t, func(t *Topic) { _ = t.Close() })
	return t
}

// Begins a call; afterwards t.lock.RUnlock must be called, if there is no error.
func (t *Topic) enter() error {
	t.lock.RLock()
	if t.c == nil {
		t.lock.RUnlock()
		return ErrHandleClosed
	}
	return nil
}

// Create creates a topic and opens it. Of several processes that create the same name at once exactly one
// succeeds; the others get ErrExists.
func Create(name string, options TopicOptions) (*Topic, error) {
	var held texts
	defer held.free()
	if tooOld != nil {
		return nil, tooOld
	}
	var c *C.leat_topic
	var detail C.int32_t
	given := options.c(&held)
	text, size := held.name(name)
	if code := C.leat_topic_create(text, size, &given, &c, &detail); code != C.LEAT_OK {
		return nil, aboutNewTopic("create", name, &options).errorOf(code, detail)
	}
	return newTopic(c), nil
}

// OpenOrCreate opens the topic if it exists, whatever its options are; otherwise creates it.
func OpenOrCreate(name string, options TopicOptions) (*Topic, error) {
	var held texts
	defer held.free()
	if tooOld != nil {
		return nil, tooOld
	}
	var c *C.leat_topic
	var detail C.int32_t
	given := options.c(&held)
	text, size := held.name(name)
	if code := C.leat_topic_open_or_create(text, size, &given, &c, &detail); code != C.LEAT_OK {
		return nil, aboutNewTopic("open or create", name, &options).errorOf(code, detail)
	}
	return newTopic(c), nil
}

// Open opens a topic that exists; otherwise returns ErrNotFound.
func Open(name string) (*Topic, error) { return OpenContext(NoWait, name, Place{}) }

// OpenContext opens a topic, and waits until it was created.
func OpenContext(ctx context.Context, name string, place Place) (*Topic, error) {
	var held texts
	defer held.free()
	if tooOld != nil {
		return nil, tooOld
	}
	where := place.c(&held, false)
	text, size := held.name(name)
	if ctx != nil && ctx.Err() != nil {
		return nil, endOf(ctx, ErrNotFound)
	}
	for backoff := 5 * time.Millisecond; ; backoff = shorter(2*backoff, 250*time.Millisecond) {
		var c *C.leat_topic
		var detail C.int32_t
		code := C.leat_topic_open(text, size, 0, &where, &c, &detail)
		if code == C.LEAT_OK {
			return newTopic(c), nil
		}
		if code != C.LEAT_ERR_NOT_FOUND || isNoWait(ctx) {
			return nil, aboutTopic("open", name, &place).errorOf(code, detail)
		}
		if ctx != nil && ctx.Err() != nil {
			return nil, endOf(ctx, ErrNotFound)
		}
		timer := time.NewTimer(backoff) // The end of a context ends this; it would end no wait of C.
		select {
		case <-timer.C:
		case <-doneOf(ctx):
			timer.Stop()
		}
	}
}

func shorter(one, other time.Duration) time.Duration {
	if one < other {
		return one
	}
	return other
}

// Close closes the handle. The topic stays until it is deleted.
func (t *Topic) Close() error {
	t.lock.Lock()
	defer t.lock.Unlock()
	if t.c == nil {
		return ErrHandleClosed
	}
	runtime.SetFinalizer(t, nil)
	c := t.c
	t.c = nil
	code := C.leat_topic_close(&c)
	if t.mirrors != nil {
		C.leatgo_mirrors_drop(t.mirrors)
		t.mirrors = nil
	}
	return errorOf(code, 0)
}

// DeleteOptions are the options of Delete.
type DeleteOptions struct {
	Place
	Force bool // Also while the topic has participants: they get ErrDeleted.
}

// Delete deletes a topic and frees its name. ErrBusy: it has participants.
func Delete(name string, options DeleteOptions) error {
	var held texts
	defer held.free()
	var detail C.int32_t
	where := options.Place.c(&held, options.Force)
	text, size := held.name(name)
	code := C.leat_topic_delete(text, size, &where, &detail)
	return aboutTopic("delete", name, &options.Place).errorOf(code, detail)
}

// List returns the names of all topics, sorted.
func List(place Place) ([]string, error) {
	var held texts
	defer held.free()
	where := place.c(&held, false)
	text, err := readText(func(buffer *C.char, capacity C.uint64_t, size *C.uint64_t, detail *C.int32_t) C.int32_t {
		return C.leat_topic_list(&where, buffer, capacity, size, detail)
	})
	return linesOf(text), err
}

func linesOf(text []byte) []string { return strings.Fields(string(text)) }

// Calls what writes a text, with as much room as it takes.
func readText(write func(buffer *C.char, capacity C.uint64_t, size *C.uint64_t, detail *C.int32_t) C.int32_t) ([]byte, error) {
	room := make([]byte, 1024)
	for {
		var size C.uint64_t
		var detail C.int32_t
		code := write((*C.char)(pointerTo(room)), C.uint64_t(len(room)), &size, &detail)
		if code == C.LEAT_OK {
			return room[:size], nil
		}
		if code != C.LEAT_ERR_BUFFER_TOO_SMALL {
			return nil, errorOf(code, detail)
		}
		room = make([]byte, size+1024) // It may have become longer when it is asked for again.
	}
}

// Name is the topic's name; "" once the topic was closed.
func (t *Topic) Name() string {
	if t.enter() != nil {
		return ""
	}
	defer t.lock.RUnlock()
	name, _ := readText(func(buffer *C.char, capacity C.uint64_t, size *C.uint64_t, _ *C.int32_t) C.int32_t {
		return C.leat_topic_name(t.c, buffer, capacity, size)
	})
	return string(name)
}

// MaxRecordSize is the size of the largest record, in bytes: key, headers, timestamp and value, encoded.
func (t *Topic) MaxRecordSize() (uint64, error) {
	if err := t.enter(); err != nil {
		return 0, err
	}
	defer t.lock.RUnlock()
	var bytes C.uint64_t
	code := C.leat_topic_max_record_size(t.c, &bytes)
	return uint64(bytes), errorOf(code, 0)
}

// Partitions is their number.
func (t *Topic) Partitions() (int, error) {
	if err := t.enter(); err != nil {
		return 0, err
	}
	defer t.lock.RUnlock()
	var count C.uint32_t
	code := C.leat_topic_partitions(t.c, &count)
	return int(count), errorOf(code, 0)
}

// SetMaxCapacity sets how far each partition may grow from now on, in bytes. PolicyGrow.
func (t *Topic) SetMaxCapacity(bytes uint64) error {
	if err := t.enter(); err != nil {
		return err
	}
	defer t.lock.RUnlock()
	var detail C.int32_t
	return errorOf(C.leat_topic_set_max_capacity(t.c, C.uint64_t(bytes), &detail), detail)
}

// Shrink frees idle memory, and returns how many bytes. PolicyGrow.
func (t *Topic) Shrink() (uint64, error) {
	if err := t.enter(); err != nil {
		return 0, err
	}
	defer t.lock.RUnlock()
	var freed C.uint64_t
	var detail C.int32_t
	code := C.leat_topic_shrink(t.c, &freed, &detail)
	return uint64(freed), errorOf(code, detail)
}

// Repair makes a durable topic writable again whose disk failed, once the cause is mended.
func (t *Topic) Repair(timeout time.Duration) error {
	if err := t.enter(); err != nil {
		return err
	}
	defer t.lock.RUnlock()
	var detail C.int32_t
	return errorOf(C.leat_topic_repair(t.c, atLeastNow(timeout), &detail), detail)
}

func atLeastNow(timeout time.Duration) C.int64_t {
	if timeout < 0 {
		return 0
	}
	return C.int64_t(timeout)
}
