// If these failed, reading in place would crash the program at a value without bytes, or where
// addresses are limited and Go's heap needs them.

package leat

import (
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Records without a value, over several laps: some end where the topic's memory ends, and the next address is another
// mapping's. A second topic's lies there if none of its own does.
func TestViewsOfEmptyValuesAtTheEndOfMemory(t *testing.T) {
	for _, of := range []struct {
		timestamps bool
		headers    []Header
	}{{false, nil}, {true, nil}, {false, []Header{{"type", []byte("gone")}}}, {true, []Header{{"type", []byte("gone")}}}} {
		options := TopicOptions{CapacityBytes: 8192, SegmentBytes: 4096, Timestamps: of.timestamps}
		neighbour := newTestTopic(t, options)
		topic := newTestTopic(t, options)
		subscriberOf(t, neighbour)
		publisher, views, copies := publisherOf(t, topic), subscriberOf(t, topic), subscriberOf(t, topic)
		mapped := func() int { return strings.Count(string(must(os.ReadFile("/proc/self/maps"))), neighbour.Name()) }
		before := mapped()
		for i := 0; i < 4000; i++ {
			record := NewRecord{Value: []byte{}, Headers: of.headers}
			if i < 3000 { // Keys of 12, 8 and 4 bytes, then none.
				record.Key = []byte(fmt.Sprintf("%04dcustomer", i))[:12-i/1000*4]
			}
			must(publisher.PublishRecord(background, record))
			var want [1]Record
			expect(t, must(copies.Poll(want[:])), 1)
			ok(t, views.View(soon(t), 1, func(batch []RecordView) error {
				got := batch[0].Copy()
				expect(t, string(got.Key), string(want[0].Key))
				expect(t, got.Key == nil, want[0].Key == nil)
				expect(t, got.TimestampMs, want[0].TimestampMs)
				expect(t, reflect.DeepEqual(got.Headers(), want[0].Headers()), true)
				expect(t, got.Value != nil && len(got.Value) == 0, true)
				return nil
			}))
		}
		expect(t, mapped(), before)
	}
}

func init() {
	children["limit"] = func() {
		pages := must(strconv.Atoi(strings.Fields(string(must(os.ReadFile("/proc/self/statm"))))[0]))
		used := uint64(pages * os.Getpagesize())
		limit := syscall.Rlimit{Cur: used + 2e9, Max: used + 2e9}
		if err := syscall.Setrlimit(syscall.RLIMIT_AS, &limit); err != nil {
			panic(err)
		}
		var subscribers [16]*Subscriber
		for i := range subscribers {
			topic := must(Create(fmt.Sprintf("limited-%d", i), TopicOptions{CapacityBytes: 1 << 16}))
			subscribers[i] = must(topic.Subscriber(SubscriberOptions{}))
			must(must(topic.Publisher(PublisherOptions{})).PublishRecord(background, NewRecord{Value: []byte("v"), Key: []byte("k")}))
			err := subscribers[i].View(background, 1, func(batch []RecordView) error {
				fmt.Print(string(batch[0].Key()), string(batch[0].Value()))
				return nil
			})
			if err != nil {
				panic(err)
			}
			defer Delete(topic.Name(), DeleteOptions{Force: true})
		}
		var heap [400][]byte
		for i := range heap {
			heap[i] = make([]byte, 1<<20)
		}
		runtime.KeepAlive(&heap)
		runtime.KeepAlive(&subscribers)
		fmt.Print(len(heap))
	}
}

// Go ends a program that finds no addresses for its heap: reading in place must leave them to it.
func TestViewsUnderALimitOfAddresses(t *testing.T) {
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "LEAT_TEST_CHILD=limit")
	child.Stderr = os.Stderr
	expect(t, string(must(child.Output())), strings.Repeat("kv", 16)+"400")
}
