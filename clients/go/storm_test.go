package leat

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Eight goroutines publish a million records through shared publishers, and eight read them through a shared
// subscriber and a shared member, all with more threads than they need, so that hardly two calls on one
// handle come from one thread. The topic is small: publishers wait, too.
func TestAMillionRecordsWithThreadChanges(t *testing.T) {
	const count, hands = 1000000, 8
	previous := runtime.GOMAXPROCS(hands)
	defer runtime.GOMAXPROCS(previous)
	topic := newTestTopic(t, TopicOptions{CapacityBytes: 1 << 20})
	subscriber := subscriberOf(t, topic)
	group := must(topic.Group("g", GroupOptions{From: FromBeginning, InFlight: 4096}))
	member := must(group.Join(MemberOptions{}))
	defer member.Close()
	publishers := []*Publisher{publisherOf(t, topic), publisherOf(t, topic)}

	var all sync.WaitGroup
	var lock sync.Mutex
	sums := map[string]uint64{}
	counts := map[string]int{}
	run := func(work func(hand int)) {
		for hand := 0; hand < hands; hand++ {
			all.Add(1)
			go func(hand int) { defer all.Done(); work(hand) }(hand)
		}
	}
	run(func(hand int) {
		publisher := publishers[hand%2]
		for i := hand; i < count; {
			var batch [][]byte
			for ; i < count && len(batch) < 1+i%16; i += hands {
				batch = append(batch, number64(uint64(i)))
			}
			if len(batch) == 1 {
				must(publisher.Publish(batch[0]))
			} else {
				must(publisher.PublishBatch(background, batch))
			}
			runtime.Gosched()
		}
	})
	note := func(who string, records []Record) bool {
		lock.Lock()
		defer lock.Unlock()
		for i := range records {
			sums[who] += binary.LittleEndian.Uint64(records[i].Value)
			counts[who]++
		}
		return counts[who] < count
	}
	run(func(int) {
		for {
			records, err := subscriber.ReceiveBatch(background, 61)
			if errors.Is(err, ErrStopped) {
				return
			}
			if !note("subscriber", must(records, err)) {
				must(0, subscriber.Stop())
			}
			runtime.Gosched()
		}
	})
	run(func(int) {
		for {
			deliveries, err := member.ReceiveBatch(background, 61)
			if errors.Is(err, ErrStopped) {
				return
			}
			records := make([]Record, len(must(deliveries, err)))
			for i := range deliveries {
				records[i] = deliveries[i].Record
			}
			expect(t, must(member.Acknowledge(deliveries...)), len(deliveries))
			if !note("member", records) {
				must(0, member.Stop())
			}
			runtime.Gosched()
		}
	})
	all.Wait()
	for _, who := range []string{"subscriber", "member"} {
		expect(t, counts[who], count)
		expect(t, sums[who], uint64(count)*(count-1)/2)
	}
}

// What a process has, by /proc/self.
func resources(t *testing.T) (memoryKiB, threads, descriptors, mappings int) {
	status := string(must(os.ReadFile("/proc/self/status")))
	read := func(name string) int {
		_, rest, _ := strings.Cut(status, name+":")
		return must(strconv.Atoi(strings.Fields(rest)[0]))
	}
	maps := must(os.ReadFile("/proc/self/maps"))
	return read("VmRSS"), read("Threads"), len(must(os.ReadDir("/proc/self/fd"))), bytes.Count(maps, []byte("\n"))
}

var memoryMayGrow = false

func TestTenThousandOpenAndClose(t *testing.T) {
	topic := newTestTopic(t, TopicOptions{CapacityBytes: 1 << 20})
	must(publisherOf(t, topic).Publish([]byte("x")))
	must(topic.Group("g", GroupOptions{}))
	round := func() {
		again := must(Open(topic.Name()))
		publisher := must(again.Publisher(PublisherOptions{}))
		subscriber := must(again.Subscriber(SubscriberOptions{From: FromBeginning}))
		group := must(again.FindGroup("g"))
		member := must(group.Join(MemberOptions{}))
		ok(t, subscriber.View(background, 1, func([]RecordView) error { return nil }))
		_, err := member.Receive(NoWait)
		expectError(t, err, "timeout")
		ok(t, again.Close())
		ok(t, group.Close())
		ok(t, member.Close())
		ok(t, subscriber.Close())
		ok(t, publisher.Close())
	}
	for i := 0; i < 1000; i++ {
		round()
	}
	debug.FreeOSMemory()
	memory, threads, descriptors, mappings := resources(t)
	for i := 0; i < 9000; i++ {
		round()
	}
	debug.FreeOSMemory()
	memoryNow, threadsNow, descriptorsNow, mappingsNow := resources(t)
	t.Logf("KiB %d → %d, threads %d → %d, descriptors %d → %d, mappings %d → %d", memory, memoryNow,
		threads, threadsNow, descriptors, descriptorsNow, mappings, mappingsNow)
	if !memoryMayGrow && memoryNow > memory+8192 || threadsNow > threads+4 || descriptorsNow > descriptors+4 || mappingsNow > mappings+20 {
		t.Fatal("they grow")
	}
}

func init() {
	children["publish"] = func() {
		publisher := must(must(Open(os.Args[len(os.Args)-1])).Publisher(PublisherOptions{}))
		batch := make([][]byte, 100)
		for next := uint64(0); ; next += 100 {
			for i := range batch {
				batch[i] = number64(next + uint64(i))
			}
			must(publisher.PublishBatch(background, batch))
			if next == 0 {
				fmt.Println("publishing")
			}
		}
	}
	children["claim"] = func() {
		publisher := must(must(Open(os.Args[len(os.Args)-1])).Publisher(PublisherOptions{}))
		publisher.Claim(background, 10, func([]byte) (int, error) {
			exec.Command("sleep", "3").Start() // Keeps no lock alive.
			fmt.Println("claimed")
			select {}
		})
	}
}

// Starts a child process, and waits for its first line.
func startChild(t *testing.T, what string, topic *Topic) *exec.Cmd {
	child := exec.Command(os.Args[0], topic.Name())
	child.Env = append(os.Environ(), "LEAT_TEST_CHILD="+what)
	child.Stderr = os.Stderr
	output := must(child.StdoutPipe())
	ok(t, child.Start())
	_, err := output.Read(make([]byte, 100))
	ok(t, err)
	return child
}

// A publisher is killed within a batch: readers get whole batches only, and go on.
func TestKilledPublishersHarmNobody(t *testing.T) {
	topic := newTestTopic(t, TopicOptions{CapacityBytes: 1 << 20})
	publisher, subscriber := publisherOf(t, topic), subscriberOf(t, topic)
	for round := 0; round < 10; round++ {
		round := round
		child := startChild(t, "publish", topic)
		go func() {
			time.Sleep(time.Duration(round) * 3 * time.Millisecond)
			child.Process.Kill()
			child.Wait()
			publisher.Publish([]byte("after"))
		}()
		next := uint64(0)
		for isOver := false; !isOver; {
			for _, r := range must(subscriber.ReceiveBatch(soon(t), 64)) {
				switch {
				case r.IsGap():
					expect(t, r.Gap.Reason, GapDied)
				case string(r.Value) == "after":
					isOver = true
				default:
					expect(t, binary.LittleEndian.Uint64(r.Value), next)
					next++
				}
			}
		}
		expect(t, next%100, 0)
	}
	child := startChild(t, "claim", topic)
	child.Process.Kill()
	child.Wait()
	must(publisher.Publish([]byte("next")))
	expect(t, must(subscriber.Receive(soon(t))).Gap.Reason, GapDied)
	expect(t, string(must(subscriber.Receive(soon(t))).Value), "next")
}
