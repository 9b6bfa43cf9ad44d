"""Publishes a record and reads the topic back. Beside it: leat sub greetings --from beginning"""
import leat

topic = leat.Topic.open_or_create("greetings")
with topic.publisher() as publisher:
    publisher.publish(b"hello from Python")
with topic.subscriber(from_="beginning") as subscriber:
    while entries := subscriber.poll():
        for entry in entries:
            if isinstance(entry, leat.Record):
                print(entry.value.decode())
