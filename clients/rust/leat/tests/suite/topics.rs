//! If these failed, a Rust program could not find, make or describe topics, or would miss durable records after a
//! restart.

use crate::place::*;
use leat::*;
use std::time::{Duration, Instant};

#[test]
fn topics_are_created_opened_listed_and_deleted() {
    let here = TestPlace::new();
    let created = Topic::create("one", &here.options()).unwrap();
    assert_eq!(created.name().unwrap(), "one");
    assert_eq!(code(Topic::create("one", &here.options())), Code::Exists);
    Topic::open_or_create("one", &here.options()).unwrap();
    Topic::open_or_create("two", &here.options()).unwrap();
    here.place().open("one", Timeout::NOW).unwrap();
    assert_eq!(here.place().list().unwrap(), ["one", "two"]);
    here.place().delete("two", false).unwrap();
    let publisher = created.publisher(&Default::default()).unwrap();
    assert_eq!(code(here.place().delete("one", false)), Code::Busy);
    here.place().delete("one", true).unwrap();
    assert!(here.place().list().unwrap().is_empty());
    drop(publisher);
}

#[test]
fn many_names_are_listed() {
    let here = TestPlace::new();
    let names: Vec<_> = (10..30)
        .map(|number| format!("{number}{}", "x".repeat(40)))
        .collect();
    for name in &names {
        Topic::create(
            name,
            &TopicOptions {
                capacity_bytes: 1 << 16,
                segment_bytes: 1 << 13,
                ..here.options()
            },
        )
        .unwrap();
    }
    assert_eq!(here.place().list().unwrap(), names);
}

#[test]
fn a_name_that_is_none_is_an_error() {
    let here = TestPlace::new();
    for name in ["", "a/b", "..", "ä", "a\0b", &"x".repeat(201)] {
        assert_eq!(
            code(Topic::create(name, &here.options())),
            Code::InvalidArgument,
            "{name}"
        );
    }
    let remote = "lightq://user@host/topic";
    assert_eq!(
        code(Topic::create(remote, &here.options())),
        Code::Unsupported
    );
    assert_eq!(code(here.place().open(remote, None)), Code::Unsupported);
}

fn says(want: &str, error: Error) {
    assert!(error.to_string().contains(want), "{error}");
}

#[test]
fn errors_name_the_topic_and_the_cause() {
    let here = TestPlace::new();
    let _topic = Topic::create("topic", &here.options()).unwrap(); // Makes the directory.
    let create = |name: &str, change: fn(&mut TopicOptions)| {
        let mut options = here.options();
        change(&mut options);
        Topic::create(name, &options).unwrap_err()
    };
    let nowhere = "the directory /nonexistent/leat does not exist and cannot be made";
    says(
        &format!("cannot create topic 'orders': {nowhere}; LEAT_DIR or"),
        create("orders", |options| {
            options.place.directory = Some("/nonexistent/leat".into())
        }),
    );
    says(
        "the directory /proc/nonexistent does not exist and cannot be made; LEAT_DATA_DIR or",
        create("orders", |options| {
            options.durable = Durability::Os;
            options.place.data_directory = Some("/proc/nonexistent".into());
        }),
    );
    says(
        "topic 'my orders': a name is 1 to 200 letters",
        create("my orders", |_| ()),
    );
    says(
        "partitions is 0, and must be 1 to 1024",
        create("orders", |options| options.partitions = 0),
    );
    says(
        "its options contradict each other",
        create("orders", |options| options.max_capacity_bytes = 1 << 30),
    );
    says(
        "topic 'lightq://u@h/t': that is the address of a broker",
        here.place()
            .open("lightq://u@h/t", Timeout::NOW)
            .unwrap_err(),
    );
    let directory = here.place().directory.unwrap();
    says(
        &format!(
            "cannot open topic 'missing': there is no such topic in {}",
            directory.display()
        ),
        here.place().open("missing", Timeout::NOW).unwrap_err(),
    );
    says(
        "cannot delete topic 'missing'",
        here.place().delete("missing", false).unwrap_err(),
    );
}

#[test]
fn errors_name_the_group_the_partition_and_the_option() {
    let here = TestPlace::new();
    let (topic, mut publisher, _subscriber) = here.trio(&here.options());
    let many = GroupOptions {
        members: 300,
        ..Default::default()
    };
    says(
        "cannot open group 'workers': members is 300, and must be 1 to 255",
        topic.group("workers", &many).unwrap_err(),
    );
    let long = MemberOptions {
        name: "x".repeat(64),
        ..Default::default()
    };
    let group = topic.group("workers", &Default::default()).unwrap();
    says(
        "name of a member has 64 bytes, and at most 63 are allowed",
        group.join(&long).unwrap_err(),
    );
    says(
        "cannot find group 'missing'",
        topic.find_group("missing").unwrap_err(),
    );
    says(
        "cannot delete group 'missing'",
        topic.delete_group("missing", false).unwrap_err(),
    );
    let seventh = PublisherOptions {
        partition: Some(7),
        ..Default::default()
    };
    says(
        "partition 7 does not exist: the topic has 1",
        topic.publisher(&seventh).unwrap_err(),
    );
    says(
        "wait_any got 0 subscribers",
        wait_any(&[], None).unwrap_err(),
    );
    // Programs that return an error from main print it so.
    let printed = format!("{:?}", publisher.publish(&[0; 1 << 20], None).unwrap_err());
    assert!(printed.contains("TooLarge") && printed.contains("larger than the topic allows"));
}

#[test]
fn opening_waits_for_creation() {
    let here = TestPlace::new();
    assert_eq!(
        code(here.place().open("late", Timeout::NOW)),
        Code::NotFound
    );
    let begin = Instant::now();
    let wait = Duration::from_millis(30);
    assert_eq!(code(here.place().open("late", wait)), Code::NotFound);
    assert!(begin.elapsed() >= wait);
    std::thread::scope(|threads| {
        let opener = threads.spawn(|| here.place().open("late", SOON));
        Topic::create("late", &here.options()).unwrap();
        opener.join().unwrap().unwrap();
    });
}

#[test]
fn info_tells_what_is_there() {
    let here = TestPlace::new();
    let options = TopicOptions {
        policy: Policy::Grow,
        partitions: 3,
        timestamps: true,
        max_capacity_bytes: 4 << 20,
        ..here.options()
    };
    let (topic, mut publisher, _subscriber) = here.trio(&options);
    let group = topic.group("workers", &Default::default()).unwrap();
    publisher
        .publish_record(&NewRecord::new("x").partition(2), None)
        .unwrap();
    let info = topic.info().unwrap();
    let id: String = info.id.iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(topic.json().unwrap().replace('-', "").contains(&id), "{id}");
    assert_eq!(info.policy, Policy::Grow);
    assert_eq!(info.capacity_bytes, 1 << 20);
    assert_eq!(info.min_capacity_bytes, 1 << 20);
    assert_eq!(info.max_capacity_bytes, 4 << 20);
    assert_eq!(info.segment_bytes, 1 << 17);
    assert!(info.timestamps && !info.single_writer);
    assert_eq!((info.durable, info.state), (Durability::None, None));
    let ends: Vec<_> = info
        .partitions
        .iter()
        .map(|partition| partition.end)
        .collect();
    assert_eq!(ends, [0, 0, 1]);
    assert_eq!(info.participants.len(), 2);
    for participant in &info.participants {
        assert_eq!(participant.pid, std::process::id());
    }
    assert!(info
        .participants
        .iter()
        .any(|one| one.role == Role::Subscriber && one.lag == 1));
    assert_eq!(topic.partitions().unwrap(), 3);
    assert_eq!(topic.max_record_size().unwrap(), info.max_record_bytes);
    assert!(topic.json().unwrap().contains("\"workers\""));
    topic.set_max_capacity(2 << 20).unwrap();
    assert_eq!(topic.info().unwrap().max_capacity_bytes, 2 << 20);
    assert_eq!(code(topic.set_max_capacity(1)), Code::InvalidArgument);
    topic.shrink().unwrap();
    drop(group);
}

#[test]
fn a_durable_topic_is_there_again() {
    let here = TestPlace::new();
    let options = TopicOptions {
        durable: Durability::Os,
        file_bytes: 1 << 20,
        ..here.options()
    };
    let topic = Topic::create("topic", &options).unwrap();
    let mut publisher = topic.publisher(&Default::default()).unwrap();
    publisher
        .publish_record(&NewRecord::new("kept").key("k"), None)
        .unwrap();
    publisher.request_sync().unwrap();
    publisher.flush(SOON).unwrap();
    assert_eq!(publisher.durable_offset(None).unwrap(), 1);
    assert_eq!(code(publisher.last_offset()), Code::NotFound);
    publisher.durable_fd().unwrap();
    topic.repair(SOON).unwrap();
    assert_eq!(topic.info().unwrap().durable, Durability::Os);
    drop((publisher, topic));
    std::fs::remove_dir_all(here.place().directory.unwrap()).unwrap();
    let topic = here.place().open("topic", None).unwrap();
    let mut subscriber = topic.subscriber(&from_beginning()).unwrap();
    let entries = subscriber.receive_owned(64, SOON).unwrap();
    let record = entries.records().next().unwrap();
    assert_eq!(
        (record.value(), record.key()),
        (&b"kept"[..], Some(&b"k"[..]))
    );
}

/// Zero means never to C; to Rust, `None` does.
#[test]
fn the_shortest_times_are_not_never() {
    let here = TestPlace::new();
    let info = |name, options| Topic::create(name, &options).unwrap().info().unwrap();
    let options = TopicOptions {
        revoke_after: Some(Duration::ZERO),
        evict_after: Some(Duration::from_nanos(1)),
        ..here.options()
    };
    let hasty = info("hasty", options);
    assert_eq!(hasty.revoke_after, Some(Duration::from_nanos(1)));
    assert_eq!(hasty.evict_after, Some(Duration::from_nanos(1)));
    let options = TopicOptions {
        durable: Durability::Os,
        retention: Some(Duration::from_micros(10)),
        ..here.options()
    };
    assert_eq!(
        info("forgetful", options).retention,
        Some(Duration::from_millis(1))
    );
}

#[test]
fn what_a_topic_cannot_have_is_an_error() {
    let here = TestPlace::new();
    let wrong = |change: fn(&mut TopicOptions)| {
        let mut options = here.options();
        change(&mut options);
        code(Topic::create("wrong", &options))
    };
    assert_eq!(
        wrong(|options| options.partitions = 0),
        Code::InvalidArgument
    );
    assert_eq!(
        wrong(|options| options.participants = 5000),
        Code::InvalidArgument
    );
    assert_eq!(wrong(|options| options.mode = 0o111), Code::InvalidArgument);
    assert_eq!(
        wrong(|options| options.file_group = Some("no such group".into())),
        Code::InvalidArgument
    );
    let (topic, mut publisher, _) = here.trio(&here.options());
    assert_eq!(code(topic.shrink()), Code::NeedsGrowing);
    assert_eq!(code(topic.repair(None)), Code::NeedsDurable);
    assert_eq!(code(publisher.flush(None)), Code::NeedsDurable);
    assert_eq!(code(publisher.request_sync()), Code::NeedsDurable);
}
