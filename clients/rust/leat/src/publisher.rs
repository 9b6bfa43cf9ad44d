//! Publishing to a topic.

use crate::error::{check, Result};
use crate::handle::{Handle, Stopper};
use crate::options::{bytes, partition};
use crate::{Claim, NewRecord, OpenClaim, Timeout};
use leat_sys::*;
use std::os::fd::BorrowedFd;
use std::{ptr, slice};

/// A participant of a topic that publishes records. Dropping it leaves the topic.
///
/// It may move to other threads, but only one at a time may use it; others may end its waits through
/// [`Publisher::stopper`].
pub struct Publisher {
    pub(crate) handle: Handle<leat_publisher>,
    /// The claim that is open; its data is null if none is.
    pub(crate) open: leat_claim,
    /// How C wants the values of a batch. Empty between calls.
    values: Vec<leat_bytes>,
}

// SAFETY: C allows any thread, one at a time. The pointers that it keeps are its own.
unsafe impl Send for Publisher {}

pub(crate) const NO_CLAIM: leat_claim = leat_claim {
    data: ptr::null_mut(),
    size: 0,
    offset: 0,
    id: 0,
};

impl Publisher {
    pub(crate) fn new(raw: *mut leat_publisher) -> Publisher {
        Publisher {
            handle: Handle::new(raw),
            open: NO_CLAIM,
            values: Vec::new(),
        }
    }

    #[inline]
    pub(crate) fn raw(&self) -> *mut leat_publisher {
        self.handle.raw()
    }

    /// Publishes a value, and returns its offset. If the topic is full, it waits for room.
    #[inline]
    pub fn publish(&mut self, value: &[u8], timeout: impl Into<Timeout>) -> Result<u64> {
        let (data, size) = (value.as_ptr().cast(), value.len() as u64);
        let (mut offset, mut detail) = (0, 0);
        let ns = timeout.into().ns();
        // SAFETY, here and below: the handle is open, and C reads and writes what we point to during the call.
        let code =
            unsafe { leat_publisher_publish(self.raw(), data, size, ns, &mut offset, &mut detail) };
        check(code, detail).map(|()| offset)
    }

    /// The same with key, headers and partition.
    pub fn publish_record(
        &mut self,
        record: &NewRecord<'_>,
        timeout: impl Into<Timeout>,
    ) -> Result<u64> {
        let (mut offset, mut detail) = (0, 0);
        let ns = timeout.into().ns();
        let code = unsafe {
            leat_publisher_publish_record(self.raw(), record.raw(), ns, &mut offset, &mut detail)
        };
        check(code, detail).map(|()| offset)
    }

    /// Publishes values as one batch: they become visible together, with consecutive offsets, in one partition.
    /// Returns the offset of the first. Either all are published, or none. Together they take at most half a segment.
    pub fn publish_batch<T: AsRef<[u8]>>(
        &mut self,
        values: &[T],
        timeout: impl Into<Timeout>,
    ) -> Result<u64> {
        self.values.clear();
        self.values
            .extend(values.iter().map(|value| bytes(value.as_ref())));
        let (mut offset, mut detail) = (0, 0);
        let code = unsafe {
            leat_publisher_publish_batch(
                self.raw(),
                self.values.as_ptr(),
                self.values.len() as u64,
                LEAT_ANY_PARTITION,
                timeout.into().ns(),
                &mut offset,
                &mut detail,
            )
        };
        self.values.clear();
        check(code, detail).map(|()| offset)
    }

    /// The same with keys and headers, in a partition (None: the publisher's). Keys select no partition.
    pub fn publish_record_batch(
        &mut self,
        records: &[NewRecord<'_>],
        in_partition: Option<u32>,
        timeout: impl Into<Timeout>,
    ) -> Result<u64> {
        let (mut offset, mut detail) = (0, 0);
        let code = unsafe {
            leat_publisher_publish_record_batch(
                self.raw(),
                records.as_ptr().cast(), // repr(transparent)
                records.len() as u64,
                partition(in_partition),
                timeout.into().ns(),
                &mut offset,
                &mut detail,
            )
        };
        check(code, detail).map(|()| offset)
    }

    /// Claims room for a value of so many bytes, to be written in place. Until the claim is committed or dropped, which
    /// aborts it, subscribers wait at it.
    #[inline]
    pub fn claim(&mut self, size: usize, timeout: impl Into<Timeout>) -> Result<Claim<'_>> {
        let open = self.begin_claim(size, timeout)?;
        Ok(Claim::new(self, open))
    }

    /// The same for claims that are kept together with their publisher, where lifetimes are in the way: the claim
    /// stays open until it is committed or aborted, or the publisher is dropped. Meanwhile, publishing fails with
    /// [`Code::Busy`](crate::Code::Busy).
    #[inline]
    pub fn begin_claim(&mut self, size: usize, timeout: impl Into<Timeout>) -> Result<OpenClaim> {
        let (mut claim, mut detail) = (NO_CLAIM, 0);
        let ns = timeout.into().ns();
        let code =
            unsafe { leat_publisher_claim(self.raw(), size as u64, ns, &mut claim, &mut detail) };
        check(code, detail)?;
        self.open = claim;
        Ok(OpenClaim(claim))
    }

    /// The room of a claim that is open: [`Code::NotInFlight`](crate::Code::NotInFlight) if it is not, or belongs to another publisher.
    #[inline]
    pub fn claimed(&mut self, claim: &OpenClaim) -> Result<&mut [u8]> {
        if self.open.data.is_null() || self.open.data != claim.0.data || self.open.id != claim.0.id
        {
            return Err(crate::Code::NotInFlight.into());
        }
        // SAFETY: it is ours, and nobody else's, until we commit or abort it, for which one needs the publisher. It is
        // memory of the system, and so never uninitialised to the compiler: what lies there are bytes, of any values.
        Ok(unsafe { slice::from_raw_parts_mut(self.open.data, self.open.size as usize) })
    }

    /// Publishes the first `size` bytes of a claim. Never waits.
    ///
    /// Fails with [`Code::InvalidArgument`](crate::Code::InvalidArgument) if that is more than was claimed: the claim stays open.
    #[inline]
    pub fn commit(&mut self, claim: &OpenClaim, size: usize) -> Result<()> {
        let mut detail = 0;
        let code = unsafe { leat_publisher_commit(self.raw(), &claim.0, size as u64, &mut detail) };
        self.settled(code);
        check(code, detail)
    }

    /// Gives the room of a claim up: subscribers see a gap.
    pub fn abort(&mut self, claim: &OpenClaim) -> Result<()> {
        let mut detail = 0;
        let code = unsafe { leat_publisher_abort(self.raw(), &claim.0, &mut detail) };
        self.settled(code);
        check(code, detail)
    }

    /// From now on nobody gets the room of the open claim, unless C said that it stays open.
    #[inline]
    fn settled(&mut self, code: i32) {
        if code != LEAT_ERR_INVALID_ARGUMENT && code != LEAT_ERR_NOT_IN_FLIGHT {
            self.open = NO_CLAIM;
        }
    }

    /// Durable topics: waits until everything that this publisher has published is on stable storage.
    pub fn flush(&mut self, timeout: impl Into<Timeout>) -> Result<()> {
        let mut detail = 0;
        let code = unsafe { leat_publisher_flush(self.raw(), timeout.into().ns(), &mut detail) };
        check(code, detail)
    }

    /// Asks for the same, and does not wait; see [`Publisher::durable_offset`].
    pub fn request_sync(&mut self) -> Result<()> {
        let mut detail = 0;
        let code = unsafe { leat_publisher_request_sync(self.raw(), &mut detail) };
        check(code, detail)
    }

    /// Durable topics: the offset of a partition (None: the publisher's) before which everything is on stable
    /// storage. 0 for other topics.
    pub fn durable_offset(&self, of: Option<u32>) -> Result<u64> {
        let mut offset = 0;
        let code = unsafe { leat_publisher_durable_offset(self.raw(), partition(of), &mut offset) };
        check(code, 0).map(|()| offset)
    }

    /// Durable topics: becomes readable when a durable offset may have moved, or the topic was deleted;
    /// [`Publisher::durable_offset`] makes it unreadable until then.
    pub fn durable_fd(&self) -> Result<BorrowedFd<'_>> {
        let (mut fd, mut detail) = (-1, 0);
        let code = unsafe { leat_publisher_durable_fd(self.raw(), &mut fd, &mut detail) };
        // SAFETY: the publisher owns it, and keeps it open.
        check(code, detail).map(|()| unsafe { BorrowedFd::borrow_raw(fd) })
    }

    /// Becomes readable when there may be room in a full partition (None: the publisher's), or the topic was deleted.
    pub fn room_fd(&self, of: Option<u32>) -> Result<BorrowedFd<'_>> {
        let (mut fd, mut detail) = (-1, 0);
        let code =
            unsafe { leat_publisher_room_fd(self.raw(), partition(of), &mut fd, &mut detail) };
        // SAFETY: the publisher owns it, and keeps it open.
        check(code, detail).map(|()| unsafe { BorrowedFd::borrow_raw(fd) })
    }

    /// The offset of the record, or the last of the batch, that was published last with
    /// [`Stage::Durable`](crate::Stage::Durable), with or without an error of the disk.
    pub fn last_offset(&self) -> Result<u64> {
        let mut offset = 0;
        let code = unsafe { leat_publisher_last_offset(self.raw(), &mut offset) };
        check(code, 0).map(|()| offset)
    }

    /// The largest record in bytes: key, headers, timestamp and value together, encoded.
    pub fn max_record_size(&self) -> Result<u64> {
        let mut size = 0;
        let code = unsafe { leat_publisher_max_record_size(self.raw(), &mut size) };
        check(code, 0).map(|()| size)
    }

    /// The partition of records that have no key.
    pub fn partition(&self) -> Result<u32> {
        let mut number = 0;
        let code = unsafe { leat_publisher_partition(self.raw(), &mut number) };
        check(code, 0).map(|()| number)
    }

    /// Ends its waits, from any thread.
    pub fn stopper(&self) -> Stopper {
        self.handle.stopper()
    }
}
