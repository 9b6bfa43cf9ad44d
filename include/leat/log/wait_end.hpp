// What may end a publisher's waits, besides the deadline and the stop token of a call.
#pragma once

#include <atomic>

namespace leat::inline v0::detail {

struct WaitEnd {
  std::atomic<bool> stopped = false;  // By Publisher::stop_waits(), in any thread.
  bool interruptible = false;         // PublisherOptions::interruptible.
};

}  // namespace leat::inline v0::detail
