// If these failed, the broker could not be given another protocol than the one it grew up with.
#include "line_protocol.hpp"

#include <gtest/gtest.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/streambuf.hpp>
#include <boost/asio/write.hpp>
#include <filesystem>
#include <istream>
#include <thread>

#include "broker/broker.hpp"
#include "broker/config/config_file.hpp"
#include "support/process.hpp"

namespace leat::broker {
namespace {

using boost::asio::ip::tcp;

class LineClient {
 public:
  LineClient(std::uint16_t port, const std::string& first_line) : socket_{loop_} {
    socket_.connect({boost::asio::ip::address_v4::loopback(), port});
    send(first_line);
  }
  void send(const std::string& line) {
    boost::asio::write(socket_, boost::asio::buffer(line + '\n'));
  }
  // "" at the end of the connection.
  std::string line() {
    boost::system::error_code error;
    boost::asio::read_until(socket_, received_, '\n', error);
    std::istream stream{&received_};
    std::string text;
    std::getline(stream, text);
    return text;
  }
  void hang_up() { socket_.close(); }

 private:
  boost::asio::io_context loop_;
  tcp::socket socket_;
  boost::asio::streambuf received_;
};

class LineProtocol : public ::testing::Test {
 protected:
  LineProtocol() {
    std::filesystem::create_directories(temp_.path() + "/dir");
    config_.dir = temp_.path() + "/dir";
    config_.data_dir = temp_.path() + "/data";
    config_.state_dir = temp_.path() + "/state";
    config_.of<lines::Settings>().port = 0;
    auto store = TopicStore::open(config_.state_dir);
    EXPECT_TRUE(store) << store.problem().sentence;
    auto verifier = make_verifier("secret");
    EXPECT_TRUE(verifier);
    const auto topic = store->add({.name = "news", .user = "ann", .verifier = *verifier});
    EXPECT_TRUE(topic);
    EXPECT_TRUE(store->grant(topic->id, {.user = "bob", .may_read = true, .verifier = *verifier}));
    EXPECT_TRUE(store->add({.name = "olds", .user = "ann", .verifier = *verifier}));
  }
  ~LineProtocol() override { stop(); }

  void start() {
    auto broker =
        Broker::start(config_, {lines::protocol_kind()},
                      [](std::string_view, const std::string&) { return Outcome<void>{}; });
    ASSERT_TRUE(broker) << broker.problem().sentence;
    broker_ = std::move(*broker);
    thread_ = std::jthread{[this] { EXPECT_TRUE(broker_->run()); }};
  }
  void stop() {
    if (!broker_) return;
    broker_->stop();
    thread_.join();
    broker_.reset();
  }
  LineClient client(const std::string& first_line) {
    return {broker_->port_of("lines"), first_line};
  }

  leat::testing::TemporaryDirectory temp_;
  Config config_;
  std::unique_ptr<Broker> broker_;
  std::jthread thread_;
};

TEST_F(LineProtocol, PublishesConsumesAndSubscribes) {
  start();
  LineClient consumer = client("consume news ann secret");
  LineClient subscriber = client("subscribe news ann secret");
  EXPECT_EQ(consumer.line(), "ok");
  EXPECT_EQ(subscriber.line(), "ok");
  EXPECT_EQ(subscriber.line(), "") << "no motto yet";
  LineClient publisher = client("publish news ann secret");
  EXPECT_EQ(publisher.line(), "ok");
  publisher.send("one");
  publisher.send("two");
  for (LineClient* const one : {&consumer, &subscriber}) {
    EXPECT_EQ(one->line(), "one");
    EXPECT_EQ(one->line(), "two");
  }
  // Local processes see the group that the protocol named.
  auto topic = Topic::open("news", Deadline::immediate(), config_.dir, {}, config_.data_dir);
  ASSERT_TRUE(topic);
  EXPECT_TRUE(topic->find_group("lines"));
}

// One connection, several topics: each record is told its offset.
TEST_F(LineProtocol, PutsRecordsWithKeysIntoManyTopics) {
  start();
  LineClient putter = client("put news ann secret red tomatoes are ripe");
  EXPECT_EQ(putter.line(), "at 0");
  putter.send("put olds ann secret green so are cucumbers");
  EXPECT_EQ(putter.line(), "at 0");
  putter.send("put news ann secret red and peppers");
  EXPECT_EQ(putter.line(), "at 1");
  auto news = Topic::open("news", Deadline::immediate(), config_.dir, {}, config_.data_dir);
  ASSERT_TRUE(news);
  auto reader = news->subscriber({.from = From::beginning});
  ASSERT_TRUE(reader);
  std::vector<std::string> found;
  ASSERT_TRUE(reader->poll(10, [&](const Record& record) {
    found.push_back(std::string{record.key.text()} + ": " + std::string{record.text()});
  }));
  EXPECT_EQ(found, (std::vector<std::string>{"red: tomatoes are ripe", "red: and peppers"}));
  putter.send("put news bob secret red nothing");
  EXPECT_EQ(putter.line(), "no: without the right");
}

// Each group gets all, and shares it among its consumers.
TEST_F(LineProtocol, ConsumesInSeveralGroups) {
  start();
  LineClient own = client("consume news ann secret");
  LineClient others = client("consume news bob secret others");
  EXPECT_EQ(own.line(), "ok");
  EXPECT_EQ(others.line(), "ok");
  LineClient publisher = client("publish news ann secret");
  EXPECT_EQ(publisher.line(), "ok");
  publisher.send("one");
  EXPECT_EQ(own.line(), "one");
  EXPECT_EQ(others.line(), "one");
}

TEST_F(LineProtocol, ChecksPasswordsWithTheBroker) {
  start();
  EXPECT_EQ(client("publish news ann wrong").line(), "no: wrong user or password");
  EXPECT_EQ(client("publish none ann secret").line(), "no: wrong user or password");
  EXPECT_EQ(client("publish news bob secret").line(), "no: without the right");
  EXPECT_EQ(client("subscribe news bob secret").line(), "ok");
  EXPECT_EQ(client("read news ann secret").line(),
            "no: the first word is publish, put, consume, subscribe or motto");
}

TEST_F(LineProtocol, RemembersItsPartOfTheStore) {
  start();
  EXPECT_EQ(client("motto news ann secret semper").line(), "ok");
  stop();
  start();
  LineClient subscriber = client("subscribe news ann secret");
  EXPECT_EQ(subscriber.line(), "ok");
  EXPECT_EQ(subscriber.line(), "semper");
}

// Before anybody consumes, messages wait for the first one who does.
TEST_F(LineProtocol, KeepsMessagesForTheFirstConsumer) {
  start();
  {
    LineClient publisher = client("publish news ann secret");
    EXPECT_EQ(publisher.line(), "ok");
    publisher.send("early");
    publisher.send("bird");
    publisher.hang_up();
  }
  auto topic =
      Topic::open("news", Deadline{std::chrono::seconds{20}}, config_.dir, {}, config_.data_dir);
  ASSERT_TRUE(topic);
  for (const Deadline deadline{std::chrono::seconds{20}}; topic->end_offset(0) != 2;) {
    ASSERT_FALSE(deadline.passed());
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
  }
  LineClient consumer = client("consume news ann secret");
  EXPECT_EQ(consumer.line(), "ok");
  EXPECT_EQ(consumer.line(), "early");
  EXPECT_EQ(consumer.line(), "bird");
}

TEST_F(LineProtocol, RegistersItsSettings) {
  const ConfigKeys keys = keys_of({lines::protocol_kind()});
  const auto config = read_config({.flags = {{"lines.port", "5701"}}}, keys);
  ASSERT_TRUE(config);
  EXPECT_EQ(config->of<lines::Settings>().port, 5701u);
  EXPECT_EQ(Config{*config}.of<lines::Settings>().port, 5701u) << "a copy has them too";
  EXPECT_EQ(read_config({.flags = {{"lines.prot", "5701"}}}, keys).problem().sentence,
            "there is no key 'lines.prot' (did you mean 'lines.port'?)");
  EXPECT_EQ(read_config({.flags = {{"lines.port", "5701"}}}, keys_of({})).problem().sentence,
            "there is no key 'lines.port'");
}

TEST_F(LineProtocol, IsNotThereWithoutItsKind) {
  auto broker = Broker::start(config_, {},
                              [](std::string_view, const std::string&) { return Outcome<void>{}; });
  ASSERT_TRUE(broker) << broker.problem().sentence;
  EXPECT_EQ((*broker)->port_of("lines"), 0);
}

TEST_F(LineProtocol, ValuesThatItCannotHaveStoredAreDamage) {
  ASSERT_TRUE(TopicStore::open(config_.state_dir)->set_values({{"lines", 0, "hello", "x"}}));
  auto broker = Broker::start(config_, {lines::protocol_kind()},
                              [](std::string_view, const std::string&) { return Outcome<void>{}; });
  ASSERT_FALSE(broker);
  EXPECT_EQ(broker.problem().code, Errc::corrupt);
  EXPECT_NE(broker.problem().sentence.find("broker.db"), std::string::npos);
}

}  // namespace
}  // namespace leat::broker
