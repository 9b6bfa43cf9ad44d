// How far the broker itself has published, so that those who pass it on look no further.
//
//     PublishedOffset published_offset{loop, [this] { return topic.end_offset(0); }, [this] { poll(); }};
//     published_offset.advance(end);                           // published
//     while (!published_offset.is_reached(reached) && poll_once()) …
//
// A look that finds nothing arms the library's descriptor (wait_fd). The next record then wakes a helper thread, that
// one the descriptor, and that one the event loop, which costs more than to pass the record on. While the broker
// publishes it knows without all this what is there. What others publish meanwhile it finds by the topic's end, at which it
// looks every millisecond; poll() is called then, and when the broker has published nothing for 8 ms.
// Belongs to the thread of its event loop.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "broker/loop/timer.hpp"

namespace leat::broker {

class PublishedOffset {
 public:
  PublishedOffset(boost::asio::io_context& loop, std::function<std::uint64_t()> end_of_topic,
                  std::function<void()> poll)
      : timer_{loop}, end_of_topic_{std::move(end_of_topic)}, poll_{std::move(poll)} {}

  void advance(std::uint64_t end) {
    end_ = end;
    ticks_ = 0;
    if (!timer_.is_running()) start();
  }
  // Whether somebody who has passed on everything before this offset may wait until poll() is called.
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
      poll_();
    });
  }

  Timer timer_;
  std::function<std::uint64_t()> end_of_topic_;
  std::function<void()> poll_;
  std::uint64_t end_ = 0;
  int ticks_ = 0;  // Since the broker published last.
};

}  // namespace leat::broker
