#include "group_dispatcher.hpp"

#include <algorithm>
#include <utility>

namespace leat::broker {
namespace {

// Limits for one consumer at a time. A single record may be larger.
constexpr std::size_t kMostBytes = LargeMessages::kSmall;
constexpr std::size_t kMostRecords = 512;
constexpr std::size_t kMostInFlightBytes = 4 * kMostBytes;  // By one that acknowledges.
constexpr std::chrono::milliseconds kStalled{1000};

}  // namespace

std::size_t GroupConsumer::sent_count() const {
  const auto sent =
      std::partition_point(places_.begin(), places_.end(),
                           [this](const Place& place) { return place.end <= this->sent(); });
  return static_cast<std::size_t>(sent - places_.begin());
}

void GroupConsumer::forget(std::size_t count) {
  const auto end = static_cast<std::ptrdiff_t>(count);
  in_flight_.erase(in_flight_.begin(), in_flight_.begin() + end);
  places_.erase(places_.begin(), places_.begin() + end);
}

Outcome<std::unique_ptr<GroupDispatcher>> GroupDispatcher::open(
    boost::asio::io_context& loop, const Topic& topic, const Group& group, LargeMessages& unsent,
    std::function<void(Error)> on_failure, std::function<void()> on_progress) {
  const auto problem = [](Error error) {
    return Problem{error.code, "cannot join the consumer group: " + describe(error)};
  };
  auto member = group.join({.name = "leat-serve", .spin = {}, .patience = {}});
  if (!member) return problem(member.error());
  const GroupInfo info = group.info();
  std::unique_ptr<GroupDispatcher> dispatcher{
      new GroupDispatcher{loop, topic, std::move(*member), info.in_flight_limit, unsent,
                          std::move(on_failure), std::move(on_progress)}};
  dispatcher->has_lease_ = info.lease.count() != 0;
  auto fd = dispatcher->member_.wait_fd();
  if (!fd) return problem(fd.error());
  dispatcher->watcher_.emplace(loop, *fd, [raw = dispatcher.get()] { raw->deal(); });
  return dispatcher;
}

void GroupDispatcher::add(GroupConsumer& consumer) {
  consumers_.push_back(&consumer);
  deal();
}

void GroupDispatcher::on_sent(GroupConsumer& consumer) {
  unsent_.release(consumer);
  if (!consumer.acknowledges()) acknowledge(consumer, consumer.in_flight_.size());
  if (!is_dealing_) deal();
}

bool GroupDispatcher::on_done(GroupConsumer& consumer, std::uint64_t count) {
  if (count == 0 || count > consumer.sent_count()) return false;
  acknowledge(consumer, static_cast<std::size_t>(count));
  if (!is_dealing_) deal();
  return true;
}

void GroupDispatcher::remove(GroupConsumer& consumer) {
  const auto at = std::find(consumers_.begin(), consumers_.end(), &consumer);
  if (at == consumers_.end()) return;
  consumers_.erase(at);
  unsent_.release(consumer);
  if (!consumer.acknowledges()) acknowledge(consumer, consumer.sent_count());
  requeue(consumer, 0);
  if (consumers_.empty()) requeue_received();  // Local members may want them.
  if (!is_dealing_) deal();
}

std::size_t GroupDispatcher::most_records() const {
  const std::size_t free = limit_ - std::min(limit_, in_hands_);
  return std::clamp<std::size_t>(free / (2 * consumers_.size()), 1, kMostRecords);
}

std::size_t GroupDispatcher::room_of(const GroupConsumer& consumer) const {
  if (!consumer.is_idle()) return 0;
  const auto& in_flight = consumer.in_flight_;
  if (!consumer.acknowledges()) return in_flight.empty() ? most_records() : 0;
  const std::size_t most =
      std::clamp<std::size_t>(limit_ / (2 * consumers_.size()), 1, kMostRecords);
  const bool is_full =
      in_flight.size() >= most ||
      (!in_flight.empty() &&
       consumer.places_.back().end - consumer.places_.front().begin >= kMostInFlightBytes);
  return is_full ? 0 : std::min(most - in_flight.size(), most_records());
}

bool GroupDispatcher::has_ready_consumer() const {
  return std::any_of(consumers_.begin(), consumers_.end(),
                     [this](const GroupConsumer* consumer) { return room_of(*consumer) != 0; });
}

void GroupDispatcher::watch_for_stalls() {
  const bool may_stall =
      dealt_ < received_.size() ||
      std::any_of(consumers_.begin(), consumers_.end(), [](const GroupConsumer* consumer) {
        return !consumer->is_idle() && !consumer->in_flight_.empty();
      });
  if (!may_stall || stalled_.is_running()) return;
  stalled_.start(kStalled, [this, dealt = dealt_total_] {
    take_back_from_stalled();
    if (dealt == dealt_total_ && !has_ready_consumer()) requeue_received();
    deal();  // And watches on.
  });
}

void GroupDispatcher::take_back_from_stalled() {
  for (GroupConsumer* const consumer : consumers_) {
    if (!consumer->is_stuck() || consumer->in_flight_.empty()) continue;
    if (!consumer->acknowledges()) acknowledge(*consumer, consumer->sent_count());
    const auto& places = consumer->places_;
    std::size_t first = consumer->sent_count();
    if (first < places.size() && places[first].begin < consumer->sent())
      ++first;  // It is sent in part.
    if (first == places.size()) continue;
    consumer->take_back(places[first].begin, places.back().end);
    requeue(*consumer, first);
  }
}

void GroupDispatcher::requeue_received() {
  unsent_.leave(*this);
  for (; dealt_ < received_.size(); ++dealt_) (void)member_.requeue(received_[dealt_]);
}

void GroupDispatcher::requeue(GroupConsumer& consumer, std::size_t first) {
  for (std::size_t i = first; i < consumer.in_flight_.size(); ++i)
    (void)member_.requeue(consumer.in_flight_[i]);
  in_hands_ -= consumer.in_flight_.size() - first;
  consumer.in_flight_.resize(first);
  consumer.places_.resize(first);
  is_full_ = false;
}

void GroupDispatcher::acknowledge(GroupConsumer& consumer, std::size_t count) {
  if (count == 0) return;
  in_hands_ -= count;
  is_full_ = false;
  auto done = member_.acknowledge(std::span{consumer.in_flight_}.first(count));
  consumer.forget(count);
  const bool is_ours =
      done || done.error() == Errc::not_in_flight || done.error() == Errc::lease_lost;
  if (!is_ours) fail(done.error());
}

void GroupDispatcher::deal() {
  constexpr int kRounds = 64;  // Then other topics have their turn.
  struct Dealing {
    bool& flag;
    explicit Dealing(bool& on) : flag{on} { flag = true; }
    ~Dealing() { flag = false; }
  };
  {
    const Dealing dealing{is_dealing_};
    int round = 0;
    while ((round < kRounds || dealt_ < received_.size()) && deal_once()) ++round;
  }
  // While the member is full, its descriptor is readable; a consumer that has sent something comes back here.
  const bool may_find =
      has_ready_consumer() && !has_failed_ && !is_full_ && dealt_ == received_.size();
  if (may_find && !published_offset_.is_reached(reached_)) watcher_->arm();
  if (!has_failed_) watch_for_stalls();
}

bool GroupDispatcher::deal_once() {
  ready_.clear();
  for (std::size_t i = 0; i < consumers_.size(); ++i) {
    GroupConsumer* const consumer = consumers_[(next_ + i) % consumers_.size()];
    if (room_of(*consumer) != 0) ready_.push_back(consumer);
  }
  if (ready_.empty() || has_failed_) return false;
  const bool is_all_dealt = dealt_ == received_.size();
  if (is_all_dealt && (published_offset_.is_reached(reached_) || !receive())) return false;
  const std::size_t left = received_.size() - dealt_;
  // Few if few are there, so that all get some.
  const std::size_t fair = (left + ready_.size() - 1) / ready_.size();
  bool has_room = true;
  for (GroupConsumer* const consumer : ready_) {
    if (dealt_ == received_.size()) break;
    const std::size_t share = std::min(fair, room_of(*consumer));
    const std::uint64_t begin = consumer->appended();
    for (std::size_t i = 0; i < share && dealt_ < received_.size(); ++i) {
      const std::size_t bytes = received_[dealt_].record.value.size();
      has_room = bytes <= LargeMessages::kSmall || unsent_.take(*this, *consumer, bytes);
      if (!has_room) break;
      const std::uint64_t at = consumer->appended();
      consumer->append(received_[dealt_].record);
      consumer->in_flight_.push_back(received_[dealt_]);
      consumer->places_.push_back({at, consumer->appended()});
      ++in_hands_;
      ++dealt_;
      ++dealt_total_;
      if (consumer->appended() - begin >= kMostBytes) break;
    }
    if (consumer->appended() != begin) consumer->send();
    if (!has_room) return false;
    ++next_;
  }
  return true;
}

// Few large ones: those of a durable topic are copies.
bool GroupDispatcher::receive() {
  received_.clear();
  dealt_ = 0;
  constexpr std::size_t kMostConsumers = 16;
  constexpr std::size_t kStep = 64;
  const std::size_t consumers = std::min(ready_.size(), kMostConsumers);
  const std::size_t most = most_records() * consumers;
  std::size_t bytes = 0;
  while (received_.size() < most && bytes < kMostBytes * consumers) {
    const std::size_t step = std::min(std::clamp<std::size_t>(kMostBytes / record_bytes_, 1, kStep),
                                      most - received_.size());
    auto count = member_.receive(received_, step, Deadline::immediate());
    if (!count) {
      is_full_ = count.error() == Errc::in_flight_full;
      if (!is_full_ && count.error() != Errc::timeout) fail(count.error());
      break;
    }
    if (*count == 0) break;
    std::size_t of_step = 0;
    for (std::size_t i = received_.size() - *count; i < received_.size(); ++i)
      of_step += received_[i].record.value.size();
    bytes += of_step;
    record_bytes_ = std::max<std::size_t>({1, of_step / *count, record_bytes_ / 2});
    if (*count < step || has_lease_) break;  // With a lease, the next call overwrites these.
  }
  if (received_.empty()) return false;
  reached_ = std::max(reached_, received_.back().record.offset + 1);
  on_progress_();
  return true;
}

void GroupDispatcher::fail(Error error) {
  if (std::exchange(has_failed_, true)) return;
  on_failure_(error);
}

}  // namespace leat::broker
