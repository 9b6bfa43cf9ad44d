// If these failed, a record that nobody finished would be lost instead of going to another member,
// or a goroutine that waits for records would keep others from acknowledging theirs.

package leat

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

func publishTexts(t *testing.T, topic *Topic, count int) {
	publisher := publisherOf(t, topic)
	for i := 0; i < count; i++ {
		must(publisher.PublishRecord(background, NewRecord{Value: []byte(fmt.Sprint("job-", i)), Key: []byte{byte(i)}}))
	}
}

func TestGroupsDeliverUntilAcknowledged(t *testing.T) {
	topic := newTestTopic(t, TopicOptions{})
	group := must(topic.Group("workers", GroupOptions{From: FromBeginning, InFlight: 6}))
	expect(t, group.WasCreated(), true)
	expect(t, group.Name(), "workers")
	expect(t, must(topic.FindGroup("workers")).WasCreated(), false)
	expect(t, must(topic.GroupNames())[0], "workers")
	publishTexts(t, topic, 10)
	member := must(group.Join(MemberOptions{Name: "me"}))
	got := must(member.ReceiveBatch(soon(t), 6))
	expect(t, len(got), 6)
	expect(t, string(got[5].Value), "job-5")
	expect(t, string(got[5].Key), "\x05")
	expect(t, got[5].Deliveries, 1)
	_, err := member.ReceiveBatch(NoWait, 1)
	expectError(t, err, "in_flight_full")

	expect(t, must(member.Acknowledge(got[1])), 1)
	_, err = member.Acknowledge(got[1])
	expectError(t, err, "not_in_flight")
	ok(t, member.Requeue(got[0], 0))
	expectError(t, member.Requeue(got[0], -1), "invalid_argument")
	expect(t, must(member.Acknowledge(got[0], got[1], got[2])), 1)
	expect(t, must(member.Acknowledge()), 0)
	expect(t, must(member.AcknowledgeUpTo(got[4])), 2)
	expect(t, must(member.InFlight()), 1)
	again := must(member.Receive(soon(t)))
	expect(t, string(again.Value), "job-0")
	expect(t, again.Deliveries, 2)
	expect(t, must(member.AcknowledgeAll()), 2)

	info := must(group.Info())
	expect(t, info.Members[0].Name, "me")
	expect(t, info.InFlightLimit, 6)
	expect(t, len(info.Offsets), 1)
	expect(t, must(group.DeadLetterTopic()), "")
	ok(t, group.Seek(FromOffset(9), AnyPartition))
	expect(t, must(group.Position(0)), 9)
	expectError(t, group.Seek(FromOffset(99), AnyPartition), "invalid_argument")
	last := must(member.Receive(soon(t)))
	expect(t, last.Offset, 9)

	// What it holds goes to others.
	ok(t, member.Close())
	_, err = member.Acknowledge(last)
	expect(t, err, ErrHandleClosed)
	expect(t, member.Close(), ErrHandleClosed)
	other := must(group.Join(MemberOptions{}))
	expect(t, must(other.Receive(soon(t))).Deliveries, 2)

	expectError(t, topic.DeleteGroup("workers", false), "busy")
	time.AfterFunc(20*time.Millisecond, func() { topic.DeleteGroup("workers", true) })
	_, err = other.Receive(soon(t))
	expectError(t, err, "closed")
	expectError(t, topic.DeleteGroup("workers", true), "not_found")
	_, err = topic.FindGroup("workers")
	expectError(t, err, "not_found")
	ok(t, group.Close())
	_, err = group.Join(MemberOptions{})
	expect(t, err, ErrHandleClosed)
	expect(t, group.Close(), ErrHandleClosed)
}

func TestReceivingIntoABuffer(t *testing.T) {
	topic := newTestTopic(t, TopicOptions{})
	group := must(topic.Group("g", GroupOptions{}))
	publishTexts(t, topic, 2)
	member := must(group.Join(MemberOptions{}))
	defer member.Close()
	buffer := make([]byte, 10)
	size, err := member.ReceiveCopy(soon(t), buffer[:2])
	expectError(t, err, "buffer_too_small")
	expect(t, size, 5)
	for _, want := range []string{"job-0", "job-1"} {
		size = must(member.ReceiveCopy(soon(t), buffer))
		expect(t, string(buffer[:size]), want)
	}
	expect(t, must(member.InFlight()), 0)
	_, err = member.ReceiveCopy(NoWait, nil)
	expectError(t, err, "timeout")
}

func TestMembersEndTheirWaits(t *testing.T) {
	topic := newTestTopic(t, TopicOptions{})
	group := must(topic.Group("g", GroupOptions{}))
	member := must(group.Join(MemberOptions{}))
	_, err := member.Receive(NoWait)
	expectError(t, err, "timeout")
	ctx, cancel := context.WithCancel(background)
	time.AfterFunc(20*time.Millisecond, cancel)
	_, err = member.Receive(ctx)
	expect(t, errors.Is(err, context.Canceled), true)
	time.AfterFunc(20*time.Millisecond, func() { member.Stop() })
	expectError(t, member.Wait(soon(t)), "stopped")
	ok(t, member.Resume())
	if must(member.WaitFd()) < 0 {
		t.Fatal("no descriptor")
	}
	time.AfterFunc(20*time.Millisecond, func() { member.Close() })
	_, err = member.ReceiveBatch(background, 5)
	expect(t, err, ErrHandleClosed)
	_, err = must(group.Join(MemberOptions{})).ReceiveBatch(background, 0)
	expectError(t, err, "invalid_argument")
}

// A goroutine waits for records all the time; others acknowledge what it handed to them.
func TestAcknowledgingInterruptsAWait(t *testing.T) {
	topic := newTestTopic(t, TopicOptions{})
	publisher := publisherOf(t, topic)
	group := must(topic.Group("g", GroupOptions{}))
	member := must(group.Join(MemberOptions{}))
	received := make(chan Delivery)
	over := make(chan error)
	go func() {
		for {
			delivery, err := member.Receive(background)
			if err != nil {
				over <- err
				return
			}
			received <- delivery
		}
	}()
	for i := uint64(0); i < 200; i++ {
		must(publisher.Publish(number64(i)))
		delivery := <-received
		time.Sleep(time.Duration(i%3) * 100 * time.Microsecond) // It waits again.
		expect(t, must(member.Acknowledge(delivery)), 1)
		expect(t, must(member.InFlight()), 0)
		_, err := member.ReceiveBatch(NoWait, 1)
		expectError(t, err, "timeout")
	}
	ok(t, member.Stop())
	expectError(t, <-over, "stopped")
	ok(t, member.Close())
}

func TestLeasesAndDeadLetters(t *testing.T) {
	topic := newTestTopic(t, TopicOptions{})
	group := must(topic.Group("g", GroupOptions{From: FromBeginning, Lease: 30 * time.Millisecond, MaxDeliveries: 2}))
	name := must(group.DeadLetterTopic())
	expect(t, name, topic.Name()+".g.dead")
	publishTexts(t, topic, 1)
	slow := must(group.Join(MemberOptions{}))
	first := must(slow.Receive(soon(t)))
	quick := must(group.Join(MemberOptions{}))
	second := must(quick.Receive(soon(t)))
	expect(t, second.Deliveries, 2)
	_, err := slow.Acknowledge(first)
	expectError(t, err, "lease_lost")
	ok(t, quick.Requeue(second, 0))
	_, err = quick.Receive(NoWait)
	for i := 0; NameOf(err) == "timeout" && must(group.Info()).DeadLetters == 0 && i < 1000; i++ {
		time.Sleep(5 * time.Millisecond)
		_, err = quick.Receive(NoWait)
	}
	dead := must(OpenContext(soon(t), name, Place{}))
	reader := must(dead.Subscriber(SubscriberOptions{From: FromBeginning, Lossy: true}))
	expect(t, string(must(reader.Receive(soon(t))).Value), "job-0")
	ok(t, reader.Close())
	ok(t, dead.Close())
	ok(t, quick.Close())
	ok(t, slow.Close())
	Delete(name, DeleteOptions{Force: true})
}
