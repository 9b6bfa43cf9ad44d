// If this failed, a restart would lose topics, ports or passwords, or old tokens would open new topics.
#include "broker/store/topic_store.hpp"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "broker/store/sqlite.hpp"
#include "support/process.hpp"

namespace leat::broker {
namespace {

using leat::testing::TemporaryDirectory;

struct Directory {
  TemporaryDirectory root;
  std::string path = root.path() + "/+broker";

  TopicStore open() const {
    auto store = TopicStore::open(path);
    EXPECT_TRUE(store) << store.problem().sentence;
    return std::move(*store);
  }
  std::string file(const std::string& name = "broker.db") const { return path + "/" + name; }

  // The fixture of version 2, and what else is to be done to it.
  void write_version_2(const std::string& more) const {
    std::filesystem::create_directory(path);
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    std::ostringstream sql;
    sql << std::ifstream{LEAT_SOURCE_DIR "/tests/fixtures/broker_2.sql"}.rdbuf() << more;
    sqlite3* database = nullptr;
    ASSERT_EQ(::sqlite3_open(file().c_str(), &database), SQLITE_OK);
    EXPECT_EQ(::sqlite3_exec(database, sql.str().c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
    ::sqlite3_close(database);
  }
  void expect_version(int version) const {
    auto database = Database::open(file());
    ASSERT_TRUE(database);
    EXPECT_EQ((*database)->number("PRAGMA user_version"), version);
  }
};

std::string content_of(const std::string& path) {
  std::ostringstream bytes;
  bytes << std::ifstream{path, std::ios::binary}.rdbuf();
  return bytes.str();
}

// "ID NAME VALUE" of each.
std::vector<std::string> texts_of(TopicStore& store, std::string_view protocol) {
  std::vector<std::string> texts;
  const auto values = store.values(protocol);
  EXPECT_TRUE(values);
  for (const ProtocolValue& one : *values)
    texts.push_back(std::to_string(one.topic_id) + " " + one.name + " " + one.value);
  return texts;
}

NewTopic news() {
  return {.name = "news",
          .is_durable = true,
          .user = "alice",
          .verifier = decoy_verifier(),
          .data_auth = DataAuth::joined,
          .created_at_s = 1'764'000'000,
          .group = "work"};
}

TEST(TopicStore, KeepsEverythingOverARestart) {
  const Directory place;
  const Verifier administrator = decoy_verifier();
  const NewTopic given = news();
  const Verifier of_bob = decoy_verifier();
  TokenSecret secret;
  std::int64_t id = 0;
  {
    TopicStore store = place.open();
    EXPECT_EQ(store.directory(), place.path);
    EXPECT_FALSE(*store.administrator());
    EXPECT_TRUE(store.values("lines")->empty());
    EXPECT_TRUE(store.topics()->empty());
    ASSERT_TRUE(store.set_administrator(administrator));
    const auto added =
        store.add(given, {{.protocol = "lines", .name = "motto", .value = "semper"}});
    ASSERT_TRUE(added) << added.problem().sentence;
    id = added->id;
    ASSERT_TRUE(store.set_values({{"lines", id, "port", "5501"}, {"lines", 0, "next", "5502"}}));
    ASSERT_TRUE(store.set_consumers(id, Consumers::absent, "others"));
    ASSERT_TRUE(
        store.grant(id, {.user = "bob", .may_read = true, .may_write = false, .verifier = of_bob}));
    ASSERT_TRUE(store.add({.name = "olds"}));
    secret = store.token_secret();
  }
  TopicStore store = place.open();
  EXPECT_EQ((*store.administrator())->verifier, administrator);
  EXPECT_EQ(store.token_secret(), secret);
  EXPECT_EQ(texts_of(store, "lines"),
            (std::vector<std::string>{"0 next 5502", "1 motto semper", "1 port 5501"}));
  const auto topics = store.topics();
  ASSERT_TRUE(topics);
  ASSERT_EQ(topics->size(), 2u);
  const StoredTopic& topic = topics->front();
  EXPECT_EQ(topic.id, id);
  EXPECT_EQ(topic.name, "news");
  EXPECT_TRUE(topic.is_durable);
  EXPECT_EQ(topic.user, "alice");
  EXPECT_EQ(topic.verifier, given.verifier);
  EXPECT_EQ(topic.data_auth, DataAuth::joined);
  EXPECT_EQ(topic.created_at_s, given.created_at_s);
  EXPECT_EQ(topic.group, "others");
  EXPECT_EQ(topic.consumers, Consumers::absent);
  const StoredTopic& other = topics->back();
  EXPECT_EQ(other.name, "olds");
  EXPECT_FALSE(other.is_durable);
  EXPECT_EQ(other.verifier, std::nullopt);
  EXPECT_EQ(other.data_auth, DataAuth::unset);
  EXPECT_EQ(other.group, "");
  EXPECT_EQ(other.consumers, Consumers::awaited);
  const auto rights = store.rights(id);
  ASSERT_EQ(rights->size(), 1u);
  EXPECT_EQ(rights->front().user, "bob");
  EXPECT_TRUE(rights->front().may_read);
  EXPECT_FALSE(rights->front().may_write);
  EXPECT_EQ(rights->front().verifier, of_bob);
}

TEST(TopicStore, ANameIsTakenOnce) {
  const Directory place;
  TopicStore store = place.open();
  ASSERT_TRUE(store.add(news()));
  EXPECT_EQ(store.add(news()).problem().code, Errc::exists);
  EXPECT_EQ(store.topics()->size(), 1u);
  EXPECT_EQ(store.topic("news")->user, "alice");
  EXPECT_EQ(store.topic("New").problem().code, Errc::not_found);
  EXPECT_EQ(store.topic("").problem().code, Errc::not_found);
}

TEST(TopicStore, ChecksNamesAndUsers) {
  const Directory place;
  TopicStore store = place.open();
  for (const std::string& name :
       {std::string{}, std::string{".."}, std::string{"../news"}, std::string{"a/b"},
        std::string{"a b"}, std::string{"+broker"}, std::string{"a\0b", 3}, std::string(201, 'x'),
        std::string{"n\xc3\xa4"}}) {
    const auto added = store.add({.name = name});
    ASSERT_FALSE(added) << name;
    EXPECT_EQ(added.problem().code, Errc::invalid_argument);
  }
  EXPECT_TRUE(store.add({.name = std::string(200, 'x')}));
  EXPECT_TRUE(store.add({.name = "a", .user = std::string(kMaxUser, 'u')}));
  EXPECT_TRUE(store.add({.name = "b", .user = "'; DROP TABLE topics; --"}));
  EXPECT_EQ(store.topic("b")->user, "'; DROP TABLE topics; --");
  for (const std::string& user :
       {std::string(kMaxUser + 1, 'u'), std::string{"a\nb"}, std::string{"a\0b", 3}}) {
    EXPECT_EQ(store.add({.name = "c", .user = user}).problem().code, Errc::invalid_argument);
    EXPECT_EQ(store.grant(store.topic("a")->id, {.user = user}).problem().code,
              Errc::invalid_argument);
  }
}

TEST(TopicStore, AnIdIsNeverGivenTwice) {
  const Directory place;
  std::int64_t first = 0;
  {
    TopicStore store = place.open();
    first = store.add(news())->id;
    ASSERT_TRUE(store.grant(first, {.user = "bob", .may_read = true}));
    ASSERT_TRUE(store.delete_topic(first));
    EXPECT_EQ(store.delete_topic(first).problem().code, Errc::not_found);
  }
  TopicStore store = place.open();
  const auto second = store.add(news());
  EXPECT_GT(second->id, first);
  EXPECT_TRUE(store.rights(second->id)->empty());
  EXPECT_TRUE(store.rights(first)->empty());
}

TEST(TopicStore, ToAskWhetherATopicCanBeDeletedChangesNothing) {
  const Directory place;
  TopicStore store = place.open();
  const auto id = store.add(news())->id;
  ASSERT_TRUE(store.grant(id, {.user = "bob", .may_read = true}));
  EXPECT_TRUE(store.can_delete_topic(id));
  EXPECT_EQ(store.topic("news")->rights.size(), 1u);
  EXPECT_EQ(store.can_delete_topic(id + 1).problem().code, Errc::not_found);
  std::filesystem::rename(place.file(), place.file("away"));
  EXPECT_EQ(store.can_delete_topic(id).problem().code, Errc::io_error);
  std::filesystem::rename(place.file("away"), place.file());
  EXPECT_TRUE(store.delete_topic(id));
  EXPECT_EQ(store.can_delete_topic(id).problem().code, Errc::not_found);
}

TEST(TopicStore, AChangedPasswordHasAnotherVersion) {
  const Directory place;
  TopicStore store = place.open();
  const auto topic = store.add(news());
  const Verifier changed = decoy_verifier();
  const auto version = store.change_password(topic->id, changed);
  ASSERT_TRUE(version);
  EXPECT_NE(*version, topic->verifier_version);
  EXPECT_EQ(store.topic("news")->verifier_version, *version);
  EXPECT_EQ(store.topic("news")->verifier, changed);
  EXPECT_NE(*store.change_password(topic->id, *topic->verifier), topic->verifier_version)
      << "not even for the old password";
  EXPECT_EQ(store.change_password(17, changed).problem().code, Errc::not_found);

  ASSERT_TRUE(store.set_administrator(changed));
  const auto before = (*store.administrator())->verifier_version;
  ASSERT_TRUE(store.set_administrator(changed));
  EXPECT_NE((*store.administrator())->verifier_version, before);
}

TEST(TopicStore, KeepsValuesOfProtocols) {
  const Directory place;
  TopicStore store = place.open();
  const auto id = store.add(news())->id;
  ASSERT_EQ(id, 1);
  ASSERT_TRUE(store.set_values({{"lines", id, "port", "1"}, {"other", id, "port", "2"}}));
  ASSERT_TRUE(store.set_values({{"lines", id, "port", "3"}}));
  EXPECT_EQ(texts_of(store, "lines"), (std::vector<std::string>{"1 port 3"}));
  EXPECT_EQ(texts_of(store, "other"), (std::vector<std::string>{"1 port 2"}));
  EXPECT_EQ(
      store.set_values({{"lines", 0, "next", "4"}, {"lines", 17, "port", "5"}}).problem().code,
      Errc::not_found);
  EXPECT_EQ(texts_of(store, "lines").size(), 1u) << "a change that failed changed nothing";
  EXPECT_EQ(store.set_consumers(17, Consumers::known, "work").problem().code, Errc::not_found);
  ASSERT_TRUE(store.set_values({{"lines", id, "port", ""}}));
  EXPECT_TRUE(store.values("lines")->empty());
  ASSERT_TRUE(store.delete_topic(id));
  EXPECT_TRUE(store.values("other")->empty()) << "they go with their topic";
}

// Of version 2, which a broker wrote that knew one protocol.
TEST(TopicStore, OfVersion2IsBroughtUpToDate) {
  const Directory place;
  place.write_version_2("");
  TopicStore store = place.open();
  ASSERT_TRUE(*store.administrator());
  const auto topics = store.topics();
  ASSERT_TRUE(topics) << topics.problem().sentence;
  ASSERT_EQ(topics->size(), 4u);
  const bool durable[] = {false, true, false, true};
  const Consumers expected[] = {Consumers::known, Consumers::awaited, Consumers::awaited,
                                Consumers::known};
  for (std::size_t i = 0; i < 4; ++i) {
    const StoredTopic& topic = topics->at(i);
    EXPECT_EQ(topic.is_durable, durable[i]) << topic.name;
    EXPECT_EQ(topic.consumers, expected[i]) << topic.name;
    EXPECT_EQ(topic.group, "lightq");
    EXPECT_EQ(topic.user, "ann");
    EXPECT_TRUE(*check_password("secret of ann", *topic.verifier));
  }
  EXPECT_EQ(topics->at(1).slow_subscriber, SlowSubscriber::wait);
  EXPECT_EQ(topics->at(2).data_auth, DataAuth::joined);
  ASSERT_EQ(topics->at(0).rights.size(), 1u);
  EXPECT_EQ(topics->at(0).rights[0].user, "bob");
  EXPECT_EQ(texts_of(store, "lightq"),
            (std::vector<std::string>{"0 next_port 15508", "1 pub_port 15502", "1 pull_port 15503",
                                      "1 push_port 15501", "2 pub_port 15504", "2 pull_port 15505",
                                      "2 raw_port 15506", "3 type direct", "4 raw_port 15507",
                                      "4 type queue_file"}));
  const auto added = store.add({.name = "later"});
  ASSERT_TRUE(added) << added.problem().sentence;
  EXPECT_EQ(added->id, 5);
}

TEST(TopicStore, TypesOfVersion2ThatAreNoneAreDamage) {
  const Directory place;
  place.write_version_2("; UPDATE topics SET type = 'stack' WHERE id = 3");
  const auto store = TopicStore::open(place.path);
  ASSERT_FALSE(store);
  EXPECT_EQ(store.problem().code, Errc::corrupt) << store.problem().sentence;
}

// A broker of before could not be started any more either, but it would not lose anything.
TEST(TopicStore, OfVersion2IsWholeWhenItCannotBeBroughtUpToDate) {
  const Directory place;
  place.write_version_2("");
  const auto full = TopicStore::open(place.path, 1);
  ASSERT_FALSE(full);
  EXPECT_EQ(full.problem().code, Errc::no_space) << full.problem().sentence;
  place.expect_version(2);
  ASSERT_TRUE(TopicStore::open(place.path));
  place.expect_version(3);
}

TEST(TopicStore, NamesOfGroupsAreChecked) {
  const Directory place;
  TopicStore store = place.open();
  NewTopic topic = news();
  topic.group = "../work";
  EXPECT_EQ(store.add(topic).problem().code, Errc::invalid_argument);
  const auto id = store.add(news())->id;
  EXPECT_EQ(store.set_consumers(id, Consumers::known, "a b").problem().code,
            Errc::invalid_argument);
  EXPECT_EQ(store.topic("news")->group, "work");
}

TEST(TopicStore, RightsAreGivenChangedAndTaken) {
  const Directory place;
  TopicStore store = place.open();
  const auto id = store.add({.name = "news"})->id;
  const Verifier password = decoy_verifier();
  const auto first = store.grant(id, {.user = "bob", .may_read = true, .verifier = password});
  ASSERT_TRUE(first);
  ASSERT_TRUE(store.grant(id, {.user = "anna", .may_write = true, .verifier = password}));

  const auto changed = store.grant(id, {.user = "bob", .may_read = true, .may_write = true});
  EXPECT_EQ(changed->verifier, password) << "the password stays";
  EXPECT_EQ(changed->verifier_version, first->verifier_version);
  const auto again = store.grant(id, {.user = "bob", .may_write = true, .verifier = password});
  EXPECT_NE(again->verifier_version, first->verifier_version);

  const auto rights = store.rights(id);
  ASSERT_EQ(rights->size(), 2u);
  EXPECT_EQ(rights->at(0).user, "anna");
  EXPECT_EQ(rights->at(1).user, "bob");
  EXPECT_FALSE(rights->at(1).may_read);
  EXPECT_TRUE(rights->at(1).may_write);

  ASSERT_TRUE(store.revoke(id, "bob"));
  EXPECT_EQ(store.revoke(id, "bob").problem().code, Errc::not_found);
  EXPECT_EQ(store.rights(id)->size(), 1u);
  const auto back = store.grant(id, {.user = "bob", .may_read = true, .verifier = password});
  EXPECT_GT(back->verifier_version, again->verifier_version) << "tokens of before stay dead";
  EXPECT_EQ(store.grant(17, {.user = "bob"}).problem().code, Errc::not_found);
}

TEST(TopicStore, TakesNoUserWhoLooksLikeAnotherOrCommandsATerminal) {
  const Directory place;
  TopicStore store = place.open();
  const auto add = [&](const std::string& user) {
    return store.add({.name = "news" + std::to_string(store.topics()->size()),
                      .user = user,
                      .verifier = decoy_verifier()});
  };
  for (const char* const user : {"", "anna lisa", "Ärmel", "日本 €", "\u00A0", "\u200D", "\u2010",
                                 "\u202F", "\u2065", "\u206A", "\u061B"})
    EXPECT_TRUE(add(user)) << user;
  for (const char* const user : {"a\n", "a\x7f", "a\u0080b", "\u009f", "\u061C", "a\u200E",
                                 "\u200F", "\u2028", "bob\u202Eanna", "\u2066", "€€\u2069"})
    EXPECT_EQ(add(user).problem().code, Errc::invalid_argument) << user;
}

TEST(TopicStore, HasNoPasswordInAnyFile) {
  const Directory place;
  const std::string password = "Tr0ub4dor-and-3-staples";
  {
    TopicStore store = place.open();
    ASSERT_TRUE(store.set_administrator(*make_verifier(password)));
    const auto topic =
        store.add({.name = "news", .user = "alice", .verifier = *make_verifier(password)});
    ASSERT_TRUE(store.change_password(topic->id, *make_verifier(password)));
    ASSERT_TRUE(store.grant(topic->id, {.user = "bob", .verifier = *make_verifier(password)}));
    EXPECT_TRUE(*check_password(password, *store.topic("news")->verifier));
  }
  int files = 0;
  bool has_user = false;
  for (const auto& entry : std::filesystem::directory_iterator(place.path)) {
    const std::string bytes = content_of(entry.path());
    EXPECT_EQ(bytes.find(password), std::string::npos) << entry.path();
    EXPECT_EQ(bytes.find(password.substr(0, 10)), std::string::npos) << entry.path();
    has_user |= bytes.find("alice") != std::string::npos;
    ++files;
  }
  EXPECT_EQ(files, 3) << "the lock, the database and its log";
  EXPECT_TRUE(has_user) << "the search would find a password";
}

TEST(TopicStore, FilesAreForTheOwnerOnly) {
  const Directory place;
  const ::mode_t before = ::umask(0);
  {
    TopicStore store = place.open();
    ASSERT_TRUE(store.add(news()));
    for (const auto& entry : std::filesystem::directory_iterator(place.path)) {
      struct stat status {};
      ASSERT_EQ(::stat(entry.path().c_str(), &status), 0);
      EXPECT_EQ(status.st_mode & 0777, 0600u) << entry.path();
    }
  }
  struct stat status {};
  ASSERT_EQ(::stat(place.path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  // A copy that was restored with an editor's mode.
  ASSERT_EQ(::chmod(place.file().c_str(), 0644), 0);
  TopicStore store = place.open();
  ASSERT_EQ(::stat(place.file().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  ::umask(before);
}

TEST(TopicStore, ASecondBrokerIsRefused) {
  const Directory place;
  {
    TopicStore store = place.open();
    const auto second = TopicStore::open(place.path + "/");
    ASSERT_FALSE(second);
    EXPECT_EQ(second.problem().code, Errc::busy);
    EXPECT_EQ(second.problem().sentence,
              "another broker uses the state directory '" + place.path + "'");
    leat::testing::Child child{[&] {
      CHILD_CHECK(TopicStore::open(place.path).problem().code == Errc::busy);
      return 0;
    }};
    child.wait();
    EXPECT_TRUE(child.succeeded()) << child.describe();
    TopicStore moved = std::move(store);
    EXPECT_TRUE(moved.add(news()));
    EXPECT_FALSE(TopicStore::open(place.path));
  }
  EXPECT_TRUE(TopicStore::open(place.path));
}

TEST(TopicStore, AThousandTopicsAreThereAtOnce) {
  const Directory place;
  {
    TopicStore store = place.open();
    for (int i = 0; i < 1000; ++i) {
      NewTopic topic = news();
      topic.name += std::to_string(i);
      ASSERT_TRUE(store.add(topic));
    }
  }
  TopicStore store = place.open();
  const auto topics = store.topics();
  ASSERT_EQ(topics->size(), 1000u);
  EXPECT_EQ(topics->at(999).name, "news999");
}

}  // namespace
}  // namespace leat::broker
