// Publishes a record and reads the topic back: clients/go/README.md says how to build it.
package main

import (
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
	records := make([]leat.Record, 64)
	for count := 1; count > 0; {
		count, err = subscriber.Poll(records)
		check(err)
		for _, record := range records[:count] {
			if !record.IsGap() {
				fmt.Println(string(record.Value))
			}
		}
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
