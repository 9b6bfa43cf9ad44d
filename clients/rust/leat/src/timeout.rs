//! For how long a call may wait.

use std::time::Duration;

/// For how long a call may wait. Functions take whatever becomes one: a [`Duration`]; `None`, to wait for as long as it
/// takes; or one of the constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeout(i64);

impl Timeout {
    /// Waits for as long as it takes.
    pub const FOREVER: Timeout = Timeout(leat_sys::LEAT_FOREVER);
    /// Does not wait at all.
    pub const NOW: Timeout = Timeout(0);

    #[inline]
    pub(crate) fn ns(self) -> i64 {
        self.0
    }
}

impl From<Duration> for Timeout {
    /// 292 years and more are forever.
    #[inline]
    fn from(duration: Duration) -> Timeout {
        Timeout(nanoseconds(duration))
    }
}

impl From<Option<Duration>> for Timeout {
    #[inline]
    fn from(duration: Option<Duration>) -> Timeout {
        duration.map_or(Timeout::FOREVER, Timeout::from)
    }
}

/// As C wants a time after which something happens: 0 means never, so the least that is is 1.
pub(crate) fn after(duration: Option<Duration>) -> i64 {
    duration.map_or(0, |some| nanoseconds(some).max(1))
}

/// As C wants them; the most that it can take if these are more.
#[inline]
pub(crate) fn nanoseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}
