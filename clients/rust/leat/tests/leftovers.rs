//! If this failed, a program that runs for long would run out of memory, threads or descriptors. Alone in its process,
//! because it counts all of that.

use leat::*;

fn count(directory: &str) -> usize {
    std::fs::read_dir(directory).unwrap().count()
}

fn memory_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Five handles, one of each kind, and two claims are made, used and dropped, one of the claims by its publisher.
fn open_and_close(place: &Place) {
    let topic = place.open("topic", None).unwrap();
    let mut publisher = topic.publisher(&Default::default()).unwrap();
    let mut subscriber = topic.subscriber(&Default::default()).unwrap();
    let group = topic.find_group("workers").unwrap();
    let mut member = group.join(&Default::default()).unwrap();
    publisher.publish(b"x", None).unwrap();
    assert_eq!(subscriber.poll(64).unwrap().to_owned().len(), 1);
    subscriber.wait_fd().unwrap();
    let ticket = member.receive(1, None).unwrap().tickets()[0];
    member.acknowledge(ticket).unwrap();
    subscriber.stopper().stop().unwrap();
    drop(publisher.claim(8, None).unwrap());
    std::mem::forget(publisher.claim(8, None).unwrap());
}

#[test]
fn ten_thousand_times_open_and_close_leave_nothing() {
    let path = std::path::PathBuf::from(format!("/dev/shm/leat-rust-left-{}", std::process::id()));
    let place = Place {
        directory: Some(path.clone()),
        data_directory: None,
    };
    let options = TopicOptions {
        capacity_bytes: 1 << 16,
        segment_bytes: 1 << 13,
        place: place.clone(),
        ..Default::default()
    };
    let topic = Topic::create("topic", &options).unwrap();
    let _group = topic.group("workers", &Default::default()).unwrap();
    let numbers = || (count("/proc/self/fd"), count("/proc/self/task"));
    // Each round makes five handles: 10,000 in all.
    const ROUNDS: usize = 10_000 / 5;
    for _ in 0..ROUNDS / 20 {
        open_and_close(&place);
    }
    let (before, memory_before) = (numbers(), memory_kib());
    for _ in 0..ROUNDS {
        open_and_close(&place);
    }
    assert_eq!(numbers(), before);
    let grown = memory_kib().saturating_sub(memory_before);
    let _ = std::fs::remove_dir_all(&path);
    assert!(grown < 256, "{grown} KiB");
}
