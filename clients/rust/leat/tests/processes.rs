//! If this failed, a child process would use what belongs to its parent, or a program would ignore Ctrl-C. Alone in its
//! process, because it forks, and handles signals.

use leat::*;
use std::io::BufRead;
use std::os::fd::AsRawFd;
use std::os::unix::thread::JoinHandleExt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

// The standard library has none of these.
extern "C" {
    fn fork() -> i32;
    fn waitpid(pid: i32, status: *mut i32, options: i32) -> i32;
    fn kill(pid: i32, number: i32) -> i32;
    fn _exit(status: i32) -> !;
    fn signal(number: i32, handler: extern "C" fn(i32)) -> usize;
    fn siginterrupt(number: i32, flag: i32) -> i32;
    fn pthread_kill(thread: std::os::unix::thread::RawPthread, number: i32) -> i32;
}
const SIGUSR1: i32 = 10;
const SIGKILL: i32 = 9;

fn options(path: &std::path::Path) -> TopicOptions {
    TopicOptions {
        capacity_bytes: 1 << 16,
        segment_bytes: 1 << 13,
        place: Place {
            directory: Some(path.to_owned()),
            data_directory: None,
        },
        ..Default::default()
    }
}

struct Handles {
    topic: Topic,
    publisher: Publisher,
    subscriber: Subscriber,
    group: Group,
    member: Member,
}

fn make(path: &std::path::Path) -> Handles {
    let topic = Topic::open_or_create("topic", &options(path)).unwrap();
    let publisher = topic.publisher(&Default::default()).unwrap();
    let subscriber = topic.subscriber(&Default::default()).unwrap();
    let group = topic.group("workers", &Default::default()).unwrap();
    let member = group.join(&Default::default()).unwrap();
    Handles {
        topic,
        publisher,
        subscriber,
        group,
        member,
    }
}

fn publish_and_read(handles: &mut Handles) {
    handles.publisher.publish(b"mine", None).unwrap();
    let batch = handles
        .subscriber
        .receive(64, Duration::from_secs(10))
        .unwrap();
    assert!(batch.records().any(|record| record.value() == b"mine"));
}

/// What the child finds wrong; 0 if nothing.
fn in_child(mut handles: Handles, stoppers: [Stopper; 3], path: &std::path::Path) -> i32 {
    let forked: Error = Code::Forked.into();
    let had_descriptor = handles.subscriber.as_raw_fd(); // Made by the parent.
    let results = [
        handles.publisher.publish(b"x", None).map(drop),
        handles.publisher.publish_batch(&["x"], None).map(drop),
        handles.publisher.claim(1, None).map(drop),
        handles.subscriber.poll(1).map(drop),
        handles.subscriber.wait(Timeout::NOW),
        wait_any(&[&handles.subscriber], Timeout::NOW).map(drop),
        handles.member.receive(1, Timeout::NOW).map(drop),
        handles.member.acknowledge_all().map(drop),
        handles.topic.publisher(&Default::default()).map(drop),
        handles.topic.info().map(drop),
        handles.group.info().map(drop),
        stoppers[0].stop(),
        stoppers[1].resume(),
        stoppers[2].is_stopped().map(drop),
    ];
    if let Some(at) = results
        .iter()
        .position(|result| result.as_ref() != Err(&forked))
    {
        return at as i32 + 1;
    }
    if had_descriptor < 0 || handles.subscriber.wait_fd().is_ok() {
        return 100;
    }
    drop(handles);
    let mut own = make(path);
    publish_and_read(&mut own);
    0
}

fn a_child_cannot_use_what_it_inherited(path: &std::path::Path) {
    let mut handles = make(path);
    handles.subscriber.wait_fd().unwrap();
    let stoppers = [
        handles.publisher.stopper(),
        handles.subscriber.stopper(),
        handles.member.stopper(),
    ];
    let stop = AtomicBool::new(false);
    let status = std::thread::scope(|threads| {
        // The lock that the child inherits may be held by a thread that it does not have.
        threads.spawn(|| {
            // relaxed: it only ends the loop.
            while !stop.load(Ordering::Relaxed) {
                stoppers[1].resume().unwrap();
            }
        });
        let mut failed = 0;
        for _ in 0..20 {
            // SAFETY: the child uses this client only, prints nothing, and ends.
            let child = unsafe { fork() };
            if child == 0 {
                // SAFETY: the child's copy; the parent keeps its own.
                let copy = unsafe { std::ptr::read(&handles) };
                let found = in_child(copy, stoppers.clone(), path);
                unsafe { _exit(found) };
            }
            let mut status = 0;
            unsafe { waitpid(child, &mut status, 0) };
            failed |= status;
        }
        stop.store(true, Ordering::Relaxed);
        failed
    });
    assert_eq!(status, 0, "what failed, times 256");
    publish_and_read(&mut handles);
}

static HANDLED: AtomicU32 = AtomicU32::new(0);

extern "C" fn handle(_: i32) {
    HANDLED.fetch_add(1, Ordering::Relaxed); // relaxed: it is only counted.
}

fn a_signal_ends_a_wait_on_request(path: &std::path::Path) {
    // SAFETY: the handler only counts.
    unsafe {
        signal(SIGUSR1, handle);
        siginterrupt(SIGUSR1, 1);
    }
    let topic = Topic::open_or_create("topic", &options(path)).unwrap();
    for interruptible in [true, false] {
        let options = SubscriberOptions {
            interruptible,
            ..Default::default()
        };
        let mut subscriber = topic.subscriber(&options).unwrap();
        let stopper = subscriber.stopper();
        let waiting = std::thread::spawn(move || subscriber.wait(None));
        std::thread::sleep(Duration::from_millis(100));
        for _ in 0..100 {
            if waiting.is_finished() {
                break;
            }
            // SAFETY: it is not joined yet.
            unsafe { pthread_kill(waiting.as_pthread_t(), SIGUSR1) };
            std::thread::sleep(Duration::from_millis(1));
        }
        if !interruptible {
            stopper.stop().unwrap();
        }
        let expected = if interruptible {
            Code::Interrupted
        } else {
            Code::Stopped
        };
        assert_eq!(waiting.join().unwrap().unwrap_err().code, expected);
    }
    assert!(HANDLED.load(Ordering::Relaxed) > 1); // relaxed: the threads were joined.
}

/// Holds a record and an open claim, and then starts a child process of its own, before it gets killed.
#[test]
#[ignore = "the other test starts it"]
#[allow(clippy::zombie_processes)] // It is the child that outlives its parent.
fn victim() {
    let Some(path) = std::env::var_os("LEAT_RUST_VICTIM") else {
        return;
    };
    let mut handles = make(std::path::Path::new(&path));
    let deliveries = handles.member.receive(1, Duration::from_secs(10)).unwrap();
    assert_eq!(deliveries.len(), 1);
    let _claim = handles.publisher.begin_claim(8, None).unwrap();
    let survivor = std::process::Command::new("sleep")
        .arg("60")
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    println!("\nready {}", survivor.id());
    std::thread::sleep(Duration::from_secs(60));
}

/// Starts a victim, and kills it when it is ready; returns the process that it leaves.
fn kill_a_victim(path: &std::path::Path) -> i32 {
    let mut victim = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "victim", "--ignored", "--nocapture"])
        .env("LEAT_RUST_VICTIM", path)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let lines = std::io::BufReader::new(victim.stdout.take().unwrap()).lines();
    let ready = lines
        .map(|line| line.unwrap())
        .find_map(|line| line.strip_prefix("ready ").map(|pid| pid.parse().unwrap()));
    victim.kill().unwrap();
    victim.wait().unwrap();
    ready.expect("it did not fail")
}

fn a_killed_process_leaves_nothing_behind(path: &std::path::Path) {
    let mut handles = make(path);
    handles.group.seek(StartAt::End, None).unwrap();
    while !handles.subscriber.poll(64).unwrap().is_empty() {}
    for _ in 0..5 {
        handles.publisher.publish(b"work", None).unwrap();
        let survivor = kill_a_victim(path);
        // What it held comes to us, what it had claimed is a gap, although its own child still lives.
        let received = handles
            .member
            .receive_owned(1, Duration::from_secs(10))
            .unwrap();
        assert_eq!(received[0].entry.record().unwrap().value(), b"work");
        assert_eq!(received[0].deliveries, 2);
        handles.member.acknowledge(received[0].ticket).unwrap();
        let mut seen = Vec::new();
        while seen.len() < 2 {
            for entry in handles
                .subscriber
                .receive(64, Duration::from_secs(10))
                .unwrap()
            {
                seen.push(match entry {
                    Entry::Record(_) => None,
                    Entry::Gap(gap) => Some(gap.reason),
                });
            }
        }
        assert_eq!(seen, [None, Some(GapReason::Died)]);
        // SAFETY: it was started by the victim, and ends by itself much later.
        assert_eq!(unsafe { kill(survivor, SIGKILL) }, 0, "it was still there");
    }
}

#[test]
fn processes_and_signals() {
    let path = std::path::PathBuf::from(format!("/dev/shm/leat-rust-fork-{}", std::process::id()));
    a_child_cannot_use_what_it_inherited(&path);
    a_signal_ends_a_wait_on_request(&path);
    a_killed_process_leaves_nothing_behind(&path);
    let _ = std::fs::remove_dir_all(&path);
}
