// The threads that sleep for this process's wait descriptors (log/wait_fd.hpp).
//
// The kernel takes 128 words for one sleep. A descriptor needs two at most, the topic's data word and
// its robust wake, and the helper one of its own, on which it learns of changes: so one thread serves 63
// descriptors. Kernels without futex_waitv (before Linux 5.16) sleep on one word: there, each
// descriptor has a thread. docs/internals/log.md, "Waiting".
#pragma once

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "leat/base/clock.hpp"
#include "leat/log/mapped_topic.hpp"
#include "leat/os/event.hpp"
#include "leat/os/fork_state.hpp"

namespace leat::inline v0::detail {

// What a helper does for one descriptor. Who owns it keeps all of this until WaitHelper::remove().
struct Awaited {
  MappedTopic* topic;   // Constant, as the next two.
  std::uint32_t* word;  // Null: the topic's data word.
  const EventFd* fd;
  bool is_armed = false;  // The helper's, as the rest: protected by its mutex.
  bool is_slept_on = false;
  std::uint32_t value = 0;       // Armed: signals fd when the word has another value,
  std::int64_t check_at_ns = 0;  // or at this time; 0: never.

  std::uint32_t& slept_word() const noexcept {
    return word != nullptr ? *word : topic->header().data_wake;
  }
};

class WaitHelper {
 public:
  static constexpr std::size_t kMost = (kMaxFutexWaits - 1) / 2;

  // `is_shared`: the kernel can sleep on many words.
  explicit WaitHelper(bool is_shared = has_futex_waitv()) : is_shared_{is_shared} {
    awaited_.reserve(most());
    slept_on_.reserve(most());
  }
  WaitHelper(const WaitHelper&) = delete;
  WaitHelper& operator=(const WaitHelper&) = delete;
  ~WaitHelper() {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard guard{mutex_};
      is_stopping_ = true;
      ++changes_;
    }
    futex_wake_all(changes_);
    thread_.join();
  }
  // Signals must be blocked. May throw system_error.
  void start() {
    thread_ = std::thread{[this] {
      while (serve()) {
      }
    }};
  }
  std::size_t most() const noexcept { return is_shared_ ? kMost : 1; }

  // At most most() at a time.
  void add(Awaited& awaited) {
    const std::lock_guard guard{mutex_};
    awaited_.push_back(&awaited);
  }
  // When it returns, the helper uses neither its words nor its descriptor any more.
  void remove(Awaited& awaited) noexcept {
    std::unique_lock lock{mutex_};
    std::erase(awaited_, &awaited);
    if (!awaited.is_slept_on) return;
    ++changes_;
    lock.unlock();
    wake(awaited, true);
    lock.lock();
    has_woken_.wait(lock, [&] { return !awaited.is_slept_on; });
  }

  // Signals the descriptor once, when its word differs from `value`, and with `check_again` after 2 ms
  // in any case.
  void arm(Awaited& awaited, std::uint32_t value, bool check_again) noexcept {
    bool is_asleep_on_it = false;
    {
      const std::lock_guard guard{mutex_};
      awaited.is_armed = true;
      awaited.value = value;
      awaited.check_at_ns = check_again ? ns_from_now(kCheckAgain) : 0;
      is_asleep_on_it = awaited.is_slept_on;
      const bool is_in_time = !check_again || (until_ns_ != 0 && until_ns_ <= awaited.check_at_ns);
      // Asleep on this word, even with an older value, it wakes in time to compare the word anew.
      if (!is_asleep_ || (is_asleep_on_it && is_in_time)) return;
      ++changes_;
    }
    wake(awaited, is_asleep_on_it);
  }

  // When it returns, the helper does not signal this descriptor until it is armed again.
  void disarm(Awaited& awaited) noexcept {
    const std::lock_guard guard{mutex_};
    awaited.is_armed = false;
  }

  // Sleeps once, and signals what is due. False if the helper is to end.
  bool serve() noexcept {
    std::unique_lock lock{mutex_};
    if (is_stopping_) return false;
    collect();
    is_asleep_ = true;
    lock.unlock();
    sleep();
    lock.lock();
    is_asleep_ = false;
    for (Awaited* const one : slept_on_) one->is_slept_on = false;
    slept_on_.clear();
    has_woken_.notify_all();
    const std::int64_t now = now_ns();
    for (Awaited* const one : awaited_) {
      if (!one->is_armed || !is_due(*one, now)) continue;
      one->is_armed = false;
      one->fd->signal();
    }
    return !is_stopping_;
  }

 private:
  static bool is_due(const Awaited& one, std::int64_t now) noexcept {
    // relaxed: if a change is seen late, the kernel sees it, and the next sleep ends at once.
    return load_relaxed<Why::hint>(one.slept_word()) != one.value ||
           (one.check_at_ns != 0 && one.check_at_ns <= now);
  }

  // Notes what to sleep on, and for how long. The mutex is held.
  void collect() noexcept {
    until_ns_ = 0;
    data_count_ = 0;
    word_count_ = 0;
    words_[word_count_++] = {&changes_, changes_};
    for (Awaited* const one : awaited_) {
      if (!one->is_armed) continue;
      one->is_slept_on = true;
      slept_on_.push_back(one);
      if (one->check_at_ns != 0)
        until_ns_ = until_ns_ == 0 ? one->check_at_ns : std::min(until_ns_, one->check_at_ns);
      if (one->word == nullptr && is_shared_) {
        data_[data_count_++] = {one->topic, one->value};
      } else {
        // Only one word can be slept on: changes are announced by raising it.
        if (!is_shared_) word_count_ = 0;
        words_[word_count_++] = {&one->slept_word(), one->value};
      }
    }
  }

  void sleep() const noexcept {
    const Deadline until =
        until_ns_ == 0 ? Deadline::never() : Deadline::never().at_most_ns(until_ns_ - now_ns());
    if (is_shared_) {
      MappedTopic::sleep_for_data({data_.data(), data_count_}, until, {words_.data(), word_count_});
    } else {
      futex_wait(*words_[0].word, words_[0].expected, until);
    }
  }

  // Called without the mutex, after `changes_` was raised.
  void wake(const Awaited& awaited, bool is_asleep_on_it) noexcept {
    if (!is_shared_ && is_asleep_on_it) {
      MappedTopic::raise(awaited.slept_word());
    } else {
      futex_wake_all(changes_);
    }
  }

  const bool is_shared_;
  std::mutex mutex_;
  std::condition_variable has_woken_;
  std::vector<Awaited*> awaited_;  // Protected by mutex_, as the next five.
  std::vector<Awaited*> slept_on_;
  std::int64_t until_ns_ = 0;  // When the sleep ends; 0: never.
  bool is_asleep_ = false;     // Or about to sleep: what to sleep on is settled.
  bool is_stopping_ = false;
  std::uint32_t changes_ = 0;                     // The helper's own futex.
  std::array<MappedTopic::Sleep, kMost> data_{};  // The thread's, as the rest: what it sleeps on.
  std::array<FutexWait, kMost + 1> words_{};
  std::size_t data_count_ = 0;
  std::size_t word_count_ = 0;
  std::thread thread_;
};

// The helpers of this process. Each call holds up fork(), so that a child finds the list whole; its
// threads stayed in the parent, so the child forgets it.
class WaitHelpers {
 public:
  // A helper with room for one more, which is added. May throw system_error, bad_alloc.
  static WaitHelper& add(Awaited& awaited) {
    const ForkHeld held;
    WaitHelpers& mine = own();
    for (One& one : mine.all_) {
      if (one.used == one.helper->most()) continue;
      one.helper->add(awaited);
      ++one.used;
      return *one.helper;
    }
    auto helper = std::make_unique<WaitHelper>();
    helper->add(awaited);
    helper->start();
    mine.all_.push_back({std::move(helper), 1});
    return *mine.all_.back().helper;
  }
  // Ends the helper if this was its last one.
  static void remove(WaitHelper& helper, Awaited& awaited) noexcept {
    helper.remove(awaited);
    std::unique_ptr<WaitHelper> ends;  // Joined after fork() may go on.
    const ForkHeld held;
    WaitHelpers& mine = own();
    const auto one =
        std::ranges::find(mine.all_, &helper, [](One& each) { return each.helper.get(); });
    if (--one->used != 0) return;
    ends = std::move(one->helper);
    mine.all_.erase(one);
  }

 private:
  struct One {
    std::unique_ptr<WaitHelper> helper;
    std::size_t used;  // Descriptors.
  };

  // Never destroyed: descriptors may live as long as the process.
  static WaitHelpers& own() {
    static WaitHelpers& helpers = *new WaitHelpers;
    if (helpers.fork_generation_ != fork_generation()) {
      for (One& one : helpers.all_) (void)one.helper.release();
      helpers.all_.clear();
      helpers.fork_generation_ = fork_generation();
    }
    return helpers;
  }

  std::vector<One> all_;
  std::uint32_t fork_generation_ = fork_generation();
};

}  // namespace leat::inline v0::detail
