//! The two ends of an iceoryx2 service. All its files lie in the driver's directory, or have a name that
//! begins with the directory's, so that the driver can remove them.

use crate::talk::{Options, Outcome};
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::prelude::*;
use iceoryx2::service::port_factory::publish_subscribe::PortFactory;
use std::cell::Cell;
use std::time::Duration;

const BUFFER_RECORDS: usize = 1024;
const MAX_PUBLISHERS: usize = 4; // A victim, its survivor, and some for leftovers.

pub struct Channels {
    node: Node<ipc::Service>,
    directory: String,
    size: usize,
}

pub struct Sender {
    publisher: Publisher<ipc::Service, [u8], ()>,
    marker: Cell<Option<String>>, // None once the receiver is known to be connected.
    _service: PortFactory<ipc::Service, [u8], ()>,
}

pub struct Receiver {
    subscriber: Subscriber<ipc::Service, [u8], ()>,
    directory: String,
    last_publisher: Cell<u128>,
    _service: PortFactory<ipc::Service, [u8], ()>,
}

impl Channels {
    pub fn new(options: &Options) -> Outcome<Self> {
        set_log_level(LogLevel::Fatal);
        let name = options.directory.rsplit('/').next().unwrap_or_default();
        let mut config = Config::default();
        config
            .global
            .set_root_path(&Path::new(options.directory.as_bytes())?);
        config.global.prefix = FileName::new(format!("{name}_").as_bytes())?;
        let node = NodeBuilder::new()
            .config(&config)
            .create::<ipc::Service>()?;
        Ok(Channels {
            node,
            directory: options.directory.clone(),
            size: options.size,
        })
    }

    fn service(&self, channel: &str) -> Outcome<PortFactory<ipc::Service, [u8], ()>> {
        Ok(self
            .node
            .service_builder(&channel.try_into()?)
            .publish_subscribe::<[u8]>()
            .enable_safe_overflow(false)
            .subscriber_max_buffer_size(BUFFER_RECORDS)
            .history_size(0)
            .max_publishers(MAX_PUBLISHERS)
            .max_subscribers(1)
            .open_or_create()?)
    }

    pub fn receiver(&self, channel: &str) -> Outcome<Receiver> {
        let service = self.service(channel)?;
        let subscriber = service
            .subscriber_builder()
            .buffer_size(BUFFER_RECORDS)
            .create()?;
        Ok(Receiver {
            subscriber,
            directory: self.directory.clone(),
            last_publisher: Cell::new(0),
            _service: service,
        })
    }

    pub fn sender(&self, channel: &str) -> Outcome<Sender> {
        let service = self.service(channel)?;
        let publisher = service
            .publisher_builder()
            .initial_max_slice_len(self.size)
            .max_loaned_samples(1)
            .backpressure_strategy(BackpressureStrategy::RetryUntilDelivered)
            .create()?;
        let marker = marker_of(&self.directory, publisher.id().value());
        Ok(Sender {
            publisher,
            marker: Cell::new(Some(marker)),
            _service: service,
        })
    }
}

impl Sender {
    /// Writes the record where the receiver sees it; waits for room.
    pub fn send(&self, record: &[u8]) -> Outcome<()> {
        let sample = self.publisher.loan_slice_uninit(record.len())?;
        sample.write_from_slice(record).send()?;
        if let Some(marker) = self.marker.take() {
            while !std::path::Path::new(&marker).exists() {
                std::thread::sleep(Duration::from_micros(100));
            }
        }
        Ok(())
    }
}

/// A subscriber connects to a new publisher when it next looks for records. Until then the publisher does
/// not wait for it, and drops what exceeds the buffer. So the sender sends only one record before the
/// receiver has created this file.
fn marker_of(directory: &str, publisher: u128) -> String {
    format!("{directory}/joined.{publisher:x}")
}

impl Receiver {
    /// Passes on the next record if there is one; returns how many.
    pub fn poll(&self, mut on_record: impl FnMut(&[u8]) -> Outcome<()>) -> Outcome<u64> {
        match self.subscriber.receive()? {
            Some(sample) => {
                let publisher = sample.origin().value();
                if publisher != self.last_publisher.replace(publisher) {
                    std::fs::write(marker_of(&self.directory, publisher), "")?;
                }
                on_record(sample.payload()).map(|()| 1)
            }
            None => {
                std::hint::spin_loop();
                Ok(0)
            }
        }
    }
}
