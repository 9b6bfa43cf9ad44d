//! Records that are written in place.

use crate::error::Result;
use crate::Publisher;
use leat_sys::leat_claim;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// Names a claim that is open in its publisher: [`Publisher::begin_claim`].
#[derive(Clone)]
pub struct OpenClaim(pub(crate) leat_claim);

// SAFETY: its pointer is only compared.
unsafe impl Send for OpenClaim {}
unsafe impl Sync for OpenClaim {}

impl OpenClaim {
    /// The offset of the record.
    pub fn offset(&self) -> u64 {
        self.0.offset
    }
}

impl fmt::Debug for OpenClaim {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("OpenClaim")
            .field("offset", &self.0.offset)
            .field("size", &self.0.size)
            .finish_non_exhaustive()
    }
}

/// Room for one record, to be written in place. Dropping it aborts it, so an early return or a panic cannot leave
/// subscribers waiting.
///
/// ```compile_fail,E0499
/// fn both(publisher: &mut leat::Publisher) -> leat::Result<()> {
///     let claim = publisher.claim(8, None)?;
///     publisher.publish(b"before it", None)?;
///     claim.commit()?;
///     Ok(())
/// }
/// ```
///
/// What lies in the room before it is written are bytes of records that were there once: what is committed
/// unwritten gets published as such.
#[must_use = "a claim that is dropped is aborted"]
pub struct Claim<'p> {
    publisher: &'p mut Publisher,
    open: OpenClaim,
}

impl<'p> Claim<'p> {
    #[inline]
    pub(crate) fn new(publisher: &'p mut Publisher, open: OpenClaim) -> Claim<'p> {
        Claim { publisher, open }
    }

    /// The offset of the record.
    pub fn offset(&self) -> u64 {
        self.open.offset()
    }

    /// Publishes all of it, and returns its offset. Never waits.
    #[inline]
    pub fn commit(self) -> Result<u64> {
        let size = self.len();
        self.commit_first(size)
    }

    /// Publishes the first `size` bytes. If there are not so many, the claim is aborted.
    #[inline]
    pub fn commit_first(self, size: usize) -> Result<u64> {
        self.publisher.commit(&self.open, size)?;
        Ok(self.offset())
    }

    /// Gives the room up: subscribers see a gap.
    pub fn abort(self) -> Result<()> {
        self.publisher.abort(&self.open)
    }
}

impl Deref for Claim<'_> {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        let room = &self.publisher.open;
        // SAFETY: as in Publisher::claimed(): ours for as long as this object lives, which borrows the publisher.
        unsafe { std::slice::from_raw_parts(room.data, room.size as usize) }
    }
}

impl DerefMut for Claim<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        let room = &self.publisher.open;
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(room.data, room.size as usize) }
    }
}

impl Drop for Claim<'_> {
    #[inline]
    fn drop(&mut self) {
        if !self.publisher.open.data.is_null() {
            // Fails only if the topic was deleted or the claim revoked: then there is nothing to give up.
            let _ = self.publisher.abort(&self.open);
        }
    }
}

impl fmt::Debug for Claim<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.open.fmt(out)
    }
}
