// If these failed, goroutines that share a handle would lose records whenever Go moves them to
// another thread, or a process that is killed would block those that go on.

package leat

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Eight goroutines publish a million records through shared publishers, and eight read them through a shared
// subscriber and a shared member, all with more threads than they need, so that hardly two calls on one
// handle come from one thread. The topic is small: publishers wait, too.
//
// That threads change is counted: how often a goroutine found itself on another one than at its last call.
func TestAMillionRecordsWithThreadChanges(t *testing.T) {
	previous := runtime.GOMAXPROCS(stormHands)
	defer runtime.GOMAXPROCS(previous)
	topic := newTestTopic(t, TopicOptions{CapacityBytes: 1 << 20})
	subscriber := subscriberOf(t, topic)
	group := must(topic.Group("g", GroupOptions{From: FromBeginning, InFlight: 4096}))
	member := must(group.Join(MemberOptions{}))
	defer member.Close()
	publishers := []*Publisher{publisherOf(t, topic), publisherOf(t, topic)}

	it := storm{sums: map[string]uint64{}, counts: map[string]int{}}
	it.run(func(changeThread func(), hand int) {
		publishEach(publishers[hand%2], hand, changeThread)
	})
	it.run(func(changeThread func(), _ int) {
		for {
			records, err := subscriber.ReceiveBatch(background, 61)
			if errors.Is(err, ErrStopped) {
				return
			}
			if !it.note("subscriber", must(records, err)) {
				must(0, subscriber.Stop())
			}
			changeThread()
		}
	})
	it.run(func(changeThread func(), _ int) {
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
			if !it.note("member", records) {
				must(0, member.Stop())
			}
			changeThread()
		}
	})
	it.all.Wait()
	for _, who := range []string{"subscriber", "member"} {
		expect(t, it.counts[who], stormRecords)
		expect(t, it.sums[who], uint64(stormRecords)*(stormRecords-1)/2)
	}
	t.Log(it.threadChanges.Load(), "thread changes")
	expect(t, it.threadChanges.Load() > 1000, true)
}

const stormRecords, stormHands = 1000000, 8

// The goroutines of a storm, and what those that read have got.
type storm struct {
	all           sync.WaitGroup
	threadChanges atomic.Int64
	lock          sync.Mutex
	sums          map[string]uint64
	counts        map[string]int
}

// Starts a goroutine for each hand.
func (s *storm) run(work func(changeThread func(), hand int)) {
	for hand := 0; hand < stormHands; hand++ {
		s.all.Add(1)
		go func(hand int) {
			defer s.all.Done()
			last := syscall.Gettid()
			work(func() {
				runtime.Gosched()
				if now := syscall.Gettid(); now != last {
					s.threadChanges.Add(1)
					last = now
				}
			}, hand)
		}(hand)
	}
}

// Adds up what somebody has got, and tells whether more is to come.
func (s *storm) note(who string, records []Record) bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	for i := range records {
		s.sums[who] += binary.LittleEndian.Uint64(records[i].Value)
		s.counts[who]++
	}
	return s.counts[who] < stormRecords
}

// Publishes every number of this hand, alone and in batches.
func publishEach(publisher *Publisher, hand int, changeThread func()) {
	for i := hand; i < stormRecords; {
		var batch [][]byte
		for ; i < stormRecords && len(batch) < 1+i%16; i += stormHands {
			batch = append(batch, number64(uint64(i)))
		}
		if len(batch) == 1 {
			must(publisher.Publish(batch[0]))
		} else {
			must(publisher.PublishBatch(background, batch))
		}
		changeThread()
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
	// Holds an open claim and a record, and then starts a process of its own.
	children["hold"] = func() {
		topic := must(Open(os.Args[len(os.Args)-1]))
		publisher := must(topic.Publisher(PublisherOptions{}))
		member := must(must(topic.FindGroup("g")).Join(MemberOptions{}))
		must(member.Receive(background))
		publisher.Claim(background, 10, func([]byte) (int, error) {
			survivor := exec.Command("sleep", "60")
			if err := survivor.Start(); err != nil {
				panic(err)
			}
			fmt.Println(survivor.Process.Pid)
			select {}
		})
	}
}

// Starts a child process, and waits for its first line.
func startChild(t *testing.T, what string, topic *Topic) (child *exec.Cmd, said string) {
	child = exec.Command(os.Args[0], topic.Name())
	child.Env = append(os.Environ(), "LEAT_TEST_CHILD="+what)
	child.Stderr = os.Stderr
	output := must(child.StdoutPipe())
	ok(t, child.Start())
	line := make([]byte, 100)
	size, err := output.Read(line)
	ok(t, err)
	return child, strings.TrimSpace(string(line[:size]))
}

// A publisher is killed within a batch: readers get whole batches only, and go on.
func TestKilledPublishersHarmNobody(t *testing.T) {
	topic := newTestTopic(t, TopicOptions{CapacityBytes: 1 << 20})
	publisher, subscriber := publisherOf(t, topic), subscriberOf(t, topic)
	for round := 0; round < 10; round++ {
		round := round
		child, _ := startChild(t, "publish", topic)
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
}

// A process is killed that has an open claim and a record, and has started another one, which lives on: that one keeps
// nothing. The claim becomes a gap, and the record goes to another member.
func TestWhatAProcessStartedKeepsNoLockAlive(t *testing.T) {
	topic := newTestTopic(t, TopicOptions{})
	publisher, subscriber := publisherOf(t, topic), subscriberOf(t, topic)
	group := must(topic.Group("g", GroupOptions{}))
	for round := 0; round < 5; round++ {
		must(publisher.Publish([]byte("work")))
		child, said := startChild(t, "hold", topic)
		survivor := must(strconv.Atoi(said))
		defer syscall.Kill(survivor, syscall.SIGKILL)
		must(publisher.Publish([]byte("behind")))
		ok(t, child.Process.Kill())
		child.Wait()

		expect(t, string(must(subscriber.Receive(soon(t))).Value), "work")
		expect(t, must(subscriber.Receive(soon(t))).Gap.Reason, GapDied)
		expect(t, string(must(subscriber.Receive(soon(t))).Value), "behind")
		heir := must(group.Join(MemberOptions{}))
		for _, want := range []string{"work", "behind"} {
			delivery := must(heir.Receive(soon(t)))
			expect(t, string(delivery.Value), want)
			expect(t, must(heir.Acknowledge(delivery)), 1)
		}
		ok(t, heir.Close())
		ok(t, syscall.Kill(survivor, 0)) // It is still there, and is so for a minute.
	}
}
