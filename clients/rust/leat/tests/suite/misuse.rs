use crate::place::*;
use leat::*;

/// Each order in which five handles can be dropped.
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
        from: From::Beginning,
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
        let mut handles: [Option<Box<dyn std::any::Any>>; 5] = [
            Some(Box::new(topic)),
            Some(Box::new(publisher)),
            Some(Box::new(subscriber)),
            Some(Box::new(group)),
            Some(Box::new(member)),
        ];
        for index in order {
            handles[index] = None;
        }
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
        wrong(|options| options.from = From::TimeMs(5)),
        Code::NotAllowed
    );
    assert_eq!(
        wrong(|options| options.from = From::TimeMs(u64::MAX)),
        Code::InvalidArgument
    );
    assert_eq!(
        wrong(|options| options.read = Stage::Durable),
        Code::NotAllowed
    );
    let zero = GroupOptions {
        members: 0,
        ..Default::default()
    };
    assert_eq!(code(topic.group("g", &zero)), Code::InvalidArgument);
}
