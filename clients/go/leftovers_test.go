// If these failed, a Go program that runs for long would run out of memory or descriptors, or a
// handle that was dropped would hold up others for ever.

package leat

import (
	"bytes"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"leat/internal/heap"
)

// What a process has, by /proc/self.
type resources struct{ memoryKiB, threads, descriptors, mappings int }

func resourcesNow() resources {
	debug.FreeOSMemory()
	status := string(must(os.ReadFile("/proc/self/status")))
	read := func(name string) int {
		_, rest, _ := strings.Cut(status, name+":")
		return must(strconv.Atoi(strings.Fields(rest)[0]))
	}
	maps := must(os.ReadFile("/proc/self/maps"))
	return resources{
		memoryKiB: read("VmRSS"), threads: read("Threads"),
		descriptors: len(must(os.ReadDir("/proc/self/fd"))), mappings: bytes.Count(maps, []byte("\n")),
	}
}

var memoryMayGrow = false

// Whether there is more than before, and more than the runtime of Go takes for itself; memory is another question.
func (now resources) exceed(before resources) bool {
	return now.threads > before.threads+4 || now.descriptors > before.descriptors+4 || now.mappings > before.mappings+10
}

// Five handles and a claim are opened, used and closed: a topic, a publisher, a subscriber, a group, a member.
func openAndClose(t *testing.T, name string) {
	topic := must(Open(name))
	publisher := must(topic.Publisher(PublisherOptions{}))
	subscriber := must(topic.Subscriber(SubscriberOptions{}))
	group := must(topic.FindGroup("g"))
	member := must(group.Join(MemberOptions{}))
	must(publisher.Publish([]byte("x")))
	ok(t, subscriber.View(background, 500, readNothing))
	must(subscriber.WaitFd())
	must(member.Acknowledge(must(member.ReceiveBatch(background, 500))...))
	claim := must(publisher.BeginClaim(background, 8))
	ok(t, subscriber.Stop())
	ok(t, topic.Close())
	ok(t, group.Close())
	ok(t, member.Close())
	ok(t, subscriber.Close())
	ok(t, claim.Abort())
	ok(t, publisher.Close())
}

// Bytes that C and Go hold.
func allocated() (inC, inGo int) {
	runtime.GC()
	runtime.GC() // After the finalizers.
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return heap.Allocated(), int(memory.HeapAlloc)
}

func least(a, b int) int {
	if a < b {
		return a
	}
	return b
}

func TestTenThousandOpenAndClose(t *testing.T) {
	topic := newTestTopic(t, TopicOptions{CapacityBytes: 1 << 20})
	must(topic.Group("g", GroupOptions{}))
	const rounds = 10000 / 5 // So many handles in all.
	for i := 0; i < rounds/10; i++ {
		openAndClose(t, topic.Name())
	}
	before := resourcesNow()
	// What is leaked grows in each part; what is kept for later use does not.
	inC, inGo := math.MaxInt, math.MaxInt
	for part := 0; part < 4; part++ {
		startC, startGo := allocated()
		for i := 0; i < rounds/4; i++ {
			openAndClose(t, topic.Name())
		}
		endC, endGo := allocated()
		inC, inGo = least(inC, (endC-startC)/(rounds/4)), least(inGo, (endGo-startGo)/(rounds/4))
	}
	now := resourcesNow()
	t.Logf("%+v → %+v; %d and %d bytes a round", before, now, inC, inGo)
	if now.exceed(before) {
		t.Fatal("they grow")
	}
	if !memoryMayGrow && (now.memoryKiB > before.memoryKiB+2048 || inC >= 100 || inGo >= 100) {
		t.Fatal("memory grows")
	}
}

// Handles of each kind are dropped, a claim among them. The runtime closes them in a goroutine of its own, on whatever
// thread: no participant, descriptor or mapping stays, and whoever waited at the claim goes on.
func TestDroppedHandlesAreClosed(t *testing.T) {
	topic := newTestTopic(t, TopicOptions{})
	must(topic.Group("g", GroupOptions{}))
	subscriber := subscriberOf(t, topic)
	before := resourcesNow()
	for i := 0; i < 20; i++ {
		again := must(Open(topic.Name()))
		must(again.Subscriber(SubscriberOptions{}))
		must(must(again.FindGroup("g")).Join(MemberOptions{}))
		must(must(again.Publisher(PublisherOptions{})).BeginClaim(background, 8))
	}
	gaps := uint64(0)
	for i := 0; len(must(topic.Info()).Participants) != 1 || gaps != 20 || resourcesNow().exceed(before); i++ {
		if i == 1000 {
			t.Fatalf("%d gaps, %+v → %+v, %v", gaps, before, resourcesNow(), must(topic.Info()).Participants)
		}
		runtime.GC()
		time.Sleep(5 * time.Millisecond)
		records := make([]Record, 20)
		for _, r := range records[:must(subscriber.Poll(records))] {
			gaps += r.Gap.Count
		}
	}
}
