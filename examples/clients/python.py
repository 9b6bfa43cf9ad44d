"""Publishes a record and reads the topic back. Beside it: leat sub greetings --from beginning"""
import leat

topic = leat.Topic.open_or_create("greetings")
with topic.publisher() as publisher:
    offset = publisher.publish(b"hello from Python")
with topic.subscriber(from_="beginning") as subscriber:
    for entry in subscriber.receive_batch(limit=offset + 1):
        print(entry.value.decode() if isinstance(entry, leat.Record) else entry)
