#include "broker/dealer.hpp"

#include <algorithm>

namespace leat::broker {
namespace {

// For one puller at a time. Many records cost fewer system calls; but all pullers together must not hold all that
// the group may have in flight.
std::size_t most_records(std::size_t pullers) {
  return std::clamp<std::size_t>(4096 / pullers, 64, 256);
}
constexpr std::size_t kMostBytes = 64 * 1024;  // One larger record is dealt nevertheless.

}  // namespace

Outcome<std::unique_ptr<Dealer>> Dealer::open(boost::asio::io_context& loop, const Group& group,
                                              std::function<void(Error)> on_failure) {
  const auto problem = [](Error error) {
    return Problem{error.code, "cannot be a member of the pullers' group: " + describe(error)};
  };
  auto member = group.join({.name = "leat-serve", .spin = {}, .patience = {}});
  if (!member) return problem(member.error());
  std::unique_ptr<Dealer> dealer{new Dealer{std::move(*member), std::move(on_failure)}};
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
  if (!puller.acknowledges()) acknowledge(puller, puller.held_.size());
  if (!is_dealing_) deal();
}

bool Dealer::on_done(Puller& puller, std::uint64_t count) {
  if (count == 0 || count > puller.held_.size()) return false;
  const bool are_sent = puller.appended() == puller.sent() ||
                        puller.held_[static_cast<std::size_t>(count) - 1].end <= puller.sent();
  if (!are_sent) return false;
  acknowledge(puller, static_cast<std::size_t>(count));
  if (!is_dealing_) deal();
  return true;
}

void Dealer::remove(Puller& puller) {
  const auto at = std::find(pullers_.begin(), pullers_.end(), &puller);
  if (at == pullers_.end()) return;
  pullers_.erase(at);
  if (!puller.acknowledges()) {
    const auto sent =
        std::count_if(puller.held_.begin(), puller.held_.end(),
                      [&](const Puller::Share& share) { return share.end <= puller.sent(); });
    acknowledge(puller, static_cast<std::size_t>(sent));
  }
  for (const Puller::Share& share : puller.held_) (void)member_.give_back(share.delivery);
  puller.held_.clear();
  if (pullers_.empty()) {  // Local members may want them.
    for (; dealt_ < received_.size(); ++dealt_) (void)member_.give_back(received_[dealt_]);
  }
  is_full_ = false;
  if (!is_dealing_) deal();
}

// The first `count` of what it holds.
void Dealer::acknowledge(Puller& puller, std::size_t count) {
  settled_.clear();
  for (std::size_t i = 0; i < count; ++i) settled_.push_back(puller.held_[i].delivery);
  puller.held_.erase(puller.held_.begin(),
                     puller.held_.begin() + static_cast<std::ptrdiff_t>(count));
  (void)member_.acknowledge(settled_);
  if (count != 0) is_full_ = false;
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
  const bool has_ready = std::any_of(pullers_.begin(), pullers_.end(),
                                     [](const Puller* puller) { return puller->is_ready(); });
  // While the member is full, its descriptor is readable; a puller that has sent something comes back here.
  if (has_ready && !has_failed_ && !is_full_) watch_->arm();
}

bool Dealer::deal_once() {
  ready_.clear();
  for (std::size_t i = 0; i < pullers_.size(); ++i) {
    Puller* const puller = pullers_[(next_ + i) % pullers_.size()];
    if (puller->is_ready()) ready_.push_back(puller);
  }
  if (ready_.empty() || has_failed_) return false;
  if (dealt_ == received_.size() && !receive()) return false;
  const std::size_t left = received_.size() - dealt_;
  // Few if few are there, so that all get some.
  const std::size_t share =
      std::clamp<std::size_t>((left + ready_.size() - 1) / ready_.size(), 1,
                              most_records(pullers_.size()));
  for (Puller* const puller : ready_) {
    const std::size_t begin = puller->appended();
    for (std::size_t i = 0; i < share && dealt_ < received_.size(); ++i) {
      puller->append(received_[dealt_].record);
      puller->held_.push_back({received_[dealt_], puller->appended()});
      ++dealt_;
      if (puller->appended() - begin >= kMostBytes) break;
    }
    if (puller->held_.empty()) break;
    ++next_;
    puller->send();
  }
  return true;
}

bool Dealer::receive() {
  received_.clear();
  dealt_ = 0;
  constexpr std::size_t kMostPullers = 16;
  const std::size_t most = most_records(pullers_.size()) * std::min(ready_.size(), kMostPullers);
  auto count = member_.receive(received_, most, Deadline::immediate());
  if (count) return true;
  is_full_ = count.error() == Errc::in_flight_full;
  if (!is_full_ && count.error() != Errc::timeout) {
    has_failed_ = true;
    on_failure_(count.error());
  }
  return false;
}

}  // namespace leat::broker
