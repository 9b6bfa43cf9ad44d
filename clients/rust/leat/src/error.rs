//! What functions return when they fail.

use crate::Code;
use std::ffi::c_char;
use std::hash::{Hash, Hasher};
use std::{fmt, io};

/// Why a call failed. As a text, it is a sentence for users, without a full stop.
///
/// Errors are equal if code and detail are.
#[derive(Clone)]
pub struct Error {
    /// Which error it is.
    pub code: Code,
    /// What else is known: the errno of the system call that failed, or 0; the most bytes allowed with
    /// [`Code::TooLarge`]; the bytes wanted with [`Code::BufferTooSmall`].
    pub detail: i32,
    /// What failed and why, where more is known than the code. Boxed twice to keep results small.
    #[allow(clippy::box_collection)]
    text: Option<Box<String>>,
}

/// What functions return that may fail. With another error it is the standard one, so `use leat::*` is harmless.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error with a code and what else is known; its text is the sentence of the code.
    #[cold]
    pub fn new(code: Code, detail: i32) -> Error {
        Error {
            code,
            detail,
            text: None,
        }
    }

    /// With a sentence of its own, which also names what failed.
    #[cold]
    pub(crate) fn with_text(code: Code, detail: i32, text: String) -> Error {
        Error {
            code,
            detail,
            text: Some(Box::new(text)),
        }
    }
}

impl PartialEq for Error {
    fn eq(&self, other: &Error) -> bool {
        (self.code, self.detail) == (other.code, other.detail)
    }
}

impl Eq for Error {}

impl Hash for Error {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        (self.code, self.detail).hash(hasher);
    }
}

/// Programs that return errors from `main` print them so.
impl fmt::Debug for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Error")
            .field("code", &self.code)
            .field("detail", &self.detail)
            .field("text", &self.to_string())
            .finish()
    }
}

impl From<Code> for Error {
    fn from(code: Code) -> Error {
        Error::new(code, 0)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(text) = &self.text {
            return out.write_str(text);
        }
        let mut buffer = [0u8; leat_sys::LEAT_DESCRIPTION_SIZE];
        // SAFETY: the buffer is as large as we say. What does not fit is cut off, and that is no matter.
        unsafe {
            let to = buffer.as_mut_ptr().cast::<c_char>();
            leat_sys::leat_describe(self.code.number(), self.detail, to, buffer.len() as u64);
        }
        let size = buffer.iter().position(|byte| *byte == 0).unwrap_or(0);
        out.write_str(&String::from_utf8_lossy(&buffer[..size]))
    }
}

impl std::error::Error for Error {}

impl From<Error> for io::Error {
    fn from(error: Error) -> io::Error {
        let kind = match error.code {
            Code::InvalidArgument | Code::TooLarge => io::ErrorKind::InvalidInput,
            Code::NotFound => io::ErrorKind::NotFound,
            Code::Exists => io::ErrorKind::AlreadyExists,
            Code::Permission => io::ErrorKind::PermissionDenied,
            Code::Corrupt | Code::WrongFormat => io::ErrorKind::InvalidData,
            Code::Full => io::ErrorKind::WouldBlock,
            Code::Timeout => io::ErrorKind::TimedOut,
            Code::Unsupported => io::ErrorKind::Unsupported,
            Code::Interrupted => io::ErrorKind::Interrupted,
            Code::NoMemory => io::ErrorKind::OutOfMemory,
            _ => io::ErrorKind::Other,
        };
        io::Error::new(kind, error)
    }
}

/// What a function of C returned.
#[inline]
pub(crate) fn check(code: i32, detail: i32) -> Result<()> {
    if code == leat_sys::LEAT_OK {
        return Ok(());
    }
    Err(Error::new(Code::from(code), detail))
}
