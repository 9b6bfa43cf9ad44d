//! The inline functions of the header: where key, headers and timestamp of a record lie.

use crate::{leat_header, leat_headers, leat_record};
use std::ptr;

pub const LEAT_RECORD_HAS_KEY: u16 = 1;
pub const LEAT_RECORD_HAS_TIMESTAMP: u16 = 2;
pub const LEAT_RECORD_HAS_HEADERS: u16 = 4;
pub const LEAT_RECORD_IS_GAP: u16 = 8;

#[inline]
pub fn leat_record_is_gap(record: &leat_record) -> bool {
    record.flags & LEAT_RECORD_IS_GAP != 0
}

/// Of a gap: how many offsets, beginning with its own.
#[inline]
pub fn leat_gap_count(record: &leat_record) -> u64 {
    u64::from(record.key_size) << 32 | u64::from(record.value_size)
}

/// Of a gap: LEAT_GAP_...
#[inline]
pub fn leat_gap_reason(record: &leat_record) -> u32 {
    record.headers_size
}

/// The key, of `key_size` bytes; null without a key, which is not the same as an empty one.
///
/// # Safety
///
/// It is a record, no gap, and still valid; as with the functions below.
#[inline]
pub unsafe fn leat_record_key(record: &leat_record) -> *const u8 {
    if record.flags & LEAT_RECORD_HAS_KEY == 0 {
        return ptr::null();
    }
    record
        .value
        .sub(record.headers_size as usize + record.key_size as usize)
}

/// When it was published, in milliseconds since 1970; -1 without a timestamp.
///
/// # Safety
///
/// As leat_record_key().
#[inline]
pub unsafe fn leat_record_timestamp_ms(record: &leat_record) -> i64 {
    if record.flags & LEAT_RECORD_HAS_TIMESTAMP == 0 {
        return -1;
    }
    let bytes = record.value.sub(leat_record_prefix(record));
    i64::from_le_bytes(ptr::read_volatile(bytes.cast::<[u8; 8]>()))
}

/// How many bytes before its value the functions here may read. Not in the header.
#[inline]
pub fn leat_record_prefix(record: &leat_record) -> usize {
    let mut size = record.headers_size as usize + record.key_size as usize;
    if record.flags & LEAT_RECORD_HAS_TIMESTAMP == 0 {
        return size;
    }
    // A timestamp lies before the sizes of key and headers, which lie before these.
    size += 8;
    if record.flags & LEAT_RECORD_HAS_KEY != 0 {
        size += 4;
    }
    if record.flags & LEAT_RECORD_HAS_HEADERS != 0 {
        size += 4;
    }
    size
}

/// All headers, to be read with leat_next_header().
///
/// # Safety
///
/// As leat_record_key().
#[inline]
pub unsafe fn leat_record_headers(record: &leat_record) -> leat_headers {
    if record.flags & LEAT_RECORD_HAS_HEADERS == 0 {
        return leat_headers {
            at: ptr::null(),
            left: 0,
        };
    }
    leat_headers {
        at: record.value.sub(record.headers_size as usize),
        left: u64::from(record.headers_size),
    }
}

/// Reads each byte once: another process may overwrite the memory meanwhile.
#[inline]
unsafe fn read_u32(from: *const u8) -> u32 {
    u32::from_le_bytes(ptr::read_volatile(from.cast::<[u8; 4]>()))
}

/// The next header; None behind the last one. Never reads beyond the headers, whatever their bytes are: a header
/// that is not complete ends them.
///
/// # Safety
///
/// The record that they belong to is still valid.
#[inline]
pub unsafe fn leat_next_header(headers: &mut leat_headers) -> Option<leat_header> {
    if headers.left < 8 {
        return None;
    }
    let name_size = read_u32(headers.at);
    let value_size = read_u32(headers.at.add(4));
    let size = u64::from(name_size) + u64::from(value_size);
    if size > headers.left - 8 {
        headers.left = 0;
        return None;
    }
    let name = headers.at.add(8);
    let value = name.add(name_size as usize);
    headers.at = value.add(value_size as usize);
    headers.left -= 8 + size;
    Some(leat_header {
        name,
        value,
        name_size,
        value_size,
    })
}
