//! Errors that name the thing and the cause, which a code alone cannot.

use crate::{Code, Error, GroupOptions, Place, Topic, TopicOptions};
use std::path::{Path, PathBuf};

extern "C" {
    fn geteuid() -> u32;
}

/// An option, and the range that it must be in.
type Limited = (&'static str, u64, u64, u64);

/// What a call was about.
pub(crate) struct Subject<'a> {
    /// For example "create topic".
    action: &'static str,
    name: &'a str,
    /// None: the topic is open.
    place: Option<&'a Place>,
    /// Of a topic that is to be created.
    topic: Option<&'a TopicOptions>,
    options: Vec<Limited>,
}

impl<'a> Subject<'a> {
    pub(crate) fn topic(action: &'static str, name: &'a str, place: &'a Place) -> Subject<'a> {
        Subject {
            action,
            name,
            place: Some(place),
            topic: None,
            options: Vec::new(),
        }
    }

    pub(crate) fn new_topic(
        action: &'static str,
        name: &'a str,
        options: &'a TopicOptions,
    ) -> Subject<'a> {
        Subject {
            topic: Some(options),
            options: vec![
                ("partitions", options.partitions.into(), 1, 1024),
                ("participants", options.participants.into(), 1, 4096),
                ("capacity_bytes", options.capacity_bytes, 0, 1 << 40),
                ("segment_bytes", options.segment_bytes, 0, 1 << 30),
            ],
            ..Subject::topic(action, name, &options.place)
        }
    }

    pub(crate) fn group(action: &'static str, name: &'a str) -> Subject<'a> {
        Subject {
            action,
            name,
            place: None,
            topic: None,
            options: Vec::new(),
        }
    }

    pub(crate) fn new_group(name: &'a str, options: &GroupOptions) -> Subject<'a> {
        Subject {
            options: vec![
                ("members", options.members.into(), 1, 255),
                ("in_flight", options.in_flight.into(), 1, 65536),
                ("max_deliveries", options.max_deliveries.into(), 0, 65534),
            ],
            ..Subject::group("open group", name)
        }
    }

    /// The same error, as a sentence about this.
    #[cold]
    pub(crate) fn explain(&self, error: Error) -> Error {
        let text = format!(
            "cannot {} '{}': {}",
            self.action,
            shortened(self.name),
            self.reason(&error)
        );
        Error::with_text(error.code, error.detail, text)
    }

    fn reason(&self, error: &Error) -> String {
        match error.code {
            Code::Unsupported if self.name.contains("://") => {
                "that is the address of a broker, and this client opens topics of this machine only"
                    .into()
            }
            Code::InvalidArgument if !is_valid(self.name) => {
                "a name is 1 to 200 letters, digits, dots, underscores and dashes".into()
            }
            Code::InvalidArgument if self.wrong().is_some() || self.topic.is_some() => {
                self.wrong().unwrap_or_else(|| {
                    "its options contradict each other, or one is out of its range".into()
                })
            }
            Code::NotFound if self.topic.is_some() => self.missing(),
            _ => match self.place {
                Some(place) if error.code == Code::NotFound => {
                    format!("there is no such topic in {}", directory(place).display())
                }
                Some(place) => format!("{error}, in {}", directory(place).display()),
                None => error.to_string(),
            },
        }
    }

    /// The option that is out of its range.
    fn wrong(&self) -> Option<String> {
        let (option, given, least, most) = self
            .options
            .iter()
            .find(|(_, given, least, most)| !(least..=most).contains(&given))?;
        Some(format!(
            "{option} is {given}, and must be {least} to {most}"
        ))
    }

    /// The directory that is not there: of a durable topic, one of two.
    fn missing(&self) -> String {
        let place = self.place.cloned().unwrap_or_default();
        let directory = directory(&place);
        let data = place.data_directory.or_else(|| variable("LEAT_DATA_DIR"));
        let (path, names) = match data {
            Some(data) if directory.is_dir() && !data.is_dir() => {
                (data, "LEAT_DATA_DIR or Place::data_directory")
            }
            _ => (directory, "LEAT_DIR or Place::directory"),
        };
        format!(
            "the directory {} does not exist and cannot be made; {names} names another",
            path.display()
        )
    }
}

/// Enough of a name to recognize it.
fn shortened(name: &str) -> String {
    let mut characters = name.chars();
    let start: String = characters.by_ref().take(200).collect();
    let rest = if characters.next().is_some() {
        "…"
    } else {
        ""
    };
    start + rest
}

/// Where topics are.
fn directory(place: &Place) -> PathBuf {
    place
        .directory
        .clone()
        .or_else(|| variable("LEAT_DIR"))
        // SAFETY: the function only returns a number.
        .unwrap_or_else(|| Path::new("/dev/shm").join(format!("leat-{}", unsafe { geteuid() })))
}

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}

fn is_valid(name: &str) -> bool {
    (1..=200).contains(&name.len())
        && name != "."
        && name != ".."
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

/// The error of making a publisher or subscriber for a partition: the topic may have fewer.
#[cold]
pub(crate) fn explain_partition(error: Error, topic: &Topic, partition: Option<u32>) -> Error {
    match (partition, topic.partitions()) {
        (Some(number), Ok(count)) if error.code == Code::InvalidArgument && number >= count => {
            let text = format!("partition {number} does not exist: the topic has {count}");
            Error::with_text(error.code, error.detail, text)
        }
        _ => error,
    }
}

/// The error of joining a group: the name may be too long.
#[cold]
pub(crate) fn explain_member(error: Error, name: &str) -> Error {
    const MOST: usize = 63; // bytes
    if error.code != Code::InvalidArgument || name.len() <= MOST {
        return error;
    }
    let text = format!(
        "name of a member has {} bytes, and at most {MOST} are allowed",
        name.len()
    );
    Error::with_text(error.code, error.detail, text)
}
