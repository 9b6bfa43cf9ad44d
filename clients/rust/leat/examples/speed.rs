//! What a record costs in Rust, for `leat bench clients`: `speed TOPIC SIZE RECORDS`. Prints nanoseconds as a line of
//! JSON.
//!
//! The topic holds all records. Each part runs twice, and the second time counts.

use std::hint::black_box;
use std::time::Instant;

const BATCH: usize = 64;

fn ns_each(records: usize, begin: Instant) -> f64 {
    begin.elapsed().as_nanos() as f64 / records as f64
}

fn time_publishing(
    topic: &leat::Topic,
    records: usize,
    work: impl Fn(&mut leat::Publisher) -> leat::Result<()>,
) -> leat::Result<f64> {
    let mut publisher = topic.publisher(&Default::default())?;
    work(&mut publisher)?;
    let begin = Instant::now();
    work(&mut publisher)?;
    Ok(ns_each(records, begin))
}

/// Reads the last records of the topic; `read` returns the sum of the last bytes of a batch.
fn time_reading(
    topic: &leat::Topic,
    records: usize,
    read: impl Fn(leat::Batch<'_>) -> u64,
) -> leat::Result<f64> {
    let options = leat::SubscriberOptions {
        from: leat::StartAt::Last(records as u64),
        ..Default::default()
    };
    let mut ns = 0.0;
    for _ in 0..2 {
        let mut subscriber = topic.subscriber(&options)?;
        let (mut left, mut sum) = (records, 0);
        let begin = Instant::now();
        while left != 0 {
            let batch = subscriber.poll(BATCH)?;
            left -= batch.len();
            sum += read(batch);
        }
        ns = ns_each(records, begin);
        black_box(sum);
    }
    Ok(ns)
}

fn last(value: &[u8]) -> u64 {
    u64::from(value[value.len() - 1])
}

fn run(name: &str, size: usize, records: usize) -> leat::Result<()> {
    let topic = leat::Topic::open(name, leat::Timeout::NOW)?;
    let value = vec![0; size];
    let values = vec![&value; BATCH];
    let publish = time_publishing(&topic, records, |publisher| {
        for _ in 0..records {
            publisher.publish(&value, None)?;
        }
        Ok(())
    })?;
    let batch = time_publishing(&topic, records, |publisher| {
        for _ in 0..records / BATCH {
            publisher.publish_batch(&values, None)?;
        }
        Ok(())
    })?;
    let read = time_reading(&topic, records, |batch| {
        let copies = batch.to_owned();
        copies.records().map(|record| last(record.value())).sum()
    })?;
    let view = time_reading(&topic, records, |batch| {
        batch.records().map(|record| last(record.value())).sum()
    })?;
    println!(
        "{{\"runtime\": \"{}\", \"publish_ns\": {publish:.2}, \"batch_ns\": {batch:.2}, \"read_ns\": {read:.2}, \"view_ns\": {view:.2}}}",
        option_env!("LEAT_RUSTC").unwrap_or("Rust")
    );
    Ok(())
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, name, size, records] = &arguments[..] else {
        eprintln!("usage: speed TOPIC SIZE RECORDS");
        std::process::exit(2);
    };
    let number = |text: &str| text.parse().expect("a number");
    if let Err(error) = run(name, number(size), number(records)) {
        eprintln!("{error}");
        std::process::exit(1);
    }
}
