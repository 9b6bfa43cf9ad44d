//! If these failed, a record would arrive without its key or headers or in the wrong partition, or a publish that finds
//! no room would hang.

use crate::place::*;
use leat::*;
use std::time::Duration;

#[test]
fn values_arrive_in_order() {
    let here = TestPlace::new();
    let (_topic, mut publisher, mut subscriber) = here.trio(&here.options());
    assert_eq!(publisher.publish(b"one", None).unwrap(), 0);
    assert_eq!(publisher.publish(b"", Timeout::NOW).unwrap(), 1);
    assert_eq!(publisher.publish(&[0, 255, 10], SOON).unwrap(), 2);
    assert_eq!(publisher.publish_batch(&["four", "five"], None).unwrap(), 3);
    assert_eq!(publisher.publish_batch(&[vec![6u8; 6]], None).unwrap(), 5);
    let batch = subscriber.poll(64).unwrap();
    let values: Vec<_> = batch.records().map(|record| record.value()).collect();
    assert_eq!(
        values,
        [&b"one"[..], b"", &[0, 255, 10], b"four", b"five", &[6; 6]]
    );
    let offsets: Vec<_> = batch.records().map(|record| record.offset()).collect();
    assert_eq!(offsets, [0, 1, 2, 3, 4, 5]);
    assert!(subscriber.poll(64).unwrap().is_empty());
}

/// Each combination of what may lie before a value, so that everything is found behind it.
#[test]
fn keys_headers_and_timestamps_arrive() {
    for timestamps in [false, true] {
        let here = TestPlace::new();
        let options = TopicOptions {
            timestamps,
            ..here.options()
        };
        let (topic, mut publisher, mut subscriber) = here.trio(&options);
        publish_each_combination(&mut publisher);
        let batch = subscriber.receive(64, SOON).unwrap();
        check_keys_and_headers(batch);
        check_timestamps_and_copies(batch, timestamps);
        let expected = lines(batch);
        let copy = batch.to_owned();
        drop((subscriber, publisher, topic));
        // Nothing of the topic is left but the copies, which move to another thread.
        let again = copy.clone();
        let seen = std::thread::spawn(move || (copy.len(), lines(copy.batch())));
        assert_eq!(seen.join().unwrap(), (6, expected.clone()));
        assert_eq!(lines(again.batch()), expected);
    }
}

fn publish_each_combination(publisher: &mut Publisher) {
    let headers = [
        NewHeader::new("name", "value"),
        NewHeader::new("", &[0u8, 1]),
    ];
    let records = [
        NewRecord::new("plain"),
        NewRecord::new("key").key("k"),
        NewRecord::new("empty key").key(""),
        NewRecord::new("headers").headers(&headers),
        NewRecord::new("both").key("key").headers(&headers),
        NewRecord::new("").key("key").headers(&headers[1..]),
    ];
    for record in &records[..3] {
        publisher.publish_record(record, None).unwrap();
    }
    let offset = publisher
        .publish_record_batch(&records[3..], None, None)
        .unwrap();
    assert_eq!(offset, 3);
}

fn check_keys_and_headers(batch: Batch<'_>) {
    let keys: Vec<_> = batch.records().map(|record| record.key()).collect();
    let expected = [
        None,
        Some(&b"k"[..]),
        Some(b""),
        None,
        Some(b"key"),
        Some(b"key"),
    ];
    assert_eq!(keys, expected);
    let counts: Vec<_> = batch
        .records()
        .map(|record| record.headers().count())
        .collect();
    assert_eq!(counts, [0, 0, 0, 2, 2, 1]);
    let both = batch.records().nth(4).unwrap();
    let first = Header {
        name: b"name",
        value: b"value",
    };
    let second = Header {
        name: b"",
        value: &[0, 1],
    };
    assert_eq!(both.headers().collect::<Vec<_>>(), [first, second]);
    assert_eq!(both.value(), b"both");
}

fn check_timestamps_and_copies(batch: Batch<'_>, timestamps: bool) {
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_millis() as u64;
    for record in batch.records() {
        assert_eq!(record.timestamp_ms().is_some(), timestamps);
        assert!(record.timestamp_ms().unwrap_or(now).abs_diff(now) < 10000);
        let copy = record.to_owned();
        assert_eq!(
            (copy.offset(), copy.partition()),
            (record.offset(), record.partition())
        );
        assert_eq!((copy.key(), copy.value()), (record.key(), record.value()));
        assert_eq!(copy.timestamp_ms(), record.timestamp_ms());
        assert!(copy.headers().eq(record.headers()));
        assert_eq!(copy.into_value(), record.value());
    }
}

fn lines(batch: Batch<'_>) -> Vec<String> {
    let line = |it: Record<'_>| {
        format!(
            "{it:?} {:?} {:?}",
            it.timestamp_ms(),
            it.headers().collect::<Vec<_>>()
        )
    };
    batch.records().map(line).collect()
}

#[test]
fn a_key_selects_the_partition_unless_one_is_named() {
    let here = TestPlace::new();
    let options = TopicOptions {
        partitions: 10,
        ..here.options()
    };
    let (topic, mut publisher, mut subscriber) = here.trio(&options);
    publisher
        .publish_record(&NewRecord::new("a").key("21"), None)
        .unwrap();
    publisher
        .publish_record(&NewRecord::new("b").key("foobar"), None)
        .unwrap();
    publisher
        .publish_record(&NewRecord::new("c").key("21").partition(3), None)
        .unwrap();
    publisher
        .publish_record_batch(&[NewRecord::new("d")], Some(7), None)
        .unwrap();
    let mut seen: Vec<_> = Vec::new();
    while seen.len() < 4 {
        for record in subscriber.receive(64, SOON).unwrap().records() {
            seen.push((record.partition(), record.value().to_vec()));
        }
    }
    seen.sort();
    let expected = [(0, "a"), (3, "c"), (6, "b"), (7, "d")];
    assert_eq!(
        seen,
        expected.map(|(number, value)| (number, value.as_bytes().to_vec()))
    );
    for number in [10, u32::MAX] {
        let record = NewRecord::new("x").partition(number);
        assert_eq!(
            code(publisher.publish_record(&record, None)),
            Code::InvalidArgument
        );
        let options = PublisherOptions {
            partition: Some(number),
            ..Default::default()
        };
        assert_eq!(code(topic.publisher(&options)), Code::InvalidArgument);
    }
    let fourth = PublisherOptions {
        partition: Some(4),
        ..Default::default()
    };
    assert_eq!(topic.publisher(&fourth).unwrap().partition().unwrap(), 4);
}

#[test]
fn what_is_too_large_says_how_much_is_allowed() {
    let here = TestPlace::new();
    let (topic, mut publisher, _subscriber) = here.trio(&here.options());
    let most = topic.max_record_size().unwrap() as i32;
    let too_large = Error::new(Code::TooLarge, most);
    let value = vec![0; 1 << 20];
    assert_eq!(publisher.publish(&value, None), Err(too_large.clone()));
    assert_eq!(
        publisher.publish_record(&NewRecord::new(&value), None),
        Err(too_large.clone())
    );
    assert_eq!(publisher.claim(1 << 20, None).unwrap_err(), too_large);
    assert_eq!(code(publisher.claim(usize::MAX, None)), Code::TooLarge);
    assert_eq!(
        code(publisher.publish_batch(&[&value], None)),
        Code::TooLarge
    );
    assert_eq!(
        code(publisher.publish_batch::<&[u8]>(&[], None)),
        Code::InvalidArgument
    );
    assert_eq!(publisher.max_record_size().unwrap() as i32, most);
    assert_eq!(publisher.publish(b"still works", None), Ok(0));
}

#[test]
fn a_full_topic_fails_in_time() {
    let here = TestPlace::new();
    let options = TopicOptions {
        capacity_bytes: 1 << 16,
        segment_bytes: 1 << 13,
        ..here.options()
    };
    let (_topic, mut publisher, mut subscriber) = here.trio(&options);
    while publisher.publish(&[1; 3000], Timeout::NOW).is_ok() {}
    assert_eq!(
        code(publisher.publish(&[1; 3000], Timeout::NOW)),
        Code::Full
    );
    let wait = Duration::from_millis(20);
    assert_eq!(code(publisher.publish(&[1; 3000], wait)), Code::Timeout);
    publisher.room_fd(None).unwrap();
    while !subscriber.poll(64).unwrap().is_empty() {}
    publisher.publish(&[1; 3000], SOON).unwrap();
}

#[test]
fn an_exclusive_publisher_is_the_only_one() {
    let here = TestPlace::new();
    let topic = Topic::create("topic", &here.options()).unwrap();
    let exclusive = PublisherOptions {
        exclusive: true,
        ..Default::default()
    };
    let first = topic.publisher(&exclusive).unwrap();
    assert_eq!(code(topic.publisher(&exclusive)), Code::Busy);
    assert_eq!(code(topic.publisher(&Default::default())), Code::Busy);
    drop(first);
    topic.publisher(&exclusive).unwrap();
    let durable = PublisherOptions {
        acknowledge: Stage::Durable,
        ..Default::default()
    };
    assert_eq!(code(topic.publisher(&durable)), Code::NeedsDurable);
}
