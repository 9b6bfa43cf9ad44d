// If these failed, strangers would use topics of a broker, or those who may use them could not; and a deleted topic would
// come back with what was in it.
#include "running_broker.hpp"

namespace leat::broker {
namespace {

class BrokerRights : public RunningBroker {
 protected:
  Json grant(const std::string& topic, const std::string& right, const std::string& password) {
    return ask_as_admin("grant", topic,
                        {{"user_id", "bob"}, {"right", right}, {"password", password}});
  }
  Json join_as_bob(const std::string& topic, const std::string& type,
                   const std::string& password = "bobs") {
    return ask_as("bob", password, "join", topic, {{"type", type}, {"leat", 1}});
  }
  Topic open_log(const std::string& name) const {
    auto topic = Topic::open(name, Deadline::immediate(), config_.dir, {}, config_.data_dir);
    EXPECT_TRUE(topic) << describe(topic.error());
    return *topic;
  }
};

TEST_F(BrokerRights, ADeletedTopicIsGoneWithItsMessagesPortsAndPasswords) {
  start();
  for (const char* const type : {"queue", "file"}) {
    SCOPED_TRACE(type);
    ASSERT_EQ(create("news", type)["status"], "ok");
    Client producer{ZMQ_PUSH};
    connect(producer, "news", "pub");
    ASSERT_TRUE(producer.send("old"));
    await("news", "messages_received", 1);
    const Json before = join("news", "pub");
    Topic local = open_log("news");
    auto subscriber = local.subscriber();
    ASSERT_TRUE(subscriber);

    EXPECT_EQ(ask_as("user", "secret", "delete_topic", "news")["description"],
              "unauthorized_access");
    EXPECT_EQ(ask_as_admin("delete_topic", "news"),
              Json({{"cmd", "delete_topic"}, {"status", "ok"}, {"topic", "news"}}));
    EXPECT_EQ(subscriber->receive(std::chrono::seconds{20}).error(), Errc::deleted);
    EXPECT_EQ(ask_as_admin("delete_topic", "news")["description"], "topic not found");
    EXPECT_EQ(join("news", "pub")["description"], "topic not found");

    ASSERT_EQ(create("news", type, {{"slow_subscribers", "wait"}})["status"], "ok");
    const Json after = join("news", "pub");
    ASSERT_EQ(after["status"], "ok");
    EXPECT_NE(after["bind_uri"], before["bind_uri"]) << "old clients reconnect there for ever";
    EXPECT_EQ(stats("news")["messages_received"], 0);
    ASSERT_EQ(ask_as_admin("delete_topic", "news")["status"], "ok");
  }
}

TEST_F(BrokerRights, ATopicThatCannotBeDeletedKeepsItsMessages) {
  start();
  ASSERT_EQ(create("news", "file")["status"], "ok");
  {
    Client producer{ZMQ_PUSH};
    connect(producer, "news", "pub");
    ASSERT_TRUE(producer.send("kept"));
    await("news", "queue_size", 1);
  }
  const std::string store = config_.state_dir + "/broker.db";
  std::filesystem::rename(store, store + ".away");
  EXPECT_EQ(ask_as_admin("delete_topic", "news")["status"], "error");
  std::filesystem::rename(store + ".away", store);
  EXPECT_EQ(stats("news")["queue_size"], 1);
  Client puller{ZMQ_PULL};
  connect(puller, "news", "pull");
  EXPECT_EQ(puller.receive(), "kept");
  EXPECT_EQ(ask_as_admin("delete_topic", "news")["status"], "ok");
}

// Nothing has happened to the topic, so clients that come again need not join again.
TEST_F(BrokerRights, ATopicThatCannotBeDeletedKeepsThoseWhoHaveJoined) {
  start();
  ASSERT_EQ(create("news", "file", {{"data_auth", "joined"}})["status"], "ok");
  const Json joined = join("news", "pub");
  ASSERT_EQ(joined["status"], "ok");
  const std::string store = config_.state_dir + "/broker.db";
  std::filesystem::rename(store, store + ".away");
  EXPECT_EQ(ask_as_admin("delete_topic", "news")["status"], "error");
  std::filesystem::rename(store + ".away", store);
  Client producer{ZMQ_PUSH};
  producer.connect(joined["bind_uri"]);
  ASSERT_TRUE(producer.send("kept"));
  await("news", "queue_size", 1);
}

TEST_F(BrokerRights, HalfACommandIsNotDone) {
  start();
  const std::string whole = Json({{"admin_user_id", "lightq_admin"},
                                  {"admin_password", password_},
                                  {"cmd", "create_topic"},
                                  {"topic", "news"},
                                  {"user_id", "ann"}})
                                .dump();
  std::string wrong = whole;
  wrong.replace(wrong.find("ann\""), 3, "Jos\xE9");  // Not UTF-8.
  for (const std::string& text :
       {whole.substr(0, whole.size() - 1), whole.substr(0, whole.size() - 7), wrong,
        whole.substr(0, whole.size() - 1) + ", oops"}) {
    ASSERT_TRUE(admin_->send(text));
    EXPECT_EQ(Json::parse(*admin_->receive(), nullptr, false)["description"], "invalid_cmd")
        << text;
  }
  EXPECT_EQ(join("news", "pub")["description"], "topic not found");
  ASSERT_TRUE(admin_->send("{\"cmd\": \"ping\""));
  EXPECT_EQ(Json::parse(*admin_->receive(), nullptr, false)["description"], "invalid_cmd");
}

TEST_F(BrokerRights, TheAdministratorDeletesTopicsOfLocalProcesses) {
  start();
  ASSERT_TRUE(Topic::create("local", {.directory = config_.dir}));
  EXPECT_EQ(ask_as("user", "secret", "delete_topic", "local")["description"],
            "unauthorized_access");
  EXPECT_EQ(ask_as_admin("delete_topic", "local")["status"], "ok");
  EXPECT_EQ(Topic::open("local", Deadline::immediate(), config_.dir).error(), Errc::not_found);
  EXPECT_EQ(ask_as_admin("delete_topic", "local")["description"], "topic not found");
}

TEST_F(BrokerRights, ADeletedTopicStaysDeletedAfterARestart) {
  start();
  ASSERT_EQ(create("news", "file")["status"], "ok");
  ASSERT_EQ(join("news", "pull")["status"], "ok");
  ASSERT_EQ(ask_as_admin("delete_topic", "news")["status"], "ok");
  stop();
  start();
  EXPECT_EQ(join("news", "pub")["description"], "topic not found");
  EXPECT_EQ(create("news", "file")["status"], "ok");
}

TEST_F(BrokerRights, ARightOpensWhatItSaysAndNothingElse) {
  start();
  ASSERT_EQ(create("news")["status"], "ok");
  EXPECT_EQ(join_as_bob("news", "pull")["description"], "unauthorized_access");
  EXPECT_EQ(ask_as("user", "secret", "grant", "news", {{"right", "read"}})["description"],
            "unauthorized_access");
  EXPECT_EQ(grant("news", "own", "bobs")["description"], "right is one of read, write, read_write");
  EXPECT_EQ(grant("news", "read", "")["description"], "password is missing: the user has none yet");
  ASSERT_EQ(grant("news", "read", "bobs")["status"], "ok");

  EXPECT_EQ(join_as_bob("news", "pub")["description"], "unauthorized_access");
  const std::string pushing = join("news", "pub")["bind_uri"];
  const Json pulling = join_as_bob("news", "pull");
  ASSERT_EQ(pulling["status"], "ok") << pulling;
  EXPECT_EQ(ask_as("bob", "bobs", "stats", "news")["status"], "ok");
  Client puller{ZMQ_PULL};
  puller.log_in("bob", "bobs");
  puller.connect(pulling["bind_uri"]);
  Client producer{ZMQ_PUSH};
  connect(producer, "news", "pub");
  ASSERT_TRUE(producer.send("hello"));
  EXPECT_EQ(puller.receive(), "hello");
  Client intruder{ZMQ_PUSH};
  intruder.log_in("bob", "bobs");
  intruder.set(ZMQ_IMMEDIATE, 1);
  intruder.set(ZMQ_SNDTIMEO, 200);
  intruder.connect(pushing);
  (void)intruder.send("no");
  EXPECT_EQ(stats("news")["publishers_count"], 1);

  // The password stays, the right changes.
  ASSERT_EQ(grant("news", "read_write", "")["status"], "ok");
  EXPECT_EQ(join_as_bob("news", "pub")["status"], "ok");
  EXPECT_EQ(stats("news")["subscribers_count"], 1) << "who still may, stays";
}

TEST_F(BrokerRights, ARightThatIsTakenAwayClosesItsConnections) {
  start();
  ASSERT_EQ(create("news")["status"], "ok");
  ASSERT_EQ(grant("news", "read", "bobs")["status"], "ok");
  Client of_bob{ZMQ_PULL};
  of_bob.log_in("bob", "bobs");
  of_bob.connect(join_as_bob("news", "pull")["bind_uri"]);
  Client of_user{ZMQ_PULL};
  connect(of_user, "news", "pull");
  await("news", "subscribers_count", 2);
  EXPECT_EQ(ask_as_admin("revoke", "news", {{"user_id", "eve"}})["description"],
            "the user has no right on this topic");
  ASSERT_EQ(ask_as_admin("revoke", "news", {{"user_id", "bob"}})["status"], "ok");
  EXPECT_EQ(stats("news")["subscribers_count"], 1);
  EXPECT_EQ(join_as_bob("news", "pull")["description"], "unauthorized_access");
  std::this_thread::sleep_for(std::chrono::milliseconds{300});  // libzmq tries again.
  EXPECT_EQ(stats("news")["subscribers_count"], 1);
}

TEST_F(BrokerRights, WhoCameByAddressGoesWithTheRight) {
  config_.data_auth = DataAuth::joined;
  start();
  ASSERT_EQ(create("news")["status"], "ok");
  ASSERT_EQ(grant("news", "read", "bobs")["status"], "ok");
  Client puller{ZMQ_PULL};
  puller.connect(join_as_bob("news", "pull")["bind_uri"]);
  await("news", "subscribers_count", 1);
  ASSERT_EQ(ask_as_admin("revoke", "news", {{"user_id", "bob"}})["status"], "ok");
  await("news", "subscribers_count", 0);
}

TEST_F(BrokerRights, RightsSurviveARestartAndTheirUsersChangeTheirPasswords) {
  start();
  ASSERT_EQ(create("news")["status"], "ok");
  ASSERT_EQ(create("other")["status"], "ok");
  ASSERT_EQ(grant("news", "write", "bobs")["status"], "ok");
  stop();
  start();
  EXPECT_EQ(join_as_bob("news", "pub")["status"], "ok");
  EXPECT_EQ(join_as_bob("other", "pub")["description"], "unauthorized_access");
  EXPECT_EQ(ask_as("bob", "bobs", "change_password", "news", {{"new_password", "new"}})["status"],
            "ok");
  EXPECT_EQ(join_as_bob("news", "pub")["description"], "unauthorized_access");
  EXPECT_EQ(join_as_bob("news", "pub", "new")["status"], "ok");
  EXPECT_EQ(join_as_bob("news", "pull", "new")["description"], "unauthorized_access");
  EXPECT_EQ(join("news", "pub")["status"], "ok") << "the topic's user has a password of its own";
  const Json listed = ask_as_admin("list_topics", "");
  EXPECT_EQ(listed["topics"][0]["rights"], Json({{{"user_id", "bob"}, {"right", "write"}}}));
}

// Nobody waits for pullers of a topic that never had any.
TEST_F(BrokerRights, ATopicOfLocalProcessesIsTheAdministratorsUntilARightIsGiven) {
  auto topic = Topic::create("local", {.directory = config_.dir});
  ASSERT_TRUE(topic) << describe(topic.error());
  auto publisher = topic->publisher();
  auto subscriber = topic->subscriber();
  ASSERT_TRUE(publisher && subscriber);
  start();
  EXPECT_EQ(join_as_bob("local", "pub")["description"], "topic not found");
  EXPECT_EQ(ask_as_admin("list_topics", "")["topics"],
            Json({{{"topic", "local"}, {"topic_type", "local"}, {"user_id", ""}}}));
  EXPECT_EQ(grant("nowhere", "read", "bobs")["description"], "topic not found");
  ASSERT_EQ(grant("local", "read_write", "bobs")["status"], "ok");
  EXPECT_EQ(ask_as("", "", "join", "local")["description"], "unauthorized_access");
  Client producer{ZMQ_PUSH};
  producer.log_in("bob", "bobs");
  producer.connect(join_as_bob("local", "pub")["bind_uri"]);
  ASSERT_TRUE(producer.send("from afar"));
  EXPECT_EQ(subscriber->receive(std::chrono::seconds{20})->text(), "from afar");
  EXPECT_FALSE(topic->find_group("lightq"));
  Client puller{ZMQ_PULL};
  puller.log_in("bob", "bobs");
  puller.connect(join_as_bob("local", "pull")["bind_uri"]);
  ASSERT_TRUE(publisher->publish("from here"));
  EXPECT_EQ(puller.receive(), "from here");
}

TEST_F(BrokerRights, PullersGetMessagesAgainAfterASeek) {
  start();
  for (const char* const type : {"queue", "file"}) {
    SCOPED_TRACE(type);
    const std::string name = type;
    ASSERT_EQ(create(name, type)["status"], "ok");
    Client producer{ZMQ_PUSH};
    connect(producer, name, "pub");
    Client puller{ZMQ_PULL};
    connect(puller, name, "pull");
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(producer.send(std::to_string(i)));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(puller.receive(), std::to_string(i));
    EXPECT_EQ(ask_as("user", "secret", "seek", name, {{"to", "soon"}})["description"],
              "to is one of beginning, end, or an offset");
    EXPECT_EQ(ask_as("user", "secret", "seek", name, {{"to", "99"}})["status"], "error");
    EXPECT_EQ(ask_as("user", "secret", "seek", name, {{"to", "1"}})["status"], "ok");
    for (int i = 1; i < 3; ++i) EXPECT_EQ(puller.receive(), std::to_string(i));
    EXPECT_EQ(ask_as("user", "secret", "seek", name, {{"to", "beginning"}})["status"], "ok");
    for (int i = 0; i < 3; ++i) EXPECT_EQ(puller.receive(), std::to_string(i));
    EXPECT_EQ(ask_as("user", "secret", "seek", name, {{"to", "end"}})["status"], "ok");
    ASSERT_TRUE(producer.send("last"));
    EXPECT_EQ(puller.receive(), "last");
  }
}

TEST_F(BrokerRights, ATopicSaysHowItsPortsAreProtected) {
  start();
  EXPECT_EQ(create("news", "queue", {{"data_auth", "none"}})["description"],
            "data_auth is one of password, joined, open");
  EXPECT_EQ(create("news", "queue", {{"slow_subscribers", "no"}})["description"],
            "slow_subscribers is one of overtaken, disconnect, wait");
  ASSERT_EQ(create("open", "queue", {{"data_auth", "open"}})["status"], "ok");
  ASSERT_EQ(create("closed")["status"], "ok");
  Client producer{ZMQ_PUSH};
  producer.connect(join("open", "pub")["bind_uri"]);
  Client puller{ZMQ_PULL};
  puller.connect(join("open", "pull")["bind_uri"]);
  ASSERT_TRUE(producer.send("hello"));
  EXPECT_EQ(puller.receive(), "hello");
  Client stranger{ZMQ_PULL};
  stranger.connect(join("closed", "pull")["bind_uri"]);
  std::this_thread::sleep_for(std::chrono::milliseconds{200});
  EXPECT_EQ(stats("closed")["subscribers_count"], 0);
}

}  // namespace
}  // namespace leat::broker
