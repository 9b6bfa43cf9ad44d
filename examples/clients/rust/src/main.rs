//! Publishes a record and reads the topic back. Beside it: leat sub greetings --from beginning

fn main() -> leat::Result<()> {
    let topic = leat::Topic::open_or_create("greetings", &Default::default())?;
    let mut subscriber = topic.subscriber(&leat::SubscriberOptions {
        from: leat::From::Beginning,
        ..Default::default()
    })?;
    let mut publisher = topic.publisher(&Default::default())?;
    publisher.publish(b"hello from Rust", None)?;
    loop {
        let batch = subscriber.poll(64)?;
        if batch.is_empty() {
            return Ok(());
        }
        for record in batch.records() {
            println!("{}: {}", record.offset(), String::from_utf8_lossy(record.value()));
        }
    }
}
