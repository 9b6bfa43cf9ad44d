// The thread that reads files for the event loop, one read at a time, in the order in which they were asked for.
//
//     DiskWorker worker{loop};
//     Lendable<Subscriber> subscriber{worker, std::move(*opened)};
//     subscriber->poll(…);                                                     // on the loop
//     subscriber.lend([](Subscriber& one, const std::atomic<bool>& is_over) { one.poll(…); },  // on the worker's thread
//                     [this] { … });                                           // on the loop again
//
// A read that takes long delays those behind it, but not the loop. So that topics take turns, a read must be short where the
// disk is fast, and nobody asks for the next one before the last one has ended. Both belong to the thread of the event loop.
#pragma once

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "leat/base/assert.hpp"

namespace leat::broker {

class DiskWorker {
 public:
  explicit DiskWorker(boost::asio::io_context& loop);
  DiskWorker(const DiskWorker&) = delete;
  DiskWorker& operator=(const DiskWorker&) = delete;
  // Waits for the read in progress. What has not begun is dropped, and nothing more is called.
  ~DiskWorker();

  // Calls `read` on the worker's thread and destroys it there; then calls `done` on the loop. What `read` throws, the loop
  // throws instead.
  void add(std::function<void()> read, std::function<void()> done);

 private:
  using Loop = boost::asio::io_context::executor_type;
  struct Job {
    std::function<void()> read;
    std::function<void()> done;
    boost::asio::executor_work_guard<Loop> work;  // The loop does not end before `done`.
  };

  void run();

  Loop loop_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;     // Under mutex_.
  bool is_stopped_ = false;  // Under mutex_.
  std::thread thread_;       // Last: it uses the others.
};

// Something that the loop uses, except while it has lent it to the worker.
template <class T>
class Lendable {
 public:
  Lendable(DiskWorker& worker, T value)
      : worker_{worker}, state_{std::make_shared<State>(std::move(value))} {}
  Lendable(const Lendable&) = delete;
  Lendable& operator=(const Lendable&) = delete;
  // Does not wait: what is lent is destroyed by the worker's thread, after its use.
  ~Lendable() { state_->is_over = true; }

  bool is_lent() const noexcept { return is_lent_; }
  // Only while it is not lent.
  T& operator*() const noexcept {
    LEAT_ASSERT(!is_lent_);
    return state_->value;
  }
  T* operator->() const noexcept { return &**this; }

  // Calls `use` on the worker's thread, which should end early once `is_over`: this object is gone. Else calls `done`
  // on the loop.
  void lend(std::function<void(T& value, const std::atomic<bool>& is_over)> use,
            std::function<void()> done) {
    LEAT_ASSERT(!is_lent_);
    is_lent_ = true;
    worker_.add([state = state_, use = std::move(use)] { use(state->value, state->is_over); },
                [this, weak = std::weak_ptr{state_}, done = std::move(done)] {
                  if (weak.expired()) return;  // So is this object.
                  is_lent_ = false;
                  done();
                });
  }

 private:
  struct State {
    explicit State(T lent) : value{std::move(lent)} {}
    T value;
    std::atomic<bool> is_over = false;
  };

  DiskWorker& worker_;
  std::shared_ptr<State> state_;
  bool is_lent_ = false;
};

}  // namespace leat::broker
