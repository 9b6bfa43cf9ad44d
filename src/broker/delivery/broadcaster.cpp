#include "broadcaster.hpp"

#include <algorithm>

namespace leat::broker {

Outcome<std::unique_ptr<Feed>> Feed::open(boost::asio::io_context& loop, const Topic& topic,
                                          Backlog& backlog, Encode encode,
                                          std::function<void(Error)> on_failure) {
  const auto problem = [&](Error error) {
    return Problem{error.code, "cannot subscribe to " + topic.name() + ": " + describe(error)};
  };
  const bool may_wait = topic.policy() != Policy::overwrite;
  auto subscriber =
      topic.subscriber({.from = From::end, .gating = may_wait, .spin = {}, .patience = {}});
  if (!subscriber) return problem(subscriber.error());
  std::unique_ptr<Feed> feed{new Feed{loop, topic, backlog, std::move(*subscriber),
                                      std::move(encode), std::move(on_failure)}};
  feed->subscriber_.on_event([raw = feed.get()](const Event& event) {
    if (event.reason != GapReason::overwritten) return;
    for (Listener* const listener : raw->listeners_) listener->lose(event.count);
  });
  auto fd = feed->subscriber_.wait_fd();
  if (!fd) return problem(fd.error());
  feed->watch_.emplace(loop, *fd, [raw = feed.get()] { raw->pass_on(); });
  feed->watch_->arm();  // Also without listeners: it must not hold up publishers.
  return feed;
}

// What was published before goes to those who were there before. With several partitions, that is what can be passed on
// at once: each has an end of its own.
void Feed::add(Listener& listener) {
  own_end_.forget();
  pass_on();
  coming_.emplace_back(topic_.partitions() == 1 ? topic_.end_offset(0) : 0, &listener);
  let_in();
}

void Feed::let_in() {
  for (; !coming_.empty() && coming_.front().first <= subscriber_.offset(); coming_.pop_front())
    listeners_.push_back(coming_.front().second);
}

void Feed::remove(Listener& listener) {
  std::erase(listeners_, &listener);
  std::erase_if(coming_, [&](const auto& one) { return one.second == &listener; });
  look_later();  // It may have held up the others.
}

void Feed::pass_on() {
  constexpr int kRounds = 16;  // Then others have their turn.
  for (int i = 0; i < kRounds && pass_on_once(); ++i) {
  }
  if (!has_failed_ && !is_held_up() && !own_end_.is_reached(reached_)) watch_->arm();
}

bool Feed::is_held_up() const {
  return std::any_of(listeners_.begin(), listeners_.end(),
                     [](const Listener* listener) { return listener->holds_up(); });
}

bool Feed::pass_on_once() {
  if (is_held_up() || own_end_.is_reached(reached_)) return false;
  constexpr std::size_t kChunk = 64 * 1024;
  constexpr std::size_t kLarge = 4096;
  constexpr std::uint64_t kRecords = 4096;
  const auto chunk = std::make_shared<Chunk>();
  let_in();
  const bool has_listeners = !listeners_.empty();
  while (chunk->bytes.size() < kChunk && chunk->records < kRecords && !has_failed_) {
    const bool are_large = chunk->records == 0 || chunk->bytes.size() / chunk->records > kLarge;
    std::uint64_t step = are_large ? 1 : 16;
    if (!coming_.empty()) step = std::min(step, coming_.front().first - subscriber_.offset());
    if (step == 0) break;
    auto count = subscriber_.poll(step, [&](const Record& record) {
      reached_ = record.offset + 1;
      ++chunk->records;
      chunk->payload_bytes += record.value.size();
      if (has_listeners) encode_(chunk->bytes, record);
    });
    if (!count) {
      has_failed_ = true;
      on_failure_(count.error());
    } else if (*count < step) {
      break;
    }
  }
  if (chunk->records == 0) return false;
  if (!has_listeners) return true;
  backlog_.count(*chunk);
  for (Listener* const listener : std::vector<Listener*>{listeners_}) listener->take(chunk);
  backlog_.trim();
  return true;
}

}  // namespace leat::broker
