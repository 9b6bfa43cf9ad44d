// If these failed, a mistake in a Go program, such as using a handle that another goroutine closes,
// would crash it or harm a claim or record of somebody else, instead of being an error.

package leat

import (
	"context"
	"errors"
	"math/rand"
	"reflect"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"
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

// So many bytes that nobody has written, and nobody can: what copies or reads all of them takes seconds and gigabytes.
func untouched(t *testing.T, size int) []byte {
	const flags = syscall.MAP_ANON | syscall.MAP_PRIVATE | syscall.MAP_NORESERVE
	bytes, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ, flags)
	ok(t, err)
	t.Cleanup(func() { syscall.Munmap(bytes) })
	return bytes
}

// More bytes than any record may have are refused before anybody copies or reads them. Of each of these sizes, 32 bits
// are a size that would be allowed.
func TestOverFourGiB(t *testing.T) {
	const size = 1<<32 + 5
	huge := untouched(t, size)
	topic := newTestTopic(t, TopicOptions{})
	publisher, subscriber := publisherOf(t, topic), subscriberOf(t, topic)
	part := huge[:1<<16] // Allowed, but not so often.
	values, records, headers := make([][]byte, 1<<16+1), make([]NewRecord, 1<<16+1), make([]Header, 1<<16+1)
	for i := range values {
		values[i], records[i], headers[i] = part, NewRecord{Value: part}, Header{"n", part}
	}
	hugeText := *(*string)(unsafe.Pointer(&huge)) // As unsafe.String, which came with Go 1.20.
	for what, call := range map[string]func() (uint64, error){
		"value":            func() (uint64, error) { return publisher.Publish(huge) },
		"value in context": func() (uint64, error) { return publisher.PublishContext(soon(t), huge) },
		"value in batch":   func() (uint64, error) { return publisher.PublishBatch(background, [][]byte{part, huge}) },
		"sum of values":    func() (uint64, error) { return publisher.PublishBatch(background, values) },
		"sum of records":   func() (uint64, error) { return publisher.PublishRecordBatch(background, records, AnyPartition) },
		"key":              func() (uint64, error) { return publisher.PublishRecord(background, NewRecord{Key: huge}) },
		"value of record":  func() (uint64, error) { return publisher.PublishRecord(background, NewRecord{Value: huge}) },
		"header": func() (uint64, error) {
			return publisher.PublishRecord(background, NewRecord{Headers: []Header{{"n", huge}}})
		},
		"name of header": func() (uint64, error) {
			return publisher.PublishRecord(background, NewRecord{Headers: []Header{{hugeText, nil}}})
		},
		"sum of headers": func() (uint64, error) {
			return publisher.PublishRecord(background, NewRecord{Headers: headers})
		},
		"claim": func() (uint64, error) { _, err := publisher.BeginClaim(background, size); return 0, err },
	} {
		if _, err := call(); NameOf(err) != "too_large" {
			t.Errorf("%s: %v", what, err)
		}
	}
	claim := must(publisher.BeginClaim(background, 10))
	expectError(t, claim.Commit(size), "invalid_argument")
	ok(t, claim.Commit(copy(claim.Room, "ten bytes!")))

	var before, after syscall.Rusage
	ok(t, syscall.Getrusage(syscall.RUSAGE_SELF, &before))
	_, err := Create(hugeText, TopicOptions{})
	expectError(t, err, "invalid_argument")
	_, err = topic.Group(hugeText, GroupOptions{})
	expectError(t, err, "invalid_argument")
	_, err = Open(hugeText)
	expectError(t, err, "invalid_argument")
	ok(t, syscall.Getrusage(syscall.RUSAGE_SELF, &after))
	expect(t, after.Maxrss-before.Maxrss < 1<<20, true) // KiB: they were not copied.

	// Room for more than 4 GiB is no mistake.
	member := must(must(topic.Group("g", GroupOptions{From: FromBeginning})).Join(MemberOptions{}))
	defer member.Close()
	received := must(member.ReceiveBatch(soon(t), size))
	expect(t, string(received[0].Value), "ten bytes!")
	expect(t, len(must(subscriber.ReceiveBatch(soon(t), size))), 1)
	ok(t, syscall.Mprotect(huge, syscall.PROT_READ|syscall.PROT_WRITE))
	ok(t, member.Requeue(received[0], 0))
	expect(t, must(member.ReceiveCopy(soon(t), huge)), 10)
	expect(t, string(huge[:10]), "ten bytes!")
}

// Every method of every handle, with arguments of no use, is called once it was closed, or if nobody opened it: each
// says so, and none crashes.
func TestUseAfterClose(t *testing.T) {
	topic := newTestTopic(t, TopicOptions{})
	publisher, subscriber := must(topic.Publisher(PublisherOptions{})), must(topic.Subscriber(SubscriberOptions{}))
	group := must(topic.Group("g", GroupOptions{}))
	member := must(group.Join(MemberOptions{}))
	for _, handle := range []interface{ Close() error }{member, group, subscriber, publisher, topic} {
		ok(t, handle.Close())
	}
	handles := []any{member, group, subscriber, publisher, topic,
		&Topic{}, &Group{}, &Publisher{}, &Subscriber{}, &Member{}}
	arguments := map[reflect.Type]reflect.Value{
		reflect.TypeOf((*context.Context)(nil)).Elem(): reflect.ValueOf(background),
		reflect.TypeOf([]byte(nil)):                    reflect.ValueOf([]byte("x")),
		reflect.TypeOf([][]byte(nil)):                  reflect.ValueOf([][]byte{nil}),
		reflect.TypeOf([]Record(nil)):                  reflect.ValueOf(make([]Record, 1)),
		reflect.TypeOf([]NewRecord(nil)):               reflect.ValueOf(make([]NewRecord, 1)),
		reflect.TypeOf(0):                              reflect.ValueOf(1),
		reflect.TypeOf(func([]byte) (int, error) { return 0, nil }): reflect.ValueOf(
			func([]byte) (int, error) { t.Error("claimed"); return 0, nil }),
		reflect.TypeOf(func([]RecordView) error { return nil }): reflect.ValueOf(
			func([]RecordView) error { t.Error("viewed"); return nil }),
	}
	for _, handle := range handles {
		value := reflect.ValueOf(handle)
		for i := 0; i < value.NumMethod(); i++ {
			method, name := value.Method(i), value.Type().Method(i).Name
			given := make([]reflect.Value, 0, 4)
			for j := 0; j < method.Type().NumIn() && !(method.Type().IsVariadic() && j == method.Type().NumIn()-1); j++ {
				argument, isThere := arguments[method.Type().In(j)]
				if !isThere {
					argument = reflect.Zero(method.Type().In(j))
				}
				given = append(given, argument)
			}
			results := method.Call(given)
			last := results[len(results)-1]
			if mayFail := last.Kind() == reflect.Interface; mayFail && last.Interface() != any(ErrHandleClosed) {
				t.Errorf("%T.%s: %v", handle, name, last)
			}
		}
	}
}

// What the compiler lets through although it is of no use: numbers that name nothing, and no function.
func TestWrongArguments(t *testing.T) {
	topic := newTestTopic(t, TopicOptions{})
	publisher, subscriber := publisherOf(t, topic), subscriberOf(t, topic)
	group := must(topic.Group("g", GroupOptions{}))
	for i, call := range []func() error{
		func() error { _, err := Create("new", TopicOptions{Policy: 77}); return err },
		func() error { _, err := Create("new", TopicOptions{Durable: 77}); return err },
		func() error { _, err := Create("new", TopicOptions{Partitions: -1}); return err },
		func() error { _, err := Create("new", TopicOptions{Participants: 1 << 40}); return err },
		func() error { _, err := Create("new", TopicOptions{CapacityBytes: 1 << 63}); return err },
		func() error { _, err := Create("new", TopicOptions{Mode: 1 << 31}); return err },
		func() error { _, err := Create("new", TopicOptions{EvictAfter: -1}); return err },
		func() error { _, err := topic.Publisher(PublisherOptions{Acknowledge: 77}); return err },
		func() error { _, err := topic.Publisher(PublisherOptions{Partition: InPartition(1 << 40)}); return err },
		func() error { _, err := topic.Subscriber(SubscriberOptions{Read: 77}); return err },
		func() error { _, err := topic.Subscriber(SubscriberOptions{From: From{where: 77}}); return err },
		func() error { _, err := topic.Group("new", GroupOptions{Mode: 77}); return err },
		func() error { _, err := topic.Group("new", GroupOptions{Members: -1}); return err },
		func() error { _, err := topic.Group("new", GroupOptions{From: From{where: 77}}); return err },
		func() error { return group.Seek(From{where: 77}, AnyPartition) },
		func() error { _, err := group.Position(-1); return err },
		func() error { _, err := publisher.DurableOffset(InPartition(-5)); return err },
		func() error { _, err := publisher.Claim(background, 5, nil); return err },
		func() error { _, err := publisher.BeginClaim(background, -5); return err },
		func() error { _, err := subscriber.Poll(nil); return err },
		func() error { _, err := subscriber.ReceiveBatch(background, -5); return err },
		func() error { return subscriber.View(background, 5, nil) },
		func() error { _, err := WaitAny(background, nil); return err },
	} {
		if err := call(); NameOf(err) != "invalid_argument" {
			t.Errorf("%d: %v", i, err)
		}
	}
	must(publisher.Publish([]byte("unharmed"))) // The claim without a function is not open.
	expect(t, string(must(subscriber.Receive(soon(t))).Value), "unharmed")
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
	expectError(t, within.claim.Commit(0), "not_in_flight")
	expectError(t, within.claim.Abort(), "not_in_flight")
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
	expectError(t, first.Abort(), "not_in_flight")
	expectError(t, job.claim.Commit(1), "not_in_flight")
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
		d := Delivery{Record: Record{Partition: partition, Offset: 1 << 60}, state: 1 << 63, position: 77, entry: 5}
		_, err := member.Acknowledge(d)
		expectError(t, err, "not_in_flight")
		_, err = member.Acknowledge(d, d)
		expectError(t, err, "not_in_flight")
		_, err = member.AcknowledgeUpTo(d)
		expectError(t, err, "not_in_flight")
		expectError(t, member.Requeue(d, 0), "not_in_flight")
	}
}
