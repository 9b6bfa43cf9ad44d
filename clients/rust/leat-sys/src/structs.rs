//! The structs of the header, and the initializers of options.

use crate::*;
use std::ffi::{c_char, c_void};
use std::mem::size_of;
use std::ptr;

macro_rules! handles {
    ($($name:ident)*) => {$(
        /// An opaque handle.
        #[repr(C)]
        pub struct $name {
            _private: [u8; 0],
            _not_send: std::marker::PhantomData<*mut u8>,
        }
    )*};
}
handles!(leat_topic leat_publisher leat_subscriber leat_group leat_member);

#[repr(C)]
#[derive(Clone, Copy)]
pub struct leat_bytes {
    pub data: *const c_void,
    pub size: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct leat_record {
    pub value: *const u8,
    pub offset: u64,
    pub value_size: u32,
    pub key_size: u32,
    pub headers_size: u32,
    pub partition: u16,
    pub flags: u16,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct leat_header {
    pub name: *const u8,
    pub value: *const u8,
    pub name_size: u32,
    pub value_size: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct leat_headers {
    pub at: *const u8,
    pub left: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct leat_new_header {
    pub name: leat_bytes,
    pub value: leat_bytes,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct leat_new_record {
    pub value: leat_bytes,
    pub key: leat_bytes,
    pub headers: *const leat_new_header,
    pub header_count: u32,
    pub partition: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct leat_topic_options {
    pub size: u32,
    pub policy: u32,
    pub capacity_bytes: u64,
    pub segment_bytes: u64,
    pub max_capacity_bytes: u64,
    pub grow_below_bytes: u64,
    pub partitions: u32,
    pub participants: u32,
    pub retain_all: u32,
    pub single_writer: u32,
    pub timestamps: u32,
    pub delete_when_unused: u32,
    pub revoke_after_ns: i64,
    pub evict_after_ns: i64,
    pub mode: u32,
    pub durable: u32,
    pub sync_interval_ns: i64,
    pub file_bytes: u64,
    pub retention_bytes: u64,
    pub retention_ms: i64,
    pub file_group: leat_bytes,
    pub directory: leat_bytes,
    pub data_directory: leat_bytes,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct leat_place {
    pub size: u32,
    pub force: u32,
    pub directory: leat_bytes,
    pub data_directory: leat_bytes,
    pub interruptible: u32,
    pub reserved: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct leat_topic_info {
    pub size: u32,
    pub policy: u32,
    pub capacity_bytes: u64,
    pub max_capacity_bytes: u64,
    pub min_capacity_bytes: u64,
    pub max_capacity_limit: u64,
    pub segment_bytes: u64,
    pub max_record_bytes: u64,
    pub retain_all: u32,
    pub single_writer: u32,
    pub timestamps: u32,
    pub delete_when_unused: u32,
    pub revoke_after_ns: i64,
    pub evict_after_ns: i64,
    pub partition_count: u32,
    pub participant_count: u32,
    pub durable: u32,
    pub state: i32,
    pub state_detail: i32,
    pub archiver_pid: u32,
    pub sync_interval_ns: i64,
    pub created_ms: i64,
    pub file_bytes: u64,
    pub retention_bytes: u64,
    pub retention_ms: i64,
    pub disk_bytes: u64,
    pub cut_bytes: u64,
    pub cut_records: u64,
    pub damaged: u64,
    pub id: [u8; 16],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct leat_partition_info {
    pub start: u64,
    pub end: u64,
    pub capacity_bytes: u64,
    pub used_bytes: u64,
    pub written: u64,
    pub durable: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct leat_participant_info {
    pub pid: u32,
    pub role: u32,
    pub offset: u64,
    pub lag: u64,
    pub blocking: u32,
    pub reserved: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct leat_publisher_options {
    pub size: u32,
    pub partition: u32,
    pub exclusive: u32,
    pub acknowledge: u32,
    pub interruptible: u32,
    pub reserved: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct leat_claim {
    pub data: *mut u8,
    pub size: u64,
    pub offset: u64,
    pub id: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct leat_subscriber_options {
    pub size: u32,
    pub from: u32,
    pub from_value: u64,
    pub partition: u32,
    pub gating: u32,
    pub in_place: u32,
    pub read: u32,
    pub any_thread: u32,
    pub interruptible: u32,
    pub spin_ns: i64,
    pub patience_ns: i64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct leat_group_options {
    pub size: u32,
    pub from: u32,
    pub from_value: u64,
    pub mode: u32,
    pub by_key: u32,
    pub members: u32,
    pub in_flight: u32,
    pub max_deliveries: u32,
    pub on_expired: u32,
    pub lease_ns: i64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct leat_group_info {
    pub size: u32,
    pub mode: u32,
    pub by_key: u32,
    pub max_deliveries: u32,
    pub lease_ns: i64,
    pub on_expired: u32,
    pub in_flight_limit: u32,
    pub lag: u64,
    pub in_flight: u64,
    pub redelivered: u64,
    pub returned: u64,
    pub returned_limit: u64,
    pub dead_letters: u64,
    pub taking: i32,
    pub member_count: u32,
    pub partition_count: u32,
    pub reserved: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct leat_member_info {
    pub name: [c_char; 64],
    pub in_flight: u64,
    pub pid: u32,
    pub reserved: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct leat_room_holder {
    pub kind: u32,
    pub pid: u32,
    pub members: u32,
    pub reserved: u32,
    pub group: [c_char; 208],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct leat_member_options {
    pub size: u32,
    pub any_thread: u32,
    pub interruptible: u32,
    pub reserved: u32,
    pub spin_ns: i64,
    pub patience_ns: i64,
    pub name: leat_bytes,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct leat_delivery {
    pub record: leat_record,
    pub deliveries: u32,
    pub reserved: u32,
    pub state: u64,
    pub position: u64,
    pub entry: u64,
}
pub const LEAT_NO_BYTES: leat_bytes = leat_bytes {
    data: ptr::null(),
    size: 0,
};

pub const LEAT_NEW_RECORD_INIT: leat_new_record = leat_new_record {
    value: LEAT_NO_BYTES,
    key: LEAT_NO_BYTES,
    headers: ptr::null(),
    header_count: 0,
    partition: LEAT_ANY_PARTITION,
};

pub const LEAT_TOPIC_OPTIONS_INIT: leat_topic_options = leat_topic_options {
    size: size_of::<leat_topic_options>() as u32,
    policy: LEAT_POLICY_BLOCK,
    capacity_bytes: 0,
    segment_bytes: 0,
    max_capacity_bytes: 0,
    grow_below_bytes: 0,
    partitions: 1,
    participants: 256,
    retain_all: 0,
    single_writer: 0,
    timestamps: 0,
    delete_when_unused: 0,
    revoke_after_ns: 0,
    evict_after_ns: 0,
    mode: 0o600,
    durable: LEAT_DURABILITY_NONE,
    sync_interval_ns: 0,
    file_bytes: 64 << 20,
    retention_bytes: 0,
    retention_ms: 0,
    file_group: LEAT_NO_BYTES,
    directory: LEAT_NO_BYTES,
    data_directory: LEAT_NO_BYTES,
};

pub const LEAT_PLACE_INIT: leat_place = leat_place {
    size: size_of::<leat_place>() as u32,
    force: 0,
    directory: LEAT_NO_BYTES,
    data_directory: LEAT_NO_BYTES,
    interruptible: 0,
    reserved: 0,
};

pub const LEAT_PUBLISHER_OPTIONS_INIT: leat_publisher_options = leat_publisher_options {
    size: size_of::<leat_publisher_options>() as u32,
    partition: LEAT_ANY_PARTITION,
    exclusive: 0,
    acknowledge: LEAT_STAGE_DEFAULT,
    interruptible: 0,
    reserved: 0,
};

pub const LEAT_SUBSCRIBER_OPTIONS_INIT: leat_subscriber_options = leat_subscriber_options {
    size: size_of::<leat_subscriber_options>() as u32,
    from: LEAT_FROM_END,
    from_value: 0,
    partition: LEAT_ANY_PARTITION,
    gating: 1,
    in_place: 0,
    read: LEAT_STAGE_DEFAULT,
    any_thread: 0,
    interruptible: 0,
    spin_ns: 20000,
    patience_ns: 20000,
};

pub const LEAT_GROUP_OPTIONS_INIT: leat_group_options = leat_group_options {
    size: size_of::<leat_group_options>() as u32,
    from: LEAT_FROM_END,
    from_value: 0,
    mode: LEAT_GROUP_AT_LEAST_ONCE,
    by_key: 0,
    members: 64,
    in_flight: 1024,
    max_deliveries: 0,
    on_expired: LEAT_EXPIRED_START,
    lease_ns: 0,
};

pub const LEAT_MEMBER_OPTIONS_INIT: leat_member_options = leat_member_options {
    size: size_of::<leat_member_options>() as u32,
    any_thread: 0,
    interruptible: 0,
    reserved: 0,
    spin_ns: 20000,
    patience_ns: 20000,
    name: LEAT_NO_BYTES,
};
