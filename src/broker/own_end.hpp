// How far the broker itself has published, so that those who pass it on look no further.
//
//     OwnEnd own_end{loop, [this] { look(); }};
//     own_end.tell(end);                           // published; look() is called 1 ms after the first one
//     while (!own_end.is_reached(reached) && look_once()) …
//
// A look that finds nothing arms the library's descriptor (wait_fd). The next record then wakes a helper thread, that
// one the descriptor, and that one the event loop, which costs more than to pass the record on. While the broker
// publishes it knows without all this what is there; what others publish meanwhile it finds 1 ms later at the latest.
// Belongs to the thread of its event loop.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "broker/timer.hpp"

namespace leat::broker {

class OwnEnd {
 public:
  OwnEnd(boost::asio::io_context& loop, std::function<void()> look)
      : timer_{loop}, look_{std::move(look)} {}

  void tell(std::uint64_t end) {
    end_ = end;
    if (!timer_.is_running()) timer_.start(std::chrono::milliseconds{1}, look_);
  }
  // Whether somebody who has passed on everything before this offset may wait until look() is called.
  bool is_reached(std::uint64_t offset) const noexcept {
    return timer_.is_running() && offset >= end_;
  }
  // The next look has to find what others published as well.
  void forget() { timer_.stop(); }

 private:
  Timer timer_;
  std::function<void()> look_;
  std::uint64_t end_ = 0;
};

}  // namespace leat::broker
