//! Members of a consumer group.

use crate::error::{check, Result};
use crate::handle::{Handle, Stopper};
use crate::subscriber::MAX_BATCH;
use crate::timeout::nanoseconds;
use crate::{Deliveries, OwnedDelivery, Ticket, Timeout};
use leat_sys::*;
use std::cell::Cell;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::slice;
use std::time::Duration;

/// A member of a group. Dropping it leaves the group: records that it has not acknowledged go to other members.
///
/// What it receives lies in the topic itself until it is acknowledged or requeued. So that no view outlives that,
/// [`Deliveries`] borrow the member, and so do views of them; a [`Ticket`] borrows nothing, and acknowledges a record
/// later, whatever was received in between:
///
/// ```no_run
/// # fn work(_: &[u8]) -> bool { true }
/// # fn run(member: &mut leat::Member) -> leat::Result<()> {
/// let mut deliveries = member.receive(64, None)?;
/// while let Some(delivery) = deliveries.next() {
///     let Some(record) = delivery.record() else { continue };
///     if work(record.value()) {
///         delivery.acknowledge()?;
///     } else {
///         delivery.requeue(std::time::Duration::from_secs(1))?;
///     }
/// }
/// # Ok(())
/// # }
/// ```
///
/// ```compile_fail,E0505
/// fn outlives(deliveries: &mut leat::Deliveries<'_>) -> leat::Result<()> {
///     let delivery = deliveries.next().unwrap();
///     let record = delivery.record();
///     delivery.acknowledge()?; // The topic may reuse its room from here on.
///     println!("{record:?}");
///     Ok(())
/// }
/// ```
pub struct Member {
    handle: Handle<leat_member>,
    /// What wait_fd() made; -1 before.
    fd: Cell<RawFd>,
    /// Room for what C delivers. Its length stays 0.
    deliveries: Vec<leat_delivery>,
}

// SAFETY: C allows any thread, one at a time.
unsafe impl Send for Member {}

impl Member {
    pub(crate) fn new(raw: *mut leat_member) -> Member {
        Member {
            handle: Handle::new(raw),
            fd: Cell::new(-1),
            deliveries: Vec::new(),
        }
    }

    #[inline]
    pub(crate) fn raw(&self) -> *mut leat_member {
        self.handle.raw()
    }

    /// Up to `limit` records that are available; waits for the first. The member holds each until it is acknowledged or
    /// requeued. On durable topics, gaps come too: nobody holds these.
    pub fn receive(&mut self, limit: usize, timeout: impl Into<Timeout>) -> Result<Deliveries<'_>> {
        let limit = limit.min(MAX_BATCH);
        if self.deliveries.capacity() < limit {
            self.deliveries.reserve(limit);
        }
        let (mut count, mut detail) = (0, 0);
        // SAFETY, here and below: the handle is open, and there is room for so many.
        unsafe {
            let code = leat_member_receive(
                self.raw(),
                self.deliveries.as_mut_ptr(),
                limit as u32,
                &mut count,
                timeout.into().ns(),
                &mut detail,
            );
            check(code, detail)?;
            let received = slice::from_raw_parts(self.deliveries.as_ptr(), count as usize);
            Ok(Deliveries::new(self, received))
        }
    }

    /// As [`Member::receive`], but returns copies, which may be kept, and go to other threads. This member still holds
    /// them, until it gets their tickets.
    pub fn receive_owned(
        &mut self,
        limit: usize,
        timeout: impl Into<Timeout>,
    ) -> Result<Vec<OwnedDelivery>> {
        self.receive(limit, timeout)
            .map(|deliveries| deliveries.to_owned())
    }

    /// Copies the value of the next record into `buffer`, acknowledges the record, and returns its size. Waits for it.
    ///
    /// [`Code::BufferTooSmall`](crate::Code::BufferTooSmall) tells the size that it needs; the next call returns the same record.
    pub fn receive_copy(
        &mut self,
        buffer: &mut [u8],
        timeout: impl Into<Timeout>,
    ) -> Result<usize> {
        let (mut size, mut detail) = (0, 0);
        let (to, capacity) = (buffer.as_mut_ptr().cast(), buffer.len() as u64);
        let ns = timeout.into().ns();
        let code = unsafe {
            leat_member_receive_copy(self.raw(), to, capacity, &mut size, ns, &mut detail)
        };
        check(code, detail).map(|()| size as usize)
    }

    /// Tells the group that the record is done: it is never delivered again.
    pub fn acknowledge(&mut self, ticket: Ticket) -> Result<()> {
        check(unsafe { leat_member_acknowledge(self.raw(), &ticket.0) }, 0)
    }

    /// Acknowledges those of these records that the member holds, in any order, and returns how many. The others change
    /// nothing: an error only if there were records and none was acknowledged.
    pub fn acknowledge_some(&mut self, tickets: &[Ticket]) -> Result<u64> {
        let mut done = 0;
        let (first, count) = (tickets.as_ptr().cast(), tickets.len() as u64); // repr(transparent)
        let code = unsafe { leat_member_acknowledge_some(self.raw(), first, count, &mut done) };
        check(code, 0).map(|()| done)
    }

    /// Acknowledges the record and all that this member received before it; returns how many.
    pub fn acknowledge_up_to(&mut self, ticket: Ticket) -> Result<u64> {
        let mut done = 0;
        let code = unsafe { leat_member_acknowledge_up_to(self.raw(), &ticket.0, &mut done) };
        check(code, 0).map(|()| done)
    }

    /// Acknowledges all that it holds; returns how many.
    pub fn acknowledge_all(&mut self) -> Result<u64> {
        let mut done = 0;
        let code = unsafe { leat_member_acknowledge_all(self.raw(), &mut done) };
        check(code, 0).map(|()| done)
    }

    /// Makes the record available to any member again, after a while.
    pub fn requeue(&mut self, ticket: Ticket, delay: Duration) -> Result<()> {
        let ns = nanoseconds(delay);
        check(unsafe { leat_member_requeue(self.raw(), &ticket.0, ns) }, 0)
    }

    /// Waits until [`Member::receive`] may have something to do.
    pub fn wait(&mut self, timeout: impl Into<Timeout>) -> Result<()> {
        check(
            unsafe { leat_member_wait(self.raw(), timeout.into().ns()) },
            0,
        )
    }

    /// As [`Subscriber::wait_fd`](crate::Subscriber::wait_fd); then receive, without waiting, until `Code::Timeout`.
    pub fn wait_fd(&self) -> Result<BorrowedFd<'_>> {
        let (mut fd, mut detail) = (-1, 0);
        let code = unsafe { leat_member_wait_fd(self.raw(), &mut fd, &mut detail) };
        check(code, detail)?;
        self.fd.set(fd);
        // SAFETY: the member owns it, and keeps it open.
        Ok(unsafe { BorrowedFd::borrow_raw(fd) })
    }

    /// How many records it holds or has taken for its next calls.
    pub fn in_flight(&self) -> Result<u64> {
        let mut count = 0;
        let code = unsafe { leat_member_in_flight(self.raw(), &mut count) };
        check(code, 0).map(|()| count)
    }

    /// Ends its waits, from any thread.
    pub fn stopper(&self) -> Stopper {
        self.handle.stopper()
    }
}

/// The descriptor of [`Member::wait_fd`], for event loops: tokio's `AsyncFd`, for example, owns the member.
/// It stays open, and the same, for as long as the member lives.
///
/// # Panics
///
/// If there is no descriptor yet and none can be made. Call [`Member::wait_fd`] first to get that as an error.
impl AsFd for Member {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match (self.wait_fd(), self.fd.get()) {
            (Ok(fd), _) => fd,
            (Err(error), -1) => panic!("there is no descriptor to wait with: {error}"),
            // SAFETY: as above. An event loop also asks when it lets go of one, in a forked child for example.
            (Err(_), fd) => unsafe { BorrowedFd::borrow_raw(fd) },
        }
    }
}

/// As [`AsFd`].
impl AsRawFd for Member {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}
