// If these failed, a Go program could not find, make or describe topics, or would take one error
// for another.

package leat

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestCodesAreThoseOfTheList(t *testing.T) {
	file, err := os.Open("../../spec/errors.csv")
	if err != nil {
		t.Skip("not in the project's tree: ", err)
	}
	rows := must(csv.NewReader(file).ReadAll())
	expect(t, len(codeNames), len(rows)-1)
	for i, row := range rows[1:] {
		expect(t, row[0], strconv.Itoa(i))
		expect(t, codeNames[i], row[1])
		if i != 0 {
			if text := (&Error{Code: Code(i)}).Error(); !strings.HasPrefix(text, "leat: "+row[2]) {
				t.Fatal(text)
			}
		}
	}
}

func TestTopicsAreCreatedOpenedListedAndDeleted(t *testing.T) {
	_, err := Open("life")
	expectError(t, err, "not_found")
	topic := must(Create("life", TopicOptions{Partitions: 3, Timestamps: true}))
	_, err = Create("life", TopicOptions{})
	expectError(t, err, "exists")
	again := must(OpenOrCreate("life", TopicOptions{}))
	other := must(Open("life"))
	expect(t, other.Name(), "life")
	expect(t, must(other.Partitions()), 3)
	if names := must(List(Place{})); !strings.Contains(strings.Join(names, " "), "life") {
		t.Fatal(names)
	}
	info := must(topic.Info())
	expect(t, len(info.Partitions), 3)
	expect(t, info.Timestamps, true)
	expect(t, info.MaxRecordBytes, must(topic.MaxRecordSize()))
	id := fmt.Sprintf("%x-%x-%x-%x-%x", info.ID[:4], info.ID[4:6], info.ID[6:8], info.ID[8:10], info.ID[10:])
	if json := must(topic.JSON()); !strings.Contains(string(json), `"life"`) || !strings.Contains(string(json), id) {
		t.Fatal(string(json), id)
	}
	_, err = topic.Shrink()
	expectError(t, err, "needs_growing")
	for _, one := range []*Topic{topic, again, other} {
		ok(t, one.Close())
	}
	ok(t, Delete("life", DeleteOptions{}))
	expectError(t, Delete("life", DeleteOptions{}), "not_found")
}

func TestNamesAreChecked(t *testing.T) {
	for _, name := range []string{"", "a/b", "a\x00b", strings.Repeat("x", 201), "ä"} {
		_, err := Create(name, TopicOptions{})
		expectError(t, err, "invalid_argument")
	}
	_, err := Open("tcp://host/topic")
	expectError(t, err, "unsupported")
	_, err = Create("x", TopicOptions{Partitions: -1})
	expectError(t, err, "invalid_argument")
}

func TestErrorsNameTheThingAndTheCause(t *testing.T) {
	const nowhere = "/nonexistent/leat"
	topic := newTestTopic(t, TopicOptions{})
	says := func(want string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Fatalf("got %v, want %s", err, want)
		}
	}
	create := func(name string, options TopicOptions) error {
		_, err := Create(name, options)
		return err
	}
	says(`leat: cannot create topic "orders": the directory /nonexistent/leat does not exist and cannot be made; LEAT_DIR`,
		create("orders", TopicOptions{Place: Place{Directory: nowhere}}))
	says("the directory /proc/nonexistent does not exist and cannot be made; LEAT_DATA_DIR",
		create("orders", TopicOptions{Place: Place{DataDirectory: "/proc/nonexistent"}, Durable: DurabilityOS}))
	says(`topic "my orders": a name is 1 to 200 letters`, create("my orders", TopicOptions{}))
	says("Partitions is -1, and must be 1 to 1024", create("orders", TopicOptions{Partitions: -1}))
	says("Participants is 5000, and must be 1 to 4096", create("orders", TopicOptions{Participants: 5000}))
	says("its options contradict each other", create("orders", TopicOptions{MaxCapacityBytes: 1 << 30}))
	_, err := Open("lightq://u@h/t")
	says(`topic "lightq://u@h/t": that is the address of a broker`, err)
	_, err = Open("missing")
	says(`cannot open topic "missing": there is no such topic in `+os.Getenv("LEAT_DIR"), err)
	says(`cannot delete topic "missing"`, Delete("missing", DeleteOptions{}))
	_, err = topic.Group("workers", GroupOptions{Members: 300})
	says(`cannot open group "workers": Members is 300, and must be 1 to 255`, err)
	_, err = must(topic.Group("workers", GroupOptions{})).Join(MemberOptions{Name: strings.Repeat("x", 64)})
	says("name of a member has 64 bytes, and at most 63 are allowed", err)
	_, err = topic.FindGroup("missing")
	says(`cannot find group "missing": no such topic or group`, err)
	says(`cannot delete group "missing"`, topic.DeleteGroup("missing", false))
	_, err = topic.Publisher(PublisherOptions{Partition: InPartition(7)})
	says("partition 7 does not exist: the topic has 1", err)
	_, err = topic.Subscriber(SubscriberOptions{Partition: InPartition(7)})
	says("partition 7 does not exist: the topic has 1", err)
	_, err = subscriberOf(t, topic).ReceiveBatch(NoWait, 0)
	says("limit is 0, and must be at least 1", err)
	expect(t, errors.Is(err, ErrInvalidArgument), true)
	says("is too old: its LEAT_ABI_VERSION is 0, wanted is", abiError(0, 19))
}

func TestOpenWaitsUntilTheTopicWasCreated(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	_, err := OpenContext(ctx, "later", Place{})
	expectError(t, err, "not_found")
	expect(t, errors.Is(err, context.DeadlineExceeded), true)
	go func() {
		time.Sleep(20 * time.Millisecond)
		must(Create("later", TopicOptions{})).Close()
	}()
	ok(t, must(OpenContext(soon(t), "later", Place{})).Close())
	ok(t, Delete("later", DeleteOptions{}))
}

func TestClosedTopicsSaySo(t *testing.T) {
	topic := newTestTopic(t, TopicOptions{})
	ok(t, topic.Close())
	err := topic.Close()
	expect(t, errors.Is(err, ErrHandleClosed), true)
	expect(t, errors.Is(err, fs.ErrClosed), true)
	expect(t, errors.Is(err, ErrInvalidArgument), true)
	_, err = topic.Publisher(PublisherOptions{})
	expect(t, err, ErrHandleClosed)
	_, err = topic.Subscriber(SubscriberOptions{})
	expect(t, err, ErrHandleClosed)
	_, err = topic.Group("g", GroupOptions{})
	expect(t, err, ErrHandleClosed)
	_, err = topic.Info()
	expect(t, err, ErrHandleClosed)
	expect(t, topic.Name(), "")
	var zero Topic
	expect(t, zero.Close(), ErrHandleClosed)
}

func TestErrorsHaveNameSentenceAndDetail(t *testing.T) {
	topic := newTestTopic(t, TopicOptions{CapacityBytes: 1 << 20})
	publisher := publisherOf(t, topic)
	_, err := publisher.Publish(make([]byte, 1<<20))
	var e *Error
	expect(t, errors.As(err, &e), true)
	expect(t, e.Name(), "too_large")
	expect(t, errors.Is(err, ErrTooLarge), true)
	expect(t, errors.Is(err, ErrFull), false)
	expect(t, uint64(e.Detail), must(topic.MaxRecordSize()))
	if !strings.HasPrefix(err.Error(), "leat: the record is larger than the topic allows") {
		t.Fatal(err)
	}
}
