//! What publishers, subscribers and members have in common: a handle of C that is closed once, and may be stopped
//! by other threads at any time, even afterwards.

use crate::error::{check, Result};
use crate::Code;
use leat_sys::{leat_member, leat_publisher, leat_subscriber};
use std::ptr::{self, NonNull};
use std::sync::{Arc, Mutex, PoisonError};

/// The functions of C that each kind of handle has.
pub(crate) trait Kind: Sized + 'static {
    const CLOSE: unsafe extern "C" fn(*mut *mut Self) -> i32;
    const STOP: unsafe extern "C" fn(*mut Self) -> i32;
    const RESUME: unsafe extern "C" fn(*mut Self) -> i32;
    const IS_STOPPED: unsafe extern "C" fn(*mut Self, *mut u32) -> i32;
}

impl Kind for leat_publisher {
    const CLOSE: unsafe extern "C" fn(*mut *mut Self) -> i32 = leat_sys::leat_publisher_close;
    const STOP: unsafe extern "C" fn(*mut Self) -> i32 = leat_sys::leat_publisher_stop;
    const RESUME: unsafe extern "C" fn(*mut Self) -> i32 = leat_sys::leat_publisher_resume;
    const IS_STOPPED: unsafe extern "C" fn(*mut Self, *mut u32) -> i32 =
        leat_sys::leat_publisher_is_stopped;
}

impl Kind for leat_subscriber {
    const CLOSE: unsafe extern "C" fn(*mut *mut Self) -> i32 = leat_sys::leat_subscriber_close;
    const STOP: unsafe extern "C" fn(*mut Self) -> i32 = leat_sys::leat_subscriber_stop;
    const RESUME: unsafe extern "C" fn(*mut Self) -> i32 = leat_sys::leat_subscriber_resume;
    const IS_STOPPED: unsafe extern "C" fn(*mut Self, *mut u32) -> i32 =
        leat_sys::leat_subscriber_is_stopped;
}

impl Kind for leat_member {
    const CLOSE: unsafe extern "C" fn(*mut *mut Self) -> i32 = leat_sys::leat_member_close;
    const STOP: unsafe extern "C" fn(*mut Self) -> i32 = leat_sys::leat_member_stop;
    const RESUME: unsafe extern "C" fn(*mut Self) -> i32 = leat_sys::leat_member_resume;
    const IS_STOPPED: unsafe extern "C" fn(*mut Self, *mut u32) -> i32 =
        leat_sys::leat_member_is_stopped;
}

/// Owns a handle of C.
pub(crate) struct Handle<K: Kind> {
    raw: NonNull<K>,
    shared: Arc<Shared<K>>,
}

/// What stoppers know of it.
struct Shared<K> {
    /// Null once the handle is closed. Held while it is stopped, so that nobody closes it meanwhile.
    raw: Mutex<*mut K>,
    /// The process that made it. A child process may have inherited the lock from a thread that it does not have.
    pid: u32,
}

// SAFETY: the pointer is used under the lock only, and only for what C allows any thread to do.
unsafe impl<K> Send for Shared<K> {}
unsafe impl<K> Sync for Shared<K> {}

impl<K: Kind> Handle<K> {
    /// Takes what C just made.
    pub(crate) fn new(raw: *mut K) -> Handle<K> {
        let raw = NonNull::new(raw).expect("a handle without an error");
        let shared = Shared {
            raw: Mutex::new(raw.as_ptr()),
            pid: std::process::id(),
        };
        Handle {
            raw,
            shared: Arc::new(shared),
        }
    }

    /// Open for as long as this object lives.
    #[inline]
    pub(crate) fn raw(&self) -> *mut K {
        self.raw.as_ptr()
    }

    pub(crate) fn stopper(&self) -> Stopper {
        Stopper(self.shared.clone())
    }
}

impl<K: Kind> Drop for Handle<K> {
    fn drop(&mut self) {
        if self.shared.is_mine() {
            *self.shared.lock() = ptr::null_mut();
        }
        let mut raw = self.raw.as_ptr();
        // SAFETY: nobody else has the pointer any more. The only error is that there is none.
        unsafe { K::CLOSE(&mut raw) };
    }
}

impl<K> Shared<K> {
    fn is_mine(&self) -> bool {
        self.pid == std::process::id()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, *mut K> {
        self.raw.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What `call` returned for the handle; None if it was closed.
    fn with(&self, call: impl FnOnce(*mut K) -> i32) -> Result<Option<()>> {
        if !self.is_mine() {
            return Err(Code::Forked.into());
        }
        let raw = self.lock();
        if raw.is_null() {
            return Ok(None);
        }
        check(call(*raw), 0).map(Some)
    }
}

trait Stop: Send + Sync {
    fn stop(&self) -> Result<()>;
    fn resume(&self) -> Result<()>;
    fn is_stopped(&self) -> Result<bool>;
}

impl<K: Kind> Stop for Shared<K> {
    fn stop(&self) -> Result<()> {
        // SAFETY, here and below: the handle is open while its lock is held.
        self.with(|raw| unsafe { K::STOP(raw) }).map(drop)
    }
    fn resume(&self) -> Result<()> {
        self.with(|raw| unsafe { K::RESUME(raw) }).map(drop)
    }
    fn is_stopped(&self) -> Result<bool> {
        let mut stopped = 0;
        let open = self.with(|raw| unsafe { K::IS_STOPPED(raw, &mut stopped) })?;
        Ok(open.is_none() || stopped != 0)
    }
}

/// Ends the waits of a publisher, subscriber or member from any thread. It does not keep it open: once that was
/// dropped, stopping and resuming do nothing.
#[derive(Clone)]
pub struct Stopper(Arc<dyn Stop>);

impl Stopper {
    /// Makes its waits fail with [`Code::Stopped`], now and later, until [`Stopper::resume`]. What is available is
    /// still delivered.
    pub fn stop(&self) -> Result<()> {
        self.0.stop()
    }

    /// Lets it wait again.
    pub fn resume(&self) -> Result<()> {
        self.0.resume()
    }

    /// Whether its waits are stopped. Those of one that was dropped are.
    pub fn is_stopped(&self) -> Result<bool> {
        self.0.is_stopped()
    }
}
