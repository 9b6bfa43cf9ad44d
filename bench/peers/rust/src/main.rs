//! iceoryx2 on the scenarios of `leat bench`: publish-subscribe between processes, by zero-copy loans,
//! waiting for room instead of overwriting. The roles and the protocol are those of cpp/peer.hpp.

mod channel;
mod payload;
mod talk;

use channel::{Channels, Sender};
use payload::Payload;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use talk::{await_end, await_go, now_ns, say, Options, Outcome};

const REMEMBERED: usize = 100_000; // Several seconds of the survivor's records.

fn publish(sender: &Sender, payload: &mut Payload, count: u64) -> Outcome<()> {
    for _ in 0..count {
        sender.send(payload.next())?;
    }
    Ok(())
}

fn write(options: &Options, channels: &Channels) -> Outcome<()> {
    say("ready");
    await_go()?;
    let mut payload = Payload::new(options.size);
    let sender = channels.sender("data")?;
    publish(&sender, &mut payload, options.warm_up)?;
    say("warm");
    await_go()?;
    let started_ns = now_ns();
    publish(&sender, &mut payload, options.records)?;
    say(&format!("{{\"started_ns\": {started_ns}}}"));
    await_end();
    Ok(())
}

/// As in cpp/peer.hpp.
const LOOK_AWAY_PAUSES: u32 = 1000;

fn read(options: &Options, channels: &Channels) -> Outcome<()> {
    let receiver = channels.receiver("data")?;
    say("ready");
    await_go()?;
    let mut next = 0;
    let mut take = |count: u64| -> Outcome<()> {
        let end = next + count;
        while next < end {
            let polled = receiver.poll(|record| {
                payload::check(record, options.size, next)?;
                next += 1;
                Ok(())
            })?;
            if polled == 0 {
                (0..LOOK_AWAY_PAUSES).for_each(|_| std::hint::spin_loop());
            }
        }
        Ok(())
    };
    take(options.warm_up)?;
    say("warm");
    await_go()?;
    take(options.records)?;
    say(&format!("{{\"ended_ns\": {}}}", now_ns()));
    await_end();
    Ok(())
}

fn call(options: &Options, channels: &Channels) -> Outcome<()> {
    let receiver = channels.receiver("back")?;
    let mut samples_ns = vec![1u32; options.records as usize]; // Touched before the time starts.
    say("ready");
    await_go()?;
    let sender = channels.sender("there")?;
    let mut payload = Payload::new(options.size);
    let mut sequence = 0;
    let mut call = || -> Outcome<()> {
        sender.send(payload.next())?;
        while receiver.poll(|record| payload::check(record, options.size, sequence))? == 0 {}
        sequence += 1;
        Ok(())
    };
    for _ in 0..options.warm_up {
        call()?;
    }
    say("warm");
    await_go()?;

    let started_ns = now_ns();
    for _ in 0..options.records {
        call()?;
    }
    let ended_ns = now_ns();
    let mut before_ns = ended_ns;
    for sample_ns in samples_ns.iter_mut() {
        call()?;
        let after_ns = now_ns();
        *sample_ns = (after_ns - before_ns).min(u32::MAX.into()) as u32;
        before_ns = after_ns;
    }
    let bytes: Vec<u8> = samples_ns.iter().flat_map(|ns| ns.to_le_bytes()).collect();
    std::fs::write(format!("{}/samples", options.directory), bytes)?;
    say(&format!(
        "{{\"started_ns\": {started_ns}, \"ended_ns\": {ended_ns}}}"
    ));
    await_end();
    Ok(())
}

fn answer(channels: &Channels, options: &Options) -> Outcome<()> {
    let receiver = channels.receiver("there")?;
    say("ready");
    await_go()?;
    let sender = channels.sender("back")?;
    let answer = |count: u64| -> Outcome<()> {
        let mut left = count;
        while left != 0 {
            left -= receiver.poll(|record| sender.send(record))?;
        }
        Ok(())
    };
    answer(options.warm_up)?;
    say("warm");
    await_go()?;
    answer(2 * options.records)?;
    say("{}");
    await_end();
    Ok(())
}

// Records are as in cpp/peer.hpp.

fn be_victim(options: &Options, channels: &Channels) -> Outcome<()> {
    say("ready");
    await_go()?;
    let record = vec![0u8; options.size];
    let sender = channels.sender("data")?;
    sender.send(&record)?;
    say("warm");
    loop {
        sender.send(&record)?;
    }
}

fn survive(options: &Options, channels: &Channels) -> Outcome<()> {
    static KILLED_NS: AtomicU64 = AtomicU64::new(0);
    say("ready");
    await_go()?;
    std::thread::spawn(|| {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            KILLED_NS.store(line.parse().unwrap_or(0), Ordering::Relaxed);
        }
        std::process::exit(0) // The other thread may be stuck forever.
    });
    let mut record = vec![0u8; options.size];
    let sender = channels.sender("data")?;
    let mut is_first = true;
    loop {
        record[..8].copy_from_slice(&1u64.to_le_bytes());
        // Read before the clock, so the record is sent later.
        record[16..24].copy_from_slice(&KILLED_NS.load(Ordering::Relaxed).to_le_bytes());
        record[8..16].copy_from_slice(&now_ns().to_le_bytes());
        sender.send(&record)?;
        if is_first {
            say("warm");
            is_first = false;
        }
        std::thread::sleep(Duration::from_micros(100));
    }
}

fn watch(channels: &Channels) -> Outcome<()> {
    let receiver = channels.receiver("data")?;
    say("ready");
    await_go()?;
    let mut survivors = VecDeque::new();
    let (mut has_seen_victim, mut is_warm, mut killed_ns) = (false, false, 0);
    while killed_ns == 0 {
        receiver.poll(|record| {
            if payload::word_at(record, 0)? != 1 {
                has_seen_victim = true;
                return Ok(());
            }
            survivors.push_back((payload::word_at(record, 1)?, now_ns()));
            if survivors.len() > REMEMBERED {
                survivors.pop_front();
            }
            killed_ns = payload::word_at(record, 2)?;
            Ok(())
        })?;
        if !is_warm && has_seen_victim && !survivors.is_empty() {
            is_warm = true;
            say("warm");
        }
    }
    let first = survivors.iter().find(|(sent_ns, _)| *sent_ns >= killed_ns);
    let (_, received_ns) = first.ok_or("no record was sent after the kill")?;
    say(&format!("{{\"recovery_ns\": {}}}", received_ns - killed_ns));
    await_end();
    Ok(())
}

fn run() -> Outcome<()> {
    let options = Options::parse(std::env::args().skip(1))?;
    let channels = Channels::new(&options)?;
    match options.role.as_str() {
        "writer" => write(&options, &channels),
        "reader" => read(&options, &channels),
        "caller" => call(&options, &channels),
        "answerer" => answer(&channels, &options),
        "victim" => be_victim(&options, &channels),
        "survivor" => survive(&options, &channels),
        "watcher" => watch(&channels),
        other => Err(format!("no such role: {other}").into()),
    }
}

fn main() {
    if let Err(error) = run() {
        eprintln!("{error}");
        std::process::exit(1);
    }
}
