#include "topic_client.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace leat::broker {
namespace {

constexpr std::size_t kMostWaiting = 8u << 20;  // bytes for one subscriber

}  // namespace

Outcome<void> DataRole::open(Entry entry) {
  is_open_ = true;
  entry_ = std::move(entry);
  topic_.add(*this);
  return on_open();
}

void DataRole::leave() {
  if (!std::exchange(is_open_, false)) return;
  be_counted(false);
  on_leave();
  topic_.remove(*this);
}

void DataRole::be_counted(bool is_one) {
  if (std::exchange(is_counted_, is_one) == is_one) return;
  is_one ? ++count_ : --count_;
}

void DataRole::count(std::uint64_t messages, std::size_t bytes) {
  messages_ += messages;
  bytes_ += bytes;
  (access() == Access::write ? topic_.bytes_written : topic_.bytes_read) += bytes;
}

ClientStats DataRole::stats() {
  ClientStats stats;
  stats.address = stream_.peer_name();
  stats.messages = messages_;
  stats.bytes = bytes_;
  stats.is_slow = stream_.is_stuck();
  const auto now = std::chrono::steady_clock::now();
  const double seconds = std::chrono::duration<double>(now - looked_at_).count();
  if (seconds > 0) stats.rate = static_cast<double>(messages_ - messages_then_) / seconds;
  if (seconds >= 1) {
    looked_at_ = now;
    messages_then_ = messages_;
  }
  add_stats(stats);
  return stats;
}

// --- Producers -----------------------------------------------------------------------------------

Outcome<void> ProducerRole::on_open() {
  be_counted(true);
  auto intake = topic_.intake();
  if (!intake) return intake.problem();
  intake_ = *intake;
  return {};
}

// What came with the login is not taken yet: many who come to a full topic would fill the memory.
bool ProducerRole::begin() {
  if (!intake_->is_full()) return true;
  stream_.flush();  // It is let in.
  intake_->call_when_room(go_on());
  return false;
}

bool ProducerRole::on_message(Bytes message) {
  if (intake_ == nullptr) return false;
  const Intake::Added added = intake_->add(message);
  if (added == Intake::Added::yes || added == Intake::Added::full) {
    ++added_;
    count(1, message.size());
  }
  switch (added) {
    case Intake::Added::yes: return true;
    case Intake::Added::full: intake_->call_when_room(go_on()); return false;
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

void ProducerRole::add_stats(ClientStats& stats) const {
  stats.role = "pub";
  stats.lag = added_ - published_;
}

std::function<void()> ProducerRole::go_on() {
  return [weak = stream_.weak_from_this(), this] {
    const auto stream = weak.lock();  // And with it this role.
    if (stream && intake_ != nullptr && on_idle()) stream->resume();
  };
}

// --- Pullers -------------------------------------------------------------------------------------

Outcome<void> PullerRole::on_open() {
  be_counted(true);
  auto dealer = topic_.dealer();
  if (!dealer) return dealer.problem();
  if (!(*dealer)->has_room())
    return Problem{Errc::too_many, "the topic has as many pullers as it can serve"};
  dealer_ = *dealer;
  return {};
}

bool PullerRole::begin() {
  stream_.flush();
  dealer_->add(*this);
  return true;
}

void PullerRole::append(const Record& record) {
  encoding_.for_puller(stream_.out(), record);
  count(1, record.value.size());
}

void PullerRole::add_stats(ClientStats& stats) const {
  stats.role = "pull";
  stats.lag = held();
}

void PullerRole::cut_off() {
  stream_.close_later("does not take its messages, and others wait for the memory");
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
  topic_.backlog().remove(*this);
  if (feed_ != nullptr) std::exchange(feed_, nullptr)->remove(*this);
  if (lost_ != 0)
    spdlog::warn("topic {}: {} was too slow and lost {} messages", topic_.name(),
                 stream_.peer_name(), lost_);
}

void ListenerRole::listen(bool wants) {
  if (feed_ == nullptr) return;
  if (wants) {
    be_counted(true);
    feed_->add(*this);
  } else {
    feed_->remove(*this);
  }
}

void ListenerRole::add_stats(ClientStats& stats) const {
  stats.role = "sub";
  stats.lag = waiting_records_;
  stats.lost = lost_;
}

void ListenerRole::take(const std::shared_ptr<const Chunk>& chunk) {
  const bool is_too_slow =
      waiting_bytes_ != 0 && waiting_bytes_ + chunk->bytes.size() > kMostWaiting;
  if (is_too_slow && !waits()) {
    lost_ += chunk->records;
    if (topic_.slow_subscriber() == SlowSubscriber::disconnect) stream_.close_later("too slow");
    return;
  }
  waiting_.push_back(chunk);
  waiting_bytes_ += chunk->bytes.size();
  waiting_records_ += chunk->records;
  send_next();
}

bool ListenerRole::holds_up() const {
  return waits() && waiting_bytes_ > (topic_.backlog().is_full() ? 0 : kMostWaiting / 2);
}

std::uint64_t ListenerRole::oldest() const {
  return sending_ != nullptr ? sending_->number : waiting_.front()->number;
}

// What the connection has of a chunk cannot be taken back: half a message may have gone.
std::size_t ListenerRole::give_up() {
  if (waits()) return 0;
  const bool closes = topic_.slow_subscriber() == SlowSubscriber::disconnect ||
                      (waiting_.empty() && stream_.is_stuck());
  lost_ += waiting_records_;
  drop_waiting();
  if (!closes) return 0;
  stream_.close_later("too slow");
  return sending_ == nullptr ? 0 : sending_->counted;
}

void ListenerRole::drop_waiting() {
  waiting_.clear();
  waiting_bytes_ = 0;
  waiting_records_ = 0;
  if (sending_ == nullptr) topic_.backlog().remove(*this);
}

void ListenerRole::send_next() {
  if (is_sending_) return;  // Further up.
  is_sending_ = true;
  const bool may_hold_up = waits() && !waiting_.empty();
  while (stream_.unsent() == 0 && !waiting_.empty()) {
    sending_ = std::move(waiting_.front());
    waiting_.pop_front();
    waiting_bytes_ -= sending_->bytes.size();
    waiting_records_ -= sending_->records;
    count(sending_->records, sending_->payload_bytes);
    stream_.lend({sending_, &sending_->bytes});
    stream_.flush();
  }
  is_sending_ = false;
  if (stream_.unsent() == 0) sending_ = nullptr;
  if (feed_ == nullptr) return;
  if (sending_ != nullptr || !waiting_.empty()) {  // Also behind what is no chunk, as PONGs.
    topic_.backlog().add(*this);
  } else {
    topic_.backlog().remove(*this);
  }
  if (may_hold_up && !holds_up()) feed_->look_later();
}

}  // namespace leat::broker
