//! Publishes a record and reads the topic back. Beside it: leat sub greetings --from beginning
use leat::{Entry, StartAt, SubscriberOptions, Topic};

fn main() -> leat::Result<()> {
    let topic = Topic::open_or_create("greetings", &Default::default())?;
    let mut publisher = topic.publisher(&Default::default())?;
    publisher.publish(b"hello from Rust", None)?;
    let mut subscriber = topic.subscriber(&SubscriberOptions {
        from: StartAt::Beginning,
        ..Default::default()
    })?;
    while let Some(entry) = subscriber.poll(1)?.iter().next() {
        if let Entry::Record(record) = entry {
            println!("{}", String::from_utf8_lossy(record.value()));
        }
    }
    Ok(())
}
