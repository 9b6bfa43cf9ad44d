#include "broadcaster.hpp"

#include <algorithm>

namespace leat::broker {

Outcome<std::unique_ptr<Broadcaster>> Broadcaster::open(boost::asio::io_context& loop,
                                                        const Topic& topic, Backlog& backlog,
                                                        Encode encode,
                                                        std::function<void(Error)> on_failure) {
  const auto problem = [&](Error error) {
    return Problem{error.code, "cannot subscribe to " + topic.name() + ": " + describe(error)};
  };
  const bool may_wait = topic.policy() != Policy::overwrite;
  auto subscriber =
      topic.subscriber({.from = From::end, .gating = may_wait, .spin = {}, .patience = {}});
  if (!subscriber) return problem(subscriber.error());
  std::unique_ptr<Broadcaster> broadcaster{new Broadcaster{
      loop, topic, backlog, std::move(*subscriber), std::move(encode), std::move(on_failure)}};
  broadcaster->subscriber_.on_event([raw = broadcaster.get()](const Event& event) {
    if (event.reason != GapReason::overwritten) return;
    for (SubscriberSink* const sink : raw->sinks_) sink->lose(event.count);
  });
  auto fd = broadcaster->subscriber_.wait_fd();
  if (!fd) return problem(fd.error());
  broadcaster->watcher_.emplace(loop, *fd, [raw = broadcaster.get()] { raw->pass_on(); });
  broadcaster->watcher_
      ->arm();  // Even without subscribers, so that it does not hold up publishers.
  return broadcaster;
}

// What was published before goes to those who were there before. With several partitions, that is what can be passed on
// at once: each has an end of its own.
void Broadcaster::add(SubscriberSink& sink) {
  published_offset_.forget();
  pass_on();
  coming_.emplace_back(topic_.partitions() == 1 ? topic_.end_offset(0) : 0, &sink);
  let_in();
}

void Broadcaster::let_in() {
  for (; !coming_.empty() && coming_.front().first <= subscriber_.offset(); coming_.pop_front())
    sinks_.push_back(coming_.front().second);
}

void Broadcaster::remove(SubscriberSink& sink) {
  std::erase(sinks_, &sink);
  std::erase_if(coming_, [&](const auto& one) { return one.second == &sink; });
  poll_later();  // It may have held up the others.
}

void Broadcaster::pass_on() {
  constexpr int kRounds = 16;  // Then others have their turn.
  for (int i = 0; i < kRounds && pass_on_once(); ++i) {
  }
  if (!has_failed_ && !is_held_up() && !published_offset_.is_reached(reached_)) watcher_->arm();
}

bool Broadcaster::is_held_up() const {
  return std::any_of(sinks_.begin(), sinks_.end(),
                     [](const SubscriberSink* sink) { return sink->holds_up(); });
}

bool Broadcaster::pass_on_once() {
  if (is_held_up() || published_offset_.is_reached(reached_)) return false;
  constexpr std::size_t kChunk = 64 * 1024;
  constexpr std::size_t kLarge = 4096;
  constexpr std::uint64_t kRecords = 4096;
  const auto chunk = std::make_shared<Chunk>();
  let_in();
  const bool has_sinks = !sinks_.empty();
  while (chunk->bytes.size() < kChunk && chunk->records < kRecords && !has_failed_) {
    const bool are_large = chunk->records == 0 || chunk->bytes.size() / chunk->records > kLarge;
    std::uint64_t step = are_large ? 1 : 16;
    if (!coming_.empty()) step = std::min(step, coming_.front().first - subscriber_.offset());
    if (step == 0) break;
    auto count = subscriber_.poll(step, [&](const Record& record) {
      reached_ = record.offset + 1;
      ++chunk->records;
      chunk->payload_bytes += record.value.size();
      if (has_sinks) encode_(chunk->bytes, record);
    });
    if (!count) {
      has_failed_ = true;
      on_failure_(count.error());
    } else if (*count < step) {
      break;
    }
  }
  if (chunk->records == 0) return false;
  if (!has_sinks) return true;
  backlog_.count(*chunk);
  for (SubscriberSink* const sink : std::vector<SubscriberSink*>{sinks_}) sink->take(chunk);
  backlog_.trim();
  return true;
}

}  // namespace leat::broker
