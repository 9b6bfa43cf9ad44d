// If these failed, a record would arrive without its key or headers, half written or twice, or a
// publish that failed would have published something.

package leat

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"
)

var background = context.Background()

func TestRecordsArriveAsTheyWere(t *testing.T) {
	topic := newTestTopic(t, TopicOptions{Timestamps: true})
	publisher, subscriber := publisherOf(t, topic), subscriberOf(t, topic)
	large := bytes.Repeat([]byte("z"), 500000)
	sent := []NewRecord{
		{Value: []byte("hello")},
		{Value: []byte{}},
		{Value: []byte{0, 1, 255}, Key: []byte{}},
		{Value: []byte("v"), Key: []byte("k"), Headers: []Header{{"a", []byte("1")}, {"a", nil}, {"", []byte{0}}}},
		{Value: large, Key: []byte("large")},
		{Headers: []Header{{"only", []byte("header")}}},
	}
	for i, record := range sent {
		expect(t, must(publisher.PublishRecord(background, record)), uint64(i))
	}
	check := func(i int, value, key []byte, headers []Header, time time.Time, offset uint64) {
		t.Helper()
		expect(t, offset, uint64(i))
		expect(t, bytes.Equal(value, sent[i].Value) && value != nil, true)
		expect(t, bytes.Equal(key, sent[i].Key) && (key == nil) == (sent[i].Key == nil), true)
		expect(t, fmt.Sprint(headers), fmt.Sprint(sent[i].Headers))
		if age := nowSince(time); age < -time10 || age > time10 {
			t.Fatal(age)
		}
	}
	for i := range sent {
		r := must(subscriber.Receive(soon(t)))
		check(i, r.Value, r.Key, r.Headers(), r.Time(), r.Offset)
	}
	viewer := subscriberOf(t, topic)
	for next := 0; next < len(sent); {
		ok(t, viewer.View(soon(t), 100, func(batch []RecordView) error {
			for i := range batch {
				v := &batch[i]
				check(next, v.Value(), v.Key(), v.Headers(), timeOf(v.TimestampMs()), v.Offset())
				r := v.Copy()
				check(next, r.Value, r.Key, r.Headers(), r.Time(), r.Offset)
				next++
			}
			return nil
		}))
	}
}

const time10 = 10 * time.Second

func nowSince(then time.Time) time.Duration { return time.Since(then) }

func TestBatchesArePublishedTogether(t *testing.T) {
	topic := newTestTopic(t, TopicOptions{})
	publisher, subscriber := publisherOf(t, topic), subscriberOf(t, topic)
	values := make([][]byte, 300)
	for i := range values {
		values[i] = []byte(fmt.Sprint("value ", i))
	}
	expect(t, must(publisher.PublishBatch(background, values)), 0)
	expect(t, must(publisher.PublishBatch(soon(t), values[:2])), 300)
	expect(t, must(publisher.PublishBatch(NoWait, [][]byte{nil})), 302)
	records := []NewRecord{{Value: []byte("a"), Key: []byte("k")}, {Headers: []Header{{"n", []byte("v")}}}}
	expect(t, must(publisher.PublishRecordBatch(background, records, AnyPartition)), 303)
	got := make([]Record, 1000)
	count := must(subscriber.Poll(got))
	expect(t, count, 305)
	for i := range values {
		expect(t, string(got[i].Value), string(values[i]))
	}
	expect(t, len(got[302].Value), 0)
	expect(t, string(got[303].Key), "k")
	expect(t, got[304].Headers()[0].Name, "n")
	expect(t, must(subscriber.Poll(got)), 0)

	_, err := publisher.PublishBatch(background, nil)
	expectError(t, err, "invalid_argument")
	_, err = publisher.PublishRecordBatch(background, nil, AnyPartition)
	expectError(t, err, "invalid_argument")
	_, err = publisher.PublishBatch(background, [][]byte{make([]byte, 8<<20)})
	expectError(t, err, "too_large")
	_, err = publisher.PublishRecord(background, NewRecord{Partition: InPartition(1)})
	expectError(t, err, "invalid_argument")
}

func TestClaimsAreCommittedOrAborted(t *testing.T) {
	topic := newTestTopic(t, TopicOptions{})
	publisher, subscriber := publisherOf(t, topic), subscriberOf(t, topic)
	offset, err := publisher.Claim(background, 10, func(room []byte) (int, error) {
		expect(t, len(room), 10)
		_, err := publisher.Publish(nil)
		expectError(t, err, "busy")
		return copy(room, "written"), nil
	})
	ok(t, err)
	expect(t, offset, 0)

	mine := errors.New("mine")
	_, err = publisher.Claim(background, 10, func([]byte) (int, error) { return 0, mine })
	expect(t, err, mine)
	func() {
		defer func() { expect(t, recover(), any("panic")) }()
		publisher.Claim(background, 10, func([]byte) (int, error) { panic("panic") })
	}()
	ended := make(chan struct{})
	go func() { // As t.FailNow does.
		defer close(ended)
		publisher.Claim(background, 10, func([]byte) (int, error) { runtime.Goexit(); return 10, nil })
	}()
	<-ended
	_, err = publisher.Claim(background, 10, func([]byte) (int, error) { return 11, nil })
	expectError(t, err, "invalid_argument")
	_, err = publisher.Claim(background, -1, func([]byte) (int, error) { return 0, nil })
	expectError(t, err, "invalid_argument")
	expect(t, must(publisher.Publish([]byte("after"))), 5)

	r := must(subscriber.Receive(soon(t)))
	expect(t, string(r.Value), "written")
	for next := uint64(1); next < 5; {
		r = must(subscriber.Receive(soon(t)))
		expect(t, r.IsGap(), true)
		expect(t, r.Gap.Reason, GapAborted)
		expect(t, r.Gap.Reason.String(), "aborted")
		expect(t, r.Offset, next)
		next += r.Gap.Count
	}
	expect(t, string(must(subscriber.Receive(soon(t))).Value), "after")
}

func TestOpenClaimsAreSettledOnce(t *testing.T) {
	topic := newTestTopic(t, TopicOptions{})
	publisher, subscriber := publisherOf(t, topic), subscriberOf(t, topic)
	claim := must(publisher.BeginClaim(background, 10))
	_, err := publisher.BeginClaim(background, 10)
	expectError(t, err, "busy")
	expectError(t, claim.Commit(11), "invalid_argument")
	expectError(t, claim.Commit(-1), "invalid_argument")
	ok(t, claim.Commit(copy(claim.Room, "bytes")))
	expectError(t, claim.Commit(1), "not_in_flight")
	expectError(t, claim.Abort(), "not_in_flight")
	expect(t, string(must(subscriber.Receive(soon(t))).Value), "bytes")
	ok(t, must(publisher.BeginClaim(background, 0)).Abort())

	// Dropped.
	must(publisher.BeginClaim(background, 10))
	go func() {
		for !publisher.IsStopped() {
			runtime.GC()
			time.Sleep(5 * time.Millisecond)
		}
	}()
	gaps := uint64(0)
	for gaps < 2 {
		r := must(subscriber.Receive(soon(t)))
		gaps += r.Gap.Count
	}
	ok(t, publisher.Stop())
}

func TestClosingInsideAClaimAborts(t *testing.T) {
	topic := newTestTopic(t, TopicOptions{})
	publisher, subscriber := publisherOf(t, topic), subscriberOf(t, topic)
	_, err := publisher.Claim(background, 10, func(room []byte) (int, error) {
		ok(t, publisher.Close())
		_, err := publisher.Publish(nil)
		expect(t, err, ErrHandleClosed)
		return copy(room, "still there"), nil
	})
	expect(t, err, ErrHandleClosed)
	expect(t, publisher.Close(), ErrHandleClosed)
	r := must(subscriber.Receive(soon(t)))
	expect(t, r.Gap.Reason, GapAborted)
}

// A full topic ends a publish by the context, by Stop, by Close; nothing was published then.
func TestWaitingForRoomEnds(t *testing.T) {
	topic := newTestTopic(t, TopicOptions{CapacityBytes: 1 << 20})
	publisher, subscriber := publisherOf(t, topic), subscriberOf(t, topic)
	value := make([]byte, 10000)
	published := 0
	for ; ; published++ {
		if _, err := publisher.PublishContext(NoWait, value); err != nil {
			expectError(t, err, "full")
			break
		}
	}
	ctx, cancel := context.WithCancel(background)
	time.AfterFunc(20*time.Millisecond, cancel)
	_, err := publisher.PublishContext(ctx, value)
	expect(t, errors.Is(err, context.Canceled), true)
	expect(t, errors.Is(err, ErrStopped), true)
	_, err = publisher.PublishContext(ctx, value)
	expect(t, errors.Is(err, context.Canceled), true)
	ctx, cancel = context.WithTimeout(background, 20*time.Millisecond)
	defer cancel()
	_, err = publisher.PublishBatch(ctx, [][]byte{value})
	expect(t, errors.Is(err, context.DeadlineExceeded), true)
	expect(t, errors.Is(err, ErrTimeout), true)
	var e *Error
	expect(t, errors.As(err, &e), true)

	time.AfterFunc(20*time.Millisecond, func() { publisher.Stop() })
	_, err = publisher.Publish(value)
	expect(t, err.(*Error).Name(), "stopped")
	expect(t, publisher.IsStopped(), true)
	ok(t, publisher.Resume())

	time.AfterFunc(20*time.Millisecond, func() { publisher.Close() })
	_, err = publisher.Publish(value)
	expect(t, err, ErrHandleClosed)
	_, err = publisher.Publish(value)
	expect(t, err, ErrHandleClosed)

	count := 0
	for records := make([]Record, 16); ; {
		n := must(subscriber.Poll(records))
		if count += n; n == 0 {
			break
		}
	}
	expect(t, count, published)
}

func TestGoroutinesMayShareAPublisher(t *testing.T) {
	topic := newTestTopic(t, TopicOptions{CapacityBytes: 64 << 20})
	publisher, subscriber := publisherOf(t, topic), subscriberOf(t, topic)
	var all sync.WaitGroup
	for g := 0; g < 8; g++ {
		all.Add(1)
		go func(g int) {
			defer all.Done()
			for i := 0; i < 2000; i++ {
				if i%2 == 0 {
					must(publisher.Publish([]byte{byte(g)}))
				} else {
					must(publisher.PublishBatch(background, [][]byte{{byte(g)}, {byte(g)}}))
				}
			}
		}(g)
	}
	all.Wait()
	counts := map[byte]int{}
	for {
		records, err := subscriber.ReceiveBatch(NoWait, 1000)
		if err != nil {
			expectError(t, err, "timeout")
			break
		}
		for _, r := range records {
			counts[r.Value[0]]++
		}
	}
	for g := 0; g < 8; g++ {
		expect(t, counts[byte(g)], 3000)
	}
}

func TestDurableTopicsFlush(t *testing.T) {
	topic := newTestTopic(t, TopicOptions{Durable: DurabilityFsync})
	publisher := publisherOf(t, topic)
	expect(t, must(publisher.PublishContext(soon(t), []byte("safe"))), 0)
	ok(t, publisher.RequestSync())
	ok(t, publisher.Flush(soon(t)))
	expect(t, must(publisher.DurableOffset(AnyPartition)), 1)
	expect(t, must(publisher.LastOffset()), 0)
	expect(t, must(topic.Info()).Durable, DurabilityFsync)

	other := publisherOf(t, newTestTopic(t, TopicOptions{}))
	expectError(t, other.Flush(soon(t)), "needs_durable")
	_, err := other.LastOffset()
	expectError(t, err, "not_found")
	expect(t, must(other.Partition()), 0)
}
