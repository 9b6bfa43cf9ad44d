//! Messages between processes of one machine: a topic is a log in shared memory that every process opens directly.
//!
//! ```no_run
//! # fn main() -> leat::Result<()> {
//! let topic = leat::Topic::open_or_create("orders", &Default::default())?;
//! let mut subscriber = topic.subscriber(&Default::default())?;
//! let mut publisher = topic.publisher(&Default::default())?;
//! publisher.publish(b"hello", None)?;
//! for record in subscriber.receive(64, None)?.records() {
//!     println!("{}: {:?}", record.offset(), record.value());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! **Handles** leave the topic when they are dropped, in any order. **Threads**: a [`Publisher`], [`Subscriber`] or
//! [`Member`] may move between threads, but is used by one at a time ([`Send`], not [`Sync`]); a [`Stopper`] of it ends
//! its waits from others. [`Topic`] and [`Group`] may be shared. **Views**: what is read in place borrows from its
//! subscriber or member, so it cannot be kept too long; `to_owned` and functions of that name copy. **Fork**: in a child
//! process, every inherited handle fails with [`Code::Forked`], and dropping it changes nothing for the parent; what
//! the child opens itself works. **Timeouts**: `None` waits for as long as it takes, [`Timeout::NOW`] not at all.
#![warn(missing_debug_implementations)]
#![deny(missing_docs)]

mod claim;
mod code;
mod debug;
mod delivery;
mod error;
mod explain;
mod group;
mod handle;
mod info;
mod member;
mod new_record;
mod options;
mod owned;
mod publisher;
mod record;
mod subscriber;
mod timeout;
mod topic;

pub use claim::{Claim, OpenClaim};
pub use code::Code;
pub use delivery::{Deliveries, Delivery, OwnedDelivery, Ticket};
pub use error::{Error, Result};
pub use group::{Group, GroupInfo, MemberInfo};
pub use handle::Stopper;
pub use info::{ParticipantInfo, PartitionInfo, Role, TopicInfo};
pub use member::Member;
pub use new_record::{NewHeader, NewRecord};
pub use options::{
    Durability, GroupMode, GroupOptions, MemberOptions, OnExpired, Place, Policy, PublisherOptions,
    Stage, StartAt, SubscriberOptions, TopicOptions,
};
pub use owned::{OwnedBatch, OwnedEntry, OwnedRecord};
pub use publisher::Publisher;
pub use record::{Batch, Entries, Entry, Gap, GapReason, Header, Headers, Record};
pub use subscriber::{wait_any, Subscriber, MAX_BATCH};
pub use timeout::Timeout;

pub use topic::Topic;

/// Fails if the library that was loaded is older than the one that this crate was written for: then its structs may
/// be shorter, and codes and options be missing. Once that was found to be right, it costs nothing.
pub(crate) fn check_library() -> Result<()> {
    static CHECKED: std::sync::OnceLock<Result<()>> = std::sync::OnceLock::new();
    CHECKED
        .get_or_init(|| {
            // SAFETY: the functions take any number, and have no other effect.
            let (found, code) = unsafe {
                let wanted = leat_sys::LEAT_ABI_VERSION;
                (
                    leat_sys::leat_abi_version(),
                    leat_sys::leat_abi_check(wanted),
                )
            };
            if code == leat_sys::LEAT_OK {
                return Ok(());
            }
            let text = format!(
                "libleat {} is too old: its LEAT_ABI_VERSION is {found}, wanted is {}",
                library_version(),
                leat_sys::LEAT_ABI_VERSION
            );
            Err(Error::with_text(Code::from(code), 0, text))
        })
        .clone()
}

/// The version of the C library, for example "0.1.0".
pub fn library_version() -> &'static str {
    // SAFETY: a text that is never freed.
    let version = unsafe { std::ffi::CStr::from_ptr(leat_sys::leat_version()) };
    version.to_str().unwrap_or("unknown")
}
