#include "group_dispatcher.hpp"

#include <algorithm>
#include <utility>

namespace leat::broker {
namespace {

// Limits for one consumer at a time. A single record may be larger.
constexpr std::size_t kMostBytes = LargeMessages::kSmall;
constexpr std::size_t kMostRecords = 512;
constexpr std::size_t kMostConsumers = 16;
constexpr std::size_t kMostInFlightBytes = 4 * kMostBytes;  // By one that acknowledges.
constexpr std::chrono::milliseconds kStalled{1000};

// While records are received and dealt: what is called meanwhile must not begin that again.
class Dealing {
 public:
  explicit Dealing(bool& flag) : flag_{flag} { flag_ = true; }
  Dealing(const Dealing&) = delete;
  Dealing& operator=(const Dealing&) = delete;
  ~Dealing() { flag_ = false; }

 private:
  bool& flag_;
};

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

GroupDispatcher::GroupDispatcher(boost::asio::io_context& loop, BlockingWorker& disk,
                                 const Topic& topic, GroupReader reader, LargeMessages& unsent,
                                 std::function<void(Error)> on_failure,
                                 std::function<void()> on_progress)
    : stalled_{loop},
      published_offset_{loop, [&topic] { return topic.end_offset(0); }, [this] { poll(); }},
      reader_{disk, std::move(reader)},
      limit_{reader_->in_flight},
      unsent_{unsent},
      on_failure_{std::move(on_failure)},
      on_progress_{std::move(on_progress)},
      watcher_{loop, reader_->fd, [this] { deal(); }} {}

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
  const std::size_t consumers = std::max<std::size_t>(1, consumers_.size());
  return std::clamp<std::size_t>(free / (2 * consumers), 1, kMostRecords);
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

// The member is here: nobody lends it before all is dealt.
void GroupDispatcher::requeue_received() {
  unsent_.leave(*this);
  for (; dealt_ < received_.size(); ++dealt_) (void)reader_->member.requeue(received_[dealt_]);
}

void GroupDispatcher::requeue(GroupConsumer& consumer, std::size_t first) {
  for (std::size_t i = first; i < consumer.in_flight_.size(); ++i) {
    if (reader_.is_lent()) {
      to_requeue_.push_back(consumer.in_flight_[i]);
    } else {
      (void)reader_->member.requeue(consumer.in_flight_[i]);
    }
  }
  in_hands_ -= consumer.in_flight_.size() - first;
  consumer.in_flight_.resize(first);
  consumer.places_.resize(first);
  is_full_ = false;
}

void GroupDispatcher::acknowledge(GroupConsumer& consumer, std::size_t count) {
  if (count == 0) return;
  in_hands_ -= count;
  is_full_ = false;
  const auto first = std::span{consumer.in_flight_}.first(count);
  if (reader_.is_lent()) {
    to_acknowledge_.insert(to_acknowledge_.end(), first.begin(), first.end());
  } else {
    acknowledge(first);
  }
  consumer.forget(count);
}

void GroupDispatcher::acknowledge(std::span<const Delivery> deliveries) {
  auto done = reader_->member.acknowledge(deliveries);
  const bool is_ours =
      done || done.error() == Errc::not_in_flight || done.error() == Errc::lease_lost;
  if (!is_ours) fail(done.error());
}

void GroupDispatcher::deal() {
  constexpr int kRounds = 64;  // Then other topics have their turn.
  {
    const Dealing dealing{is_dealing_};
    int round = 0;
    while ((round < kRounds || dealt_ < received_.size()) && deal_once()) ++round;
  }
  if (has_failed_) return;
  watch_for_stalls();
  if (dealt_ != received_.size() || reader_.is_lent()) return;
  // Also if no consumer is ready: the member may have taken records that it could not read.
  if (reader_->member.next_is_on_disk()) return read_from_disk();
  // While the member is full, its descriptor is readable; a consumer that has sent something comes back here.
  if (has_ready_consumer() && !is_full_ && !published_offset_.is_reached(reached_)) watcher_.arm();
}

bool GroupDispatcher::deal_once() {
  ready_.clear();
  for (std::size_t i = 0; i < consumers_.size(); ++i) {
    GroupConsumer* const consumer = consumers_[(next_ + i) % consumers_.size()];
    if (room_of(*consumer) != 0) ready_.push_back(consumer);
  }
  if (ready_.empty() || has_failed_) return false;
  const bool is_all_dealt = dealt_ == received_.size();
  if (is_all_dealt && (reader_.is_lent() || published_offset_.is_reached(reached_) || !receive()))
    return false;
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

bool GroupDispatcher::receive() {
  reader_->receive(limits());
  return take_received();
}

GroupReader::Limits GroupDispatcher::limits() const {
  const std::size_t consumers = std::clamp<std::size_t>(ready_.size(), 1, kMostConsumers);
  return {.records = most_records() * consumers, .bytes = kMostBytes * consumers};
}

bool GroupDispatcher::take_received() {
  received_.swap(reader_->received);
  dealt_ = 0;
  is_full_ = reader_->is_full;
  if (reader_->failure.code != Errc::ok) fail(reader_->failure);
  if (received_.empty()) return false;
  reached_ = std::max(reached_, received_.back().record.offset + 1);
  on_progress_();
  return true;
}

void GroupDispatcher::read_from_disk() {
  reader_.lend(
      [limits = limits()](GroupReader& reader, const auto& is_over) {
        reader.receive_from_disk(limits, is_over);
      },
      [this] { on_read(); });
}

void GroupDispatcher::on_read() {
  {
    const Dealing dealing{is_dealing_};
    take_received();
  }
  for (const Delivery& one : to_requeue_) (void)reader_->member.requeue(one);
  if (!to_acknowledge_.empty()) acknowledge(to_acknowledge_);
  if (!to_requeue_.empty() || !to_acknowledge_.empty()) is_full_ = false;
  to_requeue_.clear();
  to_acknowledge_.clear();
  if (consumers_.empty()) requeue_received();
  deal();
}

void GroupDispatcher::fail(Error error) {
  if (std::exchange(has_failed_, true)) return;
  on_failure_(error);
}

}  // namespace leat::broker
