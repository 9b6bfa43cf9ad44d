//! Waits for records in tokio's event loop: a subscriber is its own `AsyncFd`.
use leat::{StartAt, Subscriber, SubscriberOptions, Topic};
use tokio::io::{unix::AsyncFd, Interest};

/// The values of the next batch. A task that is cancelled while it waits here has taken nothing.
async fn next(subscriber: &mut AsyncFd<Subscriber>) -> std::io::Result<Vec<String>> {
    loop {
        let mut ready = subscriber.readable_mut().await?;
        let batch = ready.get_inner_mut().poll(64)?;
        if batch.is_empty() {
            ready.clear_ready(); // Only now: the descriptor stays readable until there is nothing.
            continue;
        }
        let text = |record: leat::Record<'_>| String::from_utf8_lossy(record.value()).into_owned();
        return Ok(batch.records().map(text).collect());
    }
}

async fn run() -> std::io::Result<()> {
    let topic = Topic::open_or_create("greetings", &Default::default())?;
    let mut publisher = topic.publisher(&Default::default())?;
    let options = SubscriberOptions {
        from: StartAt::Beginning,
        any_thread: true, // Its task may share a thread with one that publishes.
        ..Default::default()
    };
    let subscriber = topic.subscriber(&options)?;
    subscriber.wait_fd()?; // Makes the descriptor; as_raw_fd() could only panic.
                           // SAFETY: a subscriber keeps its descriptor open, and the same one, for as long as it lives.
    let mut subscriber =
        unsafe { AsyncFd::register_with_interest(subscriber, Interest::READABLE) }?;
    let reader = tokio::spawn(async move { next(&mut subscriber).await });
    tokio::task::yield_now().await; // The reader waits before there is anything.
    publisher.publish(b"hello from tokio", None)?;
    for text in reader.await?? {
        println!("{text}");
    }
    Ok(())
}

fn main() -> std::io::Result<()> {
    tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?
        .block_on(run())
}
