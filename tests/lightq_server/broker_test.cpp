// If these failed, LightQ's programs would not work against leat-serve, get in without a password, or lose messages.
#include <filesystem>
#include <set>

#include "running_broker.hpp"

namespace leat::broker {
namespace {

using BrokerTest = RunningBroker;

// The first messages are there before anybody has joined as a puller; the subscriber comes later.
TEST_F(BrokerTest, PullersShareAndSubscribersGetEverything) {
  start();
  ASSERT_EQ(create("news")["status"], "ok");
  constexpr int kMessages = 3000;
  Client producer{ZMQ_PUSH};
  connect(producer, "news", "pub");
  for (int i = 0; i < kMessages; ++i) ASSERT_TRUE(producer.send(std::to_string(i)));
  await("news", "queue_size", kMessages);

  Client one{ZMQ_PULL};
  Client other{ZMQ_PULL};
  Client subscriber{ZMQ_SUB};
  subscriber.set(ZMQ_SUBSCRIBE, "ne");
  connect(one, "news", "pull");
  connect(subscriber, "news", "sub");
  std::multiset<std::string> all;
  for (int i = 0; i < kMessages; ++i) {
    auto text = one.receive();
    ASSERT_TRUE(text);
    all.insert(*text);
  }
  connect(other, "news", "pull");
  await("news", "subscribers_count", 3);
  std::jthread reader{[&] {
    for (int i = 0; i < kMessages; ++i) {
      EXPECT_EQ(subscriber.receive(), "news");
      EXPECT_EQ(subscriber.receive(), "more " + std::to_string(i));
    }
  }};
  for (int i = 0; i < kMessages; ++i) ASSERT_TRUE(producer.send("more " + std::to_string(i)));
  std::size_t of_one = 0;
  one.set(ZMQ_RCVTIMEO, 200);
  other.set(ZMQ_RCVTIMEO, 200);
  for (const Deadline deadline{std::chrono::milliseconds{kPatienceMs}};
       all.size() < 2 * kMessages && !deadline.passed();) {
    while (auto text = one.receive()) {
      all.insert(*text);
      ++of_one;
    }
    while (auto text = other.receive()) all.insert(*text);
  }
  for (int i = 0; i < kMessages; ++i) {
    EXPECT_EQ(all.count(std::to_string(i)), 1U);
    EXPECT_EQ(all.count("more " + std::to_string(i)), 1U);
  }
  EXPECT_NEAR(static_cast<double>(of_one), kMessages / 2.0, kMessages * 0.2);
  await("news", "queue_size", 0);
  EXPECT_EQ(stats("news")["messages_received"], 2 * kMessages);
}

// Who waits for its subscribers and publishes then reaches them all.
TEST_F(BrokerTest, CountsASubscriberOnceItGetsMessages) {
  start();
  ASSERT_EQ(create("news")["status"], "ok");
  Client subscriber{ZMQ_SUB};
  connect(subscriber, "news", "sub");
  ASSERT_TRUE(testing::eventually([&] { return stats("news")["connections"].size() == 1; }));
  EXPECT_EQ(stats("news")["subscribers_count"], 0);
  subscriber.set(ZMQ_SUBSCRIBE, "new");
  await("news", "subscribers_count", 1);
  Client producer{ZMQ_PUSH};
  connect(producer, "news", "pub");
  ASSERT_TRUE(producer.send("hello"));
  EXPECT_EQ(subscriber.receive(), "news");
  EXPECT_EQ(subscriber.receive(), "hello");
  subscriber.set(ZMQ_UNSUBSCRIBE, "new");
  subscriber.set(ZMQ_SUBSCRIBE, "");
  ASSERT_TRUE(producer.send("again"));
  EXPECT_EQ(subscriber.receive(), "news");
  EXPECT_EQ(stats("news")["subscribers_count"], 1);
}

// It joins, but connects only later.
TEST_F(BrokerTest, ASubscriberTakesNothingFromAPullerThatJoinedBefore) {
  start();
  ASSERT_EQ(create("news")["status"], "ok");
  const Json pulling = join("news", "pull");
  EXPECT_EQ(join("news", "sub")["status"], "ok");
  expect_waiting_for("news", pulling);
}

TEST_F(BrokerTest, LocalProcessesTakePartInTheSameTopic) {
  start();
  ASSERT_EQ(create("shared")["status"], "ok");
  Client producer{ZMQ_PUSH};
  connect(producer, "shared", "pub");
  Client puller{ZMQ_PULL};
  connect(puller, "shared", "pull");
  auto topic = Topic::open("shared", Deadline::immediate(), config_.dir, {}, config_.data_dir);
  ASSERT_TRUE(topic) << describe(topic.error());
  auto subscriber = topic->subscriber();
  auto publisher = topic->publisher();
  ASSERT_TRUE(subscriber && publisher);
  ASSERT_TRUE(producer.send("from afar"));
  EXPECT_EQ(subscriber->receive(std::chrono::seconds{20})->text(), "from afar");
  EXPECT_EQ(puller.receive(), "from afar");
  ASSERT_TRUE(publisher->publish("from here"));
  EXPECT_EQ(puller.receive(), "from here");
}

TEST_F(BrokerTest, NobodyComesWithoutThePassword) {
  start();
  ASSERT_EQ(create("secret")["status"], "ok");
  Client puller{ZMQ_PULL};
  connect(puller, "secret", "pull");
  await("secret", "subscribers_count", 1);
  Client wrong{ZMQ_PUSH};
  connect(wrong, "secret", "pub", "guessed");
  Client without{ZMQ_PUSH};
  without.connect(join("secret", "pub")["bind_uri"]);
  for (Client* const client : {&wrong, &without}) {
    client->set(ZMQ_SNDTIMEO, 100);
    client->set(ZMQ_IMMEDIATE, 1);
    (void)client->send("no");
  }
  Client right{ZMQ_PUSH};
  connect(right, "secret", "pub");
  ASSERT_TRUE(right.send("yes"));
  EXPECT_EQ(puller.receive(), "yes");
  puller.set(ZMQ_RCVTIMEO, 300);
  EXPECT_EQ(puller.receive(), std::nullopt);
  EXPECT_EQ(stats("secret")["publishers_count"], 1);
}

TEST_F(BrokerTest, UnmodifiedClientsComeFromAnAddressThatJoined) {
  config_.data_auth = DataAuth::joined;
  start();
  ASSERT_EQ(create("news")["status"], "ok");
  Client producer{ZMQ_PUSH};
  producer.connect(join("news", "pub")["bind_uri"]);
  Client puller{ZMQ_PULL};
  puller.connect(join("news", "pull")["bind_uri"]);
  ASSERT_TRUE(producer.send("hello"));
  EXPECT_EQ(puller.receive(), "hello");
  const Json told = stats("news");
  EXPECT_EQ(told["connections"].size(), 2u);
  for (const Json& one : told["connections"]) EXPECT_EQ(one["user_id"], "user");
}

TEST_F(BrokerTest, GreetsAClientThatWaitsForIt) {
  start();
  ASSERT_EQ(create("news")["status"], "ok");
  const std::string uri = join("news", "pull")["bind_uri"];
  boost::asio::io_context loop;
  boost::asio::ip::tcp::socket socket{loop};
  socket.connect({boost::asio::ip::address_v4::loopback(),
                  static_cast<std::uint16_t>(std::stoi(uri.substr(uri.rfind(':') + 1)))});
  std::string greeting(12, ' ');
  boost::asio::read(socket, boost::asio::buffer(greeting));
  EXPECT_EQ(greeting, std::string("\xff\0\0\0\0\0\0\0\0\x7f\x03\0", 12));
}

TEST_F(BrokerTest, AnOpenTopicLetsEverybodyInWhateverTheySay) {
  start();
  ASSERT_EQ(create("news", "queue", {{"data_auth", "open"}})["status"], "ok");
  Client producer{ZMQ_PUSH}, puller{ZMQ_PULL};
  producer.log_in("user", "wrong");
  puller.log_in("stranger", "x");
  producer.connect(join("news", "pub")["bind_uri"]);
  puller.connect(join("news", "pull")["bind_uri"]);
  ASSERT_TRUE(producer.send("hello"));
  EXPECT_EQ(puller.receive(), "hello");
  const Json told = stats("news");
  for (const Json& one : told["connections"])
    EXPECT_EQ(one["user_id"], "") << "nobody has looked at its password";
}

TEST_F(BrokerTest, TopicsPasswordsAndPortsSurviveARestart) {
  start();
  ASSERT_EQ(create("kept", "file")["status"], "ok");
  Client producer{ZMQ_PUSH};
  connect(producer, "kept", "pub");
  ASSERT_TRUE(producer.send("before"));
  await("kept", "messages_received", 1);
  const Json before = join("kept", "pub");
  stop();
  start();
  EXPECT_EQ(join("kept", "pub"), before);
  EXPECT_EQ(create("kept")["description"], "topic already exists");
  Client puller{ZMQ_PULL};
  connect(puller, "kept", "pull");
  EXPECT_EQ(puller.receive(), "before");
  // libzmq has reconnected.
  ASSERT_TRUE(producer.send("after"));
  EXPECT_EQ(puller.receive(), "after");
}

TEST_F(BrokerTest, WhatAPullerDidNotTakeGoesToOthers) {
  start();
  ASSERT_EQ(create("work")["status"], "ok");
  Client producer{ZMQ_PUSH};
  connect(producer, "work", "pub");
  // More than the buffers between us take.
  const std::string large(512 << 10, 'x');
  constexpr int kMessages = 40;
  auto stuck = std::make_optional<Client>(ZMQ_PULL);
  stuck->set(ZMQ_RCVHWM, 1);
  connect(*stuck, "work", "pull");
  await("work", "subscribers_count", 1);
  for (int i = 0; i < kMessages; ++i) ASSERT_TRUE(producer.send(std::to_string(i) + large));
  await("work", "messages_received", kMessages);
  EXPECT_GT(stats("work")["queue_size"], 0);
  stuck.reset();
  Client puller{ZMQ_PULL};
  connect(puller, "work", "pull");
  // All but what was in the buffers of the one that is gone.
  const auto left = stats("work")["queue_size"].get<int>();
  for (int i = 0; i < left; ++i) EXPECT_TRUE(puller.receive());
  await("work", "queue_size", 0);
}

TEST_F(BrokerTest, ATopicWhoseMemoryWasRemovedIsOpenedAnewForTheNextThatJoins) {
  start();
  for (const std::string type : {"queue", "file"}) {
    SCOPED_TRACE(type);
    ASSERT_EQ(create(type, type)["status"], "ok");
    Client producer{ZMQ_PUSH}, puller{ZMQ_PULL};
    connect(producer, type, "pub");
    connect(puller, type, "pull");
    ASSERT_TRUE(producer.send("before"));
    ASSERT_EQ(puller.receive(), "before");
    ASSERT_GT(std::filesystem::remove_all(config_.dir + "/" + type), 0u);

    ASSERT_EQ(join(type, "pub")["status"], "ok");
    const auto log = Topic::open(type, Deadline::immediate(), config_.dir, {}, config_.data_dir);
    ASSERT_TRUE(log) << "local processes do not find it: " << describe(log.error());
    auto subscriber = log->subscriber();
    ASSERT_TRUE(subscriber);
    await(type, "publishers_count", 1);  // They come again by themselves.
    await(type, "subscribers_count", 1);
    ASSERT_TRUE(producer.send("after"));
    EXPECT_EQ(puller.receive(), "after");
    const auto record = subscriber->receive(std::chrono::seconds{20});
    ASSERT_TRUE(record);
    EXPECT_EQ(record->text(), "after");
  }
}

// Strangers may leave the answer unread for a while.
TEST_F(BrokerTest, RepeatsOnlyTheBeginningOfALongCommandThatItDoesNotKnow) {
  start();
  const Json reply = ask({{"cmd", std::string(60'000, 'x')}});
  EXPECT_EQ(reply["description"], "invalid_cmd");
  EXPECT_EQ(reply["cmd"], std::string(4096, 'x'));
}

TEST_F(BrokerTest, SaysThatTheFilesOfADurableTopicAreMissing) {
  start();
  ASSERT_EQ(create("news", "file")["status"], "ok");
  ASSERT_EQ(join("news", "pub")["status"], "ok");
  const std::string files = config_.data_dir + "/news";
  ASSERT_GT(std::filesystem::remove_all(files), 0u);
  stop();  // With a broker that has it open, clients go on until the archiver fails.
  start();
  const Json joined = ask_as("user", "secret", "join", "news",
                             {{"type", "pub"}, {"connection_type", "zmq"}, {"leat", 1}});
  EXPECT_EQ(joined["description"], "cannot open the topic news: its files are missing: bring " +
                                       files + " back, or delete the topic");
}

TEST_F(BrokerTest, AFullTopicStopsItsProducersAndLosesNothing) {
  start();
  ASSERT_EQ(create("full")["status"], "ok");
  ASSERT_EQ(create("other")["status"], "ok");
  Client producer{ZMQ_PUSH};
  connect(producer, "full", "pub");
  const std::string large(1 << 20, 'x');
  constexpr int kMessages = 300;  // Over 256 MiB.
  std::jthread sender{[&] {
    for (int i = 0; i < kMessages; ++i) EXPECT_TRUE(producer.send(large));
  }};
  // Others are served meanwhile.
  Client other{ZMQ_PUSH};
  connect(other, "other", "pub");
  Client puller{ZMQ_PULL};
  connect(puller, "other", "pull");
  ASSERT_TRUE(other.send("through"));
  EXPECT_EQ(puller.receive(), "through");
  Client drain{ZMQ_PULL};
  connect(drain, "full", "pull");
  for (int i = 0; i < kMessages; ++i) {
    auto text = drain.receive();
    ASSERT_TRUE(text) << i;
    EXPECT_EQ(text->size(), large.size());
  }
}

// A topic that is full after a few messages, made by a local program.
TEST_F(BrokerTest, WhatItTookForAFullTopicIsPublishedIfThereIsRoomBeforeItStops) {
  const std::string large(32 << 10, 'x');
  auto topic = Topic::create(
      "full", {.capacity_bytes = 1 << 20, .segment_bytes = 256 << 10, .directory = config_.dir});
  ASSERT_TRUE(topic) << describe(topic.error());
  auto publisher = topic->publisher();
  ASSERT_TRUE(publisher);
  start();
  ASSERT_EQ(create("full")["status"], "ok");
  Client producer{ZMQ_PUSH};
  producer.set(ZMQ_SNDHWM, 0);
  connect(producer, "full", "pub");
  auto group = topic->find_group("lightq");
  ASSERT_TRUE(group) << describe(group.error());
  auto member = group->join();
  ASSERT_TRUE(member);
  // A slow broker may not have read more than there is room for.
  bool has_kept_some = false;
  for (int attempt = 0; attempt < 20 && !has_kept_some; ++attempt) {
    if (!broker_) start();
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(producer.send(large));
    while (publisher->publish(large, Deadline::immediate()))
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    std::this_thread::sleep_for(std::chrono::milliseconds{200});
    const std::uint64_t before = topic->info().partitions[0].end;
    broker_->stop();
    // From now on it reads no more.
    while (takes_connections()) std::this_thread::sleep_for(std::chrono::milliseconds{1});
    EXPECT_EQ(topic->info().partitions[0].end, before);
    while (auto delivery = member->receive(std::chrono::milliseconds{500}))
      ASSERT_TRUE(member->acknowledge(*delivery));
    thread_.join();
    broker_.reset();
    admin_.reset();
    has_kept_some = topic->info().partitions[0].end > before;
  }
  EXPECT_TRUE(has_kept_some);
}

TEST_F(BrokerTest, ADeletedGroupIsMadeAnewForThePullersThatCome) {
  start();
  ASSERT_EQ(create("news")["status"], "ok");
  Client producer{ZMQ_PUSH};
  connect(producer, "news", "pub");
  ASSERT_TRUE(producer.send("first"));
  await("news", "messages_received", 1);
  auto topic = Topic::open("news", Deadline::immediate(), config_.dir, {}, config_.data_dir);
  ASSERT_TRUE(topic && topic->delete_group("lightq"));
  Client puller{ZMQ_PULL};
  connect(puller, "news", "pull");
  await("news", "subscribers_count", 1);
  await("news", "publishers_count", 1);  // Both come again.
  std::optional<std::string> text;
  puller.set(ZMQ_RCVTIMEO, 100);
  for (int i = 0; i < 200 && !text; ++i) {
    ASSERT_TRUE(producer.send("later"));
    text = puller.receive();
  }
  EXPECT_EQ(text, "later");
}

// Made by a broker that died before it made the pullers' group, or by a local program.
TEST_F(BrokerTest, ALogWithoutGroupKeepsItsMessagesForTheFirstPuller) {
  auto topic = Topic::create("news", {.directory = config_.dir});
  ASSERT_TRUE(topic) << describe(topic.error());
  start();
  ASSERT_EQ(create("news")["status"], "ok");
  Client producer{ZMQ_PUSH};
  connect(producer, "news", "pub");
  ASSERT_TRUE(producer.send("first"));
  await("news", "queue_size", 1);
  Client puller{ZMQ_PULL};
  connect(puller, "news", "pull");
  EXPECT_EQ(puller.receive(), "first");
}

TEST_F(BrokerTest, AfterARestartATopicStillWaitsForNobodyIfNobodyPulled) {
  start();
  ASSERT_EQ(create("news")["status"], "ok");
  Client producer{ZMQ_PUSH};
  connect(producer, "news", "pub");
  ASSERT_TRUE(producer.send("before"));
  await("news", "queue_size", 1);
  stop();
  start();
  // A producer's connection alone does not decide it.
  await("news", "publishers_count", 1);
  EXPECT_EQ(stats("news")["queue_size"], 1);
  EXPECT_EQ(join("news", "sub")["status"], "ok");
  EXPECT_EQ(stats("news")["queue_size"], 0);
  stop();
  start();
  await("news", "publishers_count", 1);
  ASSERT_TRUE(producer.send("after"));
  await("news", "messages_received", 2);
  EXPECT_EQ(stats("news")["queue_size"], 0);
}

TEST_F(BrokerTest, AfterARestartItStillWaitsForAPullerThatHasJoined) {
  start();
  ASSERT_EQ(create("news")["status"], "ok");
  const Json pulling = join("news", "pull");
  stop();
  start();
  EXPECT_EQ(join("news", "sub")["status"], "ok");
  expect_waiting_for("news", pulling);
}

TEST_F(BrokerTest, AnAddressThatGuessesIsHeldOff) {
  start();
  ASSERT_EQ(create("news")["status"], "ok");
  ASSERT_EQ(join("news", "pub")["status"], "ok");
  Json request{{"cmd", "join"}, {"topic", "news"}, {"user_id", "user"}};
  std::set<std::string> answers;
  // The refusal comes late.
  for (int i = 0; i < 40 && !answers.contains("too many attempts"); ++i) {
    request["password"] = "guess " + std::to_string(i);
    answers.insert(ask(request)["description"]);
  }
  // One at a time, guesses are as slow as hashes; so a slow machine may see only the first answer.
  EXPECT_TRUE(answers.contains("unauthorized_access"));
  answers.erase("unauthorized_access");
  answers.erase("too many attempts");
  EXPECT_TRUE(answers.empty());
  EXPECT_EQ(join("news", "pub")["status"], "ok") << "who is known comes in meanwhile";
}

TEST_F(BrokerTest, ASecondBrokerIsToldOfTheFirst) {
  start();
  Config second = config_;
  second.of<lightq::Settings>().port += 32;
  auto refused = Broker::start(second, all_protocols(), [](std::string_view, const std::string&) {
    return Outcome<void>{};
  });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.problem().code, Errc::busy);
  EXPECT_NE(refused.problem().sentence.find(config_.state_dir), std::string::npos)
      << refused.problem().sentence;
}

}  // namespace
}  // namespace leat::broker
