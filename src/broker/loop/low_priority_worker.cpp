#include "low_priority_worker.hpp"

#include <sched.h>

#include <utility>

#include "leat/os/os.hpp"

namespace leat::broker {

LowPriorityWorker::LowPriorityWorker() {
  const leat::os::SignalsBlocked blocked;
  thread_ = std::thread{[shared = shared_] { serve(shared); }};
}

LowPriorityWorker::~LowPriorityWorker() {
  const bool ends_at_once = is_free();
  shared_->is_over = true;
  shared_->asked.release();
  if (ends_at_once) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

bool LowPriorityWorker::is_free() {
  if (!is_free_ && shared_->ended.try_acquire()) take_back();
  return is_free_;
}

bool LowPriorityWorker::run(std::function<void()> work, std::chrono::milliseconds patience) {
  if (!is_free()) return false;
  shared_->work = std::move(work);
  is_free_ = false;
  shared_->asked.release();
  if (shared_->ended.try_acquire_for(patience)) take_back();
  return is_free_;
}

void LowPriorityWorker::take_back() {
  shared_->work = nullptr;
  is_free_ = true;
}

void LowPriorityWorker::serve(const std::shared_ptr<Shared>& shared) {
  const sched_param none{};
  // Where it is refused, the thread is one like others.
  (void)::sched_setscheduler(0, SCHED_IDLE, &none);
  while (true) {
    shared->asked.acquire();
    if (shared->is_over) return;
    shared->work();
    shared->ended.release();
  }
}

}  // namespace leat::broker
