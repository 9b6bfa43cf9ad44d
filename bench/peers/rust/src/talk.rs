//! The command line, the clock, and the protocol with run.py over stdin and stdout.

use std::io::Write;

pub type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

pub struct Options {
    pub role: String,
    pub directory: String,
    pub size: usize,
    pub records: u64,
    pub warm_up: u64,
}

impl Options {
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Outcome<Self> {
        let mut options = Options {
            role: arguments
                .next()
                .ok_or("usage: ROLE --dir DIR [--size N] …")?,
            directory: String::new(),
            size: 100,
            records: 1000,
            warm_up: 100,
        };
        while let Some(name) = arguments.next() {
            if name == "--spin" {
                continue; // It always spins.
            }
            let value = arguments.next().ok_or(format!("{name} needs a value"))?;
            match name.as_str() {
                "--dir" => options.directory = value,
                "--size" => options.size = value.parse()?,
                "--records" => options.records = value.parse()?,
                "--warm-up" => options.warm_up = value.parse()?,
                "--batch" | "--index" | "--senders" | "--workers" => {}
                _ => return Err(format!("unknown option {name}").into()),
            }
        }
        if options.directory.is_empty() {
            return Err("--dir is missing".into());
        }
        if options.size < 8 {
            return Err("--size is at least 8".into());
        }
        Ok(options)
    }
}

/// The same clock in all processes.
pub fn now_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a local variable, and this clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

pub fn say(line: &str) {
    let mut output = std::io::stdout().lock();
    // If nobody reads stdout any more, stdin ends, too.
    let _ = writeln!(output, "{line}").and_then(|()| output.flush());
}

pub fn await_go() -> Outcome<()> {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    if line == "go\n" {
        Ok(())
    } else {
        Err("nobody said go".into())
    }
}

pub fn await_end() {
    let mut line = String::new();
    while matches!(std::io::stdin().read_line(&mut line), Ok(read) if read > 0) {
        line.clear();
    }
}
