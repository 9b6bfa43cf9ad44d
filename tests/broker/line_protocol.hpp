// A small protocol, to test what the broker offers to protocols, and to begin another one with: text, in lines.
//
//     publish TOPIC USER PASSWORD          each further line is a message
//     put TOPIC USER PASSWORD KEY TEXT     one record; the answer is "at" and its offset; then another command may follow
//     consume TOPIC USER PASSWORD [GROUP]  the broker sends messages, each to one of those who consume (of the same group)
//     subscribe TOPIC USER PASSWORD        the broker sends all messages, after the topic's motto
//     motto TOPIC USER PASSWORD WORD       stores another motto
//
// The broker answers a first line with "ok", or with "no: " and the reason. It has what any protocol has: settings (the
// section `lines`), a listener, connections, logins, a part of the store (the mottos), and it is told when topics go.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "broker/net/acceptor.hpp"
#include "broker/protocol.hpp"
#include "broker/topic/topic_client.hpp"
#include "broker/topic/topic_login.hpp"

namespace leat::broker::lines {

// --- Settings ---------------------------------------------------------------------------------------------

struct Settings {
  std::uint64_t port = 5700;
  std::vector<std::string> addresses{"127.0.0.1", "::1"};
};

inline std::vector<ConfigKey> settings_keys() {
  return {number_key("lines.port", &Settings::port, 0, UINT16_MAX, "port; 0: any free one"),
          addresses_key("lines.addresses", &Settings::addresses, "addresses to listen on")};
}

inline Outcome<void> check_settings(const Config& config) {
  return check_addresses("lines.addresses", config.of<Settings>().addresses, config);
}

// --- Connections ------------------------------------------------------------------------------------------

// How records are sent.
inline void append_line(std::string& out, const Record& record) {
  out.append(record.value.text()) += '\n';
}
inline constexpr Encoding kEncoding{
    .for_consumer = append_line,
    .for_subscriber = [](std::string& out, const std::string& /*topic*/, const Record& record) {
      append_line(out, record);
    }};

using Mottos = std::map<std::int64_t, std::string>;  // By the topic's id.

// A connection has one for each topic that it puts records into.
class Putter final : public TopicUser {
 public:
  using Done = std::function<void(Outcome<std::uint64_t>)>;

  explicit Putter(TopicPtr topic) : topic_{std::move(topic)} {}
  Putter(const Putter&) = delete;
  Putter& operator=(const Putter&) = delete;
  ~Putter() override { topic_->log().close(*this); }

  // Before the next one, this one is answered; unless this is gone.
  void put(std::string key, std::string text, Done done) {
    key_ = std::move(key);
    text_ = std::move(text);
    done_ = std::move(done);
    if (is_open_) return add();
    topic_->log().open(*this, TopicUse::publish(), [this](const Outcome<void>& opened) {
      if (!opened) return answer(opened.problem());
      is_open_ = true;
      add();
    });
  }

 private:
  void add() {
    const NewRecord record{.key = Bytes{key_}, .value = Bytes{text_}};
    topic_->log().publish_buffer().add_unit(
        {&record, 1}, [this, weak = std::weak_ptr{alive_}](Outcome<std::uint64_t> offset) {
          if (!weak.expired()) answer(std::move(offset));
        });
  }
  void on_log_closed(const std::string& why) override {
    is_open_ = false;
    answer(Problem{Errc::closed, why});
  }
  void answer(Outcome<std::uint64_t> offset) {
    if (const Done done = std::exchange(done_, {})) done(std::move(offset));
  }

  const TopicPtr topic_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  bool is_open_ = false;
  std::string key_, text_;
  Done done_;  // Of the record that is not answered yet.
};

class LineStream final : public Stream {
 public:
  LineStream(Accepted accepted, const Services& services, Mottos& mottos)
      : Stream{std::move(accepted)}, services_{services}, mottos_{mottos} {}

  void begin() override {
    start_clock(services_.config.handshake_time, "no first line in time");
    Stream::begin();
  }

 private:
  std::size_t on_bytes(Bytes& bytes) override {
    for (;;) {
      const std::size_t length = bytes.text().find('\n');
      if (length > services_.config.max_message_bytes && bytes.size() > length)
        return refuse("too long");
      if (length == std::string_view::npos) {
        if (bytes.size() > services_.config.max_message_bytes) return refuse("too long");
        return client_ == nullptr || client_->on_idle() ? bytes.size() + 1 : kPause;
      }
      const Bytes line = bytes.first(length);
      bytes = bytes.subspan(length + 1);
      if (client_ == nullptr) return on_command(std::string{line.text()});
      if (!client_->on_message(line)) return kPause;
    }
  }

  // Goes on when the password is checked.
  std::size_t on_command(const std::string& line) {
    std::string password;
    std::istringstream words{line};
    word_.clear();
    words >> command_ >> name_ >> user_ >> password >> word_ >> std::ws;
    std::getline(words, text_);
    stop_clock();
    keep_place(true);
    log_in(services_.topics, services_.logins, {Origin{peer()}, true, is_there()}, {name_, user_},
           Secret{password}, [weak = weak_from_this(), this](const TopicLogin& login) {
             const auto self = weak.lock();
             if (!self || !is_open()) return;
             keep_place(false);
             // Not within on_bytes(), which may be further up.
             boost::asio::post(loop(), [self, this, login] { on_login(login); });
           });
    return kPause;
  }

  void on_login(const TopicLogin& login) {
    if (!is_open()) return;
    const bool is_right = login.verdict == Logins::Verdict::right && !login.topic->is_deleted();
    if (!is_right) return (void)refuse("wrong user or password");
    const bool writes = command_ == "publish" || command_ == "put" || command_ == "motto";
    if (!login.credential.may(writes ? Access::write : Access::read))
      return (void)refuse("without the right");
    topic_ = login.topic;
    if (command_ == "motto") return set_motto();
    if (command_ == "put") return put();
    client_ = make_client();
    if (client_ == nullptr)
      return (void)refuse("the first word is publish, put, consume, subscribe or motto");
    client_->open({user_, login.credential.version}, [this](const Outcome<void>& opened) {
      if (!opened) return (void)refuse(opened.problem().sentence);
      begin_client();
    });
  }

  void set_motto() {
    const std::int64_t id = topic_->stored().id;
    if (auto set = services_.store.set_values({{"lines", id, "motto", word_}}); !set)
      return (void)refuse(set.problem().sentence);
    mottos_[id] = word_;
    out() += "ok\n";
    finish("done");
  }

  void put() {
    auto& putter = putters_[topic_];
    if (putter == nullptr) putter = std::make_unique<Putter>(topic_);
    putter->put(word_, text_, [this](const Outcome<std::uint64_t>& offset) {
      if (!offset) return (void)refuse(offset.problem().sentence);
      out() += "at " + std::to_string(*offset) + '\n';
      flush();
      if (is_open()) resume();
    });
  }

  std::unique_ptr<TopicClient> make_client() {
    if (command_ == "publish") return std::make_unique<PublishingClient>(*this, *topic_);
    if (command_ == "consume") {
      const TopicUse as = word_.empty() ? TopicUse::consume_own("lines") : TopicUse::consume(word_);
      return std::make_unique<ConsumingClient>(*this, *topic_, as, kEncoding, false);
    }
    if (command_ == "subscribe")
      return std::make_unique<SubscribingClient>(*this, *topic_, kEncoding);
    return nullptr;
  }

  void begin_client() {
    out() += "ok\n";
    if (command_ == "subscribe") out() += mottos_[topic_->stored().id] + '\n';
    flush();
    if (!client_->begin()) return;
    if (command_ == "subscribe") static_cast<SubscribingClient&>(*client_).listen(true);
    resume();
  }

  std::size_t refuse(const std::string& why) {
    out() += "no: " + why + '\n';
    finish(why);
    return kPause;
  }
  void on_sent() override {
    if (client_) client_->on_sent();
  }
  void on_finishing() override { leave(); }
  void on_closed(const std::string& /*why*/) override { leave(); }
  void leave() {
    if (client_) client_->leave();
    putters_.clear();
  }

  const Services services_;
  Mottos& mottos_;
  std::string command_, name_, user_, word_, text_;  // Of the last command.
  TopicPtr topic_;
  std::map<TopicPtr, std::unique_ptr<Putter>> putters_;
  std::unique_ptr<TopicClient> client_;  // Once it is let in.
};

// --- The protocol -----------------------------------------------------------------------------------------

class LineProtocol final : public Protocol, private TopicObserver {
 public:
  explicit LineProtocol(const Services& services)
      : services_{services}, settings_{services.config.of<Settings>()} {
    services.topics.add_observer(*this);
  }

  Outcome<void> start() override {
    auto stored = services_.store.values("lines");
    if (!stored) return stored.problem();
    for (const ProtocolValue& value : *stored) {
      if (value.name != "motto") return services_.store.damaged("a value of lines is no motto");
      mottos_[value.topic_id] = value.value;
    }
    auto acceptor = Acceptor::listen(
        services_.loop, settings_.addresses, static_cast<std::uint16_t>(settings_.port),
        [this](Accepted accepted) {
          services_.connections.start(
              std::make_shared<LineStream>(std::move(accepted), services_, mottos_),
              Connections::Kind::data);
        });
    if (!acceptor) return acceptor.problem();
    acceptor_ = std::move(*acceptor);
    port_ = acceptor_->port();
    return {};
  }
  void stop() override { acceptor_.reset(); }
  std::uint16_t port() const override { return port_; }
  std::string place() const override { return "port " + std::to_string(port()) + " for lines"; }

 private:
  void on_deleting(BrokerTopic& /*topic*/) override {}
  void on_deleted(BrokerTopic& topic) override { mottos_.erase(topic.stored().id); }
  void on_kept(BrokerTopic& /*before*/, const TopicPtr& /*now*/) override {}

  const Services services_;
  const Settings settings_;
  Mottos mottos_;
  std::unique_ptr<Acceptor> acceptor_;
  std::uint16_t port_ = 0;  // Of 0, the one that was free.
};

inline ProtocolKind protocol_kind() {
  return {.name = "lines",
          .keys = settings_keys,
          .check = check_settings,
          .make = [](const Services& services) -> std::unique_ptr<Protocol> {
            return std::make_unique<LineProtocol>(services);
          }};
}

}  // namespace leat::broker::lines
