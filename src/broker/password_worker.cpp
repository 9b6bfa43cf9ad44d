#include "broker/password_worker.hpp"

#include <memory>

#include "leat/os/signals.hpp"

namespace leat::broker {
namespace {

Problem stopped() { return {Errc::stopped, "the broker is stopping"}; }

}  // namespace

PasswordWorker::PasswordWorker(std::size_t queue) : room_{queue} {
  const leat::detail::SignalsBlocked blocked;
  thread_ = std::thread{[this] { run(); }};
}

Outcome<void> PasswordWorker::check(Secret password, const Verifier& verifier, Checked done) {
  // Shared, because std::function wants to be able to copy what it holds.
  auto secret = std::make_shared<Secret>(std::move(password));
  return add([secret, verifier, done = std::move(done)](bool is_stopped) {
    done(is_stopped ? Outcome<bool>{stopped()} : check_password(secret->text(), verifier));
  });
}

Outcome<void> PasswordWorker::make(Secret password, Made done) {
  auto secret = std::make_shared<Secret>(std::move(password));
  return add([secret, done = std::move(done)](bool is_stopped) {
    done(is_stopped ? Outcome<Verifier>{stopped()} : make_verifier(secret->text()));
  });
}

Outcome<void> PasswordWorker::add(Job job) {
  const std::lock_guard lock{mutex_};
  if (is_stopped_) return stopped();
  if (jobs_.size() >= room_) return Problem{Errc::busy, "too many logins at once: try again"};
  jobs_.push_back(std::move(job));
  changed_.notify_one();
  return {};
}

void PasswordWorker::stop() {
  std::deque<Job> unfinished;
  {
    const std::lock_guard lock{mutex_};
    is_stopped_ = true;
    unfinished.swap(jobs_);
    changed_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
  for (const Job& job : unfinished) job(true);
}

void PasswordWorker::run() {
  std::unique_lock lock{mutex_};
  while (true) {
    changed_.wait(lock, [this] { return is_stopped_ || !jobs_.empty(); });
    if (is_stopped_) return;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job(false);
    job = nullptr;  // Wipes the password now, not when the next one comes.
    lock.lock();
  }
}

}  // namespace leat::broker
