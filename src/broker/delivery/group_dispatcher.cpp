#include "group_dispatcher.hpp"

#include <algorithm>
#include <utility>

namespace leat::broker {
namespace {

// For one puller at a time; one larger record is dealt nevertheless.
constexpr std::size_t kMostBytes = LargeMessages::kSmall;
constexpr std::size_t kMostRecords = 512;
constexpr std::size_t kMostHeldBytes = 4 * kMostBytes;  // By one that acknowledges.
constexpr std::chrono::milliseconds kStalled{1000};

}  // namespace

std::size_t Puller::sent_count() const {
  const auto sent =
      std::partition_point(places_.begin(), places_.end(),
                           [this](const Place& place) { return place.end <= this->sent(); });
  return static_cast<std::size_t>(sent - places_.begin());
}

void Puller::forget(std::size_t count) {
  const auto end = static_cast<std::ptrdiff_t>(count);
  held_.erase(held_.begin(), held_.begin() + end);
  places_.erase(places_.begin(), places_.begin() + end);
}

Outcome<std::unique_ptr<Dealer>> Dealer::open(boost::asio::io_context& loop, const Topic& topic,
                                              const Group& group, LargeMessages& unsent,
                                              std::function<void(Error)> on_failure,
                                              std::function<void()> on_progress) {
  const auto problem = [](Error error) {
    return Problem{error.code, "cannot be a member of the pullers' group: " + describe(error)};
  };
  auto member = group.join({.name = "leat-serve", .spin = {}, .patience = {}});
  if (!member) return problem(member.error());
  const GroupInfo info = group.info();
  std::unique_ptr<Dealer> dealer{new Dealer{loop, topic, std::move(*member), info.in_flight_limit,
                                            unsent, std::move(on_failure), std::move(on_progress)}};
  dealer->has_lease_ = info.lease.count() != 0;
  auto fd = dealer->member_.wait_fd();
  if (!fd) return problem(fd.error());
  dealer->watch_.emplace(loop, *fd, [raw = dealer.get()] { raw->deal(); });
  return dealer;
}

void Dealer::add(Puller& puller) {
  pullers_.push_back(&puller);
  deal();
}

void Dealer::on_sent(Puller& puller) {
  unsent_.release(puller);
  if (!puller.acknowledges()) acknowledge(puller, puller.held_.size());
  if (!is_dealing_) deal();
}

bool Dealer::on_done(Puller& puller, std::uint64_t count) {
  if (count == 0 || count > puller.sent_count()) return false;
  acknowledge(puller, static_cast<std::size_t>(count));
  if (!is_dealing_) deal();
  return true;
}

void Dealer::remove(Puller& puller) {
  const auto at = std::find(pullers_.begin(), pullers_.end(), &puller);
  if (at == pullers_.end()) return;
  pullers_.erase(at);
  unsent_.release(puller);
  if (!puller.acknowledges()) acknowledge(puller, puller.sent_count());
  give_back(puller, 0);
  if (pullers_.empty()) give_back_received();  // Local members may want them.
  if (!is_dealing_) deal();
}

std::size_t Dealer::most_records() const {
  const std::size_t free = limit_ - std::min(limit_, in_hands_);
  return std::clamp<std::size_t>(free / (2 * pullers_.size()), 1, kMostRecords);
}

std::size_t Dealer::room_of(const Puller& puller) const {
  if (!puller.is_idle()) return 0;
  const auto& held = puller.held_;
  if (!puller.acknowledges()) return held.empty() ? most_records() : 0;
  const std::size_t most = std::clamp<std::size_t>(limit_ / (2 * pullers_.size()), 1, kMostRecords);
  const bool is_full =
      held.size() >= most ||
      (!held.empty() && puller.places_.back().end - puller.places_.front().begin >= kMostHeldBytes);
  return is_full ? 0 : std::min(most - held.size(), most_records());
}

bool Dealer::has_ready_puller() const {
  return std::any_of(pullers_.begin(), pullers_.end(),
                     [this](const Puller* puller) { return room_of(*puller) != 0; });
}

void Dealer::watch_for_stalls() {
  const bool may_stall = dealt_ < received_.size() ||
                         std::any_of(pullers_.begin(), pullers_.end(), [](const Puller* puller) {
                           return !puller->is_idle() && !puller->held_.empty();
                         });
  if (!may_stall || stalled_.is_running()) return;
  stalled_.start(kStalled, [this, dealt = dealt_total_] {
    take_back_from_stalled();
    if (dealt == dealt_total_ && !has_ready_puller()) give_back_received();
    deal();  // And watches on.
  });
}

void Dealer::take_back_from_stalled() {
  for (Puller* const puller : pullers_) {
    if (!puller->is_stuck() || puller->held_.empty()) continue;
    if (!puller->acknowledges()) acknowledge(*puller, puller->sent_count());
    const auto& places = puller->places_;
    std::size_t first = puller->sent_count();
    if (first < places.size() && places[first].begin < puller->sent())
      ++first;  // It is sent in part.
    if (first == places.size()) continue;
    puller->take_back(places[first].begin, places.back().end);
    give_back(*puller, first);
  }
}

void Dealer::give_back_received() {
  unsent_.leave(*this);
  for (; dealt_ < received_.size(); ++dealt_) (void)member_.give_back(received_[dealt_]);
}

void Dealer::give_back(Puller& puller, std::size_t first) {
  for (std::size_t i = first; i < puller.held_.size(); ++i)
    (void)member_.give_back(puller.held_[i]);
  in_hands_ -= puller.held_.size() - first;
  puller.held_.resize(first);
  puller.places_.resize(first);
  is_full_ = false;
}

void Dealer::acknowledge(Puller& puller, std::size_t count) {
  if (count == 0) return;
  in_hands_ -= count;
  is_full_ = false;
  auto done = member_.acknowledge(std::span{puller.held_}.first(count));
  puller.forget(count);
  const bool is_ours = done || done.error() == Errc::not_held || done.error() == Errc::lease_lost;
  if (!is_ours) fail(done.error());
}

void Dealer::deal() {
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
  // While the member is full, its descriptor is readable; a puller that has sent something comes back here.
  const bool may_find =
      has_ready_puller() && !has_failed_ && !is_full_ && dealt_ == received_.size();
  if (may_find && !own_end_.is_reached(reached_)) watch_->arm();
  if (!has_failed_) watch_for_stalls();
}

bool Dealer::deal_once() {
  ready_.clear();
  for (std::size_t i = 0; i < pullers_.size(); ++i) {
    Puller* const puller = pullers_[(next_ + i) % pullers_.size()];
    if (room_of(*puller) != 0) ready_.push_back(puller);
  }
  if (ready_.empty() || has_failed_) return false;
  const bool is_all_dealt = dealt_ == received_.size();
  if (is_all_dealt && (own_end_.is_reached(reached_) || !receive())) return false;
  const std::size_t left = received_.size() - dealt_;
  // Few if few are there, so that all get some.
  const std::size_t fair = (left + ready_.size() - 1) / ready_.size();
  bool has_room = true;
  for (Puller* const puller : ready_) {
    if (dealt_ == received_.size()) break;
    const std::size_t share = std::min(fair, room_of(*puller));
    const std::uint64_t begin = puller->appended();
    for (std::size_t i = 0; i < share && dealt_ < received_.size(); ++i) {
      const std::size_t bytes = received_[dealt_].record.value.size();
      has_room = bytes <= LargeMessages::kSmall || unsent_.take(*this, *puller, bytes);
      if (!has_room) break;
      const std::uint64_t at = puller->appended();
      puller->append(received_[dealt_].record);
      puller->held_.push_back(received_[dealt_]);
      puller->places_.push_back({at, puller->appended()});
      ++in_hands_;
      ++dealt_;
      ++dealt_total_;
      if (puller->appended() - begin >= kMostBytes) break;
    }
    if (puller->appended() != begin) puller->send();
    if (!has_room) return false;
    ++next_;
  }
  return true;
}

// Few large ones: those of a durable topic are copies.
bool Dealer::receive() {
  received_.clear();
  dealt_ = 0;
  constexpr std::size_t kMostPullers = 16;
  constexpr std::size_t kStep = 64;
  const std::size_t pullers = std::min(ready_.size(), kMostPullers);
  const std::size_t most = most_records() * pullers;
  std::size_t bytes = 0;
  while (received_.size() < most && bytes < kMostBytes * pullers) {
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

void Dealer::fail(Error error) {
  if (std::exchange(has_failed_, true)) return;
  on_failure_(error);
}

}  // namespace leat::broker
