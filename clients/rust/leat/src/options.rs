//! Options, and how C wants them. Begin with the defaults: `TopicOptions { partitions: 4, ..Default::default() }`.

use crate::timeout::{after, nanoseconds};
use leat_sys::*;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

macro_rules! choices {
    ($(#[$about:meta])* $name:ident, $first:ident = $first_c:ident $first_text:literal
     $(, $choice:ident = $c:ident $text:literal)*) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub enum $name {
            #[doc = $first_text]
            #[default]
            $first,
            $(#[doc = $text] $choice,)*
        }

        impl $name {
            pub(crate) fn c(self) -> u32 {
                match self {
                    $name::$first => $first_c,
                    $($name::$choice => $c,)*
                }
            }
            /// What a later library may add counts as the first one.
            #[allow(dead_code)]
            pub(crate) fn from_c(number: u32) -> $name {
                match number {
                    $($c => $name::$choice,)*
                    _ => $name::$first,
                }
            }
        }
    };
}

choices! {
    /// What happens when a topic is full.
    Policy,
    Block = LEAT_POLICY_BLOCK "Publishers wait for room.",
    Fail = LEAT_POLICY_FAIL "They get `Code::Full` at once.",
    Overwrite = LEAT_POLICY_OVERWRITE "The room of the oldest records is reused.",
    Grow = LEAT_POLICY_GROW "As `Block`, but memory is added up to a maximum before anybody waits."
}

choices! {
    /// What survives what.
    Durability,
    None = LEAT_DURABILITY_NONE "In memory: gone when the machine restarts.",
    Os = LEAT_DURABILITY_OS "Also written to disk: survives all processes.",
    Interval = LEAT_DURABILITY_INTERVAL "Also synced to stable storage at intervals.",
    Fsync = LEAT_DURABILITY_FSYNC "On stable storage before publishing returns."
}

choices! {
    /// How far a record has come.
    Stage,
    Default = LEAT_STAGE_DEFAULT "Durable with `Durability::Fsync`, otherwise committed.",
    Committed = LEAT_STAGE_COMMITTED "Subscribers can see it.",
    Durable = LEAT_STAGE_DURABLE "Durable topics: it is on stable storage."
}

choices! {
    /// When a record counts as done.
    GroupMode,
    AtLeastOnce = LEAT_GROUP_AT_LEAST_ONCE "Records that were not acknowledged are delivered again.",
    AtMostOnce = LEAT_GROUP_AT_MOST_ONCE "Records that a dead member had in its hands are not."
}

choices! {
    /// Durable topics: where a group goes on whose next record was deleted by retention.
    OnExpired,
    Start = LEAT_EXPIRED_START "At the oldest record.",
    End = LEAT_EXPIRED_END "Behind everything that is there now.",
    Stop = LEAT_EXPIRED_STOP "Nowhere: members get `Code::Expired` until somebody moves the group."
}

/// Where a subscriber or a group begins, or moves to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StartAt {
    /// Only records claimed from now on.
    #[default]
    End,
    /// The oldest record that can be read.
    Beginning,
    /// The record with this offset.
    Offset(u64),
    /// The last so many records of each partition.
    Last(u64),
    /// The first record that is not older, in milliseconds since 1970. Needs a topic with timestamps.
    TimeMs(u64),
}

impl StartAt {
    pub(crate) fn c(self) -> (u32, u64) {
        match self {
            StartAt::End => (LEAT_FROM_END, 0),
            StartAt::Beginning => (LEAT_FROM_BEGINNING, 0),
            StartAt::Offset(offset) => (LEAT_FROM_OFFSET, offset),
            StartAt::Last(count) => (LEAT_FROM_LAST, count),
            StartAt::TimeMs(time) => (LEAT_FROM_TIME, time),
        }
    }
}

/// Options of a new topic. Sizes in bytes; they are rounded up to whole segments and pages.
#[derive(Clone, Debug)]
pub struct TopicOptions {
    /// What happens when it is full.
    pub policy: Policy,
    /// Per partition. 0: 8 MiB, durable topics 32 MiB.
    pub capacity_bytes: u64,
    /// 0: an eighth of the capacity. At most 1 GiB.
    pub segment_bytes: u64,
    /// `Policy::Grow`, per partition. 0: 8 times the capacity.
    pub max_capacity_bytes: u64,
    /// `Policy::Grow`: adds memory at so little free. 0: a segment.
    pub grow_below_bytes: u64,
    /// How many, 1 to 1024. Records keep their order within a partition.
    pub partitions: u32,
    /// Publishers, subscribers and members at a time; at most 4096.
    pub participants: u32,
    /// Never reuse room; publishing fails with `Code::Full` at the end.
    pub retain_all: bool,
    /// Every publisher is exclusive.
    pub single_writer: bool,
    /// Records have timestamps.
    pub timestamps: bool,
    /// Once it was used, delete it when the last process closes it.
    pub delete_when_unused: bool,
    /// Revoke a claim that is open for so long while a subscriber waits.
    pub revoke_after: Option<Duration>,
    /// Make a gating subscriber lossy that blocks for so long.
    pub evict_after: Option<Duration>,
    /// Permission bits of the files; 0o600 is required.
    pub mode: u32,
    /// What survives what.
    pub durable: Durability,
    /// `Durability::Interval`; 1 ms to 1 h.
    pub sync_interval: Duration,
    /// Durable topics: size of a file with records.
    pub file_bytes: u64,
    /// Durable topics: keep so much on disk, in whole files. 0: no limit.
    pub retention_bytes: u64,
    /// Durable topics: and for so long.
    pub retention: Option<Duration>,
    /// Unix group of the files. None: the caller's.
    pub file_group: Option<String>,
    /// Where it is.
    pub place: Place,
}

impl Default for TopicOptions {
    fn default() -> TopicOptions {
        TopicOptions {
            policy: Policy::Block,
            capacity_bytes: 0,
            segment_bytes: 0,
            max_capacity_bytes: 0,
            grow_below_bytes: 0,
            partitions: 1,
            participants: 256,
            retain_all: false,
            single_writer: false,
            timestamps: false,
            delete_when_unused: false,
            revoke_after: None,
            evict_after: None,
            mode: 0o600,
            durable: Durability::None,
            sync_interval: Duration::ZERO,
            file_bytes: 64 << 20,
            retention_bytes: 0,
            retention: None,
            file_group: None,
            place: Place::default(),
        }
    }
}

impl TopicOptions {
    /// Points into these options.
    pub(crate) fn c(&self) -> leat_topic_options {
        leat_topic_options {
            policy: self.policy.c(),
            capacity_bytes: self.capacity_bytes,
            segment_bytes: self.segment_bytes,
            max_capacity_bytes: self.max_capacity_bytes,
            grow_below_bytes: self.grow_below_bytes,
            partitions: self.partitions,
            participants: self.participants,
            retain_all: self.retain_all.into(),
            single_writer: self.single_writer.into(),
            timestamps: self.timestamps.into(),
            delete_when_unused: self.delete_when_unused.into(),
            revoke_after_ns: after(self.revoke_after),
            evict_after_ns: after(self.evict_after),
            mode: self.mode,
            durable: self.durable.c(),
            sync_interval_ns: nanoseconds(self.sync_interval),
            file_bytes: self.file_bytes,
            retention_bytes: self.retention_bytes,
            retention_ms: self.retention.map_or(0, |time| {
                i64::try_from(time.as_millis()).unwrap_or(i64::MAX).max(1)
            }),
            file_group: text(self.file_group.as_ref().map(OsStr::new)),
            directory: text(self.place.directory.as_ref().map(OsStr::new)),
            data_directory: text(self.place.data_directory.as_ref().map(OsStr::new)),
            ..LEAT_TOPIC_OPTIONS_INIT
        }
    }
}

/// Where topics are, if not in the default directories.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// None: `$LEAT_DIR`, else `/dev/shm/leat-<uid>`.
    pub directory: Option<PathBuf>,
    /// Durable topics. None: `$LEAT_DATA_DIR`, else `$XDG_DATA_HOME/leat`, else `~/.local/share/leat`.
    pub data_directory: Option<PathBuf>,
}

impl Place {
    /// Points into this place.
    pub(crate) fn c(&self, force: bool) -> leat_place {
        leat_place {
            force: force.into(),
            directory: text(self.directory.as_ref().map(OsStr::new)),
            data_directory: text(self.data_directory.as_ref().map(OsStr::new)),
            ..LEAT_PLACE_INIT
        }
    }
}

/// Options of a publisher.
#[derive(Clone, Debug, Default)]
pub struct PublisherOptions {
    /// Of records that have no key. None: in turn.
    pub partition: Option<u32>,
    /// The topic's only publisher; cheaper per record.
    pub exclusive: bool,
    /// How far a record has come when publishing returns.
    pub acknowledge: Stage,
    /// A signal handler that was installed without SA_RESTART and runs during a wait ends it: `Code::Interrupted`.
    pub interruptible: bool,
}

impl PublisherOptions {
    pub(crate) fn c(&self) -> leat_publisher_options {
        leat_publisher_options {
            partition: partition(self.partition),
            exclusive: self.exclusive.into(),
            acknowledge: self.acknowledge.c(),
            interruptible: self.interruptible.into(),
            ..LEAT_PUBLISHER_OPTIONS_INIT
        }
    }
}

/// Options of a subscriber.
#[derive(Clone, Debug)]
pub struct SubscriberOptions {
    /// Where it begins.
    pub from: StartAt,
    /// None: all.
    pub partition: Option<u32>,
    /// Publishers keep what it has not read. Otherwise it is lossy, and may be overtaken.
    pub gating: bool,
    /// Lossy, but pins the segment that it reads instead of copying.
    pub in_place: bool,
    /// How far a record must have come to be delivered.
    pub read: Stage,
    /// Tasks of one thread publish and subscribe, as in an async runtime: never `Code::WouldDeadlock` because of it.
    pub any_thread: bool,
    /// As in [`PublisherOptions`].
    pub interruptible: bool,
    /// How long a wait spins before it sleeps.
    pub spin: Duration,
    /// Pause of an empty poll after many records; zero: none.
    pub patience: Duration,
}

impl Default for SubscriberOptions {
    fn default() -> SubscriberOptions {
        SubscriberOptions {
            from: StartAt::End,
            partition: None,
            gating: true,
            in_place: false,
            read: Stage::Default,
            any_thread: false,
            interruptible: false,
            spin: Duration::from_micros(20),
            patience: Duration::from_micros(20),
        }
    }
}

impl SubscriberOptions {
    pub(crate) fn c(&self) -> leat_subscriber_options {
        let (from, from_value) = self.from.c();
        leat_subscriber_options {
            from,
            from_value,
            partition: partition(self.partition),
            gating: self.gating.into(),
            in_place: self.in_place.into(),
            read: self.read.c(),
            any_thread: self.any_thread.into(),
            interruptible: self.interruptible.into(),
            spin_ns: nanoseconds(self.spin),
            patience_ns: nanoseconds(self.patience),
            ..LEAT_SUBSCRIBER_OPTIONS_INIT
        }
    }
}

/// Options of a new group.
#[derive(Clone, Debug)]
pub struct GroupOptions {
    /// Where it begins.
    pub from: StartAt,
    /// When a record counts as done.
    pub mode: GroupMode,
    /// Records of one key go to one member at a time, in order.
    pub by_key: bool,
    /// At a time; at most 255.
    pub members: u32,
    /// Unacknowledged records that a member may hold; at most 65536.
    pub in_flight: u32,
    /// Then a record goes to the dead-letter topic; at most 65534. 0: no limit.
    pub max_deliveries: u32,
    /// Durable topics: where it goes on whose next record was deleted.
    pub on_expired: OnExpired,
    /// A record that is held for longer goes to another member.
    pub lease: Option<Duration>,
}

impl Default for GroupOptions {
    fn default() -> GroupOptions {
        GroupOptions {
            from: StartAt::End,
            mode: GroupMode::AtLeastOnce,
            by_key: false,
            members: 64,
            in_flight: 1024,
            max_deliveries: 0,
            on_expired: OnExpired::Start,
            lease: None,
        }
    }
}

impl GroupOptions {
    pub(crate) fn c(&self) -> leat_group_options {
        let (from, from_value) = self.from.c();
        leat_group_options {
            from,
            from_value,
            mode: self.mode.c(),
            by_key: self.by_key.into(),
            members: self.members,
            in_flight: self.in_flight,
            max_deliveries: self.max_deliveries,
            on_expired: self.on_expired.c(),
            lease_ns: after(self.lease),
            ..LEAT_GROUP_OPTIONS_INIT
        }
    }
}

/// Options of a member.
#[derive(Clone, Debug)]
pub struct MemberOptions {
    /// Informational; at most 63 bytes.
    pub name: String,
    /// As in [`SubscriberOptions`].
    pub any_thread: bool,
    /// As in [`PublisherOptions`].
    pub interruptible: bool,
    /// How long a wait spins before it sleeps.
    pub spin: Duration,
    /// Pause of an empty receive after many records; zero: none.
    pub patience: Duration,
}

impl Default for MemberOptions {
    fn default() -> MemberOptions {
        MemberOptions {
            name: String::new(),
            any_thread: false,
            interruptible: false,
            spin: Duration::from_micros(20),
            patience: Duration::from_micros(20),
        }
    }
}

impl MemberOptions {
    /// Points into these options.
    pub(crate) fn c(&self) -> leat_member_options {
        leat_member_options {
            any_thread: self.any_thread.into(),
            interruptible: self.interruptible.into(),
            spin_ns: nanoseconds(self.spin),
            patience_ns: nanoseconds(self.patience),
            name: text(Some(OsStr::new(&self.name))),
            ..LEAT_MEMBER_OPTIONS_INIT
        }
    }
}

fn text(text: Option<&OsStr>) -> leat_bytes {
    text.map_or(LEAT_NO_BYTES, |text| bytes(text.as_bytes()))
}

/// Never null, so that empty bytes are told from none.
#[inline]
pub(crate) fn bytes(bytes: &[u8]) -> leat_bytes {
    leat_bytes {
        data: bytes.as_ptr().cast(),
        size: bytes.len() as u64,
    }
}

/// The largest number means any partition to C; as a partition it becomes another that does not exist.
#[inline]
pub(crate) fn partition(partition: Option<u32>) -> u32 {
    partition.map_or(LEAT_ANY_PARTITION, |number| {
        number.min(LEAT_ANY_PARTITION - 1)
    })
}
