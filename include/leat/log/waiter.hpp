// What waits for records: the part of a Subscriber, and of a Member of a group, that sleeps.
//
// It spins for a while, then sleeps on the topic's words. docs/internals/log.md, "Waiting", has the
// argument why no record is slept through.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>

#include "leat/deadline.hpp"
#include "leat/log/participant.hpp"
#include "leat/result.hpp"

namespace leat::inline v0::detail {

inline constexpr std::size_t kMaxWaiters = 64;  // Two words for each: the kernel takes 128 at most.

// Caught up with a stream of records, somebody who looks again at once takes each cache line from the
// publisher while it is being written, and slows both down 3 to 5 times. So it looks away for a
// moment, once it had kStream records without a pause; single messages are not delayed.
class Patience {
 public:
  static constexpr std::uint64_t kStream = 64;

  void set(std::int64_t ns) noexcept { ns_ = ns; }
  void note(std::uint64_t records) noexcept { streak_ += records; }
  // Called when there was nothing. With `yields` other threads may have the processor meanwhile.
  void look_away(bool yields) noexcept;

 private:
  std::int64_t ns_ = 0;
  std::uint64_t streak_ = 0;  // Records since there was nothing.
};

class WaitFd;
struct DeleteWaitFd {
  void operator()(WaitFd* wait_fd) const noexcept;
};

class Waiter {
 public:
  Waiter(Waiter&&) noexcept = default;
  Waiter& operator=(Waiter&&) noexcept = default;

  // Waits until poll() has something to do. Spins for `spin`, then sleeps without using the processor.
  //   timeout, stopped, forked; what else is wrong is left to poll()
  Result<void> wait(const Deadline& deadline = Deadline::never(), const std::stop_token& stop = {});
  // The same, ending with `stopped` when a descriptor is readable (an eventfd).
  Result<void> wait(const Deadline& deadline, int stop_fd);

  // A descriptor that is readable when poll() may have something to do; poll until it returns 0.
  // The first call starts a helper thread in this process (docs/guarantees.md has its cost).
  //   forked   this handle was inherited
  Result<int> wait_fd();

  // Ends the waits with `stopped`, now and later; calls still get what is there. Any thread.
  void stop_waits() noexcept;
  void resume_waits() noexcept { waits_stopped_->store(false); }
  bool waits_are_stopped() const noexcept { return waits_stopped_->load(); }

  // Waits until one of them is ready, or its topic deleted; returns its index.
  //   timeout, stopped, forked, invalid_argument
  static Result<std::size_t> wait_any(std::span<Waiter* const> waiters, const Deadline& deadline,
                                      const std::stop_token& stop);

 protected:
  explicit Waiter(bool shares_work);
  ~Waiter();

  // Whether there is something to do now.
  virtual bool is_ready() noexcept = 0;
  // Before it sleeps: does what nobody else may do (repairs). Returns after how many ns at the latest it
  // must look again, 0 for never. An error is left to whoever polls.
  virtual Result<std::int64_t> look_around() = 0;

  // Called when poll() found nothing: looks around at each tick of the kernel's cheap clock.
  //   deleted, corrupt
  Result<void> note_nothing();
  // Joined, and with as much patience as the machine allows.
  void begin(Participant participant, std::int64_t spin_ns, std::int64_t patience_ns);

  SharedTopic& shared() const noexcept { return participant_.topic(); }

  Participant participant_;
  Patience patience_;
  std::int64_t spin_ns_ = 0;
  std::int64_t looked_tick_ns_ = 0;

 private:
  void arm_wait_fd();

  bool shares_work_;  // Others do the same: then whoever finds nothing lets them run.
  std::unique_ptr<std::atomic<bool>> waits_stopped_;
  std::unique_ptr<WaitFd, DeleteWaitFd> wait_fd_;
};

}  // namespace leat::inline v0::detail
