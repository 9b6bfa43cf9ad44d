// If these failed, a cancelled context would cost a record or not end its wait, or bytes kept from
// a batch would crash the program later.

package leat

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func number64(i uint64) []byte {
	var bytes [8]byte
	binary.LittleEndian.PutUint64(bytes[:], i)
	return bytes[:]
}

// A publisher publishes numbers while the contexts of two readers are cancelled 200 times each, at random moments:
// before a wait, in it, and when it ends anyway. Both get each number, once, however they read.
func TestCancellingLosesNoRecord(t *testing.T) {
	topic := newTestTopic(t, TopicOptions{})
	publisher, subscriber := publisherOf(t, topic), subscriberOf(t, topic)
	group := must(topic.Group("g", GroupOptions{From: FromBeginning}))
	member := must(group.Join(MemberOptions{}))
	defer member.Close()
	const cancels = 200
	var enough atomic.Int32 // How many readers were cancelled so often.
	published := make(chan uint64, 1)
	go func() {
		count := uint64(0)
		for ; enough.Load() < 2; count++ {
			must(publisher.Publish(number64(count)))
			time.Sleep(time.Duration(rand.Intn(2000)) * time.Microsecond)
		}
		published <- count
	}()
	read := func(ways ...func(context.Context) ([]Record, error)) (next uint64) {
		for cancelled := 0; cancelled < cancels; {
			ctx, cancel := context.WithCancel(background)
			timer := time.AfterFunc(time.Duration(rand.Intn(600))*time.Microsecond, cancel)
			records, err := ways[rand.Intn(len(ways))](ctx)
			timer.Stop()
			cancel()
			if err != nil {
				if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				cancelled++
			}
			for _, r := range records {
				if got := binary.LittleEndian.Uint64(r.Value); got != next {
					t.Errorf("got %d, want %d", got, next)
				}
				next++
			}
		}
		enough.Add(1)
		return next
	}
	ofMember := make(chan uint64)
	go func() { ofMember <- read(waysToWork(member)...) }()
	seen := read(waysToRead(subscriber)...)
	worked, count := <-ofMember, <-published
	for ; seen < count; seen++ { // What came since.
		expect(t, binary.LittleEndian.Uint64(must(subscriber.Receive(soon(t))).Value), seen)
	}
	expect(t, must(member.InFlight()) <= int(count-worked), true)
	for ; worked < count; worked++ {
		d := must(member.Receive(soon(t)))
		expect(t, binary.LittleEndian.Uint64(d.Value), worked)
		must(member.Acknowledge(d))
	}
	expect(t, must(group.Position(0)), count)
}

func waysToRead(subscriber *Subscriber) []func(context.Context) ([]Record, error) {
	return []func(context.Context) ([]Record, error){
		func(ctx context.Context) ([]Record, error) {
			return subscriber.ReceiveBatch(ctx, 3)
		},
		func(ctx context.Context) ([]Record, error) {
			r, err := subscriber.Receive(ctx)
			if err != nil {
				return nil, err
			}
			return []Record{r}, nil
		},
		func(ctx context.Context) (copies []Record, err error) {
			err = subscriber.View(ctx, 3, func(batch []RecordView) error {
				for i := range batch {
					copies = append(copies, batch[i].Copy())
				}
				return nil
			})
			return copies, err
		},
	}
}

func waysToWork(member *Member) []func(context.Context) ([]Record, error) {
	return []func(context.Context) ([]Record, error){
		func(ctx context.Context) (records []Record, err error) {
			deliveries, err := member.ReceiveBatch(ctx, 3)
			for _, d := range deliveries {
				records = append(records, d.Record)
			}
			must(member.Acknowledge(deliveries...))
			return records, err
		},
		func(ctx context.Context) ([]Record, error) {
			d, err := member.Receive(ctx)
			if err != nil {
				return nil, err
			}
			must(member.Acknowledge(d))
			return []Record{d.Record}, nil
		},
		func(ctx context.Context) ([]Record, error) {
			value := make([]byte, 8)
			if _, err := member.ReceiveCopy(ctx, value); err != nil {
				return nil, err
			}
			return []Record{{Value: value}}, nil
		},
	}
}

func readNothing([]RecordView) error { return nil }

func TestWaitsEndSoon(t *testing.T) {
	topic := newTestTopic(t, TopicOptions{})
	subscriber := subscriberOf(t, topic)
	end := func(name string, end func(), wants error) {
		t.Helper()
		began := make(chan time.Time, 1)
		time.AfterFunc(30*time.Millisecond, func() { began <- time.Now(); end() })
		_, err := subscriber.Receive(context.Background())
		took := time.Since(<-began)
		if !errors.Is(err, wants) {
			t.Fatalf("%s: %v", name, err)
		}
		if took > 10*time.Second { // However busy the machine is.
			t.Fatalf("%s took %v", name, took)
		}
	}
	end("stop", func() { subscriber.Stop() }, ErrStopped)
	expectError(t, subscriber.Wait(background), "stopped")
	ok(t, subscriber.Resume())
	end("close", func() { subscriber.Close() }, ErrHandleClosed)

	subscriber = subscriberOf(t, topic)
	ctx, cancel := context.WithCancel(background)
	time.AfterFunc(20*time.Millisecond, cancel)
	expect(t, errors.Is(subscriber.Wait(ctx), context.Canceled), true)
	expect(t, subscriber.IsStopped(), false)
	ctx, cancel = context.WithTimeout(background, 5*time.Millisecond)
	defer cancel()
	err := subscriber.View(ctx, 1, readNothing)
	expect(t, errors.Is(err, context.DeadlineExceeded), true)
	expectError(t, subscriber.Wait(NoWait), "timeout")
	must(publisherOf(t, topic).Publish(nil))
	ok(t, subscriber.Wait(NoWait))
	ok(t, subscriber.Wait(nil))
}

// A call that waits for the handle, because another one uses it, ends with its context too.
func TestWaitingForTheHandleEnds(t *testing.T) {
	subscriber := subscriberOf(t, newTestTopic(t, TopicOptions{}))
	first := make(chan error)
	go func() {
		_, err := subscriber.Receive(background)
		first <- err
	}()
	time.Sleep(20 * time.Millisecond)
	ctx, cancel := context.WithTimeout(background, 20*time.Millisecond)
	defer cancel()
	_, err := subscriber.Receive(ctx)
	expect(t, errors.Is(err, context.DeadlineExceeded), true)
	_, err = subscriber.Receive(NoWait)
	expectError(t, err, "timeout")
	ok(t, subscriber.Close())
	expect(t, <-first, ErrHandleClosed)
}

// Middleware derives contexts from those that it is given.
func TestContextsDerivedFromNoWaitDoNotWait(t *testing.T) {
	topic := newTestTopic(t, TopicOptions{})
	subscriber := subscriberOf(t, topic)
	type traceKey struct{}
	withCancel, cancel := context.WithCancel(NoWait)
	defer cancel()
	withTimeout, cancelTimeout := context.WithTimeout(NoWait, time.Hour)
	defer cancelTimeout()
	derived := []context.Context{context.WithValue(NoWait, traceKey{}, 1), withCancel, withTimeout,
		context.WithValue(withTimeout, traceKey{}, 1)}
	for _, ctx := range derived {
		_, err := subscriber.Receive(ctx)
		expectError(t, err, "timeout")
		expectError(t, subscriber.Wait(ctx), "timeout")
		_, err = WaitAny(ctx, subscriber)
		expectError(t, err, "timeout")
		_, err = OpenContext(ctx, "missing", Place{})
		expectError(t, err, "not_found")
	}
	cancel()
	_, err := subscriber.Receive(withCancel)
	expect(t, errors.Is(err, context.Canceled), true)
	expect(t, NoWait.Value(traceKey{}), nil)

	held := make(chan error)
	go func() { held <- subscriber.Wait(background) }()
	for { // Until that goroutine has the subscriber: then the others must not wait for it.
		if _, err := WaitAny(NoWait, subscriber); errors.Is(err, ErrBusy) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	_, err = subscriber.Receive(derived[0])
	expectError(t, err, "timeout")
	must(publisherOf(t, topic).Publish(nil))
	ok(t, <-held)
}

func TestWaitAnyTellsWhich(t *testing.T) {
	topics := []*Topic{newTestTopic(t, TopicOptions{}), newTestTopic(t, TopicOptions{})}
	a, b := subscriberOf(t, topics[0]), subscriberOf(t, topics[1])
	_, err := WaitAny(NoWait, a, b)
	expectError(t, err, "timeout")
	ctx, cancel := context.WithTimeout(background, 20*time.Millisecond)
	defer cancel()
	_, err = WaitAny(ctx, a, b)
	expect(t, errors.Is(err, context.DeadlineExceeded), true)
	publisher := publisherOf(t, topics[1])
	time.AfterFunc(20*time.Millisecond, func() { publisher.Publish(nil) })
	expect(t, must(WaitAny(soon(t), a, b)), 1)
	must(b.Receive(soon(t)))
	time.AfterFunc(20*time.Millisecond, func() { b.Stop() })
	_, err = WaitAny(soon(t), a, b)
	expectError(t, err, "stopped")
	ok(t, b.Resume())
	time.AfterFunc(20*time.Millisecond, func() { b.Close() })
	_, err = WaitAny(soon(t), a, b)
	expect(t, err, ErrHandleClosed)
	for _, wrong := range [][]*Subscriber{{}, {a, a}, {a, nil}, make([]*Subscriber, 65)} {
		_, err = WaitAny(NoWait, wrong...)
		expectError(t, err, "invalid_argument")
	}
	if must(a.WaitFd()) < 0 {
		t.Fatal("no descriptor")
	}
}

func TestPositionsAndDeletion(t *testing.T) {
	topic := newTestTopic(t, TopicOptions{Timestamps: true})
	publisher := publisherOf(t, topic)
	for i := uint64(0); i < 10; i++ {
		must(publisher.Publish(number64(i)))
	}
	for from, want := range map[From]uint64{
		FromBeginning: 0, FromOffset(4): 4, FromLast(3): 7, FromTime(time.Now().Add(-time.Hour)): 0,
	} {
		s := must(topic.Subscriber(SubscriberOptions{From: from, Partition: InPartition(0)}))
		expect(t, must(s.Offset(0)), want)
		expect(t, must(s.Receive(soon(t))).Offset, want)
		expect(t, must(s.IsLossy()), false)
		_, err := s.Offset(1)
		expectError(t, err, "invalid_argument")
		ok(t, s.Close())
	}
	_, err := topic.Subscriber(SubscriberOptions{Partition: InPartition(1)})
	expectError(t, err, "invalid_argument")
	_, err = topic.Subscriber(SubscriberOptions{Partition: InPartition(-1)})
	expectError(t, err, "invalid_argument")

	s := must(topic.Subscriber(SubscriberOptions{}))
	time.AfterFunc(20*time.Millisecond, func() { Delete(topic.Name(), DeleteOptions{Force: true}) })
	_, err = s.Receive(soon(t))
	expectError(t, err, "deleted")
	ok(t, s.Close())
}

func TestViewsEndWithTheBatch(t *testing.T) {
	topic := newTestTopic(t, TopicOptions{})
	publisher := publisherOf(t, topic)
	for _, options := range []SubscriberOptions{{}, {Lossy: true}, {Lossy: true, InPlace: true}} {
		subscriber := must(topic.Subscriber(options))
		must(publisher.PublishRecord(background, NewRecord{Value: []byte("first"), Key: []byte("key")}))
		must(publisher.Publish(nil))
		mine := errors.New("mine")
		err := subscriber.View(soon(t), 10, func(batch []RecordView) error {
			expect(t, len(batch), 2)
			expect(t, string(batch[0].Value()), "first")
			expect(t, string(batch[0].Key()), "key")
			expect(t, len(batch[1].Value()), 0)
			expect(t, batch[1].TimestampMs(), -1)
			expect(t, batch[1].Key() == nil, true)
			_, err := subscriber.Poll(make([]Record, 1))
			expectError(t, err, "busy")
			expectError(t, subscriber.View(soon(t), 1, readNothing), "busy")
			return mine
		})
		expect(t, err, mine)
		// Closing inside takes effect behind it.
		must(publisher.Publish([]byte("second")))
		ok(t, subscriber.View(soon(t), 10, func(batch []RecordView) error {
			ok(t, subscriber.Close())
			expect(t, string(batch[0].Value()), "second")
			return nil
		}))
		expect(t, subscriber.Close(), ErrHandleClosed)
	}
	ok(t, topic.Close())
}

var sink int // What is added to it is read.

// Views and their slices are kept longer than their batch, in vain: whatever lies there now, it can be read. That holds
// while the topic is overwritten, and once subscriber, topic and its memory are gone.
func TestViewsKeptTooLongAreStaleBytes(t *testing.T) {
	for _, options := range []SubscriberOptions{{}, {Lossy: true}, {Lossy: true, InPlace: true}} {
		topic := newTestTopic(t, TopicOptions{CapacityBytes: 1 << 20, Timestamps: true})
		publisher, subscriber := publisherOf(t, topic), must(topic.Subscriber(options))
		headers := []Header{{"name", []byte("header")}}
		must(publisher.PublishRecord(background, NewRecord{Value: []byte("first"), Key: []byte("key"), Headers: headers}))
		var views []RecordView
		var slices [][]byte
		ok(t, subscriber.View(soon(t), 10, func(batch []RecordView) error {
			views = append(views, batch...)
			slices = append(slices, batch[0].Value(), batch[0].Key(), batch[0].Headers()[0].Value)
			return nil
		}))
		expect(t, len(views), 1)
		read := func() {
			for _, slice := range append(slices, views[0].Value(), views[0].Key()) {
				for _, b := range slice {
					sink += int(b)
				}
			}
			sink += int(views[0].TimestampMs())
		}
		read()
		for i := 0; i < 500; i++ {
			must(publisher.Publish(bytes.Repeat([]byte("z"), 10000)))
			ok(t, subscriber.View(soon(t), 10, func([]RecordView) error { read(); return nil }))
			read()
		}
		for _, end := range []func() error{subscriber.Close, publisher.Close, topic.Close} {
			name := topic.Name()
			ok(t, end())
			read()
			if topic.Name() == "" {
				ok(t, Delete(name, DeleteOptions{Force: true}))
			}
			runtime.GC()
			read()
		}
		expect(t, len(slices[0]), len("first"))
	}
}

// The subscribers of a topic share what their views lie in: all at once make it, and the last one that is closed ends it.
func TestSubscribersOfOneTopicViewAtOnce(t *testing.T) {
	topic := newTestTopic(t, TopicOptions{})
	publisher := publisherOf(t, topic)
	again := must(Open(topic.Name()))
	const count = 8
	var kept [count][]byte
	var all sync.WaitGroup
	begin, published := make(chan struct{}), make(chan struct{})
	for i := 0; i < count; i++ {
		subscriber := must(again.Subscriber(SubscriberOptions{}))
		all.Add(1)
		go func(i int) {
			defer all.Done()
			for round, wait := range []chan struct{}{begin, published} {
				<-wait
				err := subscriber.View(soon(t), 1, func(batch []RecordView) error {
					kept[i] = batch[0].Value()
					if got := binary.LittleEndian.Uint64(kept[i]); got != uint64(round) {
						t.Errorf("got %d, want %d", got, round)
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
			if err := subscriber.Close(); err != nil {
				t.Error(err)
			}
		}(i)
	}
	must(publisher.Publish(number64(0)))
	close(begin)
	ok(t, again.Close())
	must(publisher.Publish(number64(1)))
	close(published)
	all.Wait()
	for _, value := range kept {
		sink += int(value[0])
	}
}

func TestReadingMoreThanAChunk(t *testing.T) {
	topic := newTestTopic(t, TopicOptions{CapacityBytes: 64 << 20})
	publisher, subscriber := publisherOf(t, topic), subscriberOf(t, topic)
	sizes := []int{1, chunkSize - 1, chunkSize, 3, chunkSize + 1, 0, 3 << 20, 5, 100000}
	for round := 0; round < 3; round++ {
		for i, size := range sizes {
			value := make([]byte, size)
			for j := range value {
				value[j] = byte(i + j)
			}
			must(publisher.Publish(value))
		}
		got := must(subscriber.ReceiveBatch(soon(t), 5))
		for len(got) < len(sizes) {
			got = append(got, must(subscriber.ReceiveBatch(soon(t), 4-round))...)
		}
		for i, size := range sizes {
			expect(t, len(got[i].Value), size)
			for j, b := range got[i].Value {
				if b != byte(i+j) {
					t.Fatalf("byte %d of value %d", j, i)
				}
			}
		}
	}
}

// A large batch leaves no memory of its size behind, which the next ones would allocate again or keep.
func TestLargeRecordsLeaveNothingBehind(t *testing.T) {
	const size = 30 << 20
	topic := newTestTopic(t, TopicOptions{CapacityBytes: 256 << 20, SegmentBytes: 64 << 20})
	publisher, subscriber := publisherOf(t, topic), subscriberOf(t, topic)
	member := must(must(topic.Group("g", GroupOptions{From: FromBeginning})).Join(MemberOptions{}))
	defer member.Close()
	must(publisher.Publish(make([]byte, size)))
	expect(t, len(must(subscriber.Receive(soon(t))).Value), size)
	expect(t, len(must(member.Receive(soon(t))).Value), size)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := 0; i < 3; i++ {
		must(publisher.Publish([]byte("small")))
		expect(t, string(must(subscriber.Receive(soon(t))).Value), "small")
		expect(t, string(must(member.Receive(soon(t))).Value), "small")
	}
	runtime.ReadMemStats(&after)
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > size/4 {
		t.Fatal(allocated)
	}
}
