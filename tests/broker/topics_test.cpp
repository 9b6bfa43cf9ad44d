// If these failed, a topic could be deleted that was made after its name was given for deletion, or be listed by nobody.
#include "broker/topic/topics.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>

#include "leat/deadline.hpp"
#include "support/process.hpp"

namespace leat::broker {
namespace {

class TopicsTest : public ::testing::Test {
 protected:
  TopicsTest() {
    for (const std::string& one : {config_.dir, config_.data_dir})
      std::filesystem::create_directories(one);
    EXPECT_TRUE(Topic::create("local", {.directory = config_.dir}));
  }
  static Config config_in(const std::string& directory) {
    Config config;
    config.dir = directory + "/dir";
    config.data_dir = directory + "/data";
    return config;
  }
  template <class Condition>
  void run_until(const Condition& condition) {
    for (const Deadline deadline{std::chrono::seconds{20}}; !condition();) {
      ASSERT_FALSE(deadline.passed());
      loop_.restart();
      loop_.run_for(std::chrono::milliseconds{1});
    }
  }
  // Stores what a call answers: "ok" or the error's sentence.
  static TopicLog::Done note(std::optional<Errc>& answer) {
    return
        [&](const Outcome<void>& outcome) { answer = outcome ? Errc::ok : outcome.problem().code; };
  }
  bool is_there(const std::string& name) {
    return Topic::open(name, Deadline::immediate(), config_.dir).has_value();
  }

  testing::TemporaryDirectory temp_;
  Config config_ = config_in(temp_.path());
  boost::asio::io_context loop_;
  Outcome<TopicStore> store_ = TopicStore::open(temp_.path() + "/state");
  Topics topics_{loop_, config_, *store_};
};

TEST_F(TopicsTest, NobodyTakesANameWhoseTopicIsBeingDeleted) {
  std::optional<Errc> deleted, again;
  topics_.delete_local("local", note(deleted));
  EXPECT_EQ(topics_.add({.name = "local"}).problem().code, Errc::busy);
  topics_.delete_local("local", note(again));
  EXPECT_EQ(again, Errc::busy);
  run_until([&] { return deleted.has_value(); });
  EXPECT_EQ(deleted, Errc::ok);
  EXPECT_FALSE(is_there("local"));
  EXPECT_TRUE(topics_.add({.name = "local"}));
}

TEST_F(TopicsTest, ATopicThatIsBeingAdoptedIsNotDeleted) {
  Outcome<TopicPtr> adopted{Problem{}};
  std::optional<Errc> deleted;
  topics_.find_or_adopt("local", "own", [&](Outcome<TopicPtr> topic) { adopted = topic; });
  topics_.delete_local("local", note(deleted));
  EXPECT_EQ(deleted, Errc::busy);
  run_until([&] { return adopted.has_value(); });
  EXPECT_EQ((*adopted)->stored().group, "own");
  EXPECT_EQ(topics_.find("local"), *adopted);
  EXPECT_TRUE(is_there("local"));
}

TEST_F(TopicsTest, ATopicIsDeletedOnceAndKeptIfTheStoreCannotForgetIt) {
  const auto added = topics_.add({.name = "news"});
  ASSERT_TRUE(added);
  const TopicPtr topic = *added;
  const std::string store = temp_.path() + "/state/broker.db";
  std::optional<Errc> first, second;
  std::filesystem::rename(store, store + ".away");
  topics_.delete_topic(topic, note(first));
  EXPECT_EQ(first, Errc::io_error);
  EXPECT_FALSE(topic->is_deleted());
  std::filesystem::rename(store + ".away", store);
  topics_.delete_topic(topic, note(first));
  topics_.delete_topic(topic, note(second));
  EXPECT_EQ(second, Errc::busy);
  run_until([&] { return first == Errc::ok; });
  EXPECT_EQ(topics_.find("news"), nullptr);
  EXPECT_TRUE(store_->topics()->empty());
}

TEST_F(TopicsTest, ListsWhatOnlyLocalProcessesHave) {
  ASSERT_TRUE(topics_.add({.name = "news"}));
  ASSERT_TRUE(Topic::create("news", {.directory = config_.dir}));
  std::optional<std::vector<std::string>> names;
  topics_.local_names([&](std::vector<std::string> found) { names = std::move(found); });
  EXPECT_FALSE(names);
  run_until([&] { return names.has_value(); });
  EXPECT_EQ(names, std::vector<std::string>{"local"});
}

}  // namespace
}  // namespace leat::broker
