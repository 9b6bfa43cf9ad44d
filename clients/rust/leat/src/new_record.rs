//! Records to publish.

use crate::options::{bytes, partition};
use leat_sys::*;
use std::fmt;
use std::marker::PhantomData;

/// A record to publish. Its bytes are copied when it is.
///
/// ```
/// let headers = [leat::NewHeader::new("content-type", "text/plain")];
/// let record = leat::NewRecord::new(b"hello").key(b"greetings").headers(&headers);
/// ```
#[derive(Clone, Copy)]
#[repr(transparent)] // An array of them is one for C.
pub struct NewRecord<'a> {
    raw: leat_new_record,
    parts: PhantomData<&'a [u8]>,
}

// SAFETY: it only lends slices, as a struct of `&[u8]` would.
unsafe impl Send for NewRecord<'_> {}
unsafe impl Sync for NewRecord<'_> {}

impl<'a> NewRecord<'a> {
    /// A record with this value, and nothing else.
    pub fn new(value: &'a (impl AsRef<[u8]> + ?Sized)) -> NewRecord<'a> {
        NewRecord {
            raw: leat_new_record {
                value: bytes(value.as_ref()),
                ..LEAT_NEW_RECORD_INIT
            },
            parts: PhantomData,
        }
    }

    /// Also selects the partition. An empty key is not the same as none.
    pub fn key(mut self, key: &'a (impl AsRef<[u8]> + ?Sized)) -> NewRecord<'a> {
        self.raw.key = bytes(key.as_ref());
        self
    }

    /// Replaces those that it has.
    pub fn headers(mut self, headers: &'a [NewHeader<'a>]) -> NewRecord<'a> {
        // So many are refused in any case: a record is smaller.
        self.raw.header_count = u32::try_from(headers.len()).unwrap_or(u32::MAX);
        self.raw.headers = headers.as_ptr().cast();
        self
    }

    /// Overrides the partition that the key selects.
    pub fn partition(mut self, number: u32) -> NewRecord<'a> {
        self.raw.partition = partition(Some(number));
        self
    }

    pub(crate) fn raw(&self) -> *const leat_new_record {
        &self.raw
    }
}

impl fmt::Debug for NewRecord<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("NewRecord")
            .field("value_size", &self.raw.value.size)
            .field("key_size", &self.raw.key.size)
            .field("header_count", &self.raw.header_count)
            .finish_non_exhaustive()
    }
}

/// A header to publish.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct NewHeader<'a> {
    raw: leat_new_header,
    parts: PhantomData<&'a [u8]>,
}

// SAFETY: as above.
unsafe impl Send for NewHeader<'_> {}
unsafe impl Sync for NewHeader<'_> {}

impl<'a> NewHeader<'a> {
    /// A header with this name and value. Names need not be unique.
    pub fn new(
        name: &'a (impl AsRef<[u8]> + ?Sized),
        value: &'a (impl AsRef<[u8]> + ?Sized),
    ) -> NewHeader<'a> {
        NewHeader {
            raw: leat_new_header {
                name: bytes(name.as_ref()),
                value: bytes(value.as_ref()),
            },
            parts: PhantomData,
        }
    }
}

impl fmt::Debug for NewHeader<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("NewHeader").finish_non_exhaustive()
    }
}
