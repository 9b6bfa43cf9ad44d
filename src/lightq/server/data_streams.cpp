#include "data_streams.hpp"

#include <spdlog/spdlog.h>

#include <map>

#include "lightq_protocol.hpp"

namespace leat::broker::lightq {
namespace {

constexpr Encoding kZmtp{
    .for_consumer = [](std::string& out,
                       const Record& record) { zmtp::append_frame(out, record.value, 0); },
    .for_subscriber =
        [](std::string& out, const std::string& topic, const Record& record) {
          zmtp::append_message(out, Bytes{topic}, record.value);
        }};

constexpr char kNotOpened[] = "its topic could not be opened in time: its disk may be slow";

class DataStream final : public ZmtpStream {
 public:
  DataStream(Accepted accepted, const zmtp::Rules& rules, const TopicPtr& shared,
             const Authenticator& authenticator)
      : ZmtpStream{std::move(accepted), rules, authenticator},
        topic_{shared},
        opening_time_{authenticator.handshake_time} {
    BrokerTopic& topic = *topic_;
    switch (rules.role) {
      case zmtp::Role::pull: client_ = std::make_unique<PublishingClient>(*this, topic); break;
      case zmtp::Role::push:
        client_ = std::make_unique<ConsumingClient>(*this, topic, TopicUse::consume_own(kGroup),
                                                    kZmtp, false);
        break;
      default:
        auto subscriber = std::make_unique<SubscribingClient>(*this, topic, kZmtp);
        subscriber_ = subscriber.get();
        client_ = std::move(subscriber);
    }
  }

  void begin() override {
    ZmtpStream::begin();
    greet();
    flush();
  }

 private:
  bool on_ready() override {
    start_clock(opening_time_, kNotOpened);
    client_->open({user(), version()}, [this](const Outcome<void>& opened) {
      stop_clock();
      if (!opened) return close_later(opened.problem().sentence);
      if (client_->begin()) resume();
    });
    return false;
  }
  void on_finishing() override { client_->leave(); }
  void on_closed(const std::string& why) override {
    client_->leave();
    spdlog::debug("topic {}: {} left: {}", topic_->name(), peer_name(), why);
  }
  // Each part of a message is a message.
  bool on_message(Bytes body, bool /*more*/) override { return client_->on_message(body); }
  bool on_idle() override { return client_->on_idle(); }
  void on_sent() override { client_->on_sent(); }

  // The first part of each message is the topic's name, so a prefix matches all of them or none.
  void on_subscription(Bytes prefix, bool is_new) override {
    if (subscriber_ == nullptr || !topic_->name().starts_with(prefix.text())) return;
    std::uint64_t& count = matches_[prefix.size()];
    if (!is_new && count == 0) return;  // It cancels what it has not subscribed to.
    const bool listened = all_matches_ != 0;
    is_new ? ++count : --count;
    is_new ? ++all_matches_ : --all_matches_;
    if (listened != (all_matches_ != 0)) subscriber_->listen(!listened);
  }

  TopicPtr topic_;
  std::chrono::milliseconds opening_time_;
  std::unique_ptr<TopicClient> client_;
  SubscribingClient* subscriber_ = nullptr;  // If it is one.
  // Its subscriptions that are to this topic, by their length: of each length there is one that matches.
  std::map<std::size_t, std::uint64_t> matches_;
  std::uint64_t all_matches_ = 0;
};

}  // namespace

std::shared_ptr<Stream> make_data_stream(zmtp::Role role, Accepted accepted, const TopicPtr& topic,
                                         const Authenticator& authenticator,
                                         const DataLimits& limits) {
  const zmtp::Rules rules{.role = role,
                          .allows_null = authenticator.allows_null,
                          .max_message_bytes = limits.message_bytes};
  return std::make_shared<DataStream>(std::move(accepted), rules, topic, authenticator);
}

}  // namespace leat::broker::lightq
