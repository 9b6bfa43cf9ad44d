//! The C functions of Leat, as `leat/leat.h` declares them, for the crate `leat`, which is the safe one.
//!
//! Everything has the header's name, and the header says what it does. Its inline functions are in Rust here. A
//! test compares the structs with the header, as the C compiler lays them out.
#![allow(non_camel_case_types)]

mod errors;
mod functions;
mod records;
mod structs;

pub use errors::*;
pub use functions::*;
pub use records::*;
pub use structs::*;

pub const LEAT_ABI_VERSION: u32 = 1;
/// Room that leat_describe() needs at most, in bytes.
pub const LEAT_DESCRIPTION_SIZE: usize = 256;
/// The length of a text that ends with a null byte.
pub const LEAT_TEXT: u64 = u64::MAX;
/// A wait without end.
pub const LEAT_FOREVER: i64 = -1;
/// No partition is named.
pub const LEAT_ANY_PARTITION: u32 = u32::MAX;
/// The most subscribers that leat_subscriber_wait_any() can wait for.
pub const LEAT_MAX_WAIT_ANY: usize = 64;

pub const LEAT_POLICY_BLOCK: u32 = 0;
pub const LEAT_POLICY_FAIL: u32 = 1;
pub const LEAT_POLICY_OVERWRITE: u32 = 2;
pub const LEAT_POLICY_GROW: u32 = 3;

pub const LEAT_DURABILITY_NONE: u32 = 0;
pub const LEAT_DURABILITY_OS: u32 = 1;
pub const LEAT_DURABILITY_INTERVAL: u32 = 2;
pub const LEAT_DURABILITY_FSYNC: u32 = 3;

pub const LEAT_STAGE_DEFAULT: u32 = 0;
pub const LEAT_STAGE_COMMITTED: u32 = 1;
pub const LEAT_STAGE_DURABLE: u32 = 2;

pub const LEAT_FROM_END: u32 = 0;
pub const LEAT_FROM_BEGINNING: u32 = 1;
pub const LEAT_FROM_OFFSET: u32 = 2;
pub const LEAT_FROM_LAST: u32 = 3;
pub const LEAT_FROM_TIME: u32 = 4;

pub const LEAT_GAP_ABORTED: u32 = 1;
pub const LEAT_GAP_DIED: u32 = 2;
pub const LEAT_GAP_REVOKED: u32 = 3;
pub const LEAT_GAP_OVERWRITTEN: u32 = 4;
pub const LEAT_GAP_DAMAGED: u32 = 5;
pub const LEAT_GAP_LOST: u32 = 6;

pub const LEAT_ROLE_PUBLISHER: u32 = 1;
pub const LEAT_ROLE_EXCLUSIVE_PUBLISHER: u32 = 2;
pub const LEAT_ROLE_SUBSCRIBER: u32 = 3;
pub const LEAT_ROLE_LOSSY_SUBSCRIBER: u32 = 4;
pub const LEAT_ROLE_MEMBER: u32 = 5;
pub const LEAT_HOLDER_SUBSCRIBER: u32 = 1;
pub const LEAT_HOLDER_GROUP: u32 = 2;
pub const LEAT_HOLDER_PUBLISHER: u32 = 3;
pub const LEAT_HOLDER_ARCHIVER: u32 = 4;

pub const LEAT_GROUP_AT_LEAST_ONCE: u32 = 0;
pub const LEAT_GROUP_AT_MOST_ONCE: u32 = 1;

pub const LEAT_EXPIRED_START: u32 = 0;
pub const LEAT_EXPIRED_END: u32 = 1;
pub const LEAT_EXPIRED_STOP: u32 = 2;
