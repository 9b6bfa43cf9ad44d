// What connections hold of messages larger than 64 KiB, in one direction: the parts of unfinished ones that producers send,
// or what pullers have not taken. One bound for all connections.
//
//     if (!large.take(connection, bytes)) pause();   // connection.on_room() is called once there may be room: try again
//     large.release(connection);                     // also at the latest when it is closed
//
// While somebody waits for room, the clients of those that hold some must move 64 KiB every two seconds. Those that do not
// are cut off, the oldest first, as many as it takes. Nobody is cut off while nobody waits. Belongs to the thread of its
// event loop.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>

#include "broker/timer.hpp"

namespace leat::broker {

class LargeMessages {
 public:
  static constexpr std::size_t kMost = 128u << 20;
  static constexpr std::size_t kSmall = 64 * 1024;  // Up to here, a message counts nothing.

  // One connection. Not gone before it is released.
  class Holder {
   public:
    virtual ~Holder() = default;
    // It has left the line, and takes room now, or not.
    virtual void on_room() = 0;
    // How many bytes its client has moved since the connection began.
    virtual std::uint64_t moved_bytes() const = 0;
    // It is the client's turn to move some, and not the broker's.
    virtual bool waits_for_client() = 0;
    // Closes the connection soon.
    virtual void cut_off() = 0;

   private:
    friend class LargeMessages;
    std::uint64_t number_ = 0;  // Its place in holding_ or waiting_; 0: in none.
  };

  explicit LargeMessages(boost::asio::io_context& loop, std::size_t most = kMost,
                         std::chrono::milliseconds patience = std::chrono::seconds{2})
      : most_{most}, patience_{patience}, wake_{loop}, look_{loop} {}

  // False: it waits in line. If nobody holds anything, the first may take more than the bound.
  bool take(Holder& holder, std::size_t bytes);
  void release(Holder& holder);

  std::size_t bytes() const noexcept { return bytes_; }

 private:
  struct Held {
    Holder* holder;
    std::size_t bytes;
    std::uint64_t moved;  // When it had last moved enough.
    int still_looks = 0;  // Since then, while others waited.
    bool is_closing = false;
  };
  struct Waiting {
    Holder* holder;
    std::size_t bytes;
  };

  bool has_room_for(std::size_t bytes) const noexcept {
    return bytes_ == 0 || bytes <= most_ - std::min(most_, bytes_);
  }
  void wake();
  void look_for_stopped();
  void look_at(Held& held);
  void cut_off_stopped();

  const std::size_t most_;
  const std::chrono::milliseconds patience_;
  std::size_t bytes_ = 0;
  std::uint64_t last_number_ = 0;
  std::map<std::uint64_t, Held> holding_;  // The oldest first.
  std::map<std::uint64_t, Waiting> waiting_;
  bool has_turn_ = false;  // Who takes next has waited in line.
  bool is_looking_ = false;
  Timer wake_;
  PatientTimer look_;
};

}  // namespace leat::broker
