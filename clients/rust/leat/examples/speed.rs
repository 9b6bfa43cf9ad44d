//! How long a record takes, in nanoseconds: publishes all into a topic that holds all, then reads all.
//!
//!     cargo run --release --example speed [-- SIZE RECORDS]
//!
//! Prints one line of JSON. Topics are in $LEAT_DIR.

use std::hint::black_box;
use std::time::Instant;

const BATCH: usize = 64;

fn topic(name: &str, size: usize, records: usize) -> leat::Result<leat::Topic> {
    let options = leat::TopicOptions {
        capacity_bytes: (records * (size + 64) + (64 << 20)) as u64,
        segment_bytes: 8 << 20,
        retain_all: true,
        ..Default::default()
    };
    leat::Topic::create(name, &options)
}

fn ns_each(records: usize, work: impl FnOnce() -> leat::Result<()>) -> leat::Result<f64> {
    let begin = Instant::now();
    work()?;
    Ok(begin.elapsed().as_nanos() as f64 / records as f64)
}

/// Reads all records; `read` returns something of each batch, so that it has to look.
fn read_all(
    topic: &leat::Topic,
    records: usize,
    read: impl Fn(leat::Batch<'_>) -> u64,
) -> leat::Result<f64> {
    let mut subscriber = topic.subscriber(&leat::SubscriberOptions {
        from: leat::From::Beginning,
        ..Default::default()
    })?;
    ns_each(records, || {
        let (mut left, mut sum) = (records, 0);
        while left != 0 {
            let batch = subscriber.poll(BATCH)?;
            left -= batch.len();
            sum += read(batch);
        }
        black_box(sum);
        Ok(())
    })
}

fn main() -> leat::Result<()> {
    let mut numbers = std::env::args()
        .skip(1)
        .map(|text| text.parse().expect("a number"));
    let size: usize = numbers.next().unwrap_or(100);
    let records: usize = numbers.next().unwrap_or(1_000_000) / BATCH * BATCH;
    let value = vec![b'x'; size];
    let one = topic("speed-one", size, records)?;
    let many = topic("speed-many", size, records)?;
    let mut publisher = one.publisher(&Default::default())?;
    let publish = ns_each(records, || {
        for _ in 0..records {
            publisher.publish(black_box(&value), None)?;
        }
        Ok(())
    })?;
    let mut publisher = many.publisher(&Default::default())?;
    let values = vec![&value; BATCH];
    let batch = ns_each(records, || {
        for _ in 0..records / BATCH {
            publisher.publish_batch(black_box(&values), None)?;
        }
        Ok(())
    })?;
    // Each record's last byte is read, in both cases.
    let view = read_all(&one, records, |batch| {
        let last = |record: leat::Record<'_>| record.value().last().map_or(0, |byte| *byte);
        batch.records().map(|record| u64::from(last(record))).sum()
    })?;
    let read = read_all(&one, records, |batch| {
        let copies = batch.to_owned();
        let values = copies
            .iter()
            .filter_map(leat::OwnedEntry::record)
            .map(|it| it.value());
        values
            .map(|value| u64::from(value.last().map_or(0, |byte| *byte)))
            .sum()
    })?;
    leat::Topic::delete("speed-one", true)?;
    leat::Topic::delete("speed-many", true)?;
    println!(
        "{{\"publish_ns\": {publish:.1}, \"batch_ns\": {batch:.1}, \"read_ns\": {read:.1}, \"view_ns\": {view:.1}}}"
    );
    Ok(())
}
