// The thread that hashes passwords, one at a time.
//
//     PasswordWorker worker;
//     auto asked = worker.check(std::move(password), verifier, [&loop](Outcome<bool> is_right) {
//       boost::asio::post(loop, …);           // on the worker's thread: must be quick, must not throw
//     });
//     if (!asked) return refuse(asked.problem());   // busy: 64 wait already
//
// A hash needs 19 MiB and 20 to 40 ms, so no event loop may do it, and many at once would let anybody who sends
// passwords fill the memory. Checks run on a thread that gets only what nobody else wants of the CPUs, in memory that
// is kept while passwords come: else each wrong one would delay messages. Where the machine has no CPU to spare, so
// that a right one would wait for ever, the worker's own thread does it as well, after 100 ms.
// Whatever was accepted is answered exactly once, at the latest by stop(), with `stopped`. Any thread may call; what
// the callbacks use must live until stop() or the destructor has returned.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "broker/crypto/hash_memory.hpp"
#include "broker/crypto/secret.hpp"
#include "broker/crypto/verifier.hpp"
#include "broker/loop/low_priority_worker.hpp"

namespace leat::broker {

class PasswordWorker {
 public:
  using Checked = std::function<void(Outcome<bool>)>;
  using Made = std::function<void(Outcome<Verifier>)>;

  static constexpr std::size_t kQueue = 64;

  // How long a check may wait for a CPU that nobody else wants.
  static constexpr std::chrono::milliseconds kPatience{100};

  explicit PasswordWorker(std::size_t queue = kQueue,
                          std::chrono::milliseconds patience = kPatience);
  PasswordWorker(const PasswordWorker&) = delete;
  PasswordWorker& operator=(const PasswordWorker&) = delete;
  ~PasswordWorker() { stop(); }

  // The codes of check_password() and make_verifier() come to the callback. Returned at once are:
  //   busy       as many wait as the queue has room for; the callback is not called
  //   stopped    stop() was called; the callback is not called
  Outcome<void> check(Secret password, const Verifier& verifier, Checked done);
  Outcome<void> make(Secret password, Made done);

  // Waits for the hash that runs, and answers `stopped` to those that wait. May be called again. Not from a callback.
  void stop();

 private:
  // Calls back with the result; with `is_stopped`, without doing it.
  using Job = std::function<void(bool is_stopped)>;

  Outcome<void> add(Job job);
  Outcome<bool> check(const std::shared_ptr<Secret>& password, const Verifier& verifier);
  void run();

  const std::size_t room_;
  const std::chrono::milliseconds patience_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;     // Under mutex_.
  bool is_stopped_ = false;  // Under mutex_.
  // Used by the low-priority worker while it runs a job, else by this worker.
  std::shared_ptr<HashMemory> memory_ = std::make_shared<HashMemory>();
  LowPriorityWorker worker_;
  std::thread thread_;  // Last: it uses the others.
};

}  // namespace leat::broker
