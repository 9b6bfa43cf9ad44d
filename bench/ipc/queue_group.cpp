#include "queue_group.hpp"

#include <atomic>
#include <span>
#include <vector>

namespace leat::bench {
namespace {

class QueueTransport {
 public:
  explicit QueueTransport(MessageQueue& queue) : queue_{queue} {}
  void send(std::span<const std::byte> message) { queue_.send(message); }
  void flush() {}

 private:
  MessageQueue& queue_;
};

// Receivers sleep until a message comes, so the last sender to finish tells them that it is over, by an
// empty message for each.
class QueueSender {
 public:
  QueueSender(const Load& load, std::uint32_t index, MessageQueue& queue,
              std::atomic<std::uint32_t>& finished)
      : load_{load}, queue_{queue}, finished_{finished}, sending_{load, index, queue} {}

  void send(std::uint64_t count) {
    sending_.send(count);
    // relaxed: each sender counts after its own messages, so they are all in the queue at the end.
    const std::uint32_t finished = finished_.fetch_add(1, std::memory_order_relaxed) + 1;
    if (finished % load_.senders != 0) return;
    for (std::uint32_t i = 0; i < load_.receivers; ++i) queue_.send({});
  }

 private:
  const Load& load_;
  MessageQueue& queue_;
  std::atomic<std::uint32_t>& finished_;  // In all phases.
  Sending<QueueTransport> sending_;
};

class QueueReceiver {
 public:
  QueueReceiver(const Load& load, MessageQueue& queue, const Receipts& receipts,
                std::uint32_t index)
      : queue_{queue}, checker_{load, receipts, index}, buffer_(load.size) {}

  // Until the senders say that it is over.
  void receive(std::uint64_t /*count*/, RoleTimes& times) {
    while (const std::size_t size = queue_.receive(buffer_)) {
      checker_.check(std::span<const std::byte>(buffer_.data(), size));
    }
    times.end();
  }

 private:
  MessageQueue& queue_;
  Checker checker_;
  std::vector<std::byte> buffer_;
};

}  // namespace

MessageCost measure_queue(QueueKind kind, const GroupLoad& group, const std::vector<int>& cpus) {
  const auto queue = make_queue(kind, group.size);
  Load load = load_of(group);
  load.warm_up = load.count / 10 + 1;  // A queue holds less than a topic, and is slower.
  const Receipts receipts(load);
  const Shared<std::atomic<std::uint32_t>> finished(0u);
  return measure_sharing(
      load, receipts, cpus,
      [&](std::uint32_t i) { return QueueSender(load, i, *queue, *finished); },
      [&](std::uint32_t i) { return QueueReceiver(load, *queue, receipts, i); });
}

}  // namespace leat::bench
