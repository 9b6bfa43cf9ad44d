// If this failed, a damaged or full disk, or a crash, would end the broker, or make it forget what it had promised.
#include "broker/store/store_file.hpp"

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>

#include "broker/store/schema.hpp"
#include "broker/store/topic_store.hpp"
#include "support/process.hpp"

namespace leat::broker {
namespace {

using leat::testing::Child;
using leat::testing::Shared;
using leat::testing::TemporaryDirectory;

constexpr int kSlow = LEAT_TEST_SANITIZED ? 5 : 1;

struct Place {
  TemporaryDirectory root;
  std::string path = root.path() + "/+broker";
  std::string file = path + "/broker.db";

  void fill(int topics = 20) const {
    auto store = TopicStore::open(path);
    ASSERT_TRUE(store) << store.problem().sentence;
    ASSERT_TRUE(store->set_administrator(decoy_verifier()));
    for (int i = 0; i < topics; ++i) {
      const auto topic = store->add(
          {.name = "topic-" + std::to_string(i), .user = "user", .verifier = decoy_verifier()});
      ASSERT_TRUE(topic);
      ASSERT_TRUE(store->grant(topic->id, {.user = "other", .verifier = decoy_verifier()}));
    }
  }
  std::string bytes() const {
    std::ostringstream bytes;
    bytes << std::ifstream{file, std::ios::binary}.rdbuf();
    return bytes.str();
  }
  void write(const std::string& bytes) const {
    std::ofstream{file, std::ios::binary | std::ios::trunc} << bytes;
  }
  // Something that only another program than the broker would do.
  void run(const std::string& sql) const {
    sqlite3* database = nullptr;
    ASSERT_EQ(::sqlite3_open(file.c_str(), &database), SQLITE_OK);
    EXPECT_EQ(::sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << ::sqlite3_errmsg(database);
    ::sqlite3_close(database);
  }
  Problem problem() const {
    const auto store = TopicStore::open(path);
    return store ? Problem{} : store.problem();
  }
};

// Does everything that a broker does. What fails must say so in one line, and name the file.
void use(const Place& place) {
  const auto check = [&](const auto& outcome) {
    if (outcome) return;
    const std::string& sentence = outcome.problem().sentence;
    if (outcome.problem().code == Errc::not_found || outcome.problem().code == Errc::exists) return;
    EXPECT_NE(sentence.find(place.path), std::string::npos) << sentence;
    EXPECT_EQ(sentence.find('\n'), std::string::npos) << sentence;
  };
  auto store = TopicStore::open(place.path);
  check(store);
  if (!store) return;
  check(store->administrator());
  check(store->values("lines"));
  check(store->topic("topic-7"));
  const auto topics = store->topics();
  check(topics);
  check(store->rights(3));
  check(store->add({.name = "another", .user = "user", .verifier = decoy_verifier()}));
  check(store->change_password(3, decoy_verifier()));
  check(store->set_values({{"lines", 3, "port", "5501"}}));
  check(store->grant(3, {.user = "other", .may_read = true}));
  check(store->revoke(4, "other"));
  check(store->delete_topic(5));
}

TEST(StoreFile, DamagedAtAnyByteNeverCrashes) {
  const Place place;
  place.fill();
  const std::string bytes = place.bytes();
  ASSERT_GT(bytes.size(), 16'384u);
  std::mt19937 random{20261125};
  // Each byte of the headers, where a page's structure is; and samples of the rest.
  for (std::size_t at = 0; at < bytes.size(); at += at % 4096 < 120 ? 1 : 97) {
    if (at % static_cast<std::size_t>(kSlow) != 0) continue;
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ static_cast<char>(1 + random() % 255));
    place.write(changed);
    std::filesystem::remove(place.file + "-wal");
    use(place);
    if (::testing::Test::HasFailure()) FAIL() << "byte " << at;
  }
}

TEST(StoreFile, ManyDamagedBytesNeverCrash) {
  const Place place;
  place.fill();
  const std::string bytes = place.bytes();
  std::mt19937 random{4711};
  for (int round = 0; round < 300 / kSlow; ++round) {
    std::string changed = bytes;
    for (unsigned i = 0; i < 1u + random() % 200; ++i)
      changed[random() % changed.size()] = static_cast<char>(random());
    place.write(changed);
    std::filesystem::remove(place.file + "-wal");
    use(place);
    if (::testing::Test::HasFailure()) FAIL() << "round " << round;
  }
}

TEST(StoreFile, TruncatedIsDamaged) {
  const Place place;
  place.fill();
  const std::string bytes = place.bytes();
  for (std::size_t size = 0; size < bytes.size(); size += size < 200 ? 1 : 331) {
    place.write(bytes.substr(0, size));
    const Problem problem = place.problem();
    EXPECT_EQ(problem.code, Errc::corrupt) << size << ": " << problem.sentence;
    EXPECT_NE(problem.sentence.find(place.file), std::string::npos) << problem.sentence;
  }
}

// What its end should be is in the log.
TEST(StoreFile, TruncatedIsNotCalledDamagedWhileItsLogCannotBeRead) {
  const Place place;
  place.fill(1);
  const std::string bytes = place.bytes();
  place.write(bytes.substr(0, bytes.size() - 1));
  std::filesystem::remove(place.file + "-wal");
  std::filesystem::create_directory(place.file + "-wal");
  const Problem problem = place.problem();
  EXPECT_EQ(problem.code, Errc::io_error) << problem.sentence;
}

TEST(StoreFile, SomethingElseIsDamaged) {
  const Place place;
  place.fill(1);
  place.write("");
  EXPECT_EQ(place.problem().sentence,
            "the broker's store '" + place.file +
                "' is damaged (it was cut off): restore it from a backup and remove its '-wal' "
                "file, or move it away and the broker begins anew");
  place.write("[limits]\ntopics = 5500\n" + std::string(5000, '#'));
  EXPECT_EQ(place.problem().code, Errc::corrupt);
  std::filesystem::remove(place.file);
  place.run("CREATE TABLE topics (id INTEGER)");
  EXPECT_NE(place.problem().sentence.find("it is not of a broker"), std::string::npos);
  std::filesystem::remove(place.file);
  std::filesystem::create_directory(place.file);
  EXPECT_EQ(place.problem().code, Errc::wrong_format);
  std::filesystem::remove(place.file);
  std::filesystem::create_symlink("/etc/hostname", place.file);
  EXPECT_EQ(place.problem().code, Errc::wrong_format);
}

TEST(StoreFile, DamageInsideIsNamed) {
  const Place place;
  place.fill(1);
  place.run(
      "PRAGMA writable_schema = ON;"
      "UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = "
      "'rights') WHERE name = 'topics'");
  const Problem problem = place.problem();
  EXPECT_EQ(problem.code, Errc::corrupt);
  EXPECT_EQ(problem.sentence.find("***"), std::string::npos) << problem.sentence;
  EXPECT_NE(problem.sentence.find("(2nd reference to page "), std::string::npos)
      << problem.sentence;
}

TEST(StoreFile, WrongValuesAreDamage) {
  for (const char* const sql :
       {"UPDATE topics SET name = '../../etc'", "UPDATE topics SET verifier = 'leat1$'",
        "UPDATE topics SET data_auth = 'none'", "UPDATE topics SET consumers = 'some'",
        "UPDATE topics SET consumer_group = '../x'", "UPDATE topics SET user = 'a' || char(10)",
        "DROP TABLE topics", "ALTER TABLE topics DROP COLUMN durable"}) {
    const Place place;
    place.fill(1);
    place.run(sql);
    auto store = TopicStore::open(place.path);
    ASSERT_TRUE(store) << store.problem().sentence;
    const auto topics = store->topics();
    ASSERT_FALSE(topics) << sql;
    EXPECT_EQ(topics.problem().code, Errc::corrupt);
  }
  const Place place;
  place.fill(1);
  place.run("DELETE FROM facts WHERE name = 'token_secret'");
  EXPECT_EQ(place.problem().code, Errc::corrupt);
}

TEST(StoreFile, ANewerOneIsRefused) {
  const Place place;
  place.fill(1);
  place.run("PRAGMA user_version = 7");
  const Problem problem = place.problem();
  EXPECT_EQ(problem.code, Errc::wrong_format);
  EXPECT_EQ(problem.sentence, "the broker's store '" + place.file +
                                  "' is of a newer broker: its version is 7, and this one knows "
                                  "versions up to " +
                                  std::to_string(kSchemaVersion));
}

TEST(StoreFile, OfAFirstStartThatWasKilledBeginsAnew) {
  const Place place;
  std::filesystem::create_directory(place.path);
  std::filesystem::permissions(place.path, std::filesystem::perms::owner_all);
  std::ofstream{place.file + ".new"} << "half";
  std::ofstream{place.file + ".new-journal"} << "half";
  place.fill(1);
  EXPECT_FALSE(std::filesystem::exists(place.file + ".new"));
  EXPECT_FALSE(std::filesystem::exists(place.file + ".new-journal"));
}

// What is left of a database that somebody moved away must not be applied to the next one.
TEST(StoreFile, StrangeWriteAheadLogIsNotUsed) {
  const Place place;
  std::string log;
  {
    place.fill(1);
    auto store = TopicStore::open(place.path);
    ASSERT_TRUE(store->add({.name = "old"}));
    std::ostringstream bytes;
    bytes << std::ifstream{place.file + "-wal", std::ios::binary}.rdbuf();
    log = bytes.str();
    ASSERT_FALSE(log.empty());
  }
  std::filesystem::remove(place.file);
  std::ofstream{place.file + "-wal", std::ios::binary} << log;
  auto store = TopicStore::open(place.path);
  ASSERT_TRUE(store) << store.problem().sentence;
  EXPECT_TRUE(store->topics()->empty());
}

TEST(StoreFile, FullSaysSoAndChangesNothing) {
  const Place place;
  place.fill(1);
  auto store = TopicStore::open(place.path, 12);
  ASSERT_TRUE(store) << store.problem().sentence;
  std::size_t count = store->topics()->size();
  Outcome<StoredTopic> added{Problem{}};
  while (added = store->add({.name = "more-" + std::to_string(count),
                             .user = std::string(200, 'u'),
                             .verifier = decoy_verifier()}),
         added)
    ++count;
  EXPECT_EQ(added.problem().code, Errc::no_space);
  EXPECT_NE(added.problem().sentence.find("is full"), std::string::npos);
  EXPECT_EQ(store->topics()->size(), count);
  ASSERT_TRUE(store->delete_topic(store->topics()->back().id));
  EXPECT_TRUE(store->add({.name = "again"})) << "there is room again";
}

// A limit on file sizes stands for a full disk: the same system calls fail.
TEST(StoreFile, AWriteThatFailsChangesNothing) {
  const Place place;
  place.fill(1);
  Child child{[&] {
    auto store = TopicStore::open(place.path);
    CHILD_CHECK(store);
    ::signal(SIGXFSZ, SIG_IGN);
    const ::rlimit little{64 * 1024, 64 * 1024};
    CHILD_CHECK(::setrlimit(RLIMIT_FSIZE, &little) == 0);
    int count = 0;
    while (true) {
      const auto added =
          store->add({.name = "more-" + std::to_string(count), .verifier = decoy_verifier()});
      if (!added) {
        CHILD_CHECK(added.problem().code == Errc::io_error ||
                    added.problem().code == Errc::no_space);
        CHILD_CHECK(added.problem().sentence.find("cannot be") != std::string::npos);
        break;
      }
      CHILD_CHECK(++count < 1000);
    }
    CHILD_CHECK(store->topics());
    CHILD_CHECK(store->topics()->size() == static_cast<std::size_t>(count) + 1);
    return 0;
  }};
  child.wait();
  EXPECT_TRUE(child.succeeded()) << child.describe();
  EXPECT_EQ(place.problem().code, Errc::ok) << place.problem().sentence;
}

// A limit on file sizes stands for a full disk: the files cannot become longer.
TEST(StoreFile, OnAFullDiskARightCanStillBeTaken) {
  const Place place;
  constexpr int kUsers = 100;
  std::int64_t id = 0;
  {
    auto store = TopicStore::open(place.path);
    ASSERT_TRUE(store);
    id = store->add({.name = "news", .verifier = decoy_verifier()})->id;
    for (int i = 0; i < kUsers; ++i)
      ASSERT_TRUE(
          store->grant(id, {.user = "u" + std::to_string(i), .verifier = decoy_verifier()}));
  }
  Child child{[&] {
    auto store = TopicStore::open(place.path);
    CHILD_CHECK(store);
    const auto most = std::max(std::filesystem::file_size(place.file),
                               std::filesystem::file_size(place.file + "-wal"));
    ::signal(SIGXFSZ, SIG_IGN);
    const ::rlimit no_more{most, most};
    CHILD_CHECK(::setrlimit(RLIMIT_FSIZE, &no_more) == 0);
    for (int i = 0; i < kUsers; ++i) {
      CHILD_CHECK(store->change_password(id, decoy_verifier()));
      CHILD_CHECK(store->set_values({{"lines", id, "port", "5501"}, {"lines", 0, "next", "5502"}}));
      CHILD_CHECK(store->revoke(id, "u" + std::to_string(i)));
    }
    CHILD_CHECK(store->delete_topic(id));
    return 0;
  }};
  child.wait();
  EXPECT_TRUE(child.succeeded()) << child.describe();
}

// What is kept back for that is not for new rights and topics.
TEST(StoreFile, OnAFullDiskNewRightsLeaveRoomForTakingThemAway) {
  const Place place;
  Child child{[&] {
    auto store = TopicStore::open(place.path);
    CHILD_CHECK(store);
    const auto id = store->add({.name = "news", .verifier = decoy_verifier()})->id;
    const auto most = std::max(std::filesystem::file_size(place.file),
                               std::filesystem::file_size(place.file + "-wal"));
    ::signal(SIGXFSZ, SIG_IGN);
    const ::rlimit no_more{most, most};
    CHILD_CHECK(::setrlimit(RLIMIT_FSIZE, &no_more) == 0);
    const auto user = [](int number) { return std::to_string(number) + std::string(200, 'u'); };
    int granted = 0;
    while (store->grant(id, {.user = user(granted), .verifier = decoy_verifier()}))
      CHILD_CHECK(++granted < 5000);
    const auto refused = store->add({.name = "olds", .verifier = decoy_verifier()});
    CHILD_CHECK(refused.problem().code == Errc::no_space);
    CHILD_CHECK(refused.problem().sentence.find("`ulimit -f`") != std::string::npos);
    for (int i = 0; i < granted; ++i) {
      CHILD_CHECK(store->change_password(id, decoy_verifier()));
      CHILD_CHECK(store->revoke(id, user(i)));
    }
    CHILD_CHECK(store->grant(id, {.user = "again", .verifier = decoy_verifier()}));
    CHILD_CHECK(store->delete_topic(id));
    return 0;
  }};
  child.wait();
  EXPECT_TRUE(child.succeeded()) << child.describe();
}

// Others fill the disk while the broker is stopped.
TEST(StoreFile, KeepsItsRoomWhileItIsClosed) {
  const Place place;
  ASSERT_EQ(::mount("tmpfs", place.root.path().c_str(), "tmpfs", 0, "size=2m"), 0) << "needs root";
  place.fill(1);
  {
    std::ofstream others{place.root.path() + "/others", std::ios::binary};
    while (others.put('x')) {
    }
  }
  {
    auto store = TopicStore::open(place.path);
    EXPECT_TRUE(store);
    const std::int64_t id = store->topics()->at(0).id;
    EXPECT_TRUE(store->set_values({{"lines", id, "port", "5501"}, {"lines", 0, "next", "5502"}}));
    EXPECT_TRUE(store->change_password(id, decoy_verifier()));
    EXPECT_TRUE(store->revoke(id, "other"));
  }
  EXPECT_TRUE(TopicStore::open(place.path)->rights(1)->empty());
  ASSERT_EQ(::umount(place.root.path().c_str()), 0);
}

TEST(StoreFile, LogThatIsKeptIsNotAppliedToABackup) {
  const Place place;
  place.fill(1);
  const std::string backup = place.bytes();
  ASSERT_TRUE(TopicStore::open(place.path)->add({.name = "later"}));
  ASSERT_TRUE(std::filesystem::exists(place.file + "-wal"));
  place.write(backup);
  const auto topics = TopicStore::open(place.path)->topics();
  ASSERT_TRUE(topics) << topics.problem().sentence;
  EXPECT_EQ(topics->size(), 1U);
}

TEST(StoreFile, WarnsOfALogThatCannotBeEmptied) {
  const Place place;
  place.fill(1);
  Child child{[&] {
    std::ostringstream log;
    spdlog::set_default_logger(std::make_shared<spdlog::logger>(
        "test", std::make_shared<spdlog::sinks::ostream_sink_st>(log)));
    {
      auto store = TopicStore::open(place.path);
      CHILD_CHECK(store);
      ::signal(SIGXFSZ, SIG_IGN);
      const ::rlimit none{0, 0};
      CHILD_CHECK(::setrlimit(RLIMIT_FSIZE, &none) == 0);
    }
    CHILD_CHECK(log.str().find("broker.db-wal") != std::string::npos);
    return 0;
  }};
  child.wait();
  EXPECT_TRUE(child.succeeded()) << child.describe();
}

TEST(StoreFile, ThatWasRemovedTakesNoChange) {
  const Place place;
  place.fill(1);
  auto store = TopicStore::open(place.path);
  ASSERT_TRUE(store);
  EXPECT_TRUE(store->is_in_place());
  std::filesystem::rename(place.file, place.file + ".away");
  EXPECT_FALSE(store->is_in_place());
  const auto added = store->add({.name = "lost"});
  ASSERT_FALSE(added);
  EXPECT_NE(added.problem().sentence.find("was removed or replaced"), std::string::npos);
  std::filesystem::rename(place.file + ".away", place.file);
  EXPECT_TRUE(store->add({.name = "kept"}));
}

TEST(StoreFile, OfSomebodyElseIsRefused) {
  const Place place;
  place.fill(1);
  ASSERT_EQ(::chmod(place.path.c_str(), 0777), 0);
  EXPECT_EQ(place.problem().code, Errc::permission);
  EXPECT_EQ(place.problem().sentence, "the broker's state directory '" + place.path +
                                          "' must belong to the user who runs the broker, and "
                                          "nobody else may write to it");
  ASSERT_EQ(::chmod(place.path.c_str(), 0700), 0);
  if (::geteuid() != 0) return;
  ASSERT_EQ(::chown(place.path.c_str(), 65534, 65534), 0);
  EXPECT_EQ(place.problem().code, Errc::permission);
}

TEST(StoreFile, ReadOnlySaysSo) {
  const Place place;
  place.fill(1);
  const bool is_root = ::geteuid() == 0;
  if (is_root) {  // Root may write everything, so somebody else has to try.
    ASSERT_EQ(::chown(place.path.c_str(), 65534, 65534), 0);
    ASSERT_EQ(::chown((place.path + "/lock").c_str(), 65534, 65534), 0);
    ASSERT_EQ(::chmod(place.root.path().c_str(), 0711), 0);
  }
  ASSERT_EQ(::chmod(place.file.c_str(), 0444), 0);
  Child child{[&] {
    if (is_root) CHILD_CHECK(::setgid(65534) == 0 && ::setuid(65534) == 0);
    if (!is_root) CHILD_CHECK(::chmod(place.path.c_str(), 0500) == 0);
    const Problem problem = place.problem();
    if (problem.code != Errc::permission) std::fprintf(stderr, "%s\n", problem.sentence.c_str());
    CHILD_CHECK(problem.code == Errc::permission);
    CHILD_CHECK(problem.sentence.find(place.path) != std::string::npos);
    return 0;
  }};
  child.wait();
  EXPECT_TRUE(child.succeeded()) << child.describe();
}

TEST(StoreFile, WhatCannotBeMadeSaysSo) {
  const Place place;
  const auto missing = TopicStore::open(place.root.path() + "/a/b/c");
  EXPECT_EQ(missing.problem().code, Errc::not_found);
  EXPECT_NE(missing.problem().sentence.find("/a/b/c"), std::string::npos);
  std::ofstream{place.root.path() + "/file"} << "x";
  EXPECT_FALSE(TopicStore::open(place.root.path() + "/file"));
}

TEST(StoreFile, InUseByAnotherProgramIsBusy) {
  const Place place;
  place.fill(1);
  sqlite3* other = nullptr;
  ASSERT_EQ(::sqlite3_open(place.file.c_str(), &other), SQLITE_OK);
  ASSERT_EQ(::sqlite3_exec(other, "BEGIN; SELECT * FROM topics", nullptr, nullptr, nullptr),
            SQLITE_OK);
  Child child{[&] {  // Locks of one process do not conflict.
    const Problem problem = place.problem();
    if (problem.code != Errc::busy) std::fprintf(stderr, "%s\n", problem.sentence.c_str());
    CHILD_CHECK(problem.code == Errc::busy);
    CHILD_CHECK(problem.sentence.find("is in use by another program") != std::string::npos);
    return 0;
  }};
  child.wait();
  EXPECT_TRUE(child.succeeded()) << child.describe();
  ::sqlite3_close(other);
}

// What the child did, counted by itself after each call returned.
struct Progress {
  int added;
  int next_port;
};

// Each change is two rows in one transaction, so a half of one would show.
int change_for_ever(const std::string& path, Progress& progress, int first) {
  auto store = TopicStore::open(path);
  CHILD_CHECK(store);
  for (int i = first;; ++i) {
    const auto topic = store->add(
        {.name = "topic-" + std::to_string(i), .user = "user", .verifier = decoy_verifier()});
    CHILD_CHECK(topic);
    progress.added = i + 1;
    const int port = 5500 + i % 10'000;
    const std::string text = std::to_string(port);
    CHILD_CHECK(
        store->set_values({{"lines", topic->id, "port", text}, {"lines", 0, "next", text}}));
    progress.next_port = port;
    if (i % 3 == 0) CHILD_CHECK(store->grant(topic->id, {.user = "bob", .may_read = true}));
    if (i % 5 == 4) {
      CHILD_CHECK(store->change_password(topic->id, decoy_verifier()));
    }
  }
}

TEST(StoreFile, KilledInAChangeHasEachChangeWhole) {
  const Place place;
  const Shared<Progress> progress;
  std::mt19937 random{20261125};
  int first = 0;
  // More if the disk is so slow that little is done in each.
  for (int round = 0; round < 40 / kSlow || (first <= 10 && round < 400); ++round) {
    Child child{[&] { return change_for_ever(place.path, *progress, first); }};
    // Also during the first start, and while the log of changes is recovered.
    ::usleep(static_cast<::useconds_t>(random() %
                                       static_cast<unsigned>(10'000 * kSlow * (1 + round / 40))));
    child.signal(SIGKILL);
    child.wait();
    auto store = TopicStore::open(place.path);
    ASSERT_TRUE(store) << store.problem().sentence;
    const auto topics = store->topics();
    ASSERT_TRUE(topics) << topics.problem().sentence;
    const int stored = static_cast<int>(topics->size());
    EXPECT_GE(stored, progress->added);
    EXPECT_LE(stored, progress->added + 1);
    for (int i = 0; i < stored; ++i)
      EXPECT_EQ(topics->at(static_cast<std::size_t>(i)).name, "topic-" + std::to_string(i));
    const auto values = store->values("lines");
    ASSERT_TRUE(values) << values.problem().sentence;
    int next_port = 0;
    int last_port = 0;
    for (const ProtocolValue& value : *values)
      (value.topic_id == 0 ? next_port : last_port) = std::stoi(value.value);
    EXPECT_EQ(next_port, last_port) << "the two are one change";
    EXPECT_TRUE(next_port == progress->next_port || next_port == 5500 + (stored - 1) % 10'000)
        << next_port << " " << progress->next_port;
    first = stored;
    // A child that died after its change, but before it counted it, left these behind.
    *progress = {.added = stored, .next_port = next_port};
  }
  EXPECT_GT(first, 10);
}

}  // namespace
}  // namespace leat::broker
