//! If these failed, bytes of a batch would change while they are read, a subscriber would begin at another record than
//! it asked for, or it would not be told what it lost.

use crate::place::*;
use leat::*;
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

fn values(batch: &Batch<'_>) -> Vec<Vec<u8>> {
    batch
        .records()
        .map(|record| record.value().to_vec())
        .collect()
}

#[test]
fn a_limit_is_kept() {
    let here = TestPlace::new();
    let (_topic, mut publisher, mut subscriber) = here.trio(&here.options());
    publisher.publish_batch(&["1", "2", "3"], None).unwrap();
    assert_eq!(code(subscriber.poll(0)), Code::InvalidArgument);
    assert_eq!(values(&subscriber.poll(2).unwrap()), [b"1", b"2"]);
    assert_eq!(subscriber.offset(0).unwrap(), 2);
    assert_eq!(values(&subscriber.poll(usize::MAX).unwrap()), [b"3"]);
    assert_eq!(code(subscriber.offset(1)), Code::InvalidArgument);
    assert!(!subscriber.is_lossy().unwrap());
}

/// All views of a batch stay as they are, also when it spans what is reused next.
#[test]
fn views_of_a_batch_stay_whole() {
    let here = TestPlace::new();
    let options = TopicOptions {
        capacity_bytes: 1 << 16,
        segment_bytes: 1 << 13,
        ..here.options()
    };
    let (_topic, mut publisher, mut subscriber) = here.trio(&options);
    let mut next: u64 = 0;
    for _ in 0..200 {
        while publisher
            .publish(&next.to_le_bytes().repeat(8), Timeout::NOW)
            .is_ok()
        {
            next += 1;
        }
        let batch = subscriber.poll(1000).unwrap();
        let first = batch.records().next().unwrap().offset();
        while publisher
            .publish(&next.to_le_bytes().repeat(8), Timeout::NOW)
            .is_ok()
        {
            next += 1;
        }
        for (index, record) in batch.records().enumerate() {
            let number = first + index as u64;
            assert_eq!(record.offset(), number);
            assert_eq!(record.value(), number.to_le_bytes().repeat(8));
        }
    }
}

#[test]
fn a_lossy_subscriber_is_told_what_it_lost() {
    let here = TestPlace::new();
    let options = TopicOptions {
        policy: Policy::Overwrite,
        capacity_bytes: 1 << 15,
        segment_bytes: 1 << 12,
        ..here.options()
    };
    let topic = Topic::create("topic", &options).unwrap();
    assert_eq!(
        code(topic.subscriber(&from_beginning())),
        Code::NotWithOverwrite
    );
    let mut publisher = topic.publisher(&Default::default()).unwrap();
    for in_place in [false, true] {
        let lossy = SubscriberOptions {
            gating: false,
            in_place,
            ..from_beginning()
        };
        let mut subscriber = topic.subscriber(&lossy).unwrap();
        assert!(subscriber.is_lossy().unwrap());
        let start = subscriber.offset(0).unwrap();
        for _ in 0..100 {
            publisher.publish(&[7; 1000], None).unwrap();
        }
        let end = topic.info().unwrap().partitions[0].end;
        let mut next = start;
        let mut lost = 0;
        while next < end {
            for entry in &subscriber.receive_owned(64, SOON).unwrap() {
                match entry {
                    Entry::Gap(gap) => {
                        assert_eq!((gap.offset, gap.reason), (next, GapReason::Overwritten));
                        lost += gap.count;
                        next += gap.count;
                    }
                    Entry::Record(record) => {
                        assert_eq!((record.offset(), record.value()), (next, &[7; 1000][..]));
                        next += 1;
                    }
                }
            }
        }
        assert!(lost > 0);
    }
}

#[test]
fn subscribers_begin_where_they_are_told() {
    let here = TestPlace::new();
    let options = TopicOptions {
        timestamps: true,
        ..here.options()
    };
    let (topic, mut publisher, _subscriber) = here.trio(&options);
    publisher
        .publish_batch(&["0", "1", "2", "3"], None)
        .unwrap();
    let first = |from: StartAt| {
        let options = SubscriberOptions {
            from,
            ..from_beginning()
        };
        topic.subscriber(&options).unwrap().offset(0).unwrap()
    };
    assert_eq!(first(StartAt::Beginning), 0);
    assert_eq!(first(StartAt::Offset(2)), 2);
    assert_eq!(first(StartAt::Last(1)), 3);
    assert_eq!(first(StartAt::TimeMs(0)), 0);
    assert_eq!(first(StartAt::End), 4);
}

#[test]
fn waits_end_in_time() {
    let here = TestPlace::new();
    let (topic, mut publisher, mut subscriber) = here.trio(&here.options());
    let other = topic.subscriber(&from_beginning()).unwrap();
    let wait = Duration::from_millis(20);
    let begin = Instant::now();
    assert_eq!(code(subscriber.wait(wait)), Code::Timeout);
    assert_eq!(code(subscriber.receive(1, wait)), Code::Timeout);
    assert_eq!(code(wait_any(&[&subscriber, &other], wait)), Code::Timeout);
    assert!(begin.elapsed() >= 3 * wait);
    assert_eq!(code(subscriber.wait(Timeout::NOW)), Code::Timeout);
    assert!(subscriber.wait_fd().unwrap().as_raw_fd() >= 0);
    publisher.publish(b"x", None).unwrap();
    subscriber.wait(Duration::MAX).unwrap();
    assert_eq!(subscriber.poll(64).unwrap().len(), 1);
    assert_eq!(wait_any(&[&subscriber, &other], None), Ok(1));
    assert_eq!(code(wait_any(&[], None)), Code::InvalidArgument);
    assert_eq!(code(wait_any(&[&other; 65], None)), Code::InvalidArgument);
}

extern "C" {
    fn poll(fds: *mut PollFd, count: u64, milliseconds: i32) -> i32;
}
#[repr(C)]
struct PollFd {
    fd: i32,
    events: i16,
    found: i16,
}

/// As event loops do it that know nothing but the trait.
fn is_readable(what: &impl AsFd, milliseconds: i32) -> bool {
    let mut wanted = PollFd {
        fd: what.as_fd().as_raw_fd(),
        events: 1, // POLLIN
        found: 0,
    };
    // SAFETY: one struct, as poll(2) wants it.
    unsafe { poll(&mut wanted, 1, milliseconds) == 1 }
}

#[test]
fn event_loops_wait_for_subscribers_and_members_themselves() {
    let here = TestPlace::new();
    let (topic, mut publisher, mut subscriber) = here.trio(&here.options());
    let group = topic.group("workers", &Default::default()).unwrap();
    let mut member = group.join(&Default::default()).unwrap();
    assert_eq!(
        subscriber.as_raw_fd(),
        subscriber.wait_fd().unwrap().as_raw_fd()
    );
    assert_eq!(member.as_raw_fd(), member.wait_fd().unwrap().as_raw_fd());
    for round in 0..3 {
        assert!(subscriber.poll(1).unwrap().is_empty());
        assert_eq!(code(member.receive(1, Timeout::NOW)), Code::Timeout);
        assert!(
            !is_readable(&subscriber, 0) && !is_readable(&member, 0),
            "{round}"
        );
        publisher.publish(b"x", None).unwrap();
        assert!(
            is_readable(&subscriber, 10_000) && is_readable(&member, 10_000),
            "{round}"
        );
        assert_eq!(subscriber.poll(1).unwrap().len(), 1);
        let ticket = member.receive(1, Timeout::NOW).unwrap().tickets()[0];
        member.acknowledge(ticket).unwrap();
    }
}

#[test]
fn deletion_comes_after_everything_before_it() {
    let here = TestPlace::new();
    let (_topic, mut publisher, mut subscriber) = here.trio(&here.options());
    publisher.publish(b"last", None).unwrap();
    here.place().delete("topic", true).unwrap();
    assert_eq!(values(&subscriber.receive(64, SOON).unwrap()), [b"last"]);
    assert_eq!(code(subscriber.receive(64, SOON)), Code::Deleted);
    assert_eq!(code(publisher.publish(b"x", None)), Code::Deleted);
}
