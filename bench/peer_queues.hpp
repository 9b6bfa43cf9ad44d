// The queues of others that `leat bench group` compares with: one queue between several processes,
// each record to one receiver.
//
//     const auto queue = make_peer_queue(Peer::boost_mq, 100);  // before the processes start
//     queue->send(record);                                      // in any of them; waits for room
//     const std::size_t size = queue->receive(buffer);          // waits for a record
//
// Forked processes inherit the queue. Its name is gone as soon as it was made, so that nothing is
// left behind however the processes end.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "failure.hpp"

namespace leat::bench {

enum class Peer { boost_mq, mq_posix };
inline constexpr std::array<Peer, 2> kPeers = {Peer::boost_mq, Peer::mq_posix};

// As in the JSON.
const char* name_of(Peer peer) noexcept;

class PeerQueue {
 public:
  PeerQueue() = default;
  PeerQueue(const PeerQueue&) = delete;
  PeerQueue& operator=(const PeerQueue&) = delete;
  virtual ~PeerQueue() = default;

  virtual void send(std::span<const std::byte> record) = 0;
  // `buffer` must have room for the largest record.
  virtual std::size_t receive(std::span<std::byte> buffer) = 0;
  // The same without waiting: false, or nothing, if it would have to.
  virtual bool try_send(std::span<const std::byte> record) = 0;
  virtual std::optional<std::size_t> try_receive(std::span<std::byte> buffer) = 0;
  // How many records it holds.
  virtual std::uint64_t depth() const noexcept = 0;
};

// A queue of records of up to `size` bytes; throws Failure if this machine has none.
std::unique_ptr<PeerQueue> make_peer_queue(Peer peer, std::size_t size);

}  // namespace leat::bench
