// If this failed, a Go program that only waits for records would keep a CPU busy.

package leat

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// CPU time of all threads of this process, and so of the runtime's own, in both modes.
func cpuTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

const idleFor = 2 * time.Second

func init() {
	children["idle"] = func() {
		topic := must(Open(os.Args[1]))
		member := must(must(topic.FindGroup("g")).Join(MemberOptions{}))
		receiver := must(topic.Subscriber(SubscriberOptions{}))
		one, other := must(topic.Subscriber(SubscriberOptions{})), must(topic.Subscriber(SubscriberOptions{}))
		must(other.WaitFd()) // A helper thread serves it.
		canEnd, cancel := context.WithTimeout(background, time.Hour)
		defer cancel()
		over := make(chan error)
		go func() { _, err := receiver.Receive(canEnd); over <- err }()
		go func() { _, err := WaitAny(canEnd, one, other); over <- err }()
		go func() { _, err := member.Receive(background); over <- err }()
		// The waits begin, and the runtime ends what starting it left to do.
		time.Sleep(200 * time.Millisecond)
		runtime.GC()
		time.Sleep(100 * time.Millisecond)
		least := idleFor
		for i := 0; i < 3 && least >= idleFor/1000; i++ {
			before := cpuTime()
			select {
			case err := <-over:
				panic(err)
			case <-time.After(idleFor):
			}
			if used := cpuTime() - before; used < least {
				least = used
			}
		}
		fmt.Println(int64(least))
	}
}

// Waits of each kind for records, and the thread behind a descriptor, together cost less than 0.1 % of a CPU. They are
// in a process of their own, where nothing is left of other tests. Cold caches of a loaded machine add to its CPU time,
// so the least of three counts.
// A publisher that waits for room is not idle: it looks every 2 ms whether somebody died who holds room
// (docs/guarantees.md).
func TestIdleWaitsCostNothing(t *testing.T) {
	topic := newTestTopic(t, TopicOptions{})
	must(topic.Group("g", GroupOptions{}))
	child := exec.Command(os.Args[0], topic.Name())
	child.Env = append(os.Environ(), "LEAT_TEST_CHILD=idle")
	child.Stderr = os.Stderr
	used := time.Duration(must(strconv.Atoi(strings.TrimSpace(string(must(child.Output()))))))
	t.Log("CPU time in", idleFor, "is", used)
	if used >= idleFor/1000 {
		t.Fatalf("%v of CPU time in %v", used, idleFor)
	}
}
