//! Words and bytes of the line protocol.

use leat::{StartAt, Timeout};
use std::time::Duration;

/// A command: its words, and what its answer says so far.
pub struct Command<'l> {
    pub words: Vec<&'l str>,
    pub out: String,
}

/// Ends the driver: the scenario is wrong.
pub fn fail(why: &str, about: &str) -> ! {
    eprintln!("driver: {why}: {about}");
    std::process::exit(2)
}

impl<'l> Command<'l> {
    pub fn word(&self, index: usize) -> &'l str {
        match self.words.get(index) {
            Some(word) => word,
            None => fail("a word is missing behind", self.words[0]),
        }
    }

    /// Each text that stands behind `name=`.
    pub fn options<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'l str> + 's {
        self.words
            .iter()
            .filter_map(move |word| word.strip_prefix(name)?.strip_prefix('='))
    }
    pub fn option(&self, name: &str) -> Option<&'l str> {
        self.options(name).next()
    }
    pub fn number<N: std::str::FromStr>(&self, name: &str) -> Option<N> {
        self.option(name).map(|text| {
            text.parse()
                .unwrap_or_else(|_| fail("no such number", text))
        })
    }
    /// Whether it has words that exclude each other.
    pub fn is_bad(&self) -> bool {
        let has = |name| self.option(name).is_some();
        has("value") && (has("count") || has("prefix"))
    }
    pub fn is_set(&self, name: &str) -> bool {
        self.number::<u64>(name).unwrap_or(0) != 0
    }
    pub fn milliseconds(&self, name: &str) -> Option<Duration> {
        self.number(name).map(Duration::from_millis)
    }
    pub fn timeout(&self, otherwise_ms: u64) -> Timeout {
        if self.option("timeout") == Some("never") {
            return Timeout::FOREVER;
        }
        self.milliseconds("timeout")
            .unwrap_or(Duration::from_millis(otherwise_ms))
            .into()
    }

    /// Where to begin, by `from` or `to`.
    pub fn from(&self, name: &str) -> StartAt {
        let text = self.option(name).unwrap_or("end");
        let (what, number) = text.split_once(':').unwrap_or((text, "0"));
        let number = number
            .parse()
            .unwrap_or_else(|_| fail("no such number", text));
        match what {
            "end" => StartAt::End,
            "beginning" => StartAt::Beginning,
            "offset" => StartAt::Offset(number),
            "last" => StartAt::Last(number),
            "time" => StartAt::TimeMs(number),
            _ => fail("no such place", text),
        }
    }

    /// The value, by `value` or `fill`.
    pub fn value(&self) -> Vec<u8> {
        if let Some((size, digits)) = self.option("fill").and_then(|fill| fill.split_once(':')) {
            let size = size.parse().unwrap_or_else(|_| fail("no such size", size));
            return vec![byte(digits); size];
        }
        decode(self.option("value").unwrap_or(""))
    }
}

fn byte(digits: &str) -> u8 {
    u8::from_str_radix(digits, 16).unwrap_or_else(|_| fail("not a byte", digits))
}

pub fn decode(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        bytes.push(byte(&rest[at + 1..at + 3]));
        rest = &rest[at + 3..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}

pub fn encode(out: &mut String, bytes: &[u8]) {
    use std::fmt::Write;
    if bytes.len() > 64 {
        let hash = bytes.iter().fold(0xcbf29ce484222325u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x100000001b3)
        });
        write!(out, "{}*{hash:016x}", bytes.len()).unwrap();
        return;
    }
    for byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-_.,/+".contains(byte) {
            out.push(*byte as char);
        } else {
            write!(out, "%{byte:02X}").unwrap();
        }
    }
}
