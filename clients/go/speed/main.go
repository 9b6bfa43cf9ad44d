// What a record costs in Go, for `leat bench clients`: go TOPIC SIZE RECORDS. Prints nanoseconds as a line of JSON.
//
// The topic holds all records. Each part runs twice, and the second time counts.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"

	"leat"
)

const batchSize = 64

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func nsEach(records int, begin time.Time) float64 {
	return float64(time.Since(begin).Nanoseconds()) / float64(records)
}

func timePublishing(topic *leat.Topic, records int, work func(publisher *leat.Publisher)) float64 {
	publisher := must(topic.Publisher(leat.PublisherOptions{}))
	work(publisher)
	begin := time.Now()
	work(publisher)
	ns := nsEach(records, begin)
	check(publisher.Close())
	return ns
}

// Reads the last records of the topic; `read` returns how many it has read.
func timeReading(topic *leat.Topic, records int, read func(subscriber *leat.Subscriber) int) float64 {
	var ns float64
	for run := 0; run < 2; run++ {
		subscriber := must(topic.Subscriber(leat.SubscriberOptions{From: leat.FromLast(uint64(records))}))
		begin := time.Now()
		for left := records; left > 0; {
			left -= read(subscriber)
		}
		ns = nsEach(records, begin)
		check(subscriber.Close())
	}
	return ns
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: go TOPIC SIZE RECORDS")
		os.Exit(2)
	}
	topic := must(leat.Open(os.Args[1]))
	value := make([]byte, must(strconv.Atoi(os.Args[2])))
	records := must(strconv.Atoi(os.Args[3]))
	values := make([][]byte, batchSize)
	for i := range values {
		values[i] = value
	}

	publishNs := timePublishing(topic, records, func(publisher *leat.Publisher) {
		for i := 0; i < records; i++ {
			must(publisher.Publish(value))
		}
	})
	batchNs := timePublishing(topic, records, func(publisher *leat.Publisher) {
		for i := 0; i < records; i += batchSize {
			must(publisher.PublishBatch(leat.NoWait, values))
		}
	})
	sum := 0
	batch := make([]leat.Record, batchSize)
	readNs := timeReading(topic, records, func(subscriber *leat.Subscriber) int {
		count := must(subscriber.Poll(batch))
		for i := range batch[:count] {
			value := batch[i].Value
			sum += int(value[len(value)-1])
		}
		return count
	})
	viewNs := timeReading(topic, records, func(subscriber *leat.Subscriber) (count int) {
		check(subscriber.View(leat.NoWait, batchSize, func(views []leat.RecordView) error {
			for i := range views {
				value := views[i].Value()
				sum += int(value[len(value)-1])
			}
			count = len(views)
			return nil
		}))
		return count
	})
	if sum != 0 {
		fmt.Fprintln(os.Stderr, "a value is not what was published")
		os.Exit(1)
	}
	fmt.Printf(`{"runtime": "%s", "publish_ns": %.2f, "batch_ns": %.2f, "read_ns": %.2f, "view_ns": %.2f}`+"\n",
		runtime.Version(), publishNs, batchNs, readNs, viewNs)
}
