//! If these failed, safe Rust could crash: by the order in which handles are dropped, by sizes beyond 32 bits, or by a
//! view that outlives its topic; or a program that waits for itself would hang.

use crate::place::*;
use leat::*;

/// Each order in which five handles can be dropped, by another thread than the one that made and used them.
#[test]
fn handles_are_dropped_in_any_order() {
    fn permutations(items: &[usize]) -> Vec<Vec<usize>> {
        if items.is_empty() {
            return vec![Vec::new()];
        }
        let with_first = |at: usize| {
            let mut rest = items.to_vec();
            let first = rest.remove(at);
            permutations(&rest).into_iter().map(move |mut more| {
                more.push(first);
                more
            })
        };
        (0..items.len()).flat_map(with_first).collect()
    }
    let here = TestPlace::new();
    let group_options = GroupOptions {
        from: StartAt::Beginning,
        ..Default::default()
    };
    for order in permutations(&[0, 1, 2, 3, 4]) {
        let topic = Topic::open_or_create("topic", &here.options()).unwrap();
        let group = topic.group("workers", &group_options).unwrap();
        let mut member = group.join(&Default::default()).unwrap();
        let mut subscriber = topic.subscriber(&from_beginning()).unwrap();
        let mut publisher = topic.publisher(&Default::default()).unwrap();
        publisher.publish(b"x", None).unwrap();
        assert!(!subscriber.poll(1).unwrap().is_empty());
        let ticket = member.receive(1, SOON).unwrap().tickets()[0];
        member.acknowledge(ticket).unwrap();
        let claim = publisher.begin_claim(3, None).unwrap();
        assert_eq!(publisher.claimed(&claim).unwrap().len(), 3);
        let mut handles: [Option<Box<dyn std::any::Any + Send>>; 5] = [
            Some(Box::new(topic)),
            Some(Box::new(publisher)),
            Some(Box::new(subscriber)),
            Some(Box::new(group)),
            Some(Box::new(member)),
        ];
        let drop_all = move || {
            for index in order {
                handles[index] = None;
            }
        };
        std::thread::spawn(drop_all).join().unwrap();
    }
    assert!(here
        .place()
        .open("topic", None)
        .unwrap()
        .info()
        .unwrap()
        .participants
        .is_empty());
}

extern "C" {
    fn mmap(at: *mut u8, size: usize, access: i32, flags: i32, file: i32, offset: i64) -> *mut u8;
}
const PROT_READ: i32 = 1;
const MAP_PRIVATE: i32 = 2;
const MAP_ANONYMOUS: i32 = 0x20;
const MAP_NORESERVE: i32 = 0x4000;

/// More than 4 GiB are refused before anybody copies or reads them. Of each of these sizes, 32 bits are a size that
/// would be allowed.
#[test]
fn more_than_4_gib_are_too_large() {
    const SIZE: usize = (1 << 32) + 5;
    let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    // SAFETY: all of it reads as 0, for as long as this process lives. Nobody does, so it takes no memory.
    let huge = unsafe {
        let at = mmap(std::ptr::null_mut(), SIZE, PROT_READ, flags, -1, 0);
        assert_ne!(at as isize, -1);
        std::slice::from_raw_parts(at, SIZE)
    };
    let text = unsafe { std::str::from_utf8_unchecked(huge) };
    let here = TestPlace::new();
    let (topic, mut publisher, mut subscriber) = here.trio(&here.options());
    let part = &huge[..1 << 15]; // Allowed, but not so often.
    let often = (1 << 17) + 1;
    let mut too_large = |record: NewRecord<'_>| {
        assert_eq!(
            code(publisher.publish_record(&record, None)),
            Code::TooLarge
        );
        let batch = [NewRecord::new("small"), record];
        assert_eq!(
            code(publisher.publish_record_batch(&batch, None, None)),
            Code::TooLarge
        );
    };
    too_large(NewRecord::new(huge));
    too_large(NewRecord::new("").key(huge));
    too_large(NewRecord::new("").headers(&[NewHeader::new("name", huge)]));
    too_large(NewRecord::new("").headers(&[NewHeader::new(huge, "")]));
    too_large(NewRecord::new("").headers(&vec![NewHeader::new("", part); often]));
    assert_eq!(code(publisher.publish(huge, None)), Code::TooLarge);
    let batches = [vec![part, huge], vec![part; often]];
    for batch in &batches {
        assert_eq!(code(publisher.publish_batch(batch, None)), Code::TooLarge);
    }
    let batch = vec![NewRecord::new(part); often];
    assert_eq!(
        code(publisher.publish_record_batch(&batch, None, None)),
        Code::TooLarge
    );
    assert_eq!(code(publisher.claim(SIZE, None)), Code::TooLarge);
    let claim = publisher.begin_claim(10, None).unwrap();
    assert_eq!(code(publisher.commit(&claim, SIZE)), Code::InvalidArgument);
    publisher.commit(&claim, 10).unwrap();

    let name = code(Topic::create(text, &here.options()));
    assert_eq!(name, Code::InvalidArgument);
    let name = code(topic.group(text, &Default::default()));
    assert_eq!(name, Code::InvalidArgument);
    assert_eq!(code(here.place().open(text, None)), Code::InvalidArgument);
    // Limits are no sizes: as many as there are.
    let group_options = GroupOptions {
        from: StartAt::Beginning,
        ..Default::default()
    };
    let group = topic.group("g", &group_options).unwrap();
    let mut member = group.join(&Default::default()).unwrap();
    assert_eq!(member.receive(1 << 32, SOON).unwrap().len(), 1);
    assert_eq!(subscriber.poll(1 << 32).unwrap().len(), 1);
}

#[test]
fn a_view_lives_as_long_as_its_subscriber_although_the_topic_is_dropped() {
    let here = TestPlace::new();
    let (topic, mut publisher, mut subscriber) = here.trio(&here.options());
    publisher.publish(b"kept", None).unwrap();
    let batch = subscriber.poll(1).unwrap();
    drop((publisher, topic));
    here.place().delete("topic", true).unwrap();
    assert_eq!(batch.records().next().unwrap().value(), b"kept");
}

#[test]
fn would_deadlock_is_found_out_unless_any_thread() {
    let here = TestPlace::new();
    let options = TopicOptions {
        capacity_bytes: 1 << 16,
        segment_bytes: 1 << 13,
        ..here.options()
    };
    let topic = Topic::create("topic", &options).unwrap();
    let mut publisher = topic.publisher(&Default::default()).unwrap();
    let mut subscriber = topic.subscriber(&Default::default()).unwrap();
    assert!(subscriber.poll(1).unwrap().is_empty());
    while publisher.publish(&[1; 3000], Timeout::NOW).is_ok() {}
    assert_eq!(
        code(publisher.publish(&[1; 3000], SOON)),
        Code::WouldDeadlock
    );
    drop(subscriber);
    publisher.publish(&[1; 3000], SOON).unwrap();
}

#[test]
fn what_a_subscriber_cannot_have_is_an_error() {
    let here = TestPlace::new();
    let (topic, ..) = here.trio(&here.options());
    let wrong = |change: fn(&mut SubscriberOptions)| {
        let mut options = from_beginning();
        change(&mut options);
        code(topic.subscriber(&options))
    };
    assert_eq!(
        wrong(|options| options.partition = Some(1)),
        Code::InvalidArgument
    );
    assert_eq!(
        wrong(|options| options.in_place = true),
        Code::InvalidArgument
    );
    assert_eq!(
        wrong(|options| options.from = StartAt::TimeMs(5)),
        Code::NeedsTimestamps
    );
    assert_eq!(
        wrong(|options| options.from = StartAt::TimeMs(u64::MAX)),
        Code::InvalidArgument
    );
    assert_eq!(
        wrong(|options| options.read = Stage::Durable),
        Code::NeedsDurable
    );
    let zero = GroupOptions {
        members: 0,
        ..Default::default()
    };
    assert_eq!(code(topic.group("g", &zero)), Code::InvalidArgument);
}
