#include "publisher_throttle.hpp"

#include <utility>

namespace leat::broker {
namespace {

constexpr std::size_t kMostAhead = 16u << 20;
constexpr std::size_t kLevel =
    kMostAhead / 4 * 3;  // So that producers do not go on for a few messages only.
constexpr std::size_t kSmall = 64 * 1024;
constexpr std::chrono::milliseconds kPoll{10};
constexpr int kPollsUntilStill = 10;

}  // namespace

void PublisherThrottle::add(std::uint64_t end, std::size_t bytes) {
  bytes_ += bytes;
  if (!batches_.empty() && batches_.back().bytes < kSmall) {
    batches_.back().end = end;
    batches_.back().bytes += bytes;
  } else {
    batches_.push_back({end, bytes});
  }
}

std::size_t PublisherThrottle::bytes_behind(std::uint64_t offset) {
  for (; !batches_.empty() && batches_.front().end <= offset; batches_.pop_front())
    bytes_ -= batches_.front().bytes;
  return bytes_;
}

bool PublisherThrottle::is_ahead() {
  if (timer_.is_running()) return true;
  if (bytes_ <= kMostAhead) return false;
  const auto reached = reached_();
  // Nobody to wait for. Who comes later, or goes on, is not blamed for what was before.
  if (!reached || reached == stood_still_at_) {
    batches_.clear();
    bytes_ = 0;
    return false;
  }
  if (bytes_behind(*reached) <= kMostAhead) return false;
  stood_still_at_.reset();
  watch(*reached, 0);
  return true;
}

// Also local processes may take records; then nobody calls on_progress().
void PublisherThrottle::watch(std::uint64_t before, int polls) {
  timer_.start(kPoll, [this, before, polls] {
    const auto reached = reached_();
    if (!reached || bytes_behind(*reached) <= kLevel) return call_waiting();
    if (*reached != before) return watch(*reached, 0);
    if (polls + 1 < kPollsUntilStill) return watch(before, polls + 1);
    stood_still_at_ = before;
    call_waiting();
  });
}

void PublisherThrottle::on_progress() {
  if (!timer_.is_running() || is_over_ || waiting_.empty()) return;
  const auto reached = reached_();
  if (reached && bytes_behind(*reached) > kLevel) return;
  // Later, because the caller is in the middle of its work; and only once, or it would be put off again and again.
  is_over_ = true;
  timer_.start(std::chrono::milliseconds{0}, [this] { call_waiting(); });
}

void PublisherThrottle::call_waiting() {
  is_over_ = false;
  waiting_.call_all();
}

}  // namespace leat::broker
