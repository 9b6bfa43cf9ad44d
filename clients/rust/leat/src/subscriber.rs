//! Reading a topic.

use crate::error::{check, Error, Result};
use crate::handle::{Handle, Stopper};
use crate::{Batch, Code, OwnedBatch, Timeout};
use leat_sys::*;
use std::cell::Cell;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::{ptr, slice};

/// The most records and gaps that one call delivers, whatever its limit.
pub const MAX_BATCH: usize = 65536;

/// A participant of a topic that reads records. Dropping it leaves the topic.
///
/// What it delivers lies in the topic itself, and lives until its next call; the compiler sees to that:
///
/// ```compile_fail,E0499
/// fn outlives(subscriber: &mut leat::Subscriber) -> leat::Result<()> {
///     let batch = subscriber.poll(64)?;
///     let record = batch.records().next();
///     subscriber.poll(64)?; // What was delivered before ends here.
///     println!("{record:?}");
///     Ok(())
/// }
/// ```
///
/// It may move to other threads, but only one at a time may use it; others may end its waits through
/// [`Subscriber::stopper`].
///
/// ```compile_fail,E0277
/// fn shared(subscriber: &leat::Subscriber) {
///     std::thread::scope(|threads| threads.spawn(|| subscriber.is_lossy()));
/// }
/// ```
pub struct Subscriber {
    handle: Handle<leat_subscriber>,
    /// What wait_fd() made; -1 before.
    fd: Cell<RawFd>,
    /// Room for what C delivers. Its length stays 0.
    records: Vec<leat_record>,
}

// SAFETY: C allows any thread, one at a time.
unsafe impl Send for Subscriber {}

impl Subscriber {
    pub(crate) fn new(raw: *mut leat_subscriber) -> Subscriber {
        Subscriber {
            handle: Handle::new(raw),
            fd: Cell::new(-1),
            records: Vec::new(),
        }
    }

    #[inline]
    fn raw(&self) -> *mut leat_subscriber {
        self.handle.raw()
    }

    /// Makes room for so many records, and returns how many C may store.
    #[inline]
    fn reserve(&mut self, limit: usize) -> u32 {
        let limit = limit.min(MAX_BATCH);
        if self.records.capacity() < limit {
            self.records.reserve(limit);
        }
        limit as u32
    }

    /// # Safety
    ///
    /// C stored `count` records.
    #[inline]
    unsafe fn batch(&self, count: u32) -> Batch<'_> {
        Batch::new(slice::from_raw_parts(self.records.as_ptr(), count as usize))
    }

    /// Up to `limit` records and gaps that are available, oldest first within a partition; none if nothing is there.
    /// Never sleeps. They live until the next call of this subscriber.
    #[inline]
    pub fn poll(&mut self, limit: usize) -> Result<Batch<'_>> {
        let capacity = self.reserve(limit);
        let (mut count, mut detail) = (0, 0);
        let records = self.records.as_mut_ptr();
        // SAFETY, here and below: the handle is open, and there is room for so many.
        let code =
            unsafe { leat_subscriber_poll(self.raw(), records, capacity, &mut count, &mut detail) };
        check(code, detail)?;
        Ok(unsafe { self.batch(count) })
    }

    /// The same, but waits for the first.
    #[inline]
    pub fn receive(&mut self, limit: usize, timeout: impl Into<Timeout>) -> Result<Batch<'_>> {
        let capacity = self.reserve(limit);
        let (mut count, mut detail) = (0, 0);
        let records = self.records.as_mut_ptr();
        let ns = timeout.into().ns();
        let code = unsafe {
            leat_subscriber_receive(self.raw(), records, capacity, &mut count, ns, &mut detail)
        };
        check(code, detail)?;
        Ok(unsafe { self.batch(count) })
    }

    /// As [`Subscriber::poll`], but returns a copy, which may be kept.
    pub fn poll_owned(&mut self, limit: usize) -> Result<OwnedBatch> {
        self.poll(limit).map(|batch| batch.to_owned())
    }

    /// As [`Subscriber::receive`], but returns a copy, which may be kept.
    pub fn receive_owned(
        &mut self,
        limit: usize,
        timeout: impl Into<Timeout>,
    ) -> Result<OwnedBatch> {
        self.receive(limit, timeout).map(|batch| batch.to_owned())
    }

    /// Waits until [`Subscriber::poll`] may have something to do.
    pub fn wait(&mut self, timeout: impl Into<Timeout>) -> Result<()> {
        check(
            unsafe { leat_subscriber_wait(self.raw(), timeout.into().ns()) },
            0,
        )
    }

    /// Becomes readable when [`Subscriber::poll`] may have something to do; then poll until there is nothing. It is
    /// also readable while waits are stopped. A helper thread of this process serves it, and others.
    pub fn wait_fd(&self) -> Result<BorrowedFd<'_>> {
        let (mut fd, mut detail) = (-1, 0);
        let code = unsafe { leat_subscriber_wait_fd(self.raw(), &mut fd, &mut detail) };
        check(code, detail)?;
        self.fd.set(fd);
        // SAFETY: the subscriber owns it, and keeps it open.
        Ok(unsafe { BorrowedFd::borrow_raw(fd) })
    }

    /// The offset of the next record in a partition; 0 if it does not read that partition.
    pub fn offset(&self, partition: u32) -> Result<u64> {
        let mut offset = 0;
        let code = unsafe { leat_subscriber_offset(self.raw(), partition, &mut offset) };
        check(code, 0).map(|()| offset)
    }

    /// Whether it may be overtaken: it was made lossy, or was evicted.
    pub fn is_lossy(&self) -> Result<bool> {
        let mut lossy = 0;
        let code = unsafe { leat_subscriber_is_lossy(self.raw(), &mut lossy) };
        check(code, 0).map(|()| lossy != 0)
    }

    /// Ends its waits, from any thread.
    pub fn stopper(&self) -> Stopper {
        self.handle.stopper()
    }
}

/// The descriptor of [`Subscriber::wait_fd`], for event loops: tokio's `AsyncFd`, for example, owns the subscriber.
/// It stays open, and the same, for as long as the subscriber lives.
///
/// # Panics
///
/// If there is no descriptor yet and none can be made. Call [`Subscriber::wait_fd`] first to get that as an error.
impl AsFd for Subscriber {
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
impl AsRawFd for Subscriber {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

/// Waits until one of these subscribers, at most 64, may have something to do, and returns its index.
pub fn wait_any(subscribers: &[&Subscriber], timeout: impl Into<Timeout>) -> Result<usize> {
    if !(1..=LEAT_MAX_WAIT_ANY).contains(&subscribers.len()) {
        let text = format!(
            "wait_any got {} subscribers, and waits for 1 to {LEAT_MAX_WAIT_ANY}",
            subscribers.len()
        );
        return Err(Error::with_text(Code::InvalidArgument, 0, text));
    }
    let mut all = [ptr::null_mut(); LEAT_MAX_WAIT_ANY];
    for (raw, subscriber) in all.iter_mut().zip(subscribers) {
        *raw = subscriber.raw();
    }
    let mut index = 0;
    let (count, ns) = (subscribers.len() as u32, timeout.into().ns());
    // SAFETY: all are open, and this is the only thread that may use them.
    let code = unsafe { leat_subscriber_wait_any(all.as_ptr(), count, ns, &mut index) };
    check(code, 0).map(|()| index as usize)
}
