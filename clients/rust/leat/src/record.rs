//! Records and gaps, read in place: what they lend lies in the topic itself, and ends with the next call.

use leat_sys::*;
use std::ffi::CStr;
use std::fmt;
use std::marker::PhantomData;
use std::slice;

/// What a subscriber or member delivers.
#[derive(Clone, Copy, Debug)]
pub enum Entry<'a> {
    /// A record.
    Record(Record<'a>),
    /// Offsets that will not be delivered.
    Gap(Gap),
}

impl<'a> Entry<'a> {
    /// # Safety
    ///
    /// What it points to must stay as it is for 'a.
    #[inline]
    pub(crate) unsafe fn new(raw: &'a leat_record) -> Entry<'a> {
        if leat_record_is_gap(raw) {
            return Entry::Gap(Gap {
                partition: raw.partition.into(),
                offset: raw.offset,
                count: leat_gap_count(raw),
                reason: GapReason::from_c(leat_gap_reason(raw)),
            });
        }
        Entry::Record(Record { raw })
    }

    /// The record; None for a gap.
    #[inline]
    pub fn record(&self) -> Option<Record<'a>> {
        match self {
            Entry::Record(record) => Some(*record),
            Entry::Gap(_) => None,
        }
    }
}

/// Offsets that will not be delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The partition in which the offsets lie.
    pub partition: u32,
    /// The first one.
    pub offset: u64,
    /// How many.
    pub count: u64,
    /// Why they hold no record.
    pub reason: GapReason,
}

/// Why offsets hold no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GapReason {
    /// The publisher aborted its claim.
    Aborted,
    /// The publisher died between claim and commit.
    Died,
    /// The publisher did not run for longer than `revoke_after`.
    Revoked,
    /// A lossy subscriber was overtaken, or began below the oldest record.
    Overwritten,
    /// Durable topics: a checksum on disk does not match.
    Damaged,
    /// Durable topics: the machine failed before they were on disk.
    Lost,
    /// One of a later library.
    Unknown(u32),
}

impl GapReason {
    fn from_c(reason: u32) -> GapReason {
        match reason {
            LEAT_GAP_ABORTED => GapReason::Aborted,
            LEAT_GAP_DIED => GapReason::Died,
            LEAT_GAP_REVOKED => GapReason::Revoked,
            LEAT_GAP_OVERWRITTEN => GapReason::Overwritten,
            LEAT_GAP_DAMAGED => GapReason::Damaged,
            LEAT_GAP_LOST => GapReason::Lost,
            _ => GapReason::Unknown(reason),
        }
    }

    fn c(self) -> u32 {
        match self {
            GapReason::Aborted => LEAT_GAP_ABORTED,
            GapReason::Died => LEAT_GAP_DIED,
            GapReason::Revoked => LEAT_GAP_REVOKED,
            GapReason::Overwritten => LEAT_GAP_OVERWRITTEN,
            GapReason::Damaged => LEAT_GAP_DAMAGED,
            GapReason::Lost => LEAT_GAP_LOST,
            GapReason::Unknown(reason) => reason,
        }
    }

    /// The name, for example "aborted".
    pub fn name(self) -> &'static str {
        // SAFETY: the function takes any number, and its text is never freed.
        let name = unsafe { CStr::from_ptr(leat_gap_reason_name(self.c())) };
        name.to_str().unwrap_or("unknown")
    }
}

impl fmt::Display for GapReason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// A record in the topic's own memory. Valid until the next call of the subscriber or member that it came from.
#[derive(Clone, Copy)]
pub struct Record<'a> {
    raw: &'a leat_record,
}

// SAFETY: it only reads memory, which nobody may end before 'a ends.
unsafe impl Send for Record<'_> {}
unsafe impl Sync for Record<'_> {}

impl<'a> Record<'a> {
    /// Its number in the partition, counted from 0.
    #[inline]
    pub fn offset(&self) -> u64 {
        self.raw.offset
    }

    /// The partition in which it lies.
    #[inline]
    pub fn partition(&self) -> u32 {
        self.raw.partition.into()
    }

    /// What was published. Lies in the topic itself.
    #[inline]
    pub fn value(&self) -> &'a [u8] {
        // SAFETY, here and below: as Entry::new() promises.
        unsafe { slice::from_raw_parts(self.raw.value, self.raw.value_size as usize) }
    }

    /// None: it has no key, which is not the same as an empty one.
    #[inline]
    pub fn key(&self) -> Option<&'a [u8]> {
        // SAFETY: a record, as Entry::new() found out.
        let key = unsafe { leat_record_key(self.raw) };
        if key.is_null() {
            return None;
        }
        Some(unsafe { slice::from_raw_parts(key, self.raw.key_size as usize) })
    }

    /// Its headers, in the order in which they were published.
    #[inline]
    pub fn headers(&self) -> Headers<'a> {
        Headers {
            // SAFETY: as above.
            raw: unsafe { leat_record_headers(self.raw) },
            record: PhantomData,
        }
    }

    /// When it was published, in milliseconds since 1970; None if the topic has no timestamps.
    #[inline]
    pub fn timestamp_ms(&self) -> Option<u64> {
        // SAFETY: as above.
        u64::try_from(unsafe { leat_record_timestamp_ms(self.raw) }).ok()
    }

    #[inline]
    pub(crate) fn raw(&self) -> &'a leat_record {
        self.raw
    }
}

impl fmt::Debug for Record<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Record")
            .field("partition", &self.partition())
            .field("offset", &self.offset())
            .field("key", &self.key())
            .field("value", &self.value())
            .finish_non_exhaustive()
    }
}

/// A named value that travels with a record. Names need not be unique, nor be text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    /// The name, most often a text.
    pub name: &'a [u8],
    /// What belongs to the name.
    pub value: &'a [u8],
}

/// All headers of a record, in order.
#[derive(Clone)]
pub struct Headers<'a> {
    raw: leat_headers,
    record: PhantomData<&'a [u8]>,
}

impl<'a> Headers<'a> {
    /// Of a copy.
    pub(crate) fn of(bytes: &'a [u8]) -> Headers<'a> {
        Headers {
            raw: leat_headers {
                at: bytes.as_ptr(),
                left: bytes.len() as u64,
            },
            record: PhantomData,
        }
    }
}

impl<'a> Iterator for Headers<'a> {
    type Item = Header<'a>;

    #[inline]
    fn next(&mut self) -> Option<Header<'a>> {
        // SAFETY: the record lives for 'a, and so do the bytes of its headers.
        unsafe {
            let header = leat_next_header(&mut self.raw)?;
            Some(Header {
                name: slice::from_raw_parts(header.name, header.name_size as usize),
                value: slice::from_raw_parts(header.value, header.value_size as usize),
            })
        }
    }
}

/// Records and gaps that were delivered together, oldest first within a partition.
#[derive(Clone, Copy)]
pub struct Batch<'a> {
    raw: &'a [leat_record],
}

// SAFETY: as with a record.
unsafe impl Send for Batch<'_> {}
unsafe impl Sync for Batch<'_> {}

impl<'a> Batch<'a> {
    /// # Safety
    ///
    /// What they point to must stay as it is for 'a.
    #[inline]
    pub(crate) unsafe fn new(raw: &'a [leat_record]) -> Batch<'a> {
        Batch { raw }
    }

    #[inline]
    pub(crate) fn raw(&self) -> &'a [leat_record] {
        self.raw
    }

    /// How many records and gaps there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.raw.len()
    }

    /// Whether there are neither records nor gaps.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    /// The records and gaps, oldest first within a partition.
    #[inline]
    pub fn iter(&self) -> Entries<'a> {
        Entries(self.raw.iter())
    }

    /// The records only.
    #[inline]
    pub fn records(&self) -> impl Iterator<Item = Record<'a>> + 'a {
        self.iter().filter_map(|entry| entry.record())
    }
}

impl<'a> IntoIterator for Batch<'a> {
    type Item = Entry<'a>;
    type IntoIter = Entries<'a>;
    #[inline]
    fn into_iter(self) -> Entries<'a> {
        self.iter()
    }
}

impl<'a> IntoIterator for &Batch<'a> {
    type Item = Entry<'a>;
    type IntoIter = Entries<'a>;
    #[inline]
    fn into_iter(self) -> Entries<'a> {
        self.iter()
    }
}

impl fmt::Debug for Batch<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.iter()).finish()
    }
}

/// Iterates over a [`Batch`].
#[derive(Clone)]
pub struct Entries<'a>(slice::Iter<'a, leat_record>);

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;

    #[inline]
    fn next(&mut self) -> Option<Entry<'a>> {
        // SAFETY: as Batch::new() promises.
        self.0.next().map(|raw| unsafe { Entry::new(raw) })
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for Entries<'_> {}
