//! What members hold.

use crate::error::{check, Result};
use crate::timeout::nanoseconds;
use crate::{Entry, Member, OwnedEntry, Record};
use leat_sys::*;
use std::fmt;
use std::time::Duration;

/// Names a record that a member holds, to acknowledge or requeue it. It may be kept, copied, and sent to
/// other threads. Other members refuse it, and so does its own if it does not hold the record any more.
#[derive(Clone, Copy)]
#[repr(transparent)] // An array of them is one for C.
pub struct Ticket(pub(crate) leat_delivery);

// SAFETY: neither C nor Rust reads what its record points to.
unsafe impl Send for Ticket {}
unsafe impl Sync for Ticket {}

impl fmt::Debug for Ticket {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Ticket")
            .field("partition", &self.0.record.partition)
            .field("offset", &self.0.record.offset)
            .finish_non_exhaustive()
    }
}

/// What a member received in one call. Only one [`Delivery`] is there at a time, since settling one may also end what
/// the others point to: when the group was deleted.
pub struct Deliveries<'m> {
    member: &'m Member,
    rest: &'m [leat_delivery],
}

impl<'m> Deliveries<'m> {
    /// # Safety
    ///
    /// These must be what C delivered in the last call. The member is borrowed as if mutably for 'm.
    pub(crate) unsafe fn new(member: &'m Member, rest: &'m [leat_delivery]) -> Deliveries<'m> {
        Deliveries { member, rest }
    }

    /// How many are left.
    pub fn len(&self) -> usize {
        self.rest.len()
    }

    /// Whether none is left.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next one.
    #[allow(clippy::should_implement_trait)] // An iterator's items could outlive each other.
    pub fn next(&mut self) -> Option<Delivery<'_, 'm>> {
        let (raw, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(Delivery { raw, batch: self })
    }

    /// Those that are left, to be looked at together.
    pub fn iter(&self) -> impl Iterator<Item = Entry<'_>> + '_ {
        // SAFETY: nothing can be settled while this object is borrowed.
        self.rest
            .iter()
            .map(|delivery| unsafe { Entry::new(&delivery.record) })
    }

    /// The tickets of those that are left, for later.
    pub fn tickets(&self) -> Vec<Ticket> {
        self.rest.iter().map(|delivery| Ticket(*delivery)).collect()
    }

    /// Copies of those that are left.
    pub fn to_owned(&self) -> Vec<OwnedDelivery> {
        self.rest
            .iter()
            .map(|raw| OwnedDelivery {
                // SAFETY: as above.
                entry: unsafe { Entry::new(&raw.record) }.to_owned(),
                deliveries: raw.deliveries,
                ticket: Ticket(*raw),
            })
            .collect()
    }
}

/// A record that a member holds, or (durable topics) a gap. Dropping it changes nothing: the member still holds it.
pub struct Delivery<'d, 'm> {
    raw: &'m leat_delivery,
    batch: &'d mut Deliveries<'m>,
}

impl Delivery<'_, '_> {
    /// The record or gap.
    pub fn entry(&self) -> Entry<'_> {
        // SAFETY: it is held at least as long as this object is borrowed: settling it takes the object.
        unsafe { Entry::new(&self.raw.record) }
    }

    /// The record; None for a gap.
    pub fn record(&self) -> Option<Record<'_>> {
        self.entry().record()
    }

    /// 1: the first delivery. 0: a gap.
    pub fn deliveries(&self) -> u32 {
        self.raw.deliveries
    }

    /// Its name, to settle it later.
    pub fn ticket(&self) -> Ticket {
        Ticket(*self.raw)
    }

    /// Tells the group that the record is done: it is never delivered again.
    pub fn acknowledge(self) -> Result<()> {
        // SAFETY, here and below: the member is open, and nobody else uses it meanwhile.
        let code = unsafe { leat_member_acknowledge(self.batch.member.raw(), self.raw) };
        self.settled(code)
    }

    /// Makes the record available to any member again, after a while.
    pub fn requeue(self, delay: Duration) -> Result<()> {
        let ns = nanoseconds(delay);
        let code = unsafe { leat_member_requeue(self.batch.member.raw(), self.raw, ns) };
        self.settled(code)
    }

    fn settled(self, code: i32) -> Result<()> {
        if code == LEAT_ERR_CLOSED {
            self.batch.rest = &[]; // Held by nobody any more.
        }
        check(code, 0)
    }
}

/// A copy of a delivery, which may be kept.
#[derive(Clone, Debug)]
pub struct OwnedDelivery {
    /// The record or gap.
    pub entry: OwnedEntry,
    /// 1: the first delivery. 0: a gap.
    pub deliveries: u32,
    /// To acknowledge it, or to requeue it.
    pub ticket: Ticket,
}
