#include "topic_client.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace leat::broker {
namespace {

constexpr std::size_t kMostWaiting = 8u << 20;  // bytes for one subscriber

}  // namespace

void TopicClient::open(Principal principal, TopicLog::Done done) {
  is_open_ = true;
  principal_ = std::move(principal);
  topic_.add(*this);
  topic_.log().open(
      *this, use(),
      [weak = stream_.weak_from_this(), this, done = std::move(done)](Outcome<void> opened) {
        const auto stream = weak.lock();  // And with it this role.
        if (stream && is_open_) done(opened ? on_open() : std::move(opened));
      });
}

void TopicClient::leave() {
  if (!std::exchange(is_open_, false)) return;
  be_counted(false);
  on_leave();
  topic_.log().close(*this);
  topic_.remove(*this);
}

void TopicClient::be_counted(bool counts) {
  if (std::exchange(is_counted_, counts) == counts) return;
  counts ? ++count_ : --count_;
}

void TopicClient::count(std::uint64_t messages, std::size_t bytes) {
  messages_ += messages;
  bytes_ += bytes;
  (access() == Access::write ? topic_.bytes_written : topic_.bytes_read) += bytes;
}

ClientStats TopicClient::stats() {
  ClientStats stats;
  stats.address = stream_.peer_name();
  stats.messages = messages_;
  stats.bytes = bytes_;
  stats.is_slow = stream_.is_stuck();
  const auto now = std::chrono::steady_clock::now();
  const double seconds = std::chrono::duration<double>(now - measured_at_).count();
  if (seconds > 0) stats.rate = static_cast<double>(messages_ - messages_then_) / seconds;
  if (seconds >= 1) {
    measured_at_ = now;
    messages_then_ = messages_;
  }
  add_stats(stats);
  return stats;
}

// --- Producers -----------------------------------------------------------------------------------

Outcome<void> PublishingClient::on_open() {
  be_counted(true);
  publish_buffer_ = &topic_.log().publish_buffer();
  return {};
}

// What came with the login is not taken yet: many who come to a full topic would fill the memory.
bool PublishingClient::begin() {
  if (!publish_buffer_->is_full()) return true;
  stream_.flush();  // It is let in.
  waits_ = publish_buffer_->call_when_room(go_on());
  return false;
}

bool PublishingClient::on_message(Bytes message) {
  if (publish_buffer_ == nullptr) return false;
  const PublishBuffer::Added added = publish_buffer_->add(message);
  if (added == PublishBuffer::Added::yes || added == PublishBuffer::Added::full) {
    ++added_;
    count(1, message.size());
  }
  switch (added) {
    case PublishBuffer::Added::yes: return true;
    case PublishBuffer::Added::full:
      waits_ = publish_buffer_->call_when_room(go_on());
      return false;
    case PublishBuffer::Added::too_large:
      (void)on_idle();  // What came before counts.
      stream_.close_later(fmt::format("a message of {} bytes; the limit of the topic is {}",
                                      message.size(), publish_buffer_->largest()));
      return false;
    case PublishBuffer::Added::failed: return false;  // It is closed soon.
  }
  return false;
}

bool PublishingClient::on_idle() {
  if (publish_buffer_ == nullptr) return true;  // Not let in yet.
  switch (publish_buffer_->publish()) {
    case PublishBuffer::Added::yes:
      if (std::exchange(published_, added_) != added_ && on_published_) on_published_(added_);
      if (!topic_.log().throttle().is_ahead()) return true;
      waits_ = topic_.log().throttle().call_when_level(go_on());
      return false;
    case PublishBuffer::Added::full:
      waits_ = publish_buffer_->call_when_room(go_on());
      return false;
    default: return false;
  }
}

void PublishingClient::add_stats(ClientStats& stats) const {
  stats.role = ClientRole::publisher;
  stats.lag = added_ - published_;
}

std::function<void()> PublishingClient::go_on() {
  return [weak = stream_.weak_from_this(), this] {
    const auto stream = weak.lock();  // And with it this role.
    if (stream && publish_buffer_ != nullptr && on_idle()) stream->resume();
  };
}

// --- Consumers -------------------------------------------------------------------------------------

Outcome<void> ConsumingClient::on_open() {
  be_counted(true);
  TopicLog& log = topic_.log();
  GroupDispatcher& dispatcher = as_.is_own_group ? log.own_dispatcher() : log.dispatcher(as_.group);
  if (!dispatcher.has_room())
    return Problem{Errc::too_many, "the topic has as many pullers as it can serve"};
  dispatcher_ = &dispatcher;
  return {};
}

bool ConsumingClient::begin() {
  stream_.flush();
  dispatcher_->add(*this);
  return true;
}

void ConsumingClient::append(const Record& record) {
  encoding_.for_consumer(stream_.out(), record);
  count(1, record.value.size());
}

void ConsumingClient::add_stats(ClientStats& stats) const {
  stats.role = ClientRole::consumer;
  stats.lag = in_flight();
}

void ConsumingClient::cut_off() {
  stream_.close_later("does not take its messages, and others wait for the memory");
}

void ConsumingClient::on_leave() {
  if (dispatcher_ != nullptr) std::exchange(dispatcher_, nullptr)->remove(*this);
}

void ConsumingClient::on_sent() {
  if (dispatcher_ != nullptr) dispatcher_->on_sent(*this);
}

bool ConsumingClient::on_done(std::uint64_t count) {
  if (dispatcher_ == nullptr || count == done_) return true;
  if (count < done_ || !dispatcher_->on_done(*this, count - done_)) return false;
  done_ = count;
  return true;
}

// --- Subscribers -----------------------------------------------------------------------------------

Outcome<void> SubscribingClient::on_open() {
  broadcaster_ = &topic_.log().broadcaster(encoding_);
  return {};
}

void SubscribingClient::on_leave() {
  topic_.log().backlog().remove(*this);
  if (broadcaster_ != nullptr) std::exchange(broadcaster_, nullptr)->remove(*this);
  if (lost_ != 0)
    spdlog::warn("topic {}: {} was too slow and lost {} messages", topic_.name(),
                 stream_.peer_name(), lost_);
}

void SubscribingClient::listen(bool wants) {
  if (broadcaster_ == nullptr) return;
  if (wants) {
    be_counted(true);
    broadcaster_->add(*this);
  } else {
    broadcaster_->remove(*this);
  }
}

void SubscribingClient::add_stats(ClientStats& stats) const {
  stats.role = ClientRole::subscriber;
  stats.lag = waiting_records_;
  stats.lost = lost_;
}

void SubscribingClient::take(const std::shared_ptr<const Chunk>& chunk) {
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

bool SubscribingClient::holds_up() const {
  return waits() && waiting_bytes_ > (topic_.log().backlog().is_full() ? 0 : kMostWaiting / 2);
}

std::uint64_t SubscribingClient::oldest() const {
  return sending_ != nullptr ? sending_->number : waiting_.front()->number;
}

// What the connection has of a chunk cannot be taken back: half a message may have gone.
std::size_t SubscribingClient::give_up() {
  if (waits()) return 0;
  const bool closes = topic_.slow_subscriber() == SlowSubscriber::disconnect ||
                      (waiting_.empty() && stream_.is_stuck());
  lost_ += waiting_records_;
  drop_waiting();
  if (!closes) return 0;
  stream_.close_later("too slow");
  return sending_ == nullptr ? 0 : sending_->counted;
}

void SubscribingClient::drop_waiting() {
  waiting_.clear();
  waiting_bytes_ = 0;
  waiting_records_ = 0;
  if (sending_ == nullptr) topic_.log().backlog().remove(*this);
}

void SubscribingClient::send_next() {
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
  if (broadcaster_ == nullptr) return;
  if (sending_ != nullptr || !waiting_.empty()) {  // Also behind what is no chunk, as PONGs.
    topic_.log().backlog().add(*this);
  } else {
    topic_.log().backlog().remove(*this);
  }
  if (may_hold_up && !holds_up()) broadcaster_->poll_later();
}

}  // namespace leat::broker
