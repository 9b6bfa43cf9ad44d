// A file descriptor that tells epoll, asyncio and the like that a topic has something new.
//
// The kernel cannot turn a futex into a descriptor, so a helper thread in the waiting process
// sleeps on the topic's words and writes to an eventfd. The descriptors of a process share helper
// threads (log/wait_helper.hpp). A wake-up costs two system calls and a thread switch; nothing while
// records keep coming.
#pragma once

#include <cerrno>
#include <memory>
#include <optional>
#include <stop_token>
#include <system_error>
#include <utility>

#include "leat/log/wait_handle.hpp"
#include "leat/log/wait_helper.hpp"

namespace leat::inline v0::detail {

class WaitFd {
 public:
  // Waits on the topic's data word, or on `word`, which the topic must keep mapped. `helper`: instead
  // of those that descriptors share.
  static Result<WaitHandle> start(std::shared_ptr<MappedTopic> topic, std::uint32_t* word = nullptr,
                                  WaitHelper* helper = nullptr) {
    EventFd fd;
    if (!fd) return last_system_error();
    try {
      return WaitHandle{new WaitFd{std::move(topic), word, std::move(fd), helper}};
    } catch (const std::system_error& failure) {  // No thread.
      errno = failure.code().value();
      return last_system_error();
    }
  }
  ~WaitFd() {
    if (is_own_helper_) {
      helper_->remove(awaited_);
    } else {
      WaitHelpers::remove(*helper_, awaited_);
    }
  }

  int fd() const noexcept { return fd_.get(); }

  // Makes it readable when `stop` is requested, whoever does that. Replaces the token given before.
  void stop_on(const std::stop_token& stop) {
    if (stop == stop_) return;
    stop_ = stop;
    on_stop_.emplace(stop, Signal{this});
  }
  bool is_stop_requested() const noexcept { return stop_.stop_requested(); }

  void signal() noexcept { fd_.signal(); }  // Makes the descriptor readable.
  // Makes it unreadable until arm() or signal(), even if the helper is just waking for an earlier arm().
  void drain() noexcept {
    helper_->disarm(awaited_);
    fd_.drain();
  }

  // Makes the descriptor readable when the word differs from `value`, and with `check_again` after
  // 2 ms in any case.
  void arm(std::uint32_t value, bool check_again) { helper_->arm(awaited_, value, check_again); }

  // For a word of one's own: makes it unreadable until the word is woken after this call.
  void arm_again() {
    drain();
    arm(MappedTopic::announce_sleep(*awaited_.word), false);
  }

 private:
  friend struct DeleteWaitFd;
  struct Signal {
    const WaitFd* wait_fd;
    void operator()() const noexcept { wait_fd->fd_.signal(); }
  };

  WaitFd(std::shared_ptr<MappedTopic> topic, std::uint32_t* word, EventFd fd, WaitHelper* helper)
      : topic_{std::move(topic)},
        fd_{std::move(fd)},
        awaited_{topic_.get(), word, &fd_},
        is_own_helper_{helper != nullptr},
        helper_{is_own_helper_ ? helper : &WaitHelpers::add(awaited_)} {
    if (is_own_helper_) helper_->add(awaited_);
  }

  std::shared_ptr<MappedTopic> topic_;
  EventFd fd_;
  Awaited awaited_;
  bool is_own_helper_;
  WaitHelper* helper_;
  std::stop_token stop_;
  std::optional<std::stop_callback<Signal>> on_stop_;  // Behind fd_, which it uses.
  std::uint32_t fork_generation_ = fork_generation();
};

}  // namespace leat::inline v0::detail
