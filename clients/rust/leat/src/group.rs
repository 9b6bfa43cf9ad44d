//! Consumer groups: members share a topic's records.

use crate::error::{check, Error, Result};
use crate::explain::explain_member;
use crate::options::partition;
use crate::topic::{text, text_of};
use crate::{Code, GroupMode, Member, MemberOptions, OnExpired, StartAt};
use leat_sys::*;
use std::mem::{size_of, zeroed};
use std::ptr::{self, NonNull};
use std::time::Duration;

/// A consumer group. The group stays when this is dropped, until it is deleted. Threads may share it.
pub struct Group {
    raw: NonNull<leat_group>,
    was_created: bool,
}

// SAFETY: C allows several threads at once, and nobody can use it while it is dropped.
unsafe impl Send for Group {}
unsafe impl Sync for Group {}

impl Group {
    pub(crate) fn new(raw: *mut leat_group, was_created: bool) -> Group {
        let raw = NonNull::new(raw).expect("a handle without an error");
        Group { raw, was_created }
    }

    /// Whether the call that returned it also created the group.
    pub fn was_created(&self) -> bool {
        self.was_created
    }

    /// Makes a member of the group.
    pub fn join(&self, options: &MemberOptions) -> Result<Member> {
        let (mut member, mut detail) = (ptr::null_mut(), 0);
        // SAFETY, here and below: the handle is open, and C reads and writes what we point to during the call.
        let code =
            unsafe { leat_group_join(self.raw.as_ptr(), &options.c(), &mut member, &mut detail) };
        check(code, detail)
            .map(|()| Member::new(member))
            .map_err(|error| explain_member(error, &options.name))
    }

    /// The group's name.
    pub fn name(&self) -> Result<String> {
        text(|buffer, capacity, size| unsafe {
            leat_group_name(self.raw.as_ptr(), buffer, capacity, size)
        })
    }

    /// The name of the dead-letter topic; None without `max_deliveries`.
    pub fn dead_letter_topic(&self) -> Result<Option<String>> {
        let name = text(|buffer, capacity, size| unsafe {
            leat_group_dead_letter_topic(self.raw.as_ptr(), buffer, capacity, size)
        })?;
        Ok((!name.is_empty()).then_some(name))
    }

    /// Moves the group's position, in one partition, or in all (None). Records that members hold stay theirs.
    pub fn seek(&self, to: StartAt, in_partition: Option<u32>) -> Result<()> {
        let ((from, value), mut detail) = (to.c(), 0);
        let number = partition(in_partition);
        let code = unsafe { leat_group_seek(self.raw.as_ptr(), from, value, number, &mut detail) };
        check(code, detail)
    }

    /// The offset of the next record to be taken in a partition.
    pub fn position(&self, partition: u32) -> Result<u64> {
        let mut offset = 0;
        let code = unsafe { leat_group_position(self.raw.as_ptr(), partition, &mut offset) };
        check(code, 0).map(|()| offset)
    }

    /// How many records of a partition, at least, the group is done with, counted from offset 0.
    pub fn released(&self, partition: u32) -> Result<u64> {
        let mut count = 0;
        let code = unsafe { leat_group_released(self.raw.as_ptr(), partition, &mut count) };
        check(code, 0).map(|()| count)
    }

    /// A snapshot of the group. Holds up nobody.
    pub fn info(&self) -> Result<GroupInfo> {
        let (mut members, mut offsets) = (Vec::new(), Vec::new());
        loop {
            // SAFETY: C's structs of numbers may be zero.
            let mut info: leat_group_info = unsafe { zeroed() };
            info.size = size_of::<leat_group_info>() as u32;
            let mut detail = 0;
            let code = unsafe {
                leat_group_get_info(
                    self.raw.as_ptr(),
                    &mut info,
                    members.as_mut_ptr(),
                    members.len() as u32,
                    offsets.as_mut_ptr(),
                    offsets.len() as u32,
                    &mut detail,
                )
            };
            check(code, detail)?;
            let member_count = info.member_count as usize;
            let partition_count = info.partition_count as usize;
            if member_count <= members.len() && partition_count <= offsets.len() {
                members.truncate(member_count);
                offsets.truncate(partition_count);
                return Ok(GroupInfo::new(&info, &members, offsets));
            }
            // Others may join until the next look.
            members.resize(2 * member_count, unsafe { zeroed::<leat_member_info>() });
            offsets.resize(partition_count, 0);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let mut raw = self.raw.as_ptr();
        // SAFETY: nobody else has the pointer any more.
        unsafe { leat_group_close(&mut raw) };
    }
}

/// A snapshot of a group.
#[derive(Clone, Debug)]
pub struct GroupInfo {
    /// When a record counts as done.
    pub mode: GroupMode,
    /// Records of one key go to one member at a time, in order.
    pub by_key: bool,
    /// 0: no limit.
    pub max_deliveries: u32,
    /// A record that is held for longer goes to another member. None: never.
    pub lease: Option<Duration>,
    /// Where the group goes on whose next record was deleted by retention.
    pub on_expired: OnExpired,
    /// For each member.
    pub in_flight_limit: u32,
    /// Records that no member has taken yet.
    pub lag: u64,
    /// Taken or returned, and not acknowledged.
    pub in_flight: u64,
    /// Deliveries after the first.
    pub redelivered: u64,
    /// Waiting for redelivery or for their key.
    pub returned: u64,
    /// How many may wait so at a time.
    pub returned_limit: u64,
    /// Records that went to the dead-letter topic.
    pub dead_letters: u64,
    /// `Code::RedeliveryFull`: no room for returned records.
    pub taking: Option<Error>,
    /// Alive now.
    pub members: Vec<MemberInfo>,
    /// By partition, the offset of the next record to be taken.
    pub offsets: Vec<u64>,
}

/// A living member.
#[derive(Clone, Debug)]
pub struct MemberInfo {
    /// What the member is called in [`MemberOptions`]; may be empty.
    pub name: String,
    /// The member's process, in its own PID namespace.
    pub pid: u32,
    /// Records that it holds or has taken.
    pub in_flight: u64,
}

impl GroupInfo {
    fn new(c: &leat_group_info, members: &[leat_member_info], offsets: Vec<u64>) -> GroupInfo {
        GroupInfo {
            mode: GroupMode::from_c(c.mode),
            by_key: c.by_key != 0,
            max_deliveries: c.max_deliveries,
            lease: crate::info::duration(c.lease_ns),
            on_expired: OnExpired::from_c(c.on_expired),
            in_flight_limit: c.in_flight_limit,
            lag: c.lag,
            in_flight: c.in_flight,
            redelivered: c.redelivered,
            returned: c.returned,
            returned_limit: c.returned_limit,
            dead_letters: c.dead_letters,
            taking: (c.taking != LEAT_OK).then(|| Code::from(c.taking).into()),
            members: members.iter().map(MemberInfo::new).collect(),
            offsets,
        }
    }
}

impl MemberInfo {
    fn new(c: &leat_member_info) -> MemberInfo {
        let name: Vec<u8> = c
            .name
            .iter()
            .map(|byte| *byte as u8)
            .take_while(|byte| *byte != 0)
            .collect();
        MemberInfo {
            name: text_of(name),
            pid: c.pid,
            in_flight: c.in_flight,
        }
    }
}
