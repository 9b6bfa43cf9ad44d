//! Copies of records, which may be kept.

use crate::{Batch, Entry, Gap, Headers, Record};
use leat_sys::{LEAT_RECORD_HAS_HEADERS, LEAT_RECORD_HAS_KEY};
use std::slice;

/// A copy of what was delivered.
#[derive(Clone, Debug)]
pub enum OwnedEntry {
    Record(OwnedRecord),
    /// Offsets that will not be delivered.
    Gap(Gap),
}

impl OwnedEntry {
    /// The record; None for a gap.
    pub fn record(&self) -> Option<&OwnedRecord> {
        match self {
            OwnedEntry::Record(record) => Some(record),
            OwnedEntry::Gap(_) => None,
        }
    }
}

/// A copy of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedRecord {
    /// Key, headers and value, one behind the other as in the topic: so a copy is one piece of memory.
    bytes: Vec<u8>,
    offset: u64,
    timestamp_ms: Option<u64>,
    key_size: u32,
    headers_size: u32,
    partition: u16,
    flags: u16,
}

impl OwnedRecord {
    pub fn offset(&self) -> u64 {
        self.offset
    }

    pub fn partition(&self) -> u32 {
        self.partition.into()
    }

    #[inline]
    pub fn value(&self) -> &[u8] {
        &self.bytes[self.prefix()..]
    }

    /// The value alone, without another copy unless it has a key or headers.
    pub fn into_value(mut self) -> Vec<u8> {
        self.bytes.drain(..self.prefix());
        self.bytes
    }

    /// None: it has no key, which is not the same as an empty one.
    pub fn key(&self) -> Option<&[u8]> {
        (self.flags & LEAT_RECORD_HAS_KEY != 0).then(|| &self.bytes[..self.key_size as usize])
    }

    pub fn headers(&self) -> Headers<'_> {
        Headers::of(&self.bytes[self.key_size as usize..self.prefix()])
    }

    /// When it was published, in milliseconds since 1970; None if the topic has no timestamps.
    pub fn timestamp_ms(&self) -> Option<u64> {
        self.timestamp_ms
    }

    #[inline]
    fn prefix(&self) -> usize {
        self.key_size as usize + self.headers_size as usize
    }
}

impl Record<'_> {
    /// A copy, to be kept.
    #[inline]
    pub fn to_owned(&self) -> OwnedRecord {
        let raw = self.raw();
        let key_size = if raw.flags & LEAT_RECORD_HAS_KEY != 0 {
            raw.key_size
        } else {
            0
        };
        let headers_size = if raw.flags & LEAT_RECORD_HAS_HEADERS != 0 {
            raw.headers_size
        } else {
            0
        };
        let prefix = key_size as usize + headers_size as usize;
        // SAFETY: key and headers lie before the value, in this order, and live as long.
        let bytes = unsafe {
            slice::from_raw_parts(raw.value.sub(prefix), prefix + raw.value_size as usize)
        };
        OwnedRecord {
            bytes: bytes.to_vec(),
            offset: raw.offset,
            timestamp_ms: self.timestamp_ms(),
            key_size,
            headers_size,
            partition: raw.partition,
            flags: raw.flags,
        }
    }
}

impl Entry<'_> {
    /// A copy, to be kept.
    #[inline]
    pub fn to_owned(&self) -> OwnedEntry {
        match self {
            Entry::Record(record) => OwnedEntry::Record(record.to_owned()),
            Entry::Gap(gap) => OwnedEntry::Gap(*gap),
        }
    }
}

impl Batch<'_> {
    /// Copies, to be kept.
    pub fn to_owned(&self) -> Vec<OwnedEntry> {
        self.iter().map(|entry| entry.to_owned()).collect()
    }
}
