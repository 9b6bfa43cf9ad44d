#include "broker/lightq/data_streams.hpp"

#include <spdlog/spdlog.h>

#include <boost/asio/post.hpp>
#include <deque>

namespace leat::broker::lightq {
namespace {

// What all three have in common.
class DataStream : public ZmtpStream {
 public:
  DataStream(Socket socket, const zmtp::Rules& rules, BrokerTopic& topic, const Gate& gate,
             std::uint64_t& count)
      : ZmtpStream{std::move(socket), rules, gate}, topic_{topic}, count_{count} {
    topic_.connections.insert(this);
  }

 protected:
  void on_ready() final {
    ++count_;
    is_counted_ = true;
    if (auto begun = begin_to_serve(); !begun) fail(begun.problem().sentence);
  }
  void on_finishing() final { leave(); }
  void on_closed(const std::string& why) final {
    topic_.connections.erase(this);
    if (is_counted_) --count_;
    leave();
    spdlog::debug("topic {}: {} left: {}", topic_.name(), peer_name(), why);
  }
  virtual Outcome<void> begin_to_serve() = 0;
  virtual void leave() = 0;

  // Later, because the caller may be in the middle of something.
  void fail(const std::string& why) {
    spdlog::warn("topic {}: {}: {}", topic_.name(), peer_name(), why);
    boost::asio::post(loop(), [self = shared_from_this(), why] { self->close(why); });
  }

  BrokerTopic& topic_;

 private:
  std::uint64_t& count_;
  bool is_counted_ = false;
};

class Producer final : public DataStream {
 public:
  Producer(Socket socket, const zmtp::Rules& rules, BrokerTopic& topic, const Gate& gate)
      : DataStream{std::move(socket), rules, topic, gate, topic.publishers} {}

 private:
  Outcome<void> begin_to_serve() override {
    auto intake = topic_.intake();
    if (!intake) return intake.problem();
    intake_ = *intake;
    return {};
  }
  void leave() override { intake_ = nullptr; }

  bool on_message(Bytes body, bool /*more*/) override {
    if (intake_ == nullptr) return false;
    switch (intake_->add(body)) {
      case Intake::Added::yes: return true;
      case Intake::Added::full: go_on_later(); return false;
      case Intake::Added::too_large:
        fail(fmt::format("a message of {} bytes; the limit of the topic is {}", body.size(),
                         intake_->largest()));
        return false;
      case Intake::Added::failed: return false;  // It is closed soon.
    }
    return false;
  }

  bool on_idle() override {
    if (intake_ == nullptr) return true;  // Not logged in yet.
    switch (intake_->publish()) {
      case Intake::Added::yes: return true;
      case Intake::Added::full: go_on_later(); return false;
      default: return false;
    }
  }

  void go_on_later() {
    intake_->call_when_room([weak = weak_from_this(), this] {
      const auto self = weak.lock();
      if (self && intake_ != nullptr && on_idle()) resume();
    });
  }

  Intake* intake_ = nullptr;
};

class PullerStream final : public DataStream, public Puller {
 public:
  PullerStream(Socket socket, const zmtp::Rules& rules, BrokerTopic& topic, const Gate& gate)
      : DataStream{std::move(socket), rules, topic, gate, topic.subscribers} {}

 private:
  Outcome<void> begin_to_serve() override {
    auto dealer = topic_.dealer();
    if (!dealer) return dealer.problem();
    dealer_ = *dealer;
    flush();
    dealer_->add(*this);
    return {};
  }
  void leave() override {
    if (dealer_ != nullptr) std::exchange(dealer_, nullptr)->remove(*this);
  }
  bool on_message(Bytes, bool) override { return true; }
  void on_sent() override {
    if (dealer_ != nullptr) dealer_->on_sent(*this);
  }

  void append(const Record& record) override {
    char header[zmtp::kLongHeaderBytes];
    out().append(header, zmtp::write_header(header, record.value.size(), 0));
    out().append(record.value.text());
  }
  void send() override { flush(); }
  std::size_t appended() const override { return ended_at(); }
  std::size_t sent() const override { return sent_bytes(); }

  Dealer* dealer_ = nullptr;
};

class ListenerStream final : public DataStream, public Listener {
 public:
  ListenerStream(Socket socket, const zmtp::Rules& rules, BrokerTopic& topic, const Gate& gate)
      : DataStream{std::move(socket), rules, topic, gate, topic.subscribers} {}

 private:
  static constexpr std::size_t kMostWaiting = 8u << 20;  // bytes

  Outcome<void> begin_to_serve() override {
    const std::string name = topic_.name();
    auto feed = topic_.feed([name](std::string& out, const Record& record) {
      zmtp::append_message(out, Bytes{name}, record.value);
    });
    if (!feed) return feed.problem();
    feed_ = *feed;
    return {};
  }
  void leave() override {
    if (feed_ != nullptr) std::exchange(feed_, nullptr)->remove(*this);
    if (lost_ != 0)
      spdlog::warn("topic {}: {} was too slow and lost {} messages", topic_.name(), peer_name(),
                   lost_);
  }
  bool on_message(Bytes, bool) override { return true; }

  // The first part of each message is the topic's name, so a prefix matches all of them or none.
  void on_subscription(Bytes prefix, bool is_new) override {
    if (feed_ == nullptr || !topic_.name().starts_with(prefix.text())) return;
    if (is_new) {
      if (matches_++ == 0) feed_->add(*this);
    } else if (matches_ != 0 && --matches_ == 0) {
      feed_->remove(*this);
    }
  }

  void take(const std::shared_ptr<const Chunk>& chunk) override {
    if (waiting_bytes_ != 0 && waiting_bytes_ + chunk->bytes.size() > kMostWaiting) {
      lost_ += chunk->records;
      return;
    }
    waiting_.push_back(chunk);
    waiting_bytes_ += chunk->bytes.size();
    send_next();
  }
  void on_sent() override { send_next(); }
  void send_next() {
    if (is_sending_) return;  // Further up.
    is_sending_ = true;
    while (unsent() == 0 && !waiting_.empty()) {
      out().append(waiting_.front()->bytes);
      waiting_bytes_ -= waiting_.front()->bytes.size();
      waiting_.pop_front();
      flush();
    }
    is_sending_ = false;
  }

  Feed* feed_ = nullptr;
  std::uint64_t matches_ = 0;  // Its subscriptions that are to this topic.
  std::deque<std::shared_ptr<const Chunk>> waiting_;
  std::size_t waiting_bytes_ = 0;
  std::uint64_t lost_ = 0;  // Messages that it was too slow for.
  bool is_sending_ = false;
};

}  // namespace

std::shared_ptr<Stream> make_data_stream(zmtp::Role role, Stream::Socket socket, BrokerTopic& topic,
                                         const Gate& gate, const DataLimits& limits) {
  const zmtp::Rules rules{
      .role = role, .allows_null = gate.allows_null, .max_message_bytes = limits.message_bytes};
  switch (role) {
    case zmtp::Role::pull: return std::make_shared<Producer>(std::move(socket), rules, topic, gate);
    case zmtp::Role::push:
      return std::make_shared<PullerStream>(std::move(socket), rules, topic, gate);
    default: return std::make_shared<ListenerStream>(std::move(socket), rules, topic, gate);
  }
}

}  // namespace leat::broker::lightq
