#include "disk_worker.hpp"

#include <boost/asio/post.hpp>
#include <exception>

#include "leat/os/os.hpp"

namespace leat::broker {

DiskWorker::DiskWorker(boost::asio::io_context& loop) : loop_{loop.get_executor()} {
  const leat::os::SignalsBlocked blocked;
  thread_ = std::thread{[this] { run(); }};
}

DiskWorker::~DiskWorker() {
  {
    const std::lock_guard lock{mutex_};
    is_stopped_ = true;
    changed_.notify_one();
  }
  thread_.join();
}

void DiskWorker::add(std::function<void()> read, std::function<void()> done) {
  const std::lock_guard lock{mutex_};
  jobs_.push_back({std::move(read), std::move(done), boost::asio::make_work_guard(loop_)});
  changed_.notify_one();
}

void DiskWorker::run() {
  std::unique_lock lock{mutex_};
  while (true) {
    changed_.wait(lock, [this] { return is_stopped_ || !jobs_.empty(); });
    if (is_stopped_) return;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    try {
      job.read();
    } catch (...) {  // No memory: the loop ends, as if it had read itself.
      job.done = [failure = std::current_exception()] { std::rethrow_exception(failure); };
    }
    job.read = nullptr;
    boost::asio::post(loop_, std::move(job.done));
    job.work.reset();
    lock.lock();
  }
}

}  // namespace leat::broker
