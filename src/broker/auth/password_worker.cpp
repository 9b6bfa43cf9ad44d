#include "password_worker.hpp"

#include <chrono>

#include "leat/os/os.hpp"

namespace leat::broker {
namespace {

// Time without a login after which the memory is freed.
constexpr std::chrono::seconds kKeepMemory{2};

Problem stopped() { return {Errc::stopped, "the broker is stopping"}; }

}  // namespace

PasswordWorker::PasswordWorker(std::size_t queue, std::chrono::milliseconds patience)
    : room_{queue}, patience_{patience} {
  const leat::os::SignalsBlocked blocked;
  thread_ = std::thread{[this] { run(); }};
}

Outcome<void> PasswordWorker::check(Secret password, const Verifier& verifier, Checked done) {
  // Shared, because std::function wants to be able to copy what it holds.
  auto secret = std::make_shared<Secret>(std::move(password));
  return add([this, secret, verifier, done = std::move(done)](bool is_stopped) {
    done(is_stopped ? Outcome<bool>{stopped()} : check(secret, verifier));
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

Outcome<bool> PasswordWorker::check(const std::shared_ptr<Secret>& password,
                                    const Verifier& verifier) {
  if (worker_.is_free() && memory_->reserve(hash_bytes(verifier.argon2))) {
    const auto answer = std::make_shared<Outcome<bool>>(false);
    const auto work = [answer, password, verifier, memory = memory_] {
      *answer = check_password(password->text(), verifier, memory->bytes());
    };
    if (worker_.run(work, patience_)) return *answer;
  }
  return check_password(password->text(), verifier);
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
    const auto has_news = [this] { return is_stopped_ || !jobs_.empty(); };
    while (!memory_->bytes().empty() && !changed_.wait_for(lock, kKeepMemory, has_news)) {
      lock.unlock();
      if (worker_.is_free()) memory_->release();
      lock.lock();
    }
    changed_.wait(lock, has_news);
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
