// The thread that hashes passwords, one at a time.
//
//     PasswordWorker worker;
//     auto asked = worker.check(std::move(password), verifier, [&loop](Outcome<bool> is_right) {
//       boost::asio::post(loop, …);           // on the worker's thread: must be quick, must not throw
//     });
//     if (!asked) return refuse(asked.problem());   // busy: 64 wait already
//
// A hash needs 19 MiB and 30 ms, so no event loop may do it, and many at once would let anybody who sends passwords
// fill the memory. Whatever was accepted is answered exactly once, at the latest by stop(), with `stopped`. Any
// thread may call; what the callbacks use must live until stop() or the destructor has returned.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "broker/secret.hpp"
#include "broker/verifier.hpp"

namespace leat::broker {

class PasswordWorker {
 public:
  using Checked = std::function<void(Outcome<bool>)>;
  using Made = std::function<void(Outcome<Verifier>)>;

  static constexpr std::size_t kQueue = 64;

  explicit PasswordWorker(std::size_t queue = kQueue);
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
  void run();

  const std::size_t room_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;     // Under mutex_.
  bool is_stopped_ = false;  // Under mutex_.
  std::thread thread_;       // Last: it uses the others.
};

}  // namespace leat::broker
