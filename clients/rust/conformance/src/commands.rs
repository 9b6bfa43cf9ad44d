//! One function for each command of topics, publishers and subscribers. Each returns what stands behind `ok`.

use crate::groups;
use crate::handles::{find, keep, Handles, Object};
use crate::with;
use crate::words::{decode, encode, fail, Command};
use leat::*;
use std::fmt::Write;

/// As many entries as C's driver takes at once.
const BATCH: usize = 64;

/// None: no such command.
pub fn run(handles: &Handles, c: &mut Command<'_>) -> Option<Result<String>> {
    Some(match c.word(0) {
        "create" => create(handles, c),
        "open" => Topic::open(c.word(2), c.timeout(0)).map(|it| keep_topic(handles, c, it)),
        "delete" => Topic::delete(c.word(1), c.is_set("force")).map(nothing),
        "info" => info(handles, c),
        "publisher" => publisher(handles, c),
        "publish" => publish(handles, c),
        "batch" => batch(handles, c),
        "claim" | "commit" | "abort" | "abandon" => claims(handles, c),
        "flush" => with!(handles, c, 1, Object::Publisher(publisher, _), {
            publisher.flush(c.timeout(10000)).map(nothing)
        }),
        "durable_offset" => with!(handles, c, 1, Object::Publisher(publisher, _), {
            publisher.durable_offset(None).map(offset_result)
        }),
        "subscriber" => subscriber(handles, c),
        "poll" => poll(handles, c),
        "take" => take(handles, c, false),
        "view" => take(handles, c, true),
        "wait" => with!(
            handles,
            c,
            1,
            object,
            match object {
                Object::Subscriber(subscriber) => subscriber.wait(c.timeout(0)).map(nothing),
                Object::Member(member, _) => member.wait(c.timeout(0)).map(nothing),
                _ => fail("not such a handle", c.word(1)),
            }
        ),
        "wait_any" => wait_for_any(handles, c),
        "offset" => with!(handles, c, 1, Object::Subscriber(subscriber), {
            subscriber
                .offset(c.number("partition").unwrap_or(0))
                .map(offset_result)
        }),
        "stop" => stopper(handles, c).stop().map(nothing),
        "resume" => stopper(handles, c).resume().map(nothing),
        "close" => close(handles, c),
        "error_names" => {
            writeln!(c.out, "0 ok").unwrap();
            for code in Code::ALL {
                writeln!(c.out, "{} {code}", code.number()).unwrap();
            }
            Ok(String::new())
        }
        _ => return groups::run(handles, c),
    })
}

pub fn nothing(_: ()) -> String {
    String::new()
}
pub fn offset_result(offset: u64) -> String {
    format!(" offset={offset}")
}

fn keep_topic(handles: &Handles, c: &Command<'_>, topic: Topic) -> String {
    keep(handles, c, Object::Topic(topic));
    String::new()
}

fn create(handles: &Handles, c: &Command<'_>) -> Result<String> {
    let options = TopicOptions {
        policy: match c.option("policy").unwrap_or("block") {
            "block" => Policy::Block,
            "fail" => Policy::Fail,
            "overwrite" => Policy::Overwrite,
            "grow" => Policy::Grow,
            other => fail("no such policy", other),
        },
        durable: match c.option("durable").unwrap_or("none") {
            "none" => Durability::None,
            "os" => Durability::Os,
            "interval" => Durability::Interval,
            "fsync" => Durability::Fsync,
            other => fail("no such durability", other),
        },
        capacity_bytes: c.number("capacity").unwrap_or(0),
        segment_bytes: c.number("segment").unwrap_or(0),
        partitions: c.number("partitions").unwrap_or(1),
        timestamps: c.is_set("timestamps"),
        retain_all: c.is_set("retain_all"),
        sync_interval: c.milliseconds("sync_interval").unwrap_or_default(),
        ..Default::default()
    };
    Topic::create(c.word(2), &options).map(|topic| keep_topic(handles, c, topic))
}

fn info(handles: &Handles, c: &Command<'_>) -> Result<String> {
    let info = with!(handles, c, 1, Object::Topic(topic), topic.info())?;
    let end: u64 = info.partitions.iter().map(|partition| partition.end).sum();
    Ok(format!(" partitions={} end={end}", info.partitions.len()))
}

// ---- Publishers ---------------------------------------------------------------------------------

fn publisher(handles: &Handles, c: &Command<'_>) -> Result<String> {
    let options = PublisherOptions {
        exclusive: c.is_set("exclusive"),
        partition: c.number("partition"),
        acknowledge: match c.option("acknowledge").unwrap_or("default") {
            "default" => Stage::Default,
            "committed" => Stage::Committed,
            "durable" => Stage::Durable,
            other => fail("no such stage", other),
        },
        ..Default::default()
    };
    let made = with!(
        handles,
        c,
        2,
        Object::Topic(topic),
        topic.publisher(&options)
    )?;
    keep(handles, c, Object::Publisher(made, None));
    Ok(String::new())
}

fn publish(handles: &Handles, c: &Command<'_>) -> Result<String> {
    let value = c.value();
    let key = c.option("key").map(decode);
    let parts: Vec<_> = c
        .options("header")
        .map(|text| {
            text.split_once(':')
                .unwrap_or_else(|| fail("no header", text))
        })
        .map(|(name, value)| (decode(name), decode(value)))
        .collect();
    let headers: Vec<_> = parts
        .iter()
        .map(|(name, value)| NewHeader::new(name, value))
        .collect();
    let mut record = NewRecord::new(&value).headers(&headers);
    if let Some(key) = &key {
        record = record.key(key);
    }
    if let Some(partition) = c.number("partition") {
        record = record.partition(partition);
    }
    with!(handles, c, 1, Object::Publisher(publisher, _), {
        publisher
            .publish_record(&record, c.timeout(0))
            .map(offset_result)
    })
}

fn batch(handles: &Handles, c: &Command<'_>) -> Result<String> {
    let values: Vec<_> = match c.option("prefix") {
        Some(prefix) => (0..c.number::<u64>("count").unwrap_or(1))
            .map(|number| format!("{}{number}", String::from_utf8(decode(prefix)).unwrap()))
            .map(String::into_bytes)
            .collect(),
        None => c.options("value").map(decode).collect(),
    };
    with!(handles, c, 1, Object::Publisher(publisher, _), {
        publisher
            .publish_batch(&values, c.timeout(0))
            .map(offset_result)
    })
}

fn claims(handles: &Handles, c: &Command<'_>) -> Result<String> {
    with!(
        handles,
        c,
        1,
        Object::Publisher(publisher, claim),
        match (c.word(0), claim) {
            ("claim", claim) => {
                let made = publisher.begin_claim(c.number("size").unwrap_or(0), c.timeout(0))?;
                Ok(offset_result(claim.insert(made).offset()))
            }
            ("abandon", _) => {
                let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    let mut claim = publisher.claim(8, None).unwrap();
                    claim[0] = 1;
                    panic!("before it was committed");
                }));
                assert!(panicked.is_err());
                Ok(String::new())
            }
            (_, None) => fail("there was no claim", c.word(1)),
            ("abort", Some(claim)) => publisher.abort(claim).map(nothing),
            (_, Some(claim)) => {
                let value = c.value();
                if let Some(room) = publisher.claimed(claim)?.get_mut(..value.len()) {
                    room.copy_from_slice(&value);
                }
                publisher.commit(claim, value.len()).map(nothing)
            }
        }
    )
}

// ---- Subscribers --------------------------------------------------------------------------------

fn subscriber(handles: &Handles, c: &Command<'_>) -> Result<String> {
    let in_place = c.is_set("in_place");
    let options = SubscriberOptions {
        from: c.from("from"),
        partition: c.number("partition"),
        gating: !in_place && !c.is_set("lossy"),
        in_place,
        any_thread: !c.is_set("own_thread"), // `start` uses it in another.
        ..Default::default()
    };
    let made = with!(
        handles,
        c,
        2,
        Object::Topic(topic),
        topic.subscriber(&options)
    )?;
    keep(handles, c, Object::Subscriber(made));
    Ok(String::new())
}

fn print_gap(out: &mut String, gap: &Gap) {
    let (partition, offset, count) = (gap.partition, gap.offset, gap.count);
    write!(
        out,
        "gap partition={partition} offset={offset} count={count} reason={}",
        gap.reason
    )
    .unwrap();
}

fn print_parts(
    out: &mut String,
    (partition, offset): (u32, u64),
    (value, key): (&[u8], Option<&[u8]>),
    headers: Headers<'_>,
    timestamp_ms: Option<u64>,
) {
    write!(out, "record partition={partition} offset={offset} value=").unwrap();
    encode(out, value);
    if let Some(key) = key {
        out.push_str(" key=");
        encode(out, key);
    }
    for header in headers {
        out.push_str(" header=");
        encode(out, header.name);
        out.push(':');
        encode(out, header.value);
    }
    if let Some(then) = timestamp_ms {
        write!(out, " timestamp={then}").unwrap();
    }
}

/// Without the end of the line.
pub fn print(out: &mut String, entry: &Entry<'_>) {
    match entry {
        Entry::Gap(gap) => print_gap(out, gap),
        Entry::Record(it) => print_parts(
            out,
            (it.partition(), it.offset()),
            (it.value(), it.key()),
            it.headers(),
            it.timestamp_ms(),
        ),
    }
}

/// The same for a copy of one.
pub fn print_copy(out: &mut String, entry: &OwnedEntry) {
    match entry {
        OwnedEntry::Gap(gap) => print_gap(out, gap),
        OwnedEntry::Record(it) => print_parts(
            out,
            (it.partition(), it.offset()),
            (it.value(), it.key()),
            it.headers(),
            it.timestamp_ms(),
        ),
    }
}

fn poll(handles: &Handles, c: &mut Command<'_>) -> Result<String> {
    let limit = c.number("limit").unwrap_or(BATCH).min(BATCH);
    with!(handles, c, 1, Object::Subscriber(subscriber), {
        for entry in &subscriber.poll_owned(limit)? {
            print(&mut c.out, &entry);
            c.out.push('\n');
        }
        Ok(String::new())
    })
}

fn take(handles: &Handles, c: &mut Command<'_>, in_place: bool) -> Result<String> {
    let mut left: usize = c.number("count").unwrap_or(1);
    with!(handles, c, 1, Object::Subscriber(subscriber), {
        while left != 0 {
            let batch = subscriber.receive(left.min(BATCH), c.timeout(10000))?;
            left -= batch.records().count();
            for entry in &batch {
                match in_place {
                    true => print(&mut c.out, &entry),
                    false => print_copy(&mut c.out, &entry.to_owned()),
                }
                c.out.push('\n');
            }
        }
        Ok(String::new())
    })
}

fn wait_for_any(handles: &Handles, c: &Command<'_>) -> Result<String> {
    let names = c.words[1..].iter().take_while(|word| !word.contains('='));
    let found: Vec<_> = names.map(|name| find(handles, name)).collect();
    let locked: Vec<_> = found
        .iter()
        .map(|handle| handle.object.lock().unwrap())
        .collect();
    let subscribers: Vec<_> = locked
        .iter()
        .map(|object| match &**object {
            Object::Subscriber(subscriber) => subscriber,
            _ => fail("not such a handle", "wait_any"),
        })
        .collect();
    wait_any(&subscribers, c.timeout(0)).map(|index| format!(" index={index}"))
}

// ---- All kinds of handles -----------------------------------------------------------------------

fn stopper(handles: &Handles, c: &Command<'_>) -> Stopper {
    match find(handles, c.word(1)).stopper {
        Some(stopper) => stopper,
        None => fail("it does not wait", c.word(1)),
    }
}

fn close(handles: &Handles, c: &Command<'_>) -> Result<String> {
    match handles.lock().unwrap().remove(c.word(1)) {
        Some(handle) => drop(handle),
        None => fail("no such handle", c.word(1)),
    }
    Ok(String::new())
}
