// Publishes a record and reads the topic back: clients/go/README.md says how to build it.
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
	publisher, err := topic.Publisher(leat.PublisherOptions{})
	check(err)
	_, err = publisher.Publish([]byte("hello from Go"))
	check(err)
	subscriber, err := topic.Subscriber(leat.SubscriberOptions{From: leat.FromBeginning})
	check(err)
	records, err := subscriber.ReceiveBatch(context.Background(), 64)
	check(err)
	for _, record := range records {
		fmt.Println(string(record.Value))
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
