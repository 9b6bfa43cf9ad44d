// Gives every record of a topic to all its subscribers, encoded once for all of them.
//
//     auto reader = SubscriberReader::open(topic, encode);     // on any thread
//     Broadcaster broadcaster{loop, disk, topic, backlog, std::move(*reader), on_failure};
//     broadcaster.add(sink);                  // gets what is published from now on
//     broadcaster.remove(sink);
//
// On the loop it reads memory only. Where the next record is only on disk, it lends the subscriber to the disk's thread.
// Belongs to the thread of its event loop.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backlog.hpp"
#include "broker/loop/blocking_worker.hpp"
#include "broker/loop/fd_watcher.hpp"
#include "broker/loop/timer.hpp"
#include "leat/leat.hpp"
#include "outcome/outcome.hpp"
#include "published_offset.hpp"
#include "subscriber_reader.hpp"

namespace leat::broker {

// A connection that gets all of a topic's records. One that does not keep up drops chunks, or holds up all.
class SubscriberSink {
 public:
  virtual ~SubscriberSink() = default;
  virtual void take(const std::shared_ptr<const Chunk>& chunk) = 0;
  // So many records were overwritten before anybody could read them.
  virtual void lose(std::uint64_t records) = 0;
  // Nothing more is read from the topic before it calls poll_later(), so that publishers have to wait.
  virtual bool holds_up() const = 0;
};

class Broadcaster {
 public:
  // `on_failure` is called once, when nothing can be read any more.
  Broadcaster(boost::asio::io_context& loop, BlockingWorker& disk, const Topic& topic,
              Backlog& backlog, SubscriberReader reader, std::function<void(Error)> on_failure);
  Broadcaster(const Broadcaster&) = delete;
  Broadcaster& operator=(const Broadcaster&) = delete;

  // There are new records; sooner than the library's descriptor would say so.
  void poll() { pass_on(); }
  // The same; all of them are the broker's own, and this is their end.
  void poll_until(std::uint64_t end) {
    published_offset_.advance(end);
    pass_on();
  }
  void poll_later() {
    if (!timer_.is_running()) timer_.start(std::chrono::milliseconds{0}, [this] { pass_on(); });
  }
  void add(SubscriberSink& sink);
  void remove(SubscriberSink& sink);
  // Whether it waits for the disk.
  bool is_reading() const noexcept { return reader_.is_lent(); }

 private:
  void pass_on();
  // False if nothing was there.
  bool pass_on_once();
  void read_from_disk();
  // Gives the sinks what was read. False if that is nothing.
  bool pass_on_read();
  // Those whose first record is the next one get it.
  void let_in();
  bool is_held_up() const;
  // Nothing that a sink begins with is behind it.
  std::uint64_t read_until() const;

  const Topic& topic_;
  Backlog& backlog_;
  Timer timer_;
  PublishedOffset published_offset_;
  Lendable<SubscriberReader> reader_;
  std::function<void(Error)> on_failure_;
  FdWatcher watcher_;
  std::vector<SubscriberSink*> sinks_;
  std::deque<std::pair<std::uint64_t, SubscriberSink*>> coming_;  // Begin at this offset.
  std::uint64_t reached_ = 0;  // The offset behind the last record.
  bool has_failed_ = false;
};

}  // namespace leat::broker
