//! If these failed, the compiler would let handles go to threads that C forbids them, or a program that passes them
//! from thread to thread would lose records or crash.

use crate::place::*;
use leat::*;
use std::thread;
use std::time::Duration;

fn is_send<T: Send>() {}
fn is_sync<T: Sync>() {}

#[test]
fn types_may_go_where_c_allows() {
    is_send::<Publisher>();
    is_send::<Subscriber>();
    is_send::<Member>();
    is_send::<Ticket>();
    is_send::<OwnedDelivery>();
    is_sync::<Topic>();
    is_sync::<Group>();
    is_sync::<Stopper>();
    is_sync::<Batch<'_>>();
    is_sync::<NewRecord<'_>>();
}

/// Both of its implementations fit a type that is `Sync`: then `is_not_sync` is ambiguous, and this does not compile.
trait MaybeSync<Why> {
    fn is_not_sync() {}
}
struct ForAll;
struct ForSync;
impl<T: ?Sized> MaybeSync<ForAll> for T {}
impl<T: ?Sized + Sync> MaybeSync<ForSync> for T {}

#[test]
fn types_stay_where_c_allows_one_thread_only() {
    <Publisher as MaybeSync<_>>::is_not_sync();
    <Subscriber as MaybeSync<_>>::is_not_sync();
    <Member as MaybeSync<_>>::is_not_sync();
    <Claim<'_> as MaybeSync<_>>::is_not_sync();
    <Deliveries<'_> as MaybeSync<_>>::is_not_sync();
    <Delivery<'_, '_> as MaybeSync<_>>::is_not_sync();
}

#[test]
fn stoppers_end_waits_and_let_them_go_on() {
    let here = TestPlace::new();
    let options = TopicOptions {
        capacity_bytes: 1 << 16,
        segment_bytes: 1 << 13,
        ..here.options()
    };
    let (topic, mut publisher, mut subscriber) = here.trio(&options);
    let group = topic.group("workers", &Default::default()).unwrap();
    let mut member = group.join(&Default::default()).unwrap();
    let waits: Vec<(Stopper, Box<dyn FnMut() -> Code + Send>)> = vec![
        (
            subscriber.stopper(),
            Box::new(move || code(subscriber.wait(None))),
        ),
        (
            member.stopper(),
            Box::new(move || code(member.receive(1, None))),
        ),
        (
            publisher.stopper(),
            Box::new(move || loop {
                // Nobody reads, so the topic fills.
                if let Err(error) = publisher.publish(&[1; 3000], None) {
                    return error.code;
                }
            }),
        ),
    ];
    for (stopper, mut wait) in waits {
        let waiting = thread::spawn(move || (wait(), wait));
        thread::sleep(Duration::from_millis(20));
        assert!(!stopper.is_stopped().unwrap());
        stopper.stop().unwrap();
        let (ended, mut wait) = waiting.join().unwrap();
        assert_eq!(ended, Code::Stopped);
        assert!(stopper.is_stopped().unwrap());
        assert_eq!(wait(), Code::Stopped);
        stopper.resume().unwrap();
        assert!(!stopper.is_stopped().unwrap());
        drop(wait);
        // The object is gone.
        stopper.stop().unwrap();
        stopper.resume().unwrap();
        assert!(stopper.clone().is_stopped().unwrap());
    }
}

/// Drops handles while other threads stop and resume them.
#[test]
fn stopping_while_it_is_dropped_is_harmless() {
    let here = TestPlace::new();
    let topic = Topic::create("topic", &here.options()).unwrap();
    for _ in 0..300 {
        let subscriber = topic.subscriber(&Default::default()).unwrap();
        let publisher = topic.publisher(&Default::default()).unwrap();
        let stoppers = [subscriber.stopper(), publisher.stopper()];
        thread::scope(|threads| {
            for _ in 0..2 {
                threads.spawn(|| {
                    for stopper in stoppers.iter().cycle().take(40) {
                        stopper.stop().unwrap();
                        stopper.resume().unwrap();
                    }
                });
            }
            drop((subscriber, publisher));
        });
    }
}

/// Handles pass from thread to thread with each batch, as tasks of an async runtime do.
#[test]
fn handles_pass_from_thread_to_thread() {
    const COUNT: u64 = 100_000;
    let here = TestPlace::new();
    let (topic, publisher, subscriber) = here.trio(&here.options());
    let any = MemberOptions {
        any_thread: true,
        ..Default::default()
    };
    let group = topic.group("workers", &Default::default()).unwrap();
    let member = group.join(&any).unwrap();
    let state = std::sync::Mutex::new((publisher, subscriber, member, 0u64, 0u64, 0u64));
    thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| loop {
                let mut guard = state.lock().unwrap();
                let (publisher, subscriber, member, sent, seen, worked) = &mut *guard;
                if *sent == COUNT && *seen == COUNT && *worked == COUNT {
                    return;
                }
                if *sent < COUNT {
                    let values: Vec<_> = (*sent..*sent + 100).map(u64::to_le_bytes).collect();
                    *sent += match publisher.publish_batch(&values, Timeout::NOW) {
                        Ok(_) => 100,
                        Err(error) if error.code == Code::Full => 0,
                        Err(error) => panic!("{error}"),
                    };
                }
                for record in subscriber.poll(1000).unwrap().records() {
                    assert_eq!(record.value(), seen.to_le_bytes());
                    *seen += 1;
                }
                match member.receive(1000, Timeout::NOW) {
                    Ok(deliveries) => *worked += deliveries.len() as u64,
                    Err(error) => assert_eq!(error.code, Code::Timeout),
                }
                member.acknowledge_all().unwrap();
                drop(guard);
                thread::yield_now();
            });
        }
    });
}

/// A batch is read by several threads at once.
#[test]
fn views_may_be_shared() {
    let here = TestPlace::new();
    let (_topic, mut publisher, mut subscriber) = here.trio(&here.options());
    publisher.publish_batch(&[[1u8; 10]; 100], None).unwrap();
    let batch = subscriber.poll(100).unwrap();
    thread::scope(|threads| {
        let sum = || {
            batch
                .records()
                .map(|record| record.value().len())
                .sum::<usize>()
        };
        let sums = [threads.spawn(sum), threads.spawn(sum)];
        assert_eq!(sums.map(|thread| thread.join().unwrap()), [1000, 1000]);
    });
}
