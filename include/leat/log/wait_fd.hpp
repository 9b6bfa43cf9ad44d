// A file descriptor that tells epoll, asyncio and the like that a topic has something new.
//
// The kernel cannot turn a futex into a descriptor, so a helper thread in the waiting process
// sleeps on the topic's words and writes to an eventfd. It costs one thread, and two system calls
// and a thread switch per wake-up; nothing while records keep coming.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include "leat/log/shared_topic.hpp"
#include "leat/log/waiter.hpp"
#include "leat/os/event.hpp"
#include "leat/os/signals.hpp"

namespace leat::inline v0::detail {

class WaitFd {
 public:
  using Handle = std::unique_ptr<WaitFd, DeleteWaitFd>;

  // Waits on the topic's data word, or on `word`, which the topic must keep mapped.
  static Result<Handle> start(std::shared_ptr<SharedTopic> topic, std::uint32_t* word = nullptr) {
    EventFd fd;
    if (!fd) return last_system_error();
    const SignalsBlocked blocked;
    return Handle{new WaitFd{std::move(topic), word, std::move(fd)}};
  }
  ~WaitFd() {
    {
      const std::lock_guard guard{mutex_};
      stopping_ = true;
    }
    changed_.notify_one();
    topic_->wake_everybody();
    helper_.join();
  }

  int fd() const noexcept { return fd_.get(); }

  // Makes it readable when `stop` is requested, whoever does that. Replaces the token given before.
  void stop_on(const std::stop_token& stop) {
    if (stop == stop_) return;
    stop_ = stop;
    on_stop_.emplace(stop, Signal{this});
  }
  bool is_stop_requested() const noexcept { return stop_.stop_requested(); }

  // Makes the descriptor unreadable.
  void drain() noexcept { fd_.drain(); }

  // Makes the descriptor readable now if `ready`; otherwise when the topic's data word differs from
  // `value`, and with `look_again` after 2 ms in any case.
  void arm(std::uint32_t value, bool ready, bool look_again) {
    if (ready) {
      fd_.signal();
      return;
    }
    bool is_deaf = false;
    {
      const std::lock_guard guard{mutex_};
      armed_ = true;
      value_ = value;
      look_again_ = look_again;
      is_deaf = look_again && sleeps_for_ever_;
    }
    changed_.notify_one();
    // The helper sleeps without a timer: wake it, so that it sleeps again with one.
    if (is_deaf) SharedTopic::raise(topic_->header().data_wake);
  }

  // For a word of one's own: makes it unreadable until the word is woken after this call.
  void arm_again() {
    drain();
    // [sleeping] seq_cst: the bit is set before the caller looks.
    arm(fetch_or<Edge::sleeping>(*word_, kSleeping) | kSleeping, false, false);
  }

 private:
  friend struct DeleteWaitFd;
  struct Signal {
    const WaitFd* wait_fd;
    void operator()() const noexcept { wait_fd->fd_.signal(); }
  };

  WaitFd(std::shared_ptr<SharedTopic> topic, std::uint32_t* word, EventFd fd)
      : topic_{std::move(topic)}, word_{word}, fd_{std::move(fd)}, helper_{[this] { run(); }} {}

  void run() {
    std::unique_lock lock{mutex_};
    while (true) {
      changed_.wait(lock, [this] { return armed_ || stopping_; });
      if (stopping_) return;
      armed_ = false;
      const std::uint32_t value = value_;
      const bool look_again = look_again_;
      sleeps_for_ever_ = !look_again;
      lock.unlock();
      const SharedTopic::Sleep sleep{topic_.get(), value};
      const Deadline until =
          look_again ? Deadline{std::chrono::milliseconds{2}} : Deadline::never();
      if (word_ != nullptr) {
        futex_wait(*word_, value, until);
      } else {
        SharedTopic::sleep_for_data({&sleep, 1}, until);
      }
      fd_.signal();
      lock.lock();
      sleeps_for_ever_ = false;
    }
  }

  std::shared_ptr<SharedTopic> topic_;
  std::uint32_t* word_;  // Null: the topic's data word.
  EventFd fd_;
  std::stop_token stop_;
  std::optional<std::stop_callback<Signal>> on_stop_;  // Behind fd_, which it uses.
  std::mutex mutex_;
  std::condition_variable changed_;
  bool armed_ = false;  // Protected by mutex_, as are the next four.
  bool stopping_ = false;
  bool look_again_ = false;
  bool sleeps_for_ever_ = false;  // The helper sleeps without a timer.
  std::uint32_t value_ = 0;
  std::uint32_t fork_generation_ = fork_generation();
  std::thread helper_;  // Last: it uses the members above.
};

}  // namespace leat::inline v0::detail
