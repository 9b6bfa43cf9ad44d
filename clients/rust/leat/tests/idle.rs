//! If this failed, a program that only waits would keep a machine busy. Alone in its process, whose CPU time it reads.

use leat::*;
use std::thread;
use std::time::Duration;

#[repr(C)]
struct TimeSpec {
    seconds: i64,
    nanoseconds: i64,
}

// The standard library has no CPU clock.
extern "C" {
    fn clock_gettime(clock: i32, time: *mut TimeSpec) -> i32;
}
const CLOCK_PROCESS_CPUTIME_ID: i32 = 2;

/// Of all threads of this process.
fn cpu_time() -> Duration {
    let mut time = TimeSpec {
        seconds: 0,
        nanoseconds: 0,
    };
    // SAFETY: it stores what we point to.
    assert_eq!(
        unsafe { clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &mut time) },
        0
    );
    Duration::new(time.seconds as u64, time.nanoseconds as u32)
}

const IDLE: Duration = Duration::from_secs(2);

/// Waits of each kind for records, and the thread behind a descriptor, together cost less than 0.1 % of a CPU. Cold
/// caches of a loaded machine add to it, so the least of three counts. A publisher that waits for room is not idle: it
/// looks every 2 ms whether somebody died who holds room (docs/guarantees.md).
#[test]
fn idle_waits_cost_nothing() {
    let path = std::path::PathBuf::from(format!("/dev/shm/leat-rust-idle-{}", std::process::id()));
    let options = TopicOptions {
        capacity_bytes: 1 << 16,
        segment_bytes: 1 << 13,
        place: Place {
            directory: Some(path.clone()),
            data_directory: None,
        },
        ..Default::default()
    };
    let topic = Topic::create("topic", &options).unwrap();
    let group = topic.group("workers", &Default::default()).unwrap();
    let mut member = group.join(&Default::default()).unwrap();
    let [mut one, two, three] = [(); 3].map(|_| topic.subscriber(&Default::default()).unwrap());
    let stoppers = [member.stopper(), one.stopper(), three.stopper()];
    two.wait_fd().unwrap(); // A helper thread serves it.
    let hour = Duration::from_secs(3600);
    let waits: [Box<dyn FnOnce() -> Option<Error> + Send>; 3] = [
        Box::new(move || member.receive(64, None).err()),
        Box::new(move || one.receive(64, hour).err()),
        Box::new(move || wait_any(&[&two, &three], None).err()),
    ];
    let waiting = waits.map(thread::spawn);
    thread::sleep(Duration::from_millis(200)); // They have begun.
    let mut least = IDLE;
    for _ in 0..3 {
        let before = cpu_time();
        thread::sleep(IDLE);
        least = least.min(cpu_time() - before);
        if least < IDLE / 1000 {
            break;
        }
    }
    assert!(waiting.iter().all(|thread| !thread.is_finished()));
    for stopper in stoppers {
        stopper.stop().unwrap();
    }
    for thread in waiting {
        assert_eq!(thread.join().unwrap(), Some(Code::Stopped.into()));
    }
    let _ = std::fs::remove_dir_all(&path);
    assert!(least < IDLE / 1000, "{least:?} of CPU time in {IDLE:?}");
}
