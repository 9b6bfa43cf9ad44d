// Holds a topic's producers to the speed of its consumers.
//
//     PublisherThrottle throttle{loop, [&] { return dispatcher.reached(); }};
//     throttle.add(batch_end, bytes);                        // for each batch that was published
//     if (throttle.is_ahead()) place = throttle.call_when_level([…] { connection.resume(); });
//     throttle.on_progress();                                // consumers have taken some
//
// A topic in memory may grow, for bursts that nobody takes yet. But memory that was never touched is slow, and what waits
// in it arrives late. So while consumers go on, producers may be 16 MiB ahead of them. When consumers have stood still
// for 100 ms, producers go on, and fill the topic up. Belongs to the thread of its event loop.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>

#include "broker/loop/timer.hpp"
#include "broker/loop/waiting_calls.hpp"

namespace leat::broker {

class PublisherThrottle {
 public:
  // The offset behind the last record that consumers have taken; none while there are no consumers.
  using Reached = std::function<std::optional<std::uint64_t>()>;

  PublisherThrottle(boost::asio::io_context& loop, Reached reached)
      : reached_{std::move(reached)}, timer_{loop} {}

  // Records of so many bytes were published, up to this offset.
  void add(std::uint64_t end, std::size_t bytes);
  // Whether producers are to stop for now.
  bool is_ahead();
  // If is_ahead(): calls once, when that has changed, unless the place is destroyed before.
  [[nodiscard]] WaitingCalls::Place call_when_level(std::function<void()> call) {
    return waiting_.add(std::move(call));
  }
  void on_progress();
  // The log is another one from now on.
  void begin_anew() {
    batches_.clear();
    bytes_ = 0;
    stood_still_at_.reset();
  }

 private:
  struct Batch {
    std::uint64_t end;  // offset
    std::size_t bytes;
  };
  // How many bytes were added behind the offset.
  std::size_t bytes_behind(std::uint64_t offset);
  void watch(std::uint64_t reached, int polls);
  void call_waiting();

  Reached reached_;
  std::deque<Batch> batches_;  // What the consumers have not reached, small batches together.
  std::size_t bytes_ = 0;      // of batches_
  WaitingCalls waiting_;
  // Where consumers stood still: nobody waits for them before they go on.
  std::optional<std::uint64_t> stood_still_at_;
  Timer timer_;           // Runs while producers are stopped.
  bool is_over_ = false;  // They go on as soon as it calls.
};

}  // namespace leat::broker
