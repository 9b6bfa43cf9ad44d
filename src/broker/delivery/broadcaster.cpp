#include "broadcaster.hpp"

#include <algorithm>

namespace leat::broker {

Broadcaster::Broadcaster(boost::asio::io_context& loop, BlockingWorker& disk, const Topic& topic,
                         Backlog& backlog, SubscriberReader reader,
                         std::function<void(Error)> on_failure)
    : topic_{topic},
      backlog_{backlog},
      timer_{loop},
      published_offset_{loop, [this] { return topic_.end_offset(0); }, [this] { pass_on(); }},
      reader_{disk, std::move(reader)},
      on_failure_{std::move(on_failure)},
      watcher_{loop, reader_->fd, [this] { pass_on(); }} {
  reader_->count_lost();
  watcher_.arm();  // Even without subscribers, so that it does not hold up publishers.
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
  if (reader_.is_lent()) return;  // What is being read is for those who were there before.
  const std::uint64_t offset = reader_->subscriber.offset();
  for (; !coming_.empty() && coming_.front().first <= offset; coming_.pop_front())
    sinks_.push_back(coming_.front().second);
}

void Broadcaster::remove(SubscriberSink& sink) {
  std::erase(sinks_, &sink);
  std::erase_if(coming_, [&](const auto& one) { return one.second == &sink; });
  poll_later();  // It may have held up the others.
}

void Broadcaster::pass_on() {
  constexpr int kRounds = 16;  // Then others have their turn.
  if (reader_.is_lent()) return;
  for (int i = 0; i < kRounds && pass_on_once(); ++i) {
  }
  if (has_failed_ || is_held_up()) return;
  if (reader_->subscriber.next_is_on_disk()) return read_from_disk();
  if (!published_offset_.is_reached(reached_)) watcher_.arm();
}

bool Broadcaster::is_held_up() const {
  return std::any_of(sinks_.begin(), sinks_.end(),
                     [](const SubscriberSink* sink) { return sink->holds_up(); });
}

std::uint64_t Broadcaster::read_until() const {
  return coming_.empty() ? ~std::uint64_t{0} : coming_.front().first;
}

bool Broadcaster::pass_on_once() {
  if (has_failed_ || is_held_up() || published_offset_.is_reached(reached_)) return false;
  let_in();
  reader_->read({.until = read_until(), .encodes = !sinks_.empty()});
  return pass_on_read();
}

// Sinks that come meanwhile begin at the end that the topic has now, or later.
void Broadcaster::read_from_disk() {
  let_in();
  SubscriberReader::Limits limits{.until = read_until(), .encodes = !sinks_.empty()};
  if (topic_.partitions() == 1) limits.until = std::min(limits.until, topic_.end_offset(0));
  reader_.lend([limits](SubscriberReader& reader,
                        const auto& is_over) { reader.read_from_disk(limits, is_over); },
               [this] {
                 pass_on_read();
                 pass_on();
               });
}

bool Broadcaster::pass_on_read() {
  SubscriberReader& reader = *reader_;
  reached_ = reader.reached;
  if (const std::uint64_t lost = std::exchange(reader.lost, 0); lost != 0) {
    for (SubscriberSink* const sink : std::vector<SubscriberSink*>{sinks_}) sink->lose(lost);
  }
  if (reader.failure.code != Errc::ok) {
    has_failed_ = true;
    on_failure_(reader.failure);
  }
  const std::shared_ptr<Chunk> chunk = std::move(reader.chunk);
  if (chunk->records == 0) return false;
  if (!reader.encodes) return true;
  backlog_.count(*chunk);
  for (SubscriberSink* const sink : std::vector<SubscriberSink*>{sinks_}) sink->take(chunk);
  backlog_.trim();
  return true;
}

}  // namespace leat::broker
