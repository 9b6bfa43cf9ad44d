package leat

import "testing"

// go test -run - -bench . -benchmem: nanoseconds for each record of 100 bytes.

const benchRecords = 64

func benchTopic(b *testing.B) (*Publisher, *Subscriber) {
	topic := newTestTopic(b, TopicOptions{CapacityBytes: 64 << 20})
	return publisherOf(b, topic), subscriberOf(b, topic)
}

// Reads all there is, while the clock stands still.
func drain(b *testing.B, subscriber *Subscriber) {
	b.StopTimer()
	records := make([]Record, 1024)
	for must(subscriber.Poll(records)) != 0 {
		continue
	}
	b.StartTimer()
}

func BenchmarkPublish(b *testing.B) {
	publisher, subscriber := benchTopic(b)
	value := make([]byte, 100)
	for i := 0; i < b.N; i++ {
		if i%100000 == 0 {
			drain(b, subscriber)
		}
		must(publisher.Publish(value))
	}
}

func fill(b *testing.B, publisher *Publisher, count int) {
	values := make([][]byte, benchRecords)
	for i := range values {
		values[i] = make([]byte, 100)
	}
	for i := 0; i < count; i += benchRecords {
		must(publisher.PublishBatch(background, values))
	}
}

func BenchmarkPublishBatch(b *testing.B) {
	publisher, subscriber := benchTopic(b)
	for i := 0; i < b.N; i += 100 * benchRecords {
		drain(b, subscriber)
		fill(b, publisher, 100*benchRecords)
	}
}

func benchRead(b *testing.B, read func(s *Subscriber) int) {
	publisher, subscriber := benchTopic(b)
	const lap = 1000 * benchRecords
	for i := 0; i < b.N; i += lap {
		b.StopTimer()
		fill(b, publisher, lap)
		b.StartTimer()
		for count := 0; count < lap; {
			count += read(subscriber)
		}
	}
}

func BenchmarkPoll(b *testing.B) {
	records := make([]Record, benchRecords)
	benchRead(b, func(s *Subscriber) int { return must(s.Poll(records)) })
}

func BenchmarkReceiveBatch(b *testing.B) {
	benchRead(b, func(s *Subscriber) int { return len(must(s.ReceiveBatch(background, benchRecords))) })
}

func BenchmarkReceive(b *testing.B) {
	benchRead(b, func(s *Subscriber) int { must(s.Receive(background)); return 1 })
}

func BenchmarkView(b *testing.B) {
	sum := 0
	benchRead(b, func(s *Subscriber) (count int) {
		err := s.View(background, benchRecords, func(batch []RecordView) error {
			for i := range batch {
				sum += len(batch[i].Value())
			}
			count = len(batch)
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
		return count
	})
}
