//! Which error it is.

use std::ffi::CStr;
use std::fmt;

macro_rules! codes {
    ($($code:ident = $number:literal, $name:literal, $sentence:literal;)*) => {
        /// Which error it is. A later library may have codes that this crate does not know.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $(#[doc = $sentence] $code,)*
            /// A code of a later library.
            Unknown(i32),
        }

        impl Code {
            /// All codes that this crate knows, in the order of their numbers.
            pub const ALL: &'static [Code] = &[$(Code::$code,)*];

            /// The number that C programs see.
            pub fn number(self) -> i32 {
                match self {
                    $(Code::$code => $number,)*
                    Code::Unknown(number) => number,
                }
            }

            /// The name, for example "timeout".
            pub fn name(self) -> &'static str {
                match self {
                    $(Code::$code => $name,)*
                    Code::Unknown(number) => c_name(number),
                }
            }
        }

        impl From<i32> for Code {
            fn from(number: i32) -> Code {
                match number {
                    $($number => Code::$code,)*
                    _ => Code::Unknown(number),
                }
            }
        }
    };
}

codes! {
    // From spec/errors.csv, by tools/errors.py: begin
    // 0 is no error.
    InvalidArgument = 1, "invalid_argument", "invalid argument";
    NotFound = 2, "not_found", "no such topic or group";
    Exists = 3, "exists", "the topic exists already";
    Busy = 4, "busy", "in use by another process or handle, or by a claim that is still open";
    Permission = 5, "permission", "permission denied";
    WrongFormat = 6, "wrong_format", "not a Leat topic of this format version";
    Corrupt = 7, "corrupt", "the topic is corrupt: a check on its shared memory failed";
    Full = 8, "full", "the topic is full";
    NoSpace = 9, "no_space", "no room for files, or the archiver cannot write them";
    TooLarge = 10, "too_large", "the record is larger than the topic allows";
    Timeout = 11, "timeout", "the deadline passed";
    Stopped = 12, "stopped", "stopped on request";
    Deleted = 13, "deleted", "the topic was deleted";
    Forked = 14, "forked", "this handle belongs to the parent process: open a new one after fork";
    Revoked = 15, "revoked", "the claim was revoked because its owner did not run for too long";
    WouldDeadlock = 16, "would_deadlock", "the topic is full and only this very thread could make room";
    NotAllowed = 17, "not_allowed", "the connection point was made with preAllocate: its expansions are fixed";
    TooMany = 18, "too_many", "no slot for another participant or group is free";
    Unsupported = 19, "unsupported", "not supported by this kernel, file system or version of Leat";
    InFlightFull = 20, "in_flight_full", "this member holds as many records as its group allows: acknowledge some";
    RedeliveryFull = 21, "redelivery_full", "more records came back, or wait for their key, than the group has room for";
    NotInFlight = 22, "not_in_flight", "that record or claim is not in flight (any more)";
    LeaseLost = 23, "lease_lost", "the record was held for longer than the group's lease";
    Closed = 24, "closed", "the consumer group was deleted";
    BufferTooSmall = 25, "buffer_too_small", "the buffer is too small for the record";
    IoError = 26, "io_error", "a system call failed";
    ReadOnly = 27, "read_only", "the topic is read-only: writing to its files failed";
    NotDurable = 28, "not_durable", "published, but not on stable storage in time";
    Expired = 29, "expired", "retention has deleted the group's next record";
    Interrupted = 30, "interrupted", "a signal interrupted the wait";
    NoMemory = 31, "no_memory", "out of memory, or at a limit of memory or of mappings";
    NeedsDurable = 32, "needs_durable", "the topic is in memory only: this needs a durable topic";
    NeedsTimestamps = 33, "needs_timestamps", "the topic's records carry no time: this needs a topic with timestamps";
    NeedsGrowing = 34, "needs_growing", "the topic's capacity is fixed: this needs a topic with policy grow";
    NotWithOverwrite = 35, "not_with_overwrite", "the topic overwrites its oldest records: only lossy subscribers can read it";
    NotWithDurable = 36, "not_with_durable", "a durable topic cannot have overwrite, grow, retain_all, evict_after, delete_when_unused or in_place";
    // From spec/errors.csv: end
}

impl fmt::Display for Code {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// What the library calls a code that this crate does not know.
fn c_name(number: i32) -> &'static str {
    // SAFETY: the function takes any number, and its text is never freed.
    let name = unsafe { CStr::from_ptr(leat_sys::leat_error_name(number)) };
    name.to_str().unwrap_or("unknown")
}
