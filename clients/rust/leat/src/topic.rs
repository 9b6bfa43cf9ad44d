//! Topics.

use crate::error::{check, Result};
use crate::explain::{explain_partition, Subject};
use crate::{
    check_library, Code, Group, GroupOptions, Place, Publisher, PublisherOptions, Subscriber,
    SubscriberOptions, Timeout, TopicOptions,
};
use leat_sys::*;
use std::ffi::c_char;
use std::ptr::{self, NonNull};

/// A topic. It stays when this is dropped, until it is deleted. Threads may share it.
pub struct Topic {
    raw: NonNull<leat_topic>,
}

// SAFETY: C allows several threads at once, and nobody can use it while it is dropped.
unsafe impl Send for Topic {}
unsafe impl Sync for Topic {}

impl Topic {
    fn new(raw: *mut leat_topic) -> Topic {
        let raw = NonNull::new(raw).expect("a handle without an error");
        Topic { raw }
    }

    #[inline]
    pub(crate) fn raw(&self) -> *mut leat_topic {
        self.raw.as_ptr()
    }

    /// Creates a topic and opens it. Of several processes that create the same name at once exactly one succeeds.
    pub fn create(name: &str, options: &TopicOptions) -> Result<Topic> {
        check_library()?;
        let (mut topic, mut detail) = (ptr::null_mut(), 0);
        let (text, size) = c(name);
        // SAFETY, here and below: C reads and writes what we point to during the call, and open handles.
        let code = unsafe { leat_topic_create(text, size, &options.c(), &mut topic, &mut detail) };
        check(code, detail)
            .map(|()| Topic::new(topic))
            .map_err(|error| Subject::new_topic("create topic", name, options).explain(error))
    }

    /// Opens a topic; waits until it was created. In another directory: [`Place::open`].
    pub fn open(name: &str, timeout: impl Into<Timeout>) -> Result<Topic> {
        Place::default().open(name, timeout)
    }

    /// Opens the topic if it exists, whatever its options are; otherwise creates it.
    pub fn open_or_create(name: &str, options: &TopicOptions) -> Result<Topic> {
        check_library()?;
        let (mut topic, mut detail) = (ptr::null_mut(), 0);
        let (text, size) = c(name);
        let code =
            unsafe { leat_topic_open_or_create(text, size, &options.c(), &mut topic, &mut detail) };
        let about = || Subject::new_topic("open or create topic", name, options);
        check(code, detail)
            .map(|()| Topic::new(topic))
            .map_err(|error| about().explain(error))
    }

    /// Deletes a topic and frees its name; with `force` also while it has participants, which get `Code::Deleted`.
    pub fn delete(name: &str, force: bool) -> Result<()> {
        Place::default().delete(name, force)
    }

    /// The names of all topics, sorted.
    pub fn list() -> Result<Vec<String>> {
        Place::default().list()
    }

    /// The topic's name.
    pub fn name(&self) -> Result<String> {
        text(|buffer, capacity, size| unsafe {
            leat_topic_name(self.raw(), buffer, capacity, size)
        })
    }

    /// The largest record in bytes: key, headers, timestamp and value together, encoded.
    pub fn max_record_size(&self) -> Result<u64> {
        let mut size = 0;
        let code = unsafe { leat_topic_max_record_size(self.raw(), &mut size) };
        check(code, 0).map(|()| size)
    }

    /// How many partitions it has.
    pub fn partitions(&self) -> Result<u32> {
        let mut count = 0;
        let code = unsafe { leat_topic_partitions(self.raw(), &mut count) };
        check(code, 0).map(|()| count)
    }

    /// A snapshot of the topic and its groups, as `leat topic info --json` prints it.
    pub fn json(&self) -> Result<String> {
        text(|buffer, capacity, size| unsafe {
            leat_topic_get_json(self.raw(), buffer, capacity, size, ptr::null_mut())
        })
    }

    /// `Policy::Grow`: sets how far each partition may grow from now on.
    pub fn set_max_capacity(&self, bytes: u64) -> Result<()> {
        let mut detail = 0;
        let code = unsafe { leat_topic_set_max_capacity(self.raw(), bytes, &mut detail) };
        check(code, detail)
    }

    /// `Policy::Grow`: frees idle memory, and returns how many bytes.
    pub fn shrink(&self) -> Result<u64> {
        let (mut freed, mut detail) = (0, 0);
        let code = unsafe { leat_topic_shrink(self.raw(), &mut freed, &mut detail) };
        check(code, detail).map(|()| freed)
    }

    /// A durable topic that is read-only: makes it writable again, when the cause is mended.
    pub fn repair(&self, timeout: impl Into<Timeout>) -> Result<()> {
        let mut detail = 0;
        let code = unsafe { leat_topic_repair(self.raw(), timeout.into().ns(), &mut detail) };
        check(code, detail)
    }

    /// Makes a publisher.
    pub fn publisher(&self, options: &PublisherOptions) -> Result<Publisher> {
        let (mut publisher, mut detail) = (ptr::null_mut(), 0);
        let code =
            unsafe { leat_topic_publisher(self.raw(), &options.c(), &mut publisher, &mut detail) };
        check(code, detail)
            .map(|()| Publisher::new(publisher))
            .map_err(|error| explain_partition(error, self, options.partition))
    }

    /// Makes a subscriber.
    pub fn subscriber(&self, options: &SubscriberOptions) -> Result<Subscriber> {
        let (mut subscriber, mut detail) = (ptr::null_mut(), 0);
        let code = unsafe {
            leat_topic_subscriber(self.raw(), &options.c(), &mut subscriber, &mut detail)
        };
        check(code, detail)
            .map(|()| Subscriber::new(subscriber))
            .map_err(|error| explain_partition(error, self, options.partition))
    }

    /// Opens the consumer group of that name, or creates it; the options apply only then.
    pub fn group(&self, name: &str, options: &GroupOptions) -> Result<Group> {
        let (mut group, mut created, mut detail) = (ptr::null_mut(), 0, 0);
        let (text, size) = c(name);
        let code = unsafe {
            leat_topic_group(
                self.raw(),
                text,
                size,
                &options.c(),
                &mut group,
                &mut created,
                &mut detail,
            )
        };
        check(code, detail)
            .map(|()| Group::new(group, created != 0))
            .map_err(|error| Subject::new_group(name, options).explain(error))
    }

    /// Opens an existing group.
    pub fn find_group(&self, name: &str) -> Result<Group> {
        let (mut group, mut detail) = (ptr::null_mut(), 0);
        let (text, size) = c(name);
        let code =
            unsafe { leat_topic_find_group(self.raw(), text, size, &mut group, &mut detail) };
        check(code, detail)
            .map(|()| Group::new(group, false))
            .map_err(|error| Subject::group("find group", name).explain(error))
    }

    /// Deletes a group; with `force` also while it has members, which get `Code::Closed`.
    pub fn delete_group(&self, name: &str, force: bool) -> Result<()> {
        let mut detail = 0;
        let (text, size) = c(name);
        let code =
            unsafe { leat_topic_delete_group(self.raw(), text, size, force.into(), &mut detail) };
        check(code, detail).map_err(|error| Subject::group("delete group", name).explain(error))
    }

    /// The names of the topic's groups, sorted.
    pub fn group_names(&self) -> Result<Vec<String>> {
        text(|buffer, capacity, size| unsafe {
            leat_topic_group_names(self.raw(), buffer, capacity, size, ptr::null_mut())
        })
        .map(lines)
    }
}

impl Drop for Topic {
    fn drop(&mut self) {
        let mut raw = self.raw();
        // SAFETY: nobody else has the pointer any more.
        unsafe { leat_topic_close(&mut raw) };
    }
}

impl Place {
    /// As [`Topic::open`], in these directories.
    pub fn open(&self, name: &str, timeout: impl Into<Timeout>) -> Result<Topic> {
        check_library()?;
        let (mut topic, mut detail) = (ptr::null_mut(), 0);
        let ((text, size), ns) = (c(name), timeout.into().ns());
        let place = self.c(false);
        let code = unsafe { leat_topic_open(text, size, ns, &place, &mut topic, &mut detail) };
        check(code, detail)
            .map(|()| Topic::new(topic))
            .map_err(|error| Subject::topic("open topic", name, self).explain(error))
    }

    /// As [`Topic::delete`], in these directories.
    pub fn delete(&self, name: &str, force: bool) -> Result<()> {
        check_library()?;
        let mut detail = 0;
        let (text, size) = c(name);
        let code = unsafe { leat_topic_delete(text, size, &self.c(force), &mut detail) };
        check(code, detail)
            .map_err(|error| Subject::topic("delete topic", name, self).explain(error))
    }

    /// As [`Topic::list`], in these directories.
    pub fn list(&self) -> Result<Vec<String>> {
        check_library()?;
        let place = self.c(false);
        text(|buffer, capacity, size| unsafe {
            leat_topic_list(&place, buffer, capacity, size, ptr::null_mut())
        })
        .map(lines)
    }
}

/// Never null, whatever the name.
fn c(name: &str) -> (*const c_char, u64) {
    (name.as_ptr().cast(), name.len() as u64)
}

fn lines(text: String) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

/// What C writes, with as much room as it wants.
pub(crate) fn text(write: impl Fn(*mut c_char, u64, *mut u64) -> i32) -> Result<String> {
    let mut buffer = vec![0; 256];
    loop {
        let mut size = 0;
        let code = write(buffer.as_mut_ptr().cast(), buffer.len() as u64, &mut size);
        let result = check(code, 0);
        if result
            .as_ref()
            .is_err_and(|error| error.code == Code::BufferTooSmall)
        {
            buffer.resize(size as usize, 0); // It may have grown again until the next look.
            continue;
        }
        result?;
        buffer.truncate(size as usize);
        return Ok(text_of(buffer));
    }
}

/// Names in Leat are plain ASCII; paths and what others chose need not be.
pub(crate) fn text_of(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}
