#include "blocking_worker.hpp"

#include <boost/asio/post.hpp>
#include <exception>

#include "leat/os/os.hpp"

namespace leat::broker {

BlockingWorker::BlockingWorker(boost::asio::io_context& loop) : loop_{loop.get_executor()} {
  const leat::os::SignalsBlocked blocked;
  thread_ = std::thread{[this] { run(); }};
}

BlockingWorker::~BlockingWorker() {
  {
    const std::lock_guard lock{mutex_};
    is_stopped_ = true;
    changed_.notify_one();
  }
  thread_.join();
}

void BlockingWorker::add(std::function<void()> work, std::function<void()> done) {
  const std::lock_guard lock{mutex_};
  jobs_.push_back({std::move(work), std::move(done), boost::asio::make_work_guard(loop_)});
  changed_.notify_one();
}

void BlockingWorker::run() {
  std::unique_lock lock{mutex_};
  while (true) {
    changed_.wait(lock, [this] { return is_stopped_ || !jobs_.empty(); });
    if (is_stopped_) return;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    try {
      job.work();
    } catch (...) {  // No memory: the loop ends, as if it had made the call itself.
      job.done = [failure = std::current_exception(), done = std::move(job.done)] {
        std::rethrow_exception(failure);  // What `done` has is destroyed on the loop, too.
      };
    }
    job.work = nullptr;
    boost::asio::post(loop_, [done = std::move(job.done), weak = std::weak_ptr{is_alive_}] {
      if (!weak.expired()) done();
    });
    job.guard.reset();
    lock.lock();
  }
}

}  // namespace leat::broker
