//! What functions return when they fail.

use crate::Code;
use std::ffi::c_char;
use std::{fmt, io};

/// Why a call failed. As a text, it is a sentence for users, without a full stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Error {
    /// Which error it is.
    pub code: Code,
    /// What else is known: the errno of the system call that failed, or 0; the most bytes allowed with
    /// [`Code::TooLarge`]; the bytes wanted with [`Code::BufferTooSmall`].
    pub detail: i32,
}

/// What functions return that may fail.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    #[cold]
    pub(crate) fn new(code: i32, detail: i32) -> Error {
        Error {
            code: Code::from(code),
            detail,
        }
    }
}

impl From<Code> for Error {
    fn from(code: Code) -> Error {
        Error { code, detail: 0 }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
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
    Err(Error::new(code, detail))
}
