// The part of a Subscriber, or of a group's Member, that waits for records.
//
// It spins for a while, then sleeps on the topic's words. docs/internals/log.md, "Waiting",
// explains why no wake-up is lost.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>

#include "leat/deadline.hpp"
#include "leat/log/participant.hpp"
#include "leat/log/wait_handle.hpp"
#include "leat/result.hpp"

namespace leat::inline v0::detail {

inline constexpr std::size_t kMaxWaiters = 64;  // Two words for each: the kernel takes 128 at most.

// A subscriber that has caught up with a stream of records and polls again at once takes each
// cache line from the publisher while it is being written, which slows both down 3 to 5 times.
// So after kStream records without a pause, an empty poll pauses for a moment; single messages
// are not delayed.
class Patience {
 public:
  static constexpr std::uint64_t kStream = 64;

  void set(std::int64_t ns) noexcept { ns_ = ns; }
  void note(std::uint64_t records) noexcept { streak_ += records; }
  // Called after an empty poll. With `yields`, other threads may have the CPU meanwhile.
  void back_off(bool yields) noexcept;

 private:
  std::int64_t ns_ = 0;
  std::uint64_t streak_ = 0;  // Records since the last empty poll.
};

// How a subscriber or a member waits: see SubscriberOptions.
struct WaitOptions {
  std::int64_t spin_ns = 0;
  std::int64_t patience_ns = 0;
  bool any_thread = false;
  bool interruptible = false;
};

class Waiter {
 public:
  Waiter(Waiter&&) noexcept = default;
  Waiter& operator=(Waiter&&) = delete;

  // Waits until poll() has something to do. Spins for `spin`, then sleeps without using the CPU.
  //   timeout, stopped, interrupted, forked; other errors are reported by poll()
  Result<void> wait(const Deadline& deadline = Deadline::never(), const std::stop_token& stop = {});
  // As above; `stopped` when the descriptor (an eventfd, say) is readable.
  Result<void> wait(const Deadline& deadline, int stop_fd);

  // A descriptor that is readable when poll() may have something to do; poll until it returns 0.
  // It is also readable once `stop` is requested (of several calls, the last one's), and while waits are
  // stopped.
  // A helper thread of this process serves it, and others (docs/guarantees.md has its cost).
  //   forked   the handle was inherited through fork()
  Result<int> wait_fd(const std::stop_token& stop = {});

  // Makes waits return `stopped`, now and later, until resume_waits(). Any thread.
  void stop_waits() noexcept;
  void resume_waits() noexcept { waits_stopped_->store(false); }
  bool waits_are_stopped() const noexcept { return waits_stopped_->load(); }

  // Waits until one of the waiters is ready, or its topic deleted; returns its index.
  //   timeout, stopped, interrupted (if one is `interruptible`), forked, invalid_argument
  static Result<std::size_t> wait_any(std::span<Waiter* const> waiters, const Deadline& deadline,
                                      const std::stop_token& stop);

 protected:
  explicit Waiter(bool shares_work);
  ~Waiter();

  // Whether there is something to do now.
  virtual bool is_ready() noexcept = 0;
  // Called before sleeping: repairs what must be repaired. Returns within how many ns it must be
  // called again; 0: no limit. Errors are reported by the next poll.
  virtual Result<std::int64_t> housekeep() = 0;

  // Called after a poll that found something, but perhaps not everywhere: calls housekeep() once per tick of
  // the kernel's coarse clock. What it fails with is reported by a later poll.
  void note_some();
  // Called after an empty poll: calls housekeep() once per tick of the kernel's coarse clock.
  //   deleted, corrupt
  Result<void> note_nothing();
  // Called after a poll that had no records and is to be repeated: prepares the descriptor, because the
  // caller may wait for that now.
  void note_gaps() {
    if (wait_fd_ != nullptr) arm_wait_fd();
  }
  // Stores the joined participant and its options. On a single core there is neither
  // spin nor patience.
  void begin(Participant participant, const WaitOptions& options);
  // Tells publishers which thread polls, so that they notice when they wait for their own thread.
  void note_thread() noexcept;

  MappedTopic& shared() const noexcept { return participant_.topic(); }

  Participant participant_;
  Patience patience_;
  std::int64_t spin_ns_ = 0;
  std::int64_t housekept_tick_ns_ = 0;
  std::uint64_t thread_ = 0;  // The token of the thread that polled last.

 private:
  static std::optional<std::size_t> first_ready(std::span<Waiter* const> waiters);
  // Before it sleeps, until the deadline at most; the first that is ready meanwhile.
  template <class IsStopped>
  static std::optional<std::size_t> spin(std::span<Waiter* const> waiters, const Deadline& deadline,
                                         const IsStopped& is_stopped);
  void arm_wait_fd();
  bool is_topic_deleted() const noexcept;
  // By stop_waits(), or by the token that wait_fd() was given.
  bool is_stopped() const noexcept;

  bool any_thread_ = false;
  bool interruptible_ = false;
  bool shares_work_;     // Others do the same work: after an empty poll, let them run.
  bool yields_ = false;  // While it spins, and after an empty poll.
  std::unique_ptr<std::atomic<bool>> waits_stopped_;
  WaitHandle wait_fd_;
};

}  // namespace leat::inline v0::detail
