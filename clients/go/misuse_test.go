package leat

import (
	"errors"
	"math/rand"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Handles are used by several goroutines at once, in every way, and closed at a random moment: each call
// ends, with one of the errors that say why.
func TestClosingWhatOthersUse(t *testing.T) {
	for round := 0; round < 20; round++ {
		topic := newTestTopic(t, TopicOptions{CapacityBytes: 1 << 20})
		publisher := must(topic.Publisher(PublisherOptions{}))
		subscriber := must(topic.Subscriber(SubscriberOptions{}))
		member := must(must(topic.Group("g", GroupOptions{})).Join(MemberOptions{}))
		value := make([]byte, 3000)
		uses := []func() error{
			func() error { _, err := publisher.Publish(value); return err },
			func() error { _, err := publisher.PublishBatch(soon(t), [][]byte{value, value}); return err },
			func() error {
				_, err := publisher.Claim(background, 5, func(room []byte) (int, error) { return copy(room, value), nil })
				return err
			},
			func() error { _, err := publisher.DurableOffset(AnyPartition); return err },
			func() error { _, err := subscriber.Receive(background); return err },
			func() error { _, err := subscriber.Poll(make([]Record, 7)); return err },
			func() error {
				return subscriber.View(soon(t), 9, func(batch []RecordView) error {
					for i := range batch {
						_ = string(batch[i].Value())
					}
					return nil
				})
			},
			func() error { _, err := WaitAny(soon(t), subscriber); return err },
			func() error { _, err := member.ReceiveBatch(background, 9); return err },
			func() error { _, err := member.AcknowledgeAll(); return err },
			func() error { _, err := member.ReceiveCopy(NoWait, value); return err },
			func() error { _, err := topic.Info(); return err },
		}
		var all sync.WaitGroup
		for i := range uses {
			all.Add(1)
			go func(use func() error) {
				defer all.Done()
				for {
					err := use()
					if errors.Is(err, ErrHandleClosed) {
						return
					}
					switch NameOf(err) {
					case "ok", "busy", "stopped", "timeout", "in_flight_full":
					default:
						t.Error(err)
						return
					}
				}
			}(uses[i])
		}
		time.Sleep(time.Duration(rand.Intn(5000)) * time.Microsecond)
		for _, i := range rand.Perm(4) {
			ok(t, []func() error{publisher.Close, subscriber.Close, member.Close, topic.Close}[i]())
		}
		all.Wait()
	}
}

// More bytes than any record may have are refused before anybody copies or reads them.
func TestOverFourGiB(t *testing.T) {
	const flags = syscall.MAP_ANON | syscall.MAP_PRIVATE | syscall.MAP_NORESERVE
	huge, err := syscall.Mmap(-1, 0, 5<<30, syscall.PROT_READ, flags)
	if err != nil {
		t.Skip(err)
	}
	defer syscall.Munmap(huge)
	publisher := publisherOf(t, newTestTopic(t, TopicOptions{}))
	_, err = publisher.Publish(huge)
	expectError(t, err, "too_large")
	_, err = publisher.PublishBatch(background, [][]byte{huge})
	expectError(t, err, "too_large")
	_, err = publisher.PublishBatch(background, [][]byte{huge[:2<<30], huge[:2<<30]})
	expectError(t, err, "too_large")
	_, err = publisher.PublishRecord(background, NewRecord{Key: huge})
	expectError(t, err, "too_large")
	_, err = publisher.PublishRecord(background, NewRecord{Headers: []Header{{"n", huge}}})
	expectError(t, err, "too_large")
	_, err = publisher.BeginClaim(background, 5<<30)
	expectError(t, err, "too_large")
}

// Values that nobody made with this package.
func TestZeroHandles(t *testing.T) {
	var publisher Publisher
	var subscriber Subscriber
	var member Member
	_, err := publisher.Publish(nil)
	expect(t, err, ErrHandleClosed)
	_, err = publisher.DurableOffset(AnyPartition)
	expect(t, err, ErrHandleClosed)
	_, err = subscriber.Receive(nil)
	expect(t, err, ErrHandleClosed)
	_, err = WaitAny(nil, &subscriber)
	expect(t, err, ErrHandleClosed)
	_, err = member.Acknowledge(Delivery{})
	expect(t, err, ErrHandleClosed)
	for _, err := range []error{publisher.Close(), subscriber.Close(), member.Close(), publisher.Stop(), member.Resume()} {
		expect(t, err, ErrHandleClosed)
	}
	// Such that do not begin a block of memory: the runtime ends programs that name those to its collector.
	var within struct {
		name       string
		publisher  Publisher
		subscriber Subscriber
		member     Member
		claim      OpenClaim
	}
	expect(t, within.publisher.Close(), ErrHandleClosed)
	expect(t, within.subscriber.Close(), ErrHandleClosed)
	expect(t, within.member.Close(), ErrHandleClosed)
	expectError(t, within.claim.Commit(0), "not_held")
	expectError(t, within.claim.Abort(), "not_held")
}

// Copies of a claim are the same claim: what an old one does concerns no other claim of the publisher.
func TestCopiedClaims(t *testing.T) {
	topic := newTestTopic(t, TopicOptions{})
	publisher, subscriber := must(topic.Publisher(PublisherOptions{})), subscriberOf(t, topic)
	first := must(publisher.BeginClaim(background, 5))
	job := struct {
		name  string
		claim OpenClaim
	}{"job", *first}
	copy(first.Room, "first")
	ok(t, job.claim.Commit(5))
	second := must(publisher.BeginClaim(background, 6))
	expectError(t, first.Abort(), "not_held")
	expectError(t, job.claim.Commit(1), "not_held")
	ok(t, publisher.Close()) // Takes effect behind the claim, whose room is there until then.
	copy(second.Room, "second")
	expect(t, second.Commit(6), ErrHandleClosed)
	expect(t, string(must(subscriber.Receive(soon(t))).Value), "first")
	expect(t, must(subscriber.Receive(soon(t))).Gap.Reason, GapAborted)
}

// A delivery that is none of this member's.
func TestInventedDeliveries(t *testing.T) {
	topic := newTestTopic(t, TopicOptions{})
	member := must(must(topic.Group("g", GroupOptions{})).Join(MemberOptions{}))
	defer member.Close()
	for _, partition := range []int{0, 1, -1, 70000} {
		d := Delivery{Record: Record{Partition: partition, Offset: 1 << 60}, state: 1 << 63, position: 77, hold: 5}
		_, err := member.Acknowledge(d)
		expectError(t, err, "not_held")
		_, err = member.Acknowledge(d, d)
		expectError(t, err, "not_held")
		_, err = member.AcknowledgeUpTo(d)
		expectError(t, err, "not_held")
		expectError(t, member.GiveBack(d, 0), "not_held")
	}
}
