// Shares the records of a topic among the consumers of a broker: each record goes to one of them.
//
//     auto reader = GroupReader::open(group);    // on any thread
//     GroupDispatcher dispatcher{loop, disk, topic, std::move(*reader), unsent, on_failure, on_progress};
//     dispatcher.add(consumer);                  // from now on it gets its share
//     dispatcher.on_sent(consumer);              // the kernel has all it was given: acknowledged,
//     dispatcher.on_done(consumer, 3);           // or only when its client says so, here of the oldest three
//     dispatcher.remove(consumer);               // what it did not send goes to others
//
// The broker is one member of the consumer group; local processes may be others. Consumers are dealt to in
// turn. Each gets a part of what the group still allows in flight, so that stalled ones leave some for the others.
// What a consumer could not send for a second goes back to the group. If no consumer could be given anything for a
// second, so does what was received. Before a large record is dealt, the dispatcher waits for memory, in line with
// those of other topics.
// On the loop it reads memory only. Where the next record is only on disk, it lends the member to the disk's thread; what is
// acknowledged or requeued meanwhile waits until the member is back.
// Belongs to the thread of its event loop.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "broker/loop/blocking_worker.hpp"
#include "broker/loop/fd_watcher.hpp"
#include "broker/loop/timer.hpp"
#include "broker/net/large_messages.hpp"
#include "group_reader.hpp"
#include "leat/leat.hpp"
#include "outcome/outcome.hpp"
#include "published_offset.hpp"

namespace leat::broker {

// The options of such a group. Few seats, because each has memory for all that its member may hold.
inline GroupOptions group_options(const From& from) {
  return {.from = from, .members = 8, .in_flight = 4096};
}

// A connection that gets some of a topic's records.
class GroupConsumer : public LargeMessages::Holder {
 public:
  // Adds a record to what send() sends.
  virtual void append(const Record& record) = 0;
  virtual void send() = 0;
  // Throws away some of what was appended, by the places of its bytes; the kernel has none of it.
  virtual void take_back(std::uint64_t begin, std::uint64_t end) = 0;
  // Bytes since the connection began: how many were appended, and how many the kernel took.
  virtual std::uint64_t appended() const = 0;
  virtual std::uint64_t sent() const = 0;
  // The kernel took everything and would take more.
  virtual bool is_idle() const = 0;
  // The kernel has taken nothing for a second.
  virtual bool is_stuck() const = 0;
  // Whether its client says what it is done with. Else that is what the kernel took.
  virtual bool acknowledges() const = 0;
  // How many records it was given that are not acknowledged.
  std::size_t in_flight() const noexcept { return in_flight_.size(); }

  std::uint64_t moved_bytes() const final { return sent(); }
  bool waits_for_client() final { return !is_idle(); }

 private:
  friend class GroupDispatcher;
  // How many of what it holds the kernel has taken whole.
  std::size_t sent_count() const;
  // The first `count` of what it holds are settled.
  void forget(std::size_t count);
  struct Place {
    std::uint64_t begin;
    std::uint64_t end;
  };
  std::vector<Delivery> in_flight_;
  std::vector<Place> places_;  // Of the bytes of each.
};

class GroupDispatcher : private LargeMessages::Waiter {
 public:
  // `on_failure` is called once, when nothing can be dealt any more; `on_progress` whenever records were received for
  // consumers.
  GroupDispatcher(boost::asio::io_context& loop, BlockingWorker& disk, const Topic& topic,
                  GroupReader reader, LargeMessages& unsent, std::function<void(Error)> on_failure,
                  std::function<void()> on_progress);
  GroupDispatcher(const GroupDispatcher&) = delete;
  GroupDispatcher& operator=(const GroupDispatcher&) = delete;
  ~GroupDispatcher() override { unsent_.leave(*this); }

  // There are new records; sooner than the library's descriptor would say so.
  void poll() {
    if (!is_dealing_) deal();
  }
  // The same; all of them are the broker's own, and this is their end.
  void poll_until(std::uint64_t end) {
    published_offset_.advance(end);
    poll();
  }
  // Whether another consumer can be added: each may hold at least one record of the half that is for consumers.
  bool has_room() const noexcept {
    return consumers_.size() < std::max<std::size_t>(1, limit_ / 2);
  }
  void add(GroupConsumer& consumer);
  void on_sent(GroupConsumer& consumer);
  // False if the kernel did not take so many; then nothing is done.
  bool on_done(GroupConsumer& consumer, std::uint64_t count);
  void remove(GroupConsumer& consumer);

  bool has_consumers() const noexcept { return !consumers_.empty(); }
  // Whether it waits for the disk.
  bool is_reading() const noexcept { return reader_.is_lent(); }
  // The offset behind the last record that was received for consumers; 0 before the first.
  std::uint64_t reached() const noexcept { return reached_; }

 private:
  // There may be memory for the next record.
  void on_room() override { poll(); }
  void deal();
  // Deals one round. False if there is nothing to deal, or nobody to deal to.
  bool deal_once();
  bool receive();
  // Takes over what the reader has received. False if that is nothing.
  bool take_received();
  GroupReader::Limits limits() const;
  void read_from_disk();
  // The member is back from the disk's thread.
  void on_read();
  // The most records for one consumer at a time. Many at once cost fewer system calls.
  std::size_t most_records() const;
  bool has_ready_consumer() const;
  // How many it may be given now. One that acknowledges may do so in lots.
  std::size_t room_of(const GroupConsumer& consumer) const;
  // Starts to look for records that go nowhere.
  void watch_for_stalls();
  void take_back_from_stalled();
  void requeue_received();
  // The first `count` of what it holds.
  void acknowledge(GroupConsumer& consumer, std::size_t count);
  // All that it holds from the one at `first` on, for others to get.
  void requeue(GroupConsumer& consumer, std::size_t first);
  void acknowledge(std::span<const Delivery> deliveries);
  void fail(Error error);

  PatientTimer stalled_;
  PublishedOffset published_offset_;
  Lendable<GroupReader> reader_;
  std::vector<Delivery> to_acknowledge_;  // When the member is back.
  std::vector<Delivery> to_requeue_;
  std::size_t limit_;  // How many records the group allows it to have in flight.
  LargeMessages& unsent_;
  std::function<void(Error)> on_failure_;
  std::function<void()> on_progress_;
  FdWatcher watcher_;
  std::vector<GroupConsumer*> consumers_;
  std::size_t next_ = 0;  // Whose turn it is.
  std::vector<Delivery> received_;
  std::size_t dealt_ = 0;              // of received_
  std::vector<GroupConsumer*> ready_;  // Kept for its memory.
  std::size_t in_hands_ = 0;           // How many records consumers hold.
  std::uint64_t dealt_total_ = 0;
  std::uint64_t reached_ = 0;
  bool is_dealing_ = false;
  bool is_full_ = false;  // The member holds as many records as it may.
  bool has_failed_ = false;
};

}  // namespace leat::broker
