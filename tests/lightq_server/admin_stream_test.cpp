// If this failed, strangers could fill the broker's memory with commands that they do not finish.
#include "lightq/server/admin_stream.hpp"

#include <gtest/gtest.h>

#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/write.hpp>
#include <string>

#include "leat/deadline.hpp"
#include "lightq/server/zmtp/zmtp_frame.hpp"
#include "lightq/wire/admin_frame.hpp"
#include "support/process.hpp"

namespace leat::broker::lightq {
namespace {

using namespace std::string_literals;

class UnfinishedCommands : public ::testing::Test {
 protected:
  static constexpr std::size_t kLargest = 64 * 1024;

  ~UnfinishedCommands() override { connections_.close_all("the end"); }

  static Config config_in(const std::string& directory) {
    Config config;
    config.dir = config.data_dir = config.state_dir = directory;
    return config;
  }
  static TopicStore store_in(const std::string& directory) {
    auto store = TopicStore::open(directory);
    EXPECT_TRUE(store) << store.problem().sentence;
    return std::move(*store);
  }
  auto connect(const std::string& text) {
    boost::asio::local::stream_protocol::socket client{loop_}, own{loop_};
    boost::asio::local::connect_pair(client, own);
    stream_ = make_admin_stream(Accepted{std::move(own), Peer{}}, admin_, config_);
    connections_.start(stream_, Connections::Kind::commands);
    boost::asio::write(client, boost::asio::buffer(text));
    return client;
  }
  template <class Condition>
  void run_until(const Condition& condition) {
    for (const Deadline deadline{std::chrono::seconds{20}}; !condition();) {
      ASSERT_FALSE(deadline.passed());
      loop_.restart();
      loop_.run_for(std::chrono::milliseconds{1});
    }
  }
  // A client of ZeroMQ, up to the first part of its request, after which others follow.
  static std::string first_part() {
    std::string text = "\xFF\0\0\0\0\0\0\0\0\x7F\3\1NULL"s;
    text.resize(64, '\0');
    std::string data;
    zmtp::append_property(data, "Socket-Type", Bytes{"REQ"});
    zmtp::append_command(text, "READY", Bytes{data});
    zmtp::append_frame(text, {}, zmtp::kMore);
    zmtp::append_frame(text, Bytes{std::string(kLargest, 'x')}, zmtp::kMore);
    return text;
  }

  testing::TemporaryDirectory temp_;
  Config config_ = config_in(temp_.path());
  boost::asio::io_context loop_;
  TopicStore store_ = store_in(temp_.path());
  Logins logins_{loop_};
  Topics topics_{loop_, config_, store_};
  LargeMessages commands_{loop_, Connections::kMostOfCommands};
  Connections connections_{{100, 100}, {.commands = &commands_}};
  Tokens tokens_{store_.token_secret()};
  Services services_{loop_, config_, store_, topics_, logins_, tokens_, connections_};
  Settings settings_ = config_.of<Settings>();
  TopicStates states_{topics_, store_};
  DataPorts ports_{services_, settings_, states_};
  Admin admin_{services_, settings_, states_, ports_};
  std::shared_ptr<Stream> stream_;  // The last one.
};

TEST_F(UnfinishedCommands, CountInBothFramings) {
  const std::string length = "\0\1\0\0"s;
  const auto first = connect(length + std::string(kLargest - 1, ' '));
  run_until([&] { return commands_.bytes() == length.size() + kLargest; });
  const std::size_t before = commands_.bytes();
  const auto second = connect(first_part());
  run_until([&] { return commands_.bytes() >= before + kLargest; });
}

TEST_F(UnfinishedCommands, CountUntilTheLastPartHasCome) {
  std::string received(1000, '\0');
  const std::string text = first_part();
  auto client = connect(text);
  run_until([&] { return commands_.bytes() != 0; });
  std::string parts;
  zmtp::append_frame(parts, Bytes{std::string(kLargest, 'x')}, zmtp::kMore);
  boost::asio::write(client, boost::asio::buffer(parts.substr(0, parts.size() - 1)));
  run_until([&] { return client.available() != 0; });  // The greeting.
  loop_.restart();
  loop_.run_for(std::chrono::milliseconds{20});
  EXPECT_GE(commands_.bytes(), kLargest) << "the first part is still there";
  zmtp::append_frame(parts, Bytes{"last"}, 0);
  boost::asio::write(client, boost::asio::buffer(parts.substr(kLargest + 8)));
  run_until([&] {
    boost::system::error_code error;
    client.non_blocking(true);
    const std::size_t count = client.read_some(boost::asio::buffer(received), error);
    return std::string_view{received}.substr(0, count).find("invalid_cmd") != std::string::npos;
  });
  EXPECT_EQ(commands_.bytes(), 0U);
}

TEST_F(UnfinishedCommands, LeaveNothingBehindOnceTheyAreAnswered) {
  const std::string command = "what is no command: " + std::string(4000, '\1');
  std::string text;
  leat::lightq::append_admin_frame(text, command);
  const auto client = connect(text);
  run_until([&] { return client.available() > command.size(); });
  loop_.restart();
  loop_.run_for(std::chrono::milliseconds{1});
  EXPECT_LT(stream_->out().capacity(), 100U);
}

}  // namespace
}  // namespace leat::broker::lightq
