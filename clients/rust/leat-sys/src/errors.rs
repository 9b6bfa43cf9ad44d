//! The error codes.

// From spec/errors.csv, by tools/errors.py: begin
pub const LEAT_OK: i32 = 0; // no error
pub const LEAT_ERR_INVALID_ARGUMENT: i32 = 1; // invalid argument
pub const LEAT_ERR_NOT_FOUND: i32 = 2; // no such topic or group
pub const LEAT_ERR_EXISTS: i32 = 3; // the topic exists already
pub const LEAT_ERR_BUSY: i32 = 4; // in use by another process or handle, or by a claim that is still open
pub const LEAT_ERR_PERMISSION: i32 = 5; // permission denied
pub const LEAT_ERR_WRONG_FORMAT: i32 = 6; // not a Leat topic of this format version
pub const LEAT_ERR_CORRUPT: i32 = 7; // the topic is corrupt: a check on its shared memory failed
pub const LEAT_ERR_FULL: i32 = 8; // the topic is full
pub const LEAT_ERR_NO_SPACE: i32 = 9; // no room for files, or the archiver cannot write them
pub const LEAT_ERR_TOO_LARGE: i32 = 10; // the record is larger than the topic allows
pub const LEAT_ERR_TIMEOUT: i32 = 11; // the deadline passed
pub const LEAT_ERR_STOPPED: i32 = 12; // stopped on request
pub const LEAT_ERR_DELETED: i32 = 13; // the topic was deleted
pub const LEAT_ERR_FORKED: i32 = 14; // this handle belongs to the parent process: open a new one after fork
pub const LEAT_ERR_REVOKED: i32 = 15; // the claim was revoked because its owner did not run for too long
pub const LEAT_ERR_WOULD_DEADLOCK: i32 = 16; // the topic is full and only this very thread could make room
pub const LEAT_ERR_NOT_ALLOWED: i32 = 17; // the connection point was made with preAllocate: its expansions are fixed
pub const LEAT_ERR_TOO_MANY: i32 = 18; // no slot for another participant or group is free
pub const LEAT_ERR_UNSUPPORTED: i32 = 19; // not supported by this kernel, file system or version of Leat
pub const LEAT_ERR_IN_FLIGHT_FULL: i32 = 20; // this member holds as many records as its group allows: acknowledge some
pub const LEAT_ERR_REDELIVERY_FULL: i32 = 21; // more records came back, or wait for their key, than the group has room for
pub const LEAT_ERR_NOT_IN_FLIGHT: i32 = 22; // that record or claim is not in flight (any more)
pub const LEAT_ERR_LEASE_LOST: i32 = 23; // the record was held for longer than the group's lease
pub const LEAT_ERR_CLOSED: i32 = 24; // the consumer group was deleted
pub const LEAT_ERR_BUFFER_TOO_SMALL: i32 = 25; // the buffer is too small for the record
pub const LEAT_ERR_IO_ERROR: i32 = 26; // a system call failed
pub const LEAT_ERR_READ_ONLY: i32 = 27; // the topic is read-only: writing to its files failed
pub const LEAT_ERR_NOT_DURABLE: i32 = 28; // published, but not on stable storage in time
pub const LEAT_ERR_EXPIRED: i32 = 29; // retention has deleted the group's next record
pub const LEAT_ERR_INTERRUPTED: i32 = 30; // a signal interrupted the wait
pub const LEAT_ERR_NO_MEMORY: i32 = 31; // out of memory, or at a limit of memory or of mappings
pub const LEAT_ERR_NEEDS_DURABLE: i32 = 32; // the topic is in memory only: this needs a durable topic
pub const LEAT_ERR_NEEDS_TIMESTAMPS: i32 = 33; // the topic's records carry no time: this needs a topic with timestamps
pub const LEAT_ERR_NEEDS_GROWING: i32 = 34; // the topic's capacity is fixed: this needs a topic with policy grow
pub const LEAT_ERR_NOT_WITH_OVERWRITE: i32 = 35; // the topic overwrites its oldest records: only lossy subscribers can read it
pub const LEAT_ERR_NOT_WITH_DURABLE: i32 = 36; // a durable topic cannot have overwrite, grow, retain_all, evict_after, delete_when_unused or in_place
                                        // From spec/errors.csv: end
