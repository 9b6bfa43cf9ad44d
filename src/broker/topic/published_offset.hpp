// How far the broker itself has published, so that those who pass it on look no further.
//
//     OwnEnd own_end{loop, [this] { return topic.end_offset(0); }, [this] { look(); }};
//     own_end.tell(end);                           // published
//     while (!own_end.is_reached(reached) && look_once()) …
//
// A look that finds nothing arms the library's descriptor (wait_fd). The next record then wakes a helper thread, that
// one the descriptor, and that one the event loop, which costs more than to pass the record on. While the broker
// publishes it knows without all this what is there. What others publish meanwhile it finds by the topic's end, at which it
// looks every millisecond; look() is called then, and when the broker has published nothing for 8 ms.
// Belongs to the thread of its event loop.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "broker/loop/timer.hpp"

namespace leat::broker {

class OwnEnd {
 public:
  OwnEnd(boost::asio::io_context& loop, std::function<std::uint64_t()> end_of_topic,
         std::function<void()> look)
      : timer_{loop}, end_of_topic_{std::move(end_of_topic)}, look_{std::move(look)} {}

  void tell(std::uint64_t end) {
    end_ = end;
    ticks_ = 0;
    if (!timer_.is_running()) start();
  }
  // Whether somebody who has passed on everything before this offset may wait until look() is called.
  bool is_reached(std::uint64_t offset) const noexcept {
    return timer_.is_running() && offset >= end_;
  }
  // The next look has to find what others published as well.
  void forget() { timer_.stop(); }

 private:
  static constexpr std::chrono::milliseconds kTick{1};
  static constexpr int kQuiet = 8;  // Ticks.

  void start() {
    timer_.start(kTick, [this] {
      if (++ticks_ < kQuiet && end_of_topic_() == end_) return start();
      look_();
    });
  }

  Timer timer_;
  std::function<std::uint64_t()> end_of_topic_;
  std::function<void()> look_;
  std::uint64_t end_ = 0;
  int ticks_ = 0;  // Since the broker published last.
};

}  // namespace leat::broker
