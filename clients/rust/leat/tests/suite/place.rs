//! An empty directory for topics, removed afterwards.

use leat::*;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

pub struct TestPlace {
    path: PathBuf,
}

pub const SOON: Duration = Duration::from_secs(10);

impl TestPlace {
    pub fn new() -> TestPlace {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        // relaxed: numbers only have to differ.
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = format!("/dev/shm/leat-rust-{}-{number}", std::process::id()).into();
        std::fs::create_dir(&path).unwrap();
        TestPlace { path }
    }

    pub fn place(&self) -> Place {
        Place {
            directory: Some(self.path.join("topics")),
            data_directory: Some(self.path.join("data")),
        }
    }

    /// The default options of a topic here.
    pub fn options(&self) -> TopicOptions {
        TopicOptions {
            capacity_bytes: 1 << 20,
            segment_bytes: 1 << 17,
            place: self.place(),
            ..Default::default()
        }
    }

    /// A topic with these options, and one publisher and subscriber that reads all.
    pub fn trio(&self, options: &TopicOptions) -> (Topic, Publisher, Subscriber) {
        let topic = Topic::create("topic", options).unwrap();
        let subscriber = topic.subscriber(&from_beginning()).unwrap();
        let publisher = topic.publisher(&Default::default()).unwrap();
        (topic, publisher, subscriber)
    }
}

impl Drop for TestPlace {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

pub fn from_beginning() -> SubscriberOptions {
    SubscriberOptions {
        from: StartAt::Beginning,
        any_thread: true, // Tests publish and subscribe in one thread.
        ..Default::default()
    }
}

/// The code of a call that must fail.
pub fn code<T: std::fmt::Debug>(result: Result<T>) -> Code {
    result.unwrap_err().code
}
