// A broker in the process of the test, and clients that talk to it with libzmq, as LightQ's programs do.
#pragma once

#include <gtest/gtest.h>
#include <zmq.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <thread>

#include "broker/broker.hpp"
#include "leat/leat.hpp"
#include "lightq/server/settings.hpp"
#include "serve/protocols.hpp"
#include "support/process.hpp"

namespace leat::broker {
using Json = nlohmann::json;
using testing::TemporaryDirectory;

inline constexpr int kPatienceMs = 20'000;

// A ZeroMQ socket with a context of its own.
class Client {
 public:
  explicit Client(int type) : context_{zmq_ctx_new()}, socket_{zmq_socket(context_, type)} {
    set(ZMQ_LINGER, 0);
    set(ZMQ_RCVTIMEO, kPatienceMs);
    set(ZMQ_SNDTIMEO, kPatienceMs);
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() {
    zmq_close(socket_);
    zmq_ctx_term(context_);
  }
  void set(int option, int value) { zmq_setsockopt(socket_, option, &value, sizeof value); }
  void set(int option, const std::string& text) {
    zmq_setsockopt(socket_, option, text.data(), text.size());
  }
  void log_in(const std::string& user, const std::string& password) {
    set(ZMQ_PLAIN_USERNAME, user);
    set(ZMQ_PLAIN_PASSWORD, password);
  }
  void connect(const std::string& uri) { EXPECT_EQ(zmq_connect(socket_, uri.c_str()), 0); }
  bool send(const std::string& text) {
    return zmq_send(socket_, text.data(), text.size(), 0) == static_cast<int>(text.size());
  }
  std::optional<std::string> receive() {
    zmq_msg_t message;
    zmq_msg_init(&message);
    std::optional<std::string> text;
    if (zmq_msg_recv(&message, socket_, 0) >= 0)
      text.emplace(static_cast<const char*>(zmq_msg_data(&message)), zmq_msg_size(&message));
    zmq_msg_close(&message);
    return text;
  }

 private:
  void* context_;
  void* socket_;
};

class RunningBroker : public ::testing::Test {
 protected:
  RunningBroker() {
    std::filesystem::create_directories(temp_.path() + "/dir");
    std::filesystem::create_directories(temp_.path() + "/data");
    config_.dir = temp_.path() + "/dir";
    config_.data_dir = temp_.path() + "/data";
    config_.state_dir = temp_.path() + "/state";
    config_.of<lightq::Settings>().addresses = {"127.0.0.1"};
    config_.of<lightq::Settings>().port = free_ports();
  }
  ~RunningBroker() override { stop(); }

  // The first of a row of ports that nobody uses now, below those that the kernel gives to clients.
  static std::uint64_t free_ports() {
    using boost::asio::ip::tcp;
    constexpr std::uint16_t kRow = 48;
    std::random_device random;
    for (;;) {
      const auto first = static_cast<std::uint16_t>(10'000 + random() % 22'000);
      boost::asio::io_context loop;
      boost::system::error_code error;
      for (std::uint16_t i = 0; i < kRow && !error; ++i) {
        tcp::acceptor probe{loop, tcp::v4()};
        probe.set_option(tcp::acceptor::reuse_address{true});
        probe.bind({boost::asio::ip::address_v4::loopback(), static_cast<std::uint16_t>(first + i)},
                   error);
      }
      if (!error) return first;
    }
  }

  void start() {
    auto broker = Broker::start(config_, all_protocols(),
                                [this](std::string_view password, const std::string&) {
                                  password_ = password;
                                  return Outcome<void>{};
                                });
    ASSERT_TRUE(broker) << broker.problem().sentence;
    broker_ = std::move(*broker);
    thread_ = std::jthread{[this] { EXPECT_TRUE(broker_->run()); }};
    admin_.emplace(ZMQ_REQ);
    admin_->connect("tcp://127.0.0.1:" + std::to_string(config_.of<lightq::Settings>().port));
  }
  void stop() {
    if (!broker_) return;
    broker_->stop();
    thread_.join();
    broker_.reset();
    admin_.reset();
  }

  Json ask(const Json& request) {
    EXPECT_TRUE(admin_->send(request.dump()));
    auto reply = admin_->receive();
    EXPECT_TRUE(reply) << "no reply to " << request;
    return reply ? Json::parse(*reply, nullptr, false) : Json{};
  }
  // With further fields.
  Json ask_as_admin(const std::string& command, const std::string& topic, Json more = {}) {
    more["cmd"] = command;
    more["topic"] = topic;
    more["admin_user_id"] = "lightq_admin";
    more["admin_password"] = password_;
    return ask(more);
  }
  Json ask_as(const std::string& user, const std::string& password, const std::string& command,
              const std::string& topic, Json more = {}) {
    more["cmd"] = command;
    more["topic"] = topic;
    more["user_id"] = user;
    more["password"] = password;
    return ask(more);
  }
  Json create(const std::string& topic, const std::string& type = "queue", Json more = {}) {
    more["user_id"] = "user";
    more["password"] = "secret";
    more["broker_type"] = type;
    return ask_as_admin("create_topic", topic, more);
  }
  Json join(const std::string& topic, const std::string& type) {
    return ask_as("user", "secret", "join", topic, {{"type", type}, {"connection_type", "zmq"}});
  }
  Json stats(const std::string& topic) {
    return ask_as("user", "secret", "stats", topic, {{"leat", 1}});
  }
  bool takes_connections() const {
    boost::asio::io_context loop;
    boost::asio::ip::tcp::socket socket{loop};
    boost::system::error_code error;
    socket.connect({boost::asio::ip::address_v4::loopback(),
                    static_cast<std::uint16_t>(config_.of<lightq::Settings>().port)},
                   error);
    return !error;
  }
  void connect(Client& client, const std::string& topic, const std::string& type,
               const std::string& password = "secret") {
    const Json joined = join(topic, type);
    ASSERT_EQ(joined["status"], "ok") << joined;
    client.log_in("user", password);
    client.connect(joined["bind_uri"]);
  }
  // What is sent now waits for the puller that got this answer to its join, and connects only then.
  void expect_waiting_for(const std::string& topic, const Json& joined) {
    Client producer{ZMQ_PUSH};
    connect(producer, topic, "pub");
    ASSERT_TRUE(producer.send("kept"));
    await(topic, "queue_size", 1);
    Client puller{ZMQ_PULL};
    puller.log_in("user", "secret");
    puller.connect(joined["bind_uri"]);
    EXPECT_EQ(puller.receive(), "kept");
  }
  // Until the topic's stats say so.
  void await(const std::string& topic, const char* what, std::uint64_t count) {
    for (const Deadline deadline{std::chrono::milliseconds{kPatienceMs}};
         stats(topic)[what] != count;) {
      ASSERT_FALSE(deadline.passed()) << what << " of " << topic << " is not " << count;
      std::this_thread::sleep_for(std::chrono::milliseconds{5});
    }
  }

  TemporaryDirectory temp_;
  Config config_;
  std::string password_;
  std::unique_ptr<Broker> broker_;
  std::jthread thread_;
  std::optional<Client> admin_;
};

}  // namespace leat::broker
