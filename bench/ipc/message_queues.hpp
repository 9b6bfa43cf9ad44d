// Message queues of Boost and POSIX: each message goes to one receiver. Methods of `leat bench ipc`, and
// what `leat bench group --peers` compares with.
//
//     const auto queue = make_queue(QueueKind::boost_mq, 100);  // before the processes start
//     queue->send(record);                                      // in any of them; waits for room
//     const std::size_t size = queue->receive(buffer);          // waits for a record
//
// Forked processes inherit the queue. Its name is removed as soon as it is made, so nothing is left
// behind however the processes end.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "bench/failure.hpp"

namespace leat::bench {

enum class QueueKind { boost_mq, mq_posix };
inline constexpr std::array<QueueKind, 2> kQueueKinds = {QueueKind::boost_mq, QueueKind::mq_posix};

// As in the JSON.
const char* name_of(QueueKind kind) noexcept;

class MessageQueue {
 public:
  MessageQueue() = default;
  MessageQueue(const MessageQueue&) = delete;
  MessageQueue& operator=(const MessageQueue&) = delete;
  virtual ~MessageQueue() = default;

  virtual void send(std::span<const std::byte> record) = 0;
  // `buffer` must have room for the largest record.
  virtual std::size_t receive(std::span<std::byte> buffer) = 0;
  // The same without waiting: false, or nothing, if they would have to wait.
  virtual bool try_send(std::span<const std::byte> record) = 0;
  virtual std::optional<std::size_t> try_receive(std::span<std::byte> buffer) = 0;
  // How many records fit into it.
  virtual std::uint64_t depth() const noexcept = 0;
};

// A queue for records of up to `size` bytes; throws Failure if this machine has none.
std::unique_ptr<MessageQueue> make_queue(QueueKind kind, std::size_t size);

}  // namespace leat::bench
