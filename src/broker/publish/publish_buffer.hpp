// Here messages of a broker's clients become records of a topic: they are collected into batches, so that one claim is for
// hundreds of messages.
//
//     for (…) if (publish_buffer.add(message) == PublishBuffer::Added::full) break;
//     if (publish_buffer.publish() == PublishBuffer::Added::full)
//       place = publish_buffer.call_when_room([…] { connection.resume(); });
//
// A protocol that gives records in units of its own, such as Kafka's batches, adds those instead:
//
//     publish_buffer.add_unit(records, [](Outcome<std::uint64_t> first) { answer(first); });
//
// Never waits: while the topic is full, what was added is kept. Belongs to the thread of its event loop.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "broker/loop/fd_watcher.hpp"
#include "broker/loop/timer.hpp"
#include "broker/loop/waiting_calls.hpp"
#include "leat/leat.hpp"
#include "outcome/outcome.hpp"

namespace leat::broker {

class PublishBuffer {
 public:
  // `full`: it is kept as well, but whoever sent it should send no more for now.
  enum class Added { yes, full, too_large, failed };

  // The offsets of the first record and behind the last one, and the bytes of their values.
  using OnPublished =
      std::function<void(std::uint64_t begin, std::uint64_t end, std::size_t bytes)>;

  // The offset of the first record of a unit; the others follow it.
  using OnUnit = std::function<void(Outcome<std::uint64_t>)>;
  struct Options {
    std::optional<std::uint32_t> partition = {};  // None: as the library chooses.
    bool is_durable = false;                      // The topic.
  };

  // What a buffer publishes with. On any thread: it may block.
  static Outcome<Publisher> open_publisher(const Topic& topic, const Options& options);
  // `publisher` is from open_publisher(). `on_failure` is called once, when nothing can be published any more.
  PublishBuffer(boost::asio::io_context& loop, std::string topic, Publisher publisher,
                std::function<void(Error)> on_failure, OnPublished on_published);
  PublishBuffer(const PublishBuffer&) = delete;
  PublishBuffer& operator=(const PublishBuffer&) = delete;

  Added add(Bytes message);
  // Makes what was added visible.
  Added publish();
  // Records that become visible together, in this order, with offsets that follow each other, and with nobody else's among
  // them. The bytes are copied. Answers when they are visible, never before it returns; whoever asked should ask for no more
  // until then. If the log is closed first, the topic's users are told, and there is no answer; that a user leaves changes
  // nothing. After an error nothing of the unit is in the topic.
  //   too_large          the records exceed what a batch holds; the sentence says the limit
  //   invalid_argument   there are none, or one names another partition
  void add_unit(std::span<const NewRecord> records, OnUnit done);
  // Whoever begins to send should wait first.
  bool is_full() const noexcept { return is_full_; }
  // After `full`: calls when it may have changed. Once, unless the place is destroyed before.
  [[nodiscard]] WaitingCalls::Place call_when_room(std::function<void()> call) {
    return waiting_.add(std::move(call));
  }

  // The largest message that a batch can hold.
  std::size_t largest() const noexcept { return publisher_.max_record_size() - kBatchOverhead; }
  // Messages that were added and are not visible.
  std::size_t waiting() const noexcept;

 private:
  static constexpr std::size_t kBatchOverhead = 32;  // At most, of a batch with one record.

  struct Unit {
    Batch batch;
    std::size_t bytes;
    OnUnit done;
  };

  Added add_to_batch(Bytes message);
  // What publish() does, with any batch; stores the offset of its first record.
  Added commit(Batch& batch, std::size_t bytes, std::uint64_t& first);
  Problem problem_of_unit(Error error) const;
  void commit_units();
  // On the loop, later, unless this is gone.
  void answer(OnUnit done, Outcome<std::uint64_t> outcome);
  void wait_for_room();
  void on_room();
  void say_later_that_disk_has_room();
  Added fail(Error error);

  boost::asio::io_context& loop_;
  const std::shared_ptr<bool> is_alive_ = std::make_shared<bool>(true);
  const std::string name_;  // Of the topic.
  Timer later_;
  Timer calm_;
  Publisher publisher_;
  Batch batch_;
  std::function<void(Error)> on_failure_;
  OnPublished on_published_;
  FdWatcher room_;
  std::size_t batch_bytes_ = 0;   // in batch_
  std::deque<std::string> kept_;  // Came while the batch and the topic were full.
  std::deque<Unit> units_;        // Those that wait, behind the others.
  bool is_committing_ = false;    // What it publishes may make somebody add another one.
  WaitingCalls waiting_;
  bool is_full_ = false;
  int tries_ = 0;              // in a row, that found no room
  bool disk_is_full_ = false;  // The log has said so.
  bool has_failed_ = false;
};

}  // namespace leat::broker
