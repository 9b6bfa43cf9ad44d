// What connections hold of messages larger than 64 KiB, in one direction: the parts of unfinished ones that producers send,
// or what pullers have not taken. One bound for all connections.
//
//     if (!large.take(waiter, connection, bytes)) pause();   // waiter.on_room() is called when it may take: try again
//     large.release(connection);                             // also at the latest when it is closed
//     large.leave(waiter);                                   // before it is gone
//
// While somebody waits for room, the clients of those that hold some must move 64 KiB every two seconds, or a sixteenth of
// what they hold if that is more: so each message is through in half a minute. Those that are slower are cut off, the oldest
// first, as many as it takes. Nobody is cut off while nobody waits. Belongs to the thread of its event loop.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>

#include "broker/loop/timer.hpp"
#include "peer.hpp"

namespace leat::broker {

class LargeMessages {
 public:
  static constexpr std::size_t kMost = 128u << 20;
  static constexpr std::size_t kSmall = 64 * 1024;  // Up to here, a message counts nothing.

  // One connection. Must outlive what it holds: release() comes first.
  class Holder {
   public:
    virtual ~Holder() = default;
    // How many bytes its client has moved since the connection began.
    virtual std::uint64_t moved_bytes() const = 0;
    // Returns true if progress depends on the client.
    virtual bool waits_for_client() = 0;
    // Closes the connection soon.
    virtual void cut_off() = 0;

   private:
    friend class LargeMessages;
    std::uint64_t number_ = 0;  // Its key in holding_; 0: it holds nothing.
  };

  // A producer's connection, or a topic for all of its pullers. Must outlive its place in line: leave() comes first.
  class Waiter {
   public:
    virtual ~Waiter() = default;
    // Called after the waiter has left the line. It may call take().
    virtual void on_room() = 0;
    // Origins take turns. Waiters of none take turns with them as if they were one.
    virtual std::optional<Origin> origin() const { return {}; }
    // Whether it has a place in line.
    bool waits() const noexcept { return number_ != 0; }

   private:
    friend class LargeMessages;
    std::uint64_t number_ = 0;  // Its key in its line; 0: it is in none.
  };

  explicit LargeMessages(boost::asio::io_context& loop, std::size_t most = kMost,
                         std::chrono::milliseconds patience = std::chrono::seconds{2})
      : most_{most}, patience_{patience}, wake_{loop}, check_timer_{loop} {}

  // `holder` holds nothing yet. False: `waiter` is in line. If nobody holds anything, the first may take more than the bound.
  bool take(Waiter& waiter, Holder& holder, std::size_t bytes);
  void release(Holder& holder);
  void leave(Waiter& waiter);

  std::size_t bytes() const noexcept { return bytes_; }

 private:
  struct Held {
    Holder* holder;
    std::size_t bytes;
    std::uint64_t moved;    // When it had last moved enough.
    int still_checks = -1;  // Since then, while others waited. The first look comes early.
    bool is_closing = false;
  };
  struct Waiting {
    Waiter* waiter;
    std::size_t bytes;
  };
  using Line = std::map<std::uint64_t, Waiting>;  // The first one first.

  bool has_room_for(std::size_t bytes) const noexcept {
    return bytes_ == 0 || bytes <= most_ - std::min(most_, bytes_);
  }
  void hold(Holder& holder, std::size_t bytes);
  void line_up(Waiter& waiter, std::size_t bytes);
  void remove(Line& line, std::uint64_t number);
  // The line that has the next turn; null if nobody waits.
  Line* next_line();
  bool has_room_for_next();
  void wake_soon();
  void wake();
  void check_regularly();
  void check(Held& held);
  void cut_off_stopped();

  const std::size_t most_;
  const std::chrono::milliseconds patience_;
  std::uint64_t last_number_ = 0;
  std::size_t bytes_ = 0;                  // In holding_.
  std::map<std::uint64_t, Held> holding_;  // The oldest first.
  std::size_t waiting_bytes_ = 0;          // In lines_.
  std::map<std::optional<Origin>, Line> lines_;
  // Origins of all lines, the next one first. A line without waiters stays until its turn comes.
  std::deque<std::optional<Origin>> turns_;
  const Waiter* turn_ = nullptr;  // During on_room(), until it takes: it need not line up again.
  bool is_checking_ = false;
  Timer wake_;
  PatientTimer check_timer_;
};

}  // namespace leat::broker
