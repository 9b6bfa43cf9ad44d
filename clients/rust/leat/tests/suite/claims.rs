//! If these failed, a record that was not finished would be published, or an open claim would block other publishers.

use crate::place::*;
use leat::*;

fn reasons_and_values(subscriber: &mut Subscriber, count: usize) -> Vec<String> {
    let mut seen = Vec::new();
    while seen.len() < count {
        for entry in subscriber.receive(64, SOON).unwrap() {
            seen.push(match entry {
                Entry::Record(record) => String::from_utf8(record.value().to_vec()).unwrap(),
                Entry::Gap(gap) => format!("{} {}", gap.count, gap.reason),
            });
        }
    }
    seen
}

#[test]
fn claims_are_written_in_place() {
    let here = TestPlace::new();
    let (_topic, mut publisher, mut subscriber) = here.trio(&here.options());
    let mut claim = publisher.claim(5, None).unwrap();
    claim.copy_from_slice(b"whole");
    assert_eq!(claim.offset(), 0);
    assert_eq!(claim.commit(), Ok(0));
    let mut claim = publisher.claim(10, None).unwrap();
    assert_eq!(claim.len(), 10);
    claim[..4].copy_from_slice(b"part");
    assert_eq!(claim.commit_first(4), Ok(1));
    publisher.claim(0, None).unwrap().commit().unwrap();
    assert_eq!(
        reasons_and_values(&mut subscriber, 3),
        ["whole", "part", ""]
    );
}

#[test]
fn a_claim_that_is_not_committed_is_aborted() {
    let here = TestPlace::new();
    let (_topic, mut publisher, mut subscriber) = here.trio(&here.options());
    publisher.claim(1, None).unwrap().abort().unwrap();
    drop(publisher.claim(1, None).unwrap());
    let too_much = publisher.claim(3, None).unwrap().commit_first(4);
    assert_eq!(code(too_much), Code::InvalidArgument);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut claim = publisher.claim(1, None).unwrap();
        claim[0] = b'x';
        std::panic::resume_unwind(Box::new("on purpose"));
    }));
    assert!(panicked.is_err());
    publisher.publish(b"after", None).unwrap();
    let seen = reasons_and_values(&mut subscriber, 5);
    assert_eq!(seen[4], "after");
    assert!(seen[..4].iter().all(|gap| gap == "1 aborted"), "{seen:?}");
}

#[test]
fn a_forgotten_claim_blocks_its_publisher_only() {
    let here = TestPlace::new();
    let (topic, mut publisher, mut subscriber) = here.trio(&here.options());
    std::mem::forget(publisher.claim(1, None).unwrap());
    assert_eq!(code(publisher.publish(b"x", None)), Code::Busy);
    assert_eq!(code(publisher.claim(1, None)), Code::Busy);
    drop(publisher); // Aborts it.
    let mut publisher = topic.publisher(&Default::default()).unwrap();
    publisher.publish(b"x", None).unwrap();
    assert_eq!(reasons_and_values(&mut subscriber, 2), ["1 aborted", "x"]);
}

#[test]
fn open_claims_are_checked_by_their_publisher() {
    let here = TestPlace::new();
    let (topic, mut publisher, mut subscriber) = here.trio(&here.options());
    let mut other = topic.publisher(&Default::default()).unwrap();
    let first = publisher.begin_claim(3, None).unwrap();
    let of_other = other.begin_claim(3, None).unwrap();
    assert_eq!(code(publisher.claimed(&of_other)), Code::NotInFlight);
    assert_eq!(code(other.claimed(&first)), Code::NotInFlight);
    publisher.claimed(&first).unwrap().copy_from_slice(b"one");
    assert_eq!(code(publisher.commit(&first, 4)), Code::InvalidArgument);
    publisher.commit(&first, 3).unwrap();
    assert_eq!(code(publisher.commit(&first, 3)), Code::NotInFlight);
    assert_eq!(code(publisher.abort(&first)), Code::NotInFlight);
    assert_eq!(code(publisher.claimed(&first)), Code::NotInFlight);
    let second = publisher.begin_claim(3, None).unwrap();
    assert_eq!(code(publisher.claimed(&first)), Code::NotInFlight);
    publisher.claimed(&second).unwrap().copy_from_slice(b"two");
    publisher.commit(&second, 3).unwrap();
    other.abort(&of_other).unwrap();
    assert_eq!(
        reasons_and_values(&mut subscriber, 3),
        ["one", "1 aborted", "two"]
    );
}
