//! If these failed, a record that nobody finished would be lost instead of going to another member, or would be
//! acknowledged by somebody who does not hold it.

use crate::place::*;
use leat::*;
use std::time::Duration;

fn member(group: &Group) -> Member {
    let options = MemberOptions {
        any_thread: true,
        ..Default::default()
    };
    group.join(&options).unwrap()
}

fn all_from_beginning() -> GroupOptions {
    GroupOptions {
        from: StartAt::Beginning,
        ..Default::default()
    }
}

/// A topic with ten records and a group, all of which are to be kept.
fn ten(here: &TestPlace) -> (Topic, Publisher, Group) {
    let topic = Topic::create("topic", &here.options()).unwrap();
    let mut publisher = topic.publisher(&Default::default()).unwrap();
    let group = topic.group("workers", &all_from_beginning()).unwrap();
    let values: Vec<_> = (0..10).map(|number| number.to_string()).collect();
    publisher.publish_batch(&values, None).unwrap();
    (topic, publisher, group)
}

#[test]
fn groups_are_made_found_and_deleted() {
    let here = TestPlace::new();
    let (topic, _publisher, group) = ten(&here);
    assert!(group.was_created());
    assert!(!topic
        .group("workers", &Default::default())
        .unwrap()
        .was_created());
    assert_eq!(
        topic.find_group("workers").unwrap().name().unwrap(),
        "workers"
    );
    assert_eq!(code(topic.find_group("others")), Code::NotFound);
    assert_eq!(
        code(topic.group("a/b", &Default::default())),
        Code::InvalidArgument
    );
    assert_eq!(topic.group_names().unwrap(), ["workers"]);
    assert_eq!(group.dead_letter_topic().unwrap(), None);
    let _member = member(&group);
    assert_eq!(code(topic.delete_group("workers", false)), Code::Busy);
    topic.delete_group("workers", true).unwrap();
    assert_eq!(code(topic.delete_group("workers", true)), Code::NotFound);
    assert_eq!(code(group.join(&Default::default())), Code::Closed);
}

#[test]
fn deliveries_are_settled_one_by_one() {
    let here = TestPlace::new();
    let (_topic, _publisher, group) = ten(&here);
    let mut member = member(&group);
    let mut deliveries = member.receive(4, SOON).unwrap();
    assert_eq!(deliveries.len(), 4);
    assert_eq!(
        deliveries.iter().filter_map(|entry| entry.record()).count(),
        4
    );
    let mut number: u64 = 0;
    while let Some(delivery) = deliveries.next() {
        assert_eq!(delivery.deliveries(), 1);
        let record = delivery.record().unwrap();
        assert_eq!(record.value(), number.to_string().as_bytes());
        match number {
            0 => delivery.acknowledge().unwrap(),
            1 => delivery.requeue(Duration::ZERO).unwrap(),
            _ => {} // Still held.
        }
        number += 1;
    }
    assert!(deliveries.is_empty());
    assert_eq!(member.in_flight().unwrap(), 2);
    let mut deliveries = member.receive(1, SOON).unwrap();
    let again = deliveries.next().unwrap();
    assert_eq!(
        (again.record().unwrap().value(), again.deliveries()),
        (&b"1"[..], 2)
    );
    again.acknowledge().unwrap();
    assert_eq!(member.acknowledge_all().unwrap(), 2);
    assert_eq!(group.position(0).unwrap(), 4);
    assert_eq!(group.released(0).unwrap(), 4);
}

#[test]
fn tickets_settle_later_and_only_once() {
    let here = TestPlace::new();
    let (_topic, _publisher, group) = ten(&here);
    let mut mine = member(&group);
    let kept = mine.receive_owned(4, SOON).unwrap();
    let rest = mine.receive(6, SOON).unwrap().tickets();
    let mut other = member(&group); // Not before: members get their share only.
    assert_eq!(kept[3].entry.record().unwrap().value(), b"3");
    assert_eq!(kept[0].deliveries, 1);
    assert_eq!(code(other.acknowledge(kept[0].ticket)), Code::NotInFlight);
    mine.acknowledge(kept[0].ticket).unwrap();
    assert_eq!(code(mine.acknowledge(kept[0].ticket)), Code::NotInFlight);
    let both = [kept[0].ticket, kept[2].ticket];
    assert_eq!(mine.acknowledge_some(&both), Ok(1));
    assert_eq!(code(mine.acknowledge_some(&both)), Code::NotInFlight);
    assert_eq!(mine.acknowledge_some(&[]), Ok(0));
    assert_eq!(mine.acknowledge_up_to(kept[3].ticket), Ok(2));
    mine.requeue(rest[0], Duration::ZERO).unwrap();
    assert_eq!(
        code(mine.requeue(rest[0], Duration::ZERO)),
        Code::NotInFlight
    );
    let again = other.receive_owned(1, SOON).unwrap();
    assert_eq!(again[0].entry.record().unwrap().value(), b"4");
    drop(mine); // Requeues what it holds.
    let mut seen = 1;
    while seen < 6 {
        seen += other.receive(64, SOON).unwrap().len();
    }
    assert_eq!(other.acknowledge_all(), Ok(6));
}

/// If this failed, a ticket in the wrong hands would acknowledge a record that nobody has worked on.
#[test]
fn a_ticket_of_another_group_or_topic_is_refused() {
    let (here, there) = (TestPlace::new(), TestPlace::new());
    let (topic, _publisher, group) = ten(&here);
    let (_topic, _publisher, far) = ten(&there);
    let near = topic.group("near", &all_from_beginning()).unwrap();
    let mut mine = member(&group);
    let own = mine.receive(3, SOON).unwrap().tickets();
    for other in [&far, &near] {
        let foreign = member(other).receive(3, SOON).unwrap().tickets();
        assert_eq!(code(mine.acknowledge(foreign[0])), Code::NotInFlight);
        assert_eq!(code(mine.acknowledge_up_to(foreign[2])), Code::NotInFlight);
        assert_eq!(
            code(mine.requeue(foreign[0], Duration::ZERO)),
            Code::NotInFlight
        );
        assert_eq!(code(mine.acknowledge_some(&foreign)), Code::NotInFlight);
        assert_eq!(mine.in_flight(), Ok(3));
    }
    let foreign = member(&near).receive(3, SOON).unwrap().tickets();
    assert_eq!(
        mine.acknowledge_some(&[foreign[0], own[1], foreign[2]]),
        Ok(1)
    );
    mine.acknowledge(own[0]).unwrap();
    mine.acknowledge(own[2]).unwrap();
}

#[test]
fn copies_are_acknowledged_at_once() {
    let here = TestPlace::new();
    let (_topic, mut publisher, group) = ten(&here);
    let mut member = member(&group);
    let mut buffer = [0; 4];
    for number in 0..10 {
        let size = member.receive_copy(&mut buffer, SOON).unwrap();
        assert_eq!(buffer[..size], *number.to_string().as_bytes());
    }
    publisher.publish(b"longer", None).unwrap();
    let wanted = Error::new(Code::BufferTooSmall, 6);
    assert_eq!(member.receive_copy(&mut buffer, SOON), Err(wanted));
    assert_eq!(member.receive_copy(&mut [0; 8], SOON), Ok(6));
    assert_eq!(
        code(member.receive_copy(&mut buffer, Timeout::NOW)),
        Code::Timeout
    );
}

#[test]
fn limits_leases_and_dead_letters() {
    let here = TestPlace::new();
    let topic = Topic::create("topic", &here.options()).unwrap();
    let options = GroupOptions {
        in_flight: 2,
        max_deliveries: 1,
        lease: Some(Duration::from_millis(50)),
        ..all_from_beginning()
    };
    let group = topic.group("workers", &options).unwrap();
    assert_eq!(
        group.dead_letter_topic().unwrap().unwrap(),
        "topic.workers.dead"
    );
    let mut publisher = topic.publisher(&Default::default()).unwrap();
    publisher.publish_batch(&["0", "1", "2"], None).unwrap();
    let mut member = member(&group);
    let held = member.receive_owned(2, SOON).unwrap();
    let mut other = self::member(&group);
    other.wait(SOON).unwrap();
    std::thread::sleep(Duration::from_millis(60));
    while group.info().unwrap().dead_letters < 2 {
        let _ = other.receive_owned(1, Duration::from_millis(10));
    }
    assert_eq!(code(member.acknowledge(held[0].ticket)), Code::LeaseLost);
    let dead = here.place().open("topic.workers.dead", SOON).unwrap();
    assert_eq!(dead.info().unwrap().partitions[0].end, 2);
}

#[test]
fn info_names_members_and_positions() {
    let here = TestPlace::new();
    let (_topic, _publisher, group) = ten(&here);
    let named = MemberOptions {
        name: "one".to_owned(),
        ..Default::default()
    };
    let mut member = group.join(&named).unwrap();
    assert_eq!(member.receive(3, SOON).unwrap().len(), 3);
    let info = group.info().unwrap();
    assert_eq!(
        (info.lag, info.in_flight, info.in_flight_limit),
        (7, 3, 1024)
    );
    assert_eq!(
        (info.mode, info.lease, info.taking),
        (GroupMode::AtLeastOnce, None, None)
    );
    assert_eq!(info.offsets, [3]);
    assert_eq!(info.members.len(), 1);
    assert_eq!(
        (&*info.members[0].name, info.members[0].in_flight),
        ("one", 3)
    );
    assert_eq!(info.members[0].pid, std::process::id());
    group.seek(StartAt::Offset(1), Some(0)).unwrap();
    group.seek(StartAt::Beginning, None).unwrap();
    assert_eq!(group.position(0).unwrap(), 0);
    assert_eq!(
        code(group.seek(StartAt::Offset(99), Some(0))),
        Code::InvalidArgument
    );
    assert_eq!(code(group.position(1)), Code::InvalidArgument);
    let long = MemberOptions {
        name: "x".repeat(64),
        ..Default::default()
    };
    assert_eq!(code(group.join(&long)), Code::InvalidArgument);
}

#[test]
fn a_deleted_group_ends_what_was_received() {
    let here = TestPlace::new();
    let (topic, _publisher, group) = ten(&here);
    let mut member = member(&group);
    member.wait_fd().unwrap();
    let mut deliveries = member.receive(4, SOON).unwrap();
    topic.delete_group("workers", true).unwrap();
    let first = deliveries.next().unwrap();
    assert_eq!(first.record().unwrap().value(), b"0");
    assert_eq!(code(first.acknowledge()), Code::Closed);
    assert!(deliveries.next().is_none());
    assert_eq!(code(member.receive(1, Timeout::NOW)), Code::Closed);
}
