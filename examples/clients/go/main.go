// Publishes a record and reads it: clients/go/README.md says how to build it.
package main

import (
	"context"
	"fmt"
	"log"

	"leat"
)

func main() {
	topic, err := leat.OpenOrCreate("greetings", leat.TopicOptions{})
	check(err)
	subscriber, err := topic.Subscriber(leat.SubscriberOptions{})
	check(err)
	publisher, err := topic.Publisher(leat.PublisherOptions{})
	check(err)
	_, err = publisher.Publish([]byte("hello from Go"))
	check(err)
	record, err := subscriber.Receive(context.Background())
	check(err)
	fmt.Println(string(record.Value))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
