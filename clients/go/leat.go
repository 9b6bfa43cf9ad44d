// Package leat publishes to topics and reads from them. A topic is a log in shared memory, which every process
// of a machine opens directly; there is no server in between. This package is a thin layer over the library's C
// interface, <leat/leat.h>, in which a C++, Python or Java program takes part in the same topic.
//
//	topic, err := leat.OpenOrCreate("orders", leat.TopicOptions{})
//	publisher, err := topic.Publisher(leat.PublisherOptions{})
//	offset, err := publisher.Publish([]byte("hello"))
//
//	subscriber, err := topic.Subscriber(leat.SubscriberOptions{From: leat.FromBeginning})
//	record, err := subscriber.Receive(ctx)
//
// # Goroutines
//
// Any goroutine may use any handle, on any thread. A publisher, subscriber or member does one thing at a time:
// further calls wait for the one that is running, or for their context. A call that does not wait itself
// interrupts one that does, which then goes on: one goroutine may receive, and others acknowledge. A
// program is fastest if each goroutine has its own handles.
//
// A call that waits holds an operating system thread, as all calls into C do. Thousands of goroutines
// that wait are thousands of threads; WaitAny waits for up to 64 subscribers in one.
//
// # Contexts
//
// A context that ends, ends the wait within a few milliseconds, and no record is lost: either the call
// returns it, or the next call does. The error is the context's; that of the library is in it too. With
// NoWait instead of a context, calls do not wait at all.
//
// # Closing
//
// Handles may be closed in any order. Closing ends the waits of others; what uses a handle after that gets
// ErrHandleClosed. The garbage collector closes what was dropped, in time or not: until then a subscriber
// holds up the publishers of a topic that is full.
package leat

// #cgo CFLAGS: -std=gnu99 -O2
// #cgo LDFLAGS: -lleat
// #include "shim.h"
import "C"

import "fmt"

// LibraryVersion is the version of the C library, for example "0.1.0".
func LibraryVersion() string { return C.GoString(C.leat_version()) }

// Set if the library is older than the header that this package was compiled with. Opening returns it.
var tooOld = abiError(C.leat_abi_version(), C.leat_abi_check(C.LEAT_ABI_VERSION))

func abiError(found C.uint32_t, code C.int32_t) error {
	if code == C.LEAT_OK {
		return nil
	}
	return &Error{Code: Code(code), text: fmt.Sprintf(
		"libleat %s is too old: its LEAT_ABI_VERSION is %d, wanted is %d", LibraryVersion(), found, C.LEAT_ABI_VERSION)}
}
