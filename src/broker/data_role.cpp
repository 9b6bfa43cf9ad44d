#include "broker/data_role.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace leat::broker {

Outcome<void> DataRole::open() {
  is_open_ = true;
  ++count_;
  topic_.connections.insert(&stream_);
  return on_open();
}

void DataRole::leave() {
  if (!std::exchange(is_open_, false)) return;
  --count_;
  topic_.connections.erase(&stream_);
  on_leave();
}

// --- Producers -----------------------------------------------------------------------------------

Outcome<void> ProducerRole::on_open() {
  auto intake = topic_.intake();
  if (!intake) return intake.problem();
  intake_ = *intake;
  return {};
}

bool ProducerRole::on_message(Bytes message) {
  if (intake_ == nullptr) return false;
  switch (intake_->add(message)) {
    case Intake::Added::yes: ++added_; return true;
    case Intake::Added::full:
      ++added_;
      intake_->call_when_room(go_on());
      return false;
    case Intake::Added::too_large:
      (void)on_idle();  // What came before counts.
      stream_.close_later(fmt::format("a message of {} bytes; the limit of the topic is {}",
                                      message.size(), intake_->largest()));
      return false;
    case Intake::Added::failed: return false;  // It is closed soon.
  }
  return false;
}

bool ProducerRole::on_idle() {
  if (intake_ == nullptr) return true;  // Not let in yet.
  switch (intake_->publish()) {
    case Intake::Added::yes:
      if (std::exchange(published_, added_) != added_ && on_published_) on_published_(added_);
      if (!topic_.pace().is_ahead()) return true;
      topic_.pace().call_when_level(go_on());
      return false;
    case Intake::Added::full: intake_->call_when_room(go_on()); return false;
    default: return false;
  }
}

std::function<void()> ProducerRole::go_on() {
  return [weak = stream_.weak_from_this(), this] {
    const auto stream = weak.lock();  // And with it this role.
    if (stream && intake_ != nullptr && on_idle()) stream->resume();
  };
}

// --- Pullers -------------------------------------------------------------------------------------

Outcome<void> PullerRole::on_open() {
  auto dealer = topic_.dealer();
  if (!dealer) return dealer.problem();
  dealer_ = *dealer;
  return {};
}

void PullerRole::on_begin() {
  stream_.flush();
  dealer_->add(*this);
}

void PullerRole::on_leave() {
  if (dealer_ != nullptr) std::exchange(dealer_, nullptr)->remove(*this);
}

void PullerRole::on_sent() {
  if (dealer_ != nullptr) dealer_->on_sent(*this);
}

bool PullerRole::on_done(std::uint64_t count) {
  if (dealer_ == nullptr || count == done_) return true;
  if (count < done_ || !dealer_->on_done(*this, count - done_)) return false;
  done_ = count;
  return true;
}

// --- Listeners -----------------------------------------------------------------------------------

Outcome<void> ListenerRole::on_open() {
  auto feed = topic_.feed(encoding_);
  if (!feed) return feed.problem();
  feed_ = *feed;
  return {};
}

void ListenerRole::on_leave() {
  if (feed_ != nullptr) std::exchange(feed_, nullptr)->remove(*this);
  if (lost_ != 0)
    spdlog::warn("topic {}: {} was too slow and lost {} messages", topic_.name(),
                 stream_.peer_name(), lost_);
}

void ListenerRole::listen(bool wants) {
  if (feed_ == nullptr) return;
  if (wants) {
    feed_->add(*this);
  } else {
    feed_->remove(*this);
  }
}

void ListenerRole::take(const std::shared_ptr<const Chunk>& chunk) {
  constexpr std::size_t kMostWaiting = 8u << 20;  // bytes
  if (waiting_bytes_ != 0 && waiting_bytes_ + chunk->bytes.size() > kMostWaiting) {
    lost_ += chunk->records;
    return;
  }
  waiting_.push_back(chunk);
  waiting_bytes_ += chunk->bytes.size();
  send_next();
}

void ListenerRole::send_next() {
  if (is_sending_) return;  // Further up.
  is_sending_ = true;
  while (stream_.unsent() == 0 && !waiting_.empty()) {
    stream_.out().append(waiting_.front()->bytes);
    waiting_bytes_ -= waiting_.front()->bytes.size();
    waiting_.pop_front();
    stream_.flush();
  }
  is_sending_ = false;
}

}  // namespace leat::broker
