// Publishes a record and reads the topic back: clients/go/README.md says how to build it.
package main

import (
	"fmt"
	"log"

	"leat"
)

func main() {
	topic := must(leat.OpenOrCreate("greetings", leat.TopicOptions{}))
	publisher := must(topic.Publisher(leat.PublisherOptions{}))
	must(publisher.Publish([]byte("hello from Go")))
	subscriber := must(topic.Subscriber(leat.SubscriberOptions{From: leat.FromBeginning}))
	records := make([]leat.Record, 64)
	for count := must(subscriber.Poll(records)); count > 0; count = must(subscriber.Poll(records)) {
		for _, record := range records[:count] {
			if !record.IsGap() {
				fmt.Println(string(record.Value))
			}
		}
	}
}

func must[T any](result T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return result
}
