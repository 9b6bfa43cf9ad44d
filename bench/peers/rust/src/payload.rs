//! The same payloads as bench/harness/payload.hpp: the sequence number in the first and in the last eight
//! bytes, prepared some records ahead in the sender's own memory.

use crate::talk::Outcome;

const BUFFERS: u64 = 8;
const AHEAD: u64 = 4;
const WORD: usize = size_of::<u64>();

pub struct Payload {
    buffers: Vec<Vec<u8>>,
    next: u64,
    ahead: u64,
}

impl Payload {
    pub fn new(size: usize) -> Self {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64; // Any odd number.
        let mut next_byte = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005);
            state = state.wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        };
        let buffers = (0..BUFFERS)
            .map(|_| (0..size).map(|_| next_byte()).collect())
            .collect();
        let mut payload = Payload {
            buffers,
            next: 0,
            ahead: 0,
        };
        while payload.ahead < AHEAD {
            payload.prepare();
        }
        payload
    }

    fn prepare(&mut self) {
        let buffer = &mut self.buffers[(self.ahead % BUFFERS) as usize];
        let bytes = self.ahead.to_le_bytes();
        let last = buffer.len() - WORD;
        buffer[..WORD].copy_from_slice(&bytes);
        buffer[last..].copy_from_slice(&bytes);
        self.ahead += 1;
    }

    /// The next record.
    pub fn next(&mut self) -> &[u8] {
        self.prepare();
        let at = (self.next % BUFFERS) as usize;
        self.next += 1;
        &self.buffers[at]
    }
}

pub fn word_at(record: &[u8], index: usize) -> Outcome<u64> {
    let word = record
        .get(index * WORD..(index + 1) * WORD)
        .ok_or("a record is too short")?;
    Ok(u64::from_le_bytes(word.try_into()?))
}

pub fn check(record: &[u8], size: usize, sequence: u64) -> Outcome<()> {
    let bytes = sequence.to_le_bytes();
    if record.len() != size || record[..WORD] != bytes || record[size - WORD..] != bytes {
        return Err(format!("record {sequence} has the wrong content").into());
    }
    Ok(())
}
