// A thread that makes the event loop's calls that may block: it reads, opens, closes and deletes files. One call at a time, in
// the order in which they were added.
//
//     BlockingWorker worker{loop};
//     worker.compute([=] { return topic->shrink(); },                          // on the worker's thread
//                    [](Result<std::uint64_t> freed) { … });                   // on the loop
//     Lendable<Subscriber> subscriber{worker, std::move(*opened)};
//     subscriber->poll(…);                                                     // on the loop
//     subscriber.lend([](Subscriber& one, const std::atomic<bool>& is_over) { one.poll(…); },  // on the worker's thread
//                     [this] { … });                                           // on the loop again
//
// A call that takes long delays those behind it, but not the loop. So that topics take turns, a read must be short where the
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
#include <optional>
#include <thread>
#include <utility>

#include "leat/base/assert.hpp"

namespace leat::broker {

class BlockingWorker {
 public:
  explicit BlockingWorker(boost::asio::io_context& loop);
  BlockingWorker(const BlockingWorker&) = delete;
  BlockingWorker& operator=(const BlockingWorker&) = delete;
  // Waits for the call in progress. What has not begun is dropped, and nothing more is called.
  ~BlockingWorker();

  // Calls `work` on the worker's thread and destroys it there; then calls `done` on the loop. What `work` throws, the loop
  // throws instead.
  void add(std::function<void()> work, std::function<void()> done);
  // The same; `done` gets what `work` returns.
  template <class Work, class Done>
  void compute(Work work, Done done) {
    const auto result = std::make_shared<std::optional<decltype(work())>>();
    add([result, work = std::move(work)] { result->emplace(work()); },
        [result, done = std::move(done)] { done(std::move(**result)); });
  }

 private:
  using Loop = boost::asio::io_context::executor_type;
  struct Job {
    std::function<void()> work;
    std::function<void()> done;
    boost::asio::executor_work_guard<Loop> guard;  // The loop does not end before `done`.
  };

  void run();

  Loop loop_;
  const std::shared_ptr<bool> is_alive_ = std::make_shared<bool>(true);
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
  Lendable(BlockingWorker& worker, T value)
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

  BlockingWorker& worker_;
  std::shared_ptr<State> state_;
  bool is_lent_ = false;
};

}  // namespace leat::broker
