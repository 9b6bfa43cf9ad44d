// What may end a publisher's waits, besides the deadline and the stop token of a call.
#pragma once

#include <atomic>
#include <stop_token>

namespace leat::inline v0::detail {

struct WaitEnd {
  std::atomic<bool> stopped = false;  // By Publisher::stop_waits(), in any thread.
  bool interruptible = false;         // PublisherOptions::interruptible.

  // Whether a call with this stop token is to end; it may have none.
  bool came(const std::stop_token* stop) const noexcept {
    return (stop != nullptr && stop->stop_requested()) || stopped;
  }
};

}  // namespace leat::inline v0::detail
