//! Snapshots of topics.

use crate::error::{check, Error, Result};
use crate::{Durability, Policy, Topic};
use leat_sys::*;
use std::mem::{size_of, zeroed};
use std::time::Duration;

/// A snapshot of a topic. Sizes in bytes.
#[derive(Clone, Debug)]
pub struct TopicInfo {
    /// A UUID, which tells the topic from earlier and later ones of its name; save it with an offset that you
    /// save. All 0: the topic was made by a version of Leat without ids.
    pub id: [u8; 16],
    /// What happens when the topic is full.
    pub policy: Policy,
    /// Per partition, now; `Policy::Grow`: of the largest one.
    pub capacity_bytes: u64,
    /// Equal to `capacity_bytes` unless the policy is `Grow`.
    pub max_capacity_bytes: u64,
    /// Per partition, at creation; [`Topic::shrink`] does not go below it.
    pub min_capacity_bytes: u64,
    /// The most that [`Topic::set_max_capacity`] accepts.
    pub max_capacity_limit: u64,
    /// Of a segment.
    pub segment_bytes: u64,
    /// Of the largest record, encoded.
    pub max_record_bytes: u64,
    /// Room is never reused.
    pub retain_all: bool,
    /// Every publisher is exclusive.
    pub single_writer: bool,
    /// Records have timestamps.
    pub timestamps: bool,
    /// The last process that closes the topic deletes it.
    pub delete_when_unused: bool,
    /// A claim that is open for longer while a subscriber waits is revoked. None: never.
    pub revoke_after: Option<Duration>,
    /// A gating subscriber that blocks for longer becomes lossy. None: never.
    pub evict_after: Option<Duration>,
    /// When it was created, in milliseconds since 1970.
    pub created_ms: i64,
    /// What survives what.
    pub durable: Durability,
    /// Durable topics, as what follows: why nothing is written to disk. None: it is.
    pub state: Option<Error>,
    /// None: no archiver is needed yet.
    pub archiver_pid: Option<u32>,
    /// [`Durability::Interval`]: how often records are synced to stable storage.
    pub sync_interval: Duration,
    /// Of a file with records.
    pub file_bytes: u64,
    /// So much is kept on disk, in whole files. 0: no limit.
    pub retention_bytes: u64,
    /// Records are kept for so long. None: no limit.
    pub retention: Option<Duration>,
    /// Of all its files.
    pub disk_bytes: u64,
    /// Bytes that recovery cut off, because they were never written whole.
    pub cut_bytes: u64,
    /// Records that recovery cut off.
    pub cut_records: u64,
    /// Offsets whose records recovery could not read.
    pub damaged: u64,
    /// By number.
    pub partitions: Vec<PartitionInfo>,
    /// Alive now.
    pub participants: Vec<ParticipantInfo>,
}

/// A snapshot of a partition.
#[derive(Clone, Debug)]
pub struct PartitionInfo {
    /// Oldest offset that can be read.
    pub start: u64,
    /// Offset of the next claim.
    pub end: u64,
    /// How many bytes of records it has room for, now.
    pub capacity_bytes: u64,
    /// From the oldest segment that can be read to the end.
    pub used_bytes: u64,
    /// Durable topics: everything before can be read from disk,
    pub written: u64,
    /// and everything before is on stable storage.
    pub durable: u64,
}

/// What a participant does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Role {
    /// A publisher beside which others may exist.
    Publisher,
    /// The topic's only publisher.
    ExclusivePublisher,
    /// A subscriber for which publishers keep what it has not read.
    Subscriber,
    /// A subscriber that may be overtaken.
    LossySubscriber,
    /// A member of a consumer group.
    Member,
    /// One of a later library.
    Unknown(u32),
}

/// A snapshot of a publisher, subscriber or member.
#[derive(Clone, Debug)]
pub struct ParticipantInfo {
    /// In its own PID namespace.
    pub pid: u32,
    /// What it does.
    pub role: Role,
    /// Subscribers: next offset, summed over partitions.
    pub offset: u64,
    /// Subscribers: records not read yet.
    pub lag: u64,
    /// Others wait for it.
    pub blocking: bool,
}

impl Topic {
    /// A snapshot of the topic. Holds up nobody.
    pub fn info(&self) -> Result<TopicInfo> {
        let (mut partitions, mut participants) = (Vec::new(), Vec::new());
        loop {
            // SAFETY: C's structs of numbers may be zero.
            let mut info: leat_topic_info = unsafe { zeroed() };
            info.size = size_of::<leat_topic_info>() as u32;
            let mut detail = 0;
            // SAFETY: the handle is open, and C is told how long the arrays are.
            let code = unsafe {
                leat_topic_get_info(
                    self.raw(),
                    &mut info,
                    partitions.as_mut_ptr(),
                    partitions.len() as u32,
                    participants.as_mut_ptr(),
                    participants.len() as u32,
                    &mut detail,
                )
            };
            check(code, detail)?;
            let partition_count = info.partition_count as usize;
            let participant_count = info.participant_count as usize;
            if partition_count <= partitions.len() && participant_count <= participants.len() {
                partitions.truncate(partition_count);
                participants.truncate(participant_count);
                return Ok(TopicInfo::new(&info, &partitions, &participants));
            }
            // SAFETY: as above. Others may come until the next look.
            partitions.resize(partition_count, unsafe { zeroed::<leat_partition_info>() });
            participants.resize(2 * participant_count, unsafe {
                zeroed::<leat_participant_info>()
            });
        }
    }
}

impl TopicInfo {
    fn new(
        c: &leat_topic_info,
        partitions: &[leat_partition_info],
        participants: &[leat_participant_info],
    ) -> TopicInfo {
        TopicInfo {
            id: c.id,
            policy: Policy::from_c(c.policy),
            capacity_bytes: c.capacity_bytes,
            max_capacity_bytes: c.max_capacity_bytes,
            min_capacity_bytes: c.min_capacity_bytes,
            max_capacity_limit: c.max_capacity_limit,
            segment_bytes: c.segment_bytes,
            max_record_bytes: c.max_record_bytes,
            retain_all: c.retain_all != 0,
            single_writer: c.single_writer != 0,
            timestamps: c.timestamps != 0,
            delete_when_unused: c.delete_when_unused != 0,
            revoke_after: duration(c.revoke_after_ns),
            evict_after: duration(c.evict_after_ns),
            created_ms: c.created_ms,
            durable: Durability::from_c(c.durable),
            state: check(c.state, c.state_detail).err(),
            archiver_pid: (c.archiver_pid != 0).then_some(c.archiver_pid),
            sync_interval: duration(c.sync_interval_ns).unwrap_or_default(),
            file_bytes: c.file_bytes,
            retention_bytes: c.retention_bytes,
            retention: u64::try_from(c.retention_ms)
                .ok()
                .filter(|ms| *ms != 0)
                .map(Duration::from_millis),
            disk_bytes: c.disk_bytes,
            cut_bytes: c.cut_bytes,
            cut_records: c.cut_records,
            damaged: c.damaged,
            partitions: partitions.iter().map(PartitionInfo::new).collect(),
            participants: participants.iter().map(ParticipantInfo::new).collect(),
        }
    }
}

impl PartitionInfo {
    fn new(c: &leat_partition_info) -> PartitionInfo {
        PartitionInfo {
            start: c.start,
            end: c.end,
            capacity_bytes: c.capacity_bytes,
            used_bytes: c.used_bytes,
            written: c.written,
            durable: c.durable,
        }
    }
}

impl ParticipantInfo {
    fn new(c: &leat_participant_info) -> ParticipantInfo {
        ParticipantInfo {
            pid: c.pid,
            role: match c.role {
                LEAT_ROLE_PUBLISHER => Role::Publisher,
                LEAT_ROLE_EXCLUSIVE_PUBLISHER => Role::ExclusivePublisher,
                LEAT_ROLE_SUBSCRIBER => Role::Subscriber,
                LEAT_ROLE_LOSSY_SUBSCRIBER => Role::LossySubscriber,
                LEAT_ROLE_MEMBER => Role::Member,
                other => Role::Unknown(other),
            },
            offset: c.offset,
            lag: c.lag,
            blocking: c.blocking != 0,
        }
    }
}

/// None for 0, which means never.
pub(crate) fn duration(ns: i64) -> Option<Duration> {
    u64::try_from(ns)
        .ok()
        .filter(|ns| *ns != 0)
        .map(Duration::from_nanos)
}
