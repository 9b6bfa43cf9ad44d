// If this failed, the tests would touch topics of other programs, and leave their own in memory.

package leat

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"
)

// All topics of the tests lie in a directory of their own. A child process, which a test starts to kill it, runs
// the function that $LEAT_TEST_CHILD names.
func TestMain(m *testing.M) {
	if child := os.Getenv("LEAT_TEST_CHILD"); child != "" {
		children[child]()
		return
	}
	directory, err := os.MkdirTemp("/dev/shm", "leat-go-test")
	if err != nil {
		panic(err)
	}
	os.Setenv("LEAT_DIR", directory)
	os.Setenv("LEAT_DATA_DIR", directory+"/data")
	code := m.Run()
	os.RemoveAll(directory)
	os.Exit(code)
}

var children = map[string]func(){}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func expect[T any](t *testing.T, got, want T) {
	t.Helper()
	if any(got) != any(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

// An error by the name of its code; and context errors.
func expectError(t *testing.T, err error, name string) {
	t.Helper()
	if NameOf(err) != name {
		t.Fatalf("got %q (%v), want %q", NameOf(err), err, name)
	}
}

var topicNumber int

// A topic of its own for a test, closed and deleted behind it.
func newTestTopic(t testing.TB, options TopicOptions) *Topic {
	t.Helper()
	topicNumber++
	name := fmt.Sprintf("topic-%d", topicNumber)
	topic, err := Create(name, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		topic.Close()
		Delete(name, DeleteOptions{Force: true})
	})
	return topic
}

func publisherOf(t testing.TB, topic *Topic) *Publisher {
	t.Helper()
	publisher, err := topic.Publisher(PublisherOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { publisher.Close() })
	return publisher
}

func subscriberOf(t testing.TB, topic *Topic) *Subscriber {
	t.Helper()
	subscriber, err := topic.Subscriber(SubscriberOptions{From: FromBeginning})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { subscriber.Close() })
	return subscriber
}

// A context for what takes a moment.
func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}
