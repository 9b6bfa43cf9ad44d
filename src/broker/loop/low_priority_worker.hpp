// A thread that runs only while no other thread wants its CPU (SCHED_IDLE).
//
//     LowPriorityWorker worker;
//     auto answer = std::make_shared<int>();
//     if (worker.run([answer] { *answer = long_work(); }, 100ms)) use(*answer);
//     else …                                        // The machine is busy: it goes on, and the answer is lost.
//
// On a busy machine its turn may not come for seconds, not even to release a lock: what it runs must not take any
// that others want, of the memory allocator's neither, and must own what it uses. Used by one thread at a time.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <semaphore>
#include <thread>

namespace leat::broker {

class LowPriorityWorker {
 public:
  LowPriorityWorker();
  LowPriorityWorker(const LowPriorityWorker&) = delete;
  LowPriorityWorker& operator=(const LowPriorityWorker&) = delete;
  // Does not wait: what runs goes on, and the thread ends after it. What has not begun is dropped.
  ~LowPriorityWorker();

  // Whether what run() began has ended.
  bool is_free();
  // Runs the work there and waits for it. False if it is not free, or after `patience`: then the work goes on, and is
  // destroyed, by the caller's thread, once is_free() has said that it has ended.
  bool run(std::function<void()> work, std::chrono::milliseconds patience);

 private:
  struct Shared {
    std::function<void()> work;           // Handed over by the semaphores.
    std::counting_semaphore<2> asked{0};  // For work, and to end.
    std::binary_semaphore ended{0};
    std::atomic<bool> is_over = false;
  };

  static void serve(const std::shared_ptr<Shared>& shared);
  void take_back();

  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  bool is_free_ = true;
  std::thread thread_;
};

}  // namespace leat::broker
