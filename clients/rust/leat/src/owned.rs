//! Copies of records, which may be kept.

use crate::{Batch, Entries, Entry, Gap, Headers, Record};
use leat_sys::*;
use std::{fmt, ptr, slice};

/// A copy of what was delivered.
#[derive(Clone, Debug)]
pub enum OwnedEntry {
    /// A record.
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
    /// Its number in the partition, counted from 0.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The partition in which it lay.
    pub fn partition(&self) -> u32 {
        self.partition.into()
    }

    /// What was published.
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

    /// Its headers, in the order in which they were published.
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

/// Copies of records and gaps that were delivered together, in one piece of memory.
///
/// It reads like the [`Batch`] that it is a copy of. To keep one of many records, copy that one instead.
pub struct OwnedBatch {
    /// They point into `bytes`, which nobody changes.
    records: Vec<leat_record>,
    /// Of each record: what lies before its value, and its value.
    bytes: Vec<u8>,
}

// SAFETY: what it points to is its own.
unsafe impl Send for OwnedBatch {}
unsafe impl Sync for OwnedBatch {}

impl OwnedBatch {
    /// All of it, to read it, which does not copy.
    #[inline]
    pub fn batch(&self) -> Batch<'_> {
        // SAFETY: its memory lives as long as it does.
        unsafe { Batch::new(&self.records) }
    }

    /// How many records and gaps there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there are neither records nor gaps.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The records and gaps, oldest first within a partition.
    #[inline]
    pub fn iter(&self) -> Entries<'_> {
        self.batch().iter()
    }

    /// The records only.
    #[inline]
    pub fn records(&self) -> impl Iterator<Item = Record<'_>> + '_ {
        self.batch().records()
    }
}

impl<'a> IntoIterator for &'a OwnedBatch {
    type Item = Entry<'a>;
    type IntoIter = Entries<'a>;
    #[inline]
    fn into_iter(self) -> Entries<'a> {
        self.iter()
    }
}

impl Clone for OwnedBatch {
    fn clone(&self) -> OwnedBatch {
        self.batch().to_owned()
    }
}

impl fmt::Debug for OwnedBatch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.batch().fmt(out)
    }
}

/// How many bytes before its value belong to a record, and all of its bytes. None of a gap.
#[inline]
fn extent(raw: &leat_record) -> (usize, usize) {
    if leat_record_is_gap(raw) {
        return (0, 0);
    }
    let before = leat_record_prefix(raw);
    (before, before + raw.value_size as usize)
}

impl Batch<'_> {
    /// Copies, to be kept.
    pub fn to_owned(&self) -> OwnedBatch {
        let size = self.raw().iter().map(|raw| extent(raw).1).sum();
        let mut copy = OwnedBatch {
            records: self.raw().to_vec(),
            bytes: Vec::with_capacity(size),
        };
        let mut to = copy.bytes.as_mut_ptr();
        for raw in &mut copy.records {
            let (before, all) = extent(raw);
            // SAFETY: what lies before a value lives as long as it does, and there is room for the sum of all sizes.
            unsafe {
                if !leat_record_is_gap(raw) {
                    ptr::copy_nonoverlapping(raw.value.sub(before), to, all);
                    raw.value = to.add(before);
                }
                to = to.add(all);
            }
        }
        // SAFETY: so many were written.
        unsafe { copy.bytes.set_len(size) };
        copy
    }
}
