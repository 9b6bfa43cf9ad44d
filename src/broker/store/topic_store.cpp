#include "topic_store.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "store_file.hpp"

namespace leat::broker {
namespace {

constexpr const char* kSelectTopics =
    "SELECT id, name, durable, user, verifier, verifier_version, data_auth, created_at_s,"
    " consumers, slow_subscriber, consumer_group FROM topics ORDER BY id";
constexpr const char* kSelectTopic =
    "SELECT id, name, durable, user, verifier, verifier_version, data_auth, created_at_s,"
    " consumers, slow_subscriber, consumer_group FROM topics WHERE name = ?";
constexpr const char* kSelectRights =
    "SELECT user, may_read, may_write, verifier, verifier_version FROM rights WHERE topic_id = ?"
    " ORDER BY user";
constexpr const char* kSelectAllRights =
    "SELECT user, may_read, may_write, verifier, verifier_version, topic_id FROM rights"
    " ORDER BY topic_id, user";

// A change. What finds no room on the disk is tried again at the beginning of the log, which is long enough. At some limits
// SQLite only says that it could not write.
template <class Work>
auto changed(StoreFile& file, Work&& work) -> decltype(work()) {
  Database& database = file.database();
  LEAT_ASSERT(!database.has_failed());  // Or somebody forgot finish().
  if (!file.is_in_place()) {
    return Problem{Errc::io_error,
                   fmt::format("the broker's store '{}' was removed or replaced: put it back, or "
                               "start the broker anew",
                               database.path())};
  }
  auto done = work();
  const bool is_worth_another =
      !done && (done.problem().code == Errc::no_space || done.problem().code == Errc::io_error);
  if (!is_worth_another) return done;
  file.begin_log();
  if (!database.finish()) return done;
  return work();
}

Problem no_such_topic() { return {Errc::not_found, "there is no such topic"}; }

// An absent verifier is the empty text.
std::string text_of(const std::optional<Verifier>& verifier) {
  return verifier ? print_verifier(*verifier) : std::string{};
}

std::optional<Verifier> verifier_in(Database& database, const std::string& text) {
  if (text.empty()) return std::nullopt;
  auto verifier = parse_verifier(text);
  if (verifier) return *verifier;
  database.fail_as_damaged(verifier.problem().sentence);
  return std::nullopt;
}

// The file is ours, but it may be damaged in a way that SQLite cannot see: each value is checked.
StoredTopic topic_in(Database& database, const Statement& row) {
  const auto auth = data_auth(row.text(6));
  const auto known_consumers = consumers(row.text(8));
  const auto slow = slow_subscriber(row.text(9));
  StoredTopic topic;
  topic.id = row.number(0);
  topic.name = row.text(1);
  topic.is_durable = row.number(2) != 0;
  topic.user = row.text(3);
  topic.group = row.text(10);
  if (problem_of_topic_name(topic.name) || !may_be_stored_user(topic.user) || !auth ||
      !known_consumers || !slow || problem_of_group_name(topic.group))
    database.fail_as_damaged(fmt::format(
        "topic {} has a wrong name, user, data_auth, consumers, slow_subscriber or consumer_group",
        topic.id));
  if (database.has_failed()) return topic;
  topic.data_auth = *auth;
  topic.consumers = *known_consumers;
  topic.slow_subscriber = *slow;
  topic.verifier = verifier_in(database, row.text(4));
  topic.verifier_version = row.number(5);
  topic.created_at_s = row.number(7);
  return topic;
}

Right right_in(Database& database, const Statement& row) {
  Right right{.user = row.text(0),
              .may_read = row.number(1) != 0,
              .may_write = row.number(2) != 0,
              .verifier = verifier_in(database, row.text(3)),
              .verifier_version = row.number(4)};
  if (!may_be_stored_user(right.user)) database.fail_as_damaged("a user of a right is wrong");
  return right;
}

std::vector<Right> rights_in(Database& database, std::int64_t topic_id) {
  Statement row{database, kSelectRights};
  row.bind(topic_id);
  std::vector<Right> rights;
  while (row.step()) rights.push_back(right_in(database, row));
  return rights;
}

// Of all verifiers of the store, so that no version comes back with a name that comes back. In a transaction.
std::int64_t next_verifier_version(Database& database) {
  database.run(
      "INSERT INTO facts VALUES ('last_verifier_version', 1)"
      " ON CONFLICT (name) DO UPDATE SET value = value + 1");
  return database.number("SELECT value FROM facts WHERE name = 'last_verifier_version'");
}

template <class Value>
void set_fact(Database& database, std::string_view name, const Value& value) {
  database.run(
      "INSERT INTO facts VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
      name, value);
}

// Runs a statement that must change one row of a topic.
template <class... Values>
void change_one(Database& database, const char* sql, const Values&... values) {
  database.run(sql, values...);
  if (database.number("SELECT changes()") == 0) database.fail(no_such_topic());
}

void delete_rows(Database& database, std::int64_t topic_id) {
  database.run("DELETE FROM rights WHERE topic_id = ?", topic_id);
  database.run("DELETE FROM protocol_values WHERE topic_id = ?", topic_id);
  change_one(database, "DELETE FROM topics WHERE id = ?", topic_id);
}

// Changes nothing.
void require_topic(Database& database, std::int64_t topic_id) {
  change_one(database, "UPDATE topics SET id = id WHERE id = ?", topic_id);
}

void set_value(Database& database, const ProtocolValue& value) {
  if (value.value.empty()) {
    database.run("DELETE FROM protocol_values WHERE protocol = ? AND topic_id = ? AND name = ?",
                 std::string_view{value.protocol}, value.topic_id, std::string_view{value.name});
  } else {
    database.run("INSERT OR REPLACE INTO protocol_values VALUES (?, ?, ?, ?)", value.topic_id,
                 std::string_view{value.protocol}, std::string_view{value.name},
                 std::string_view{value.value});
  }
}

}  // namespace

struct TopicStore::Parts {
  Parts(StoreFile opened, std::string path) : file{std::move(opened)}, directory{std::move(path)} {}

  StoreFile file;
  std::string directory;
  TokenSecret secret{};
};

TopicStore::TopicStore(std::unique_ptr<Parts> parts) : parts_{std::move(parts)} {}
TopicStore::TopicStore(TopicStore&&) noexcept = default;
TopicStore& TopicStore::operator=(TopicStore&&) noexcept = default;
TopicStore::~TopicStore() = default;

const std::string& TopicStore::directory() const noexcept { return parts_->directory; }
bool TopicStore::is_in_place() const noexcept { return parts_->file.is_in_place(); }
const TokenSecret& TopicStore::token_secret() const noexcept { return parts_->secret; }

Outcome<TopicStore> TopicStore::open(const std::string& directory, std::int64_t max_pages) {
  auto file = StoreFile::open(directory, max_pages);
  if (!file) return file.problem();
  auto parts = std::make_unique<Parts>(std::move(*file), directory);
  Database& database = parts->file.database();
  const std::string secret = database.text("SELECT value FROM facts WHERE name = 'token_secret'");
  if (secret.size() != parts->secret.size())
    database.fail_as_damaged("the secret of its tokens is missing");
  if (auto done = database.finish(); !done) return done.problem();
  std::copy(secret.begin(), secret.end(), parts->secret.begin());
  return TopicStore{std::move(parts)};
}

Outcome<std::optional<Administrator>> TopicStore::administrator() {
  Database& database = parts_->file.database();
  const auto verifier =
      verifier_in(database, database.text("SELECT value FROM facts WHERE name = 'admin_verifier'"));
  const std::int64_t version =
      database.number("SELECT value FROM facts WHERE name = 'admin_verifier_version'");
  return database.finish(verifier ? std::optional{Administrator{*verifier, version}}
                                  : std::nullopt);
}

Outcome<void> TopicStore::set_administrator(const Verifier& verifier) {
  return changed(parts_->file, [&] {
    Database& database = parts_->file.database();
    Transaction transaction{database};
    set_fact(database, "admin_verifier", std::string_view{print_verifier(verifier)});
    set_fact(database, "admin_verifier_version", next_verifier_version(database));
    transaction.commit();
    return database.finish();
  });
}

Outcome<std::vector<StoredTopic>> TopicStore::topics() {
  Database& database = parts_->file.database();
  std::vector<StoredTopic> topics;
  Statement row{database, kSelectTopics};
  while (row.step()) topics.push_back(topic_in(database, row));
  Statement right{database, kSelectAllRights};
  auto topic = topics.begin();  // Both are in the order of the ids.
  while (right.step()) {
    const std::int64_t id = right.number(5);
    while (topic != topics.end() && topic->id < id) ++topic;
    if (topic == topics.end() || topic->id != id) {
      database.fail_as_damaged("a right is of no topic");
    } else {
      topic->rights.push_back(right_in(database, right));
    }
  }
  return database.finish(std::move(topics));
}

Outcome<StoredTopic> TopicStore::topic(std::string_view name) {
  Database& database = parts_->file.database();
  Statement row{database, kSelectTopic};
  row.bind(name);
  StoredTopic topic;
  if (row.step()) {
    topic = topic_in(database, row);
    topic.rights = rights_in(database, topic.id);
  } else {
    database.fail(no_such_topic());
  }
  return database.finish(std::move(topic));
}

Outcome<StoredTopic> TopicStore::add(const NewTopic& topic,
                                     const std::vector<ProtocolValue>& values) {
  if (const auto problem = problem_of_topic_name(topic.name)) return *problem;
  if (const auto problem = problem_of_user(topic.user)) return *problem;
  if (const auto problem = problem_of_group_name(topic.group)) return *problem;
  return changed(parts_->file, [&] {
    Database& database = parts_->file.database();
    parts_->file.keep_room();
    Transaction transaction{database};
    StoredTopic stored;
    static_cast<NewTopic&>(stored) = topic;
    stored.verifier_version = next_verifier_version(database);
    database.run(
        "INSERT INTO topics (name, durable, user, verifier, verifier_version, data_auth,"
        " created_at_s, consumers, slow_subscriber, consumer_group)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO NOTHING",
        std::string_view{topic.name}, std::int64_t{topic.is_durable}, std::string_view{topic.user},
        std::string_view{text_of(topic.verifier)}, stored.verifier_version,
        name_of(topic.data_auth), topic.created_at_s, name_of(topic.consumers),
        name_of(topic.slow_subscriber), std::string_view{topic.group});
    if (database.number("SELECT changes()") == 0)
      database.fail({Errc::exists, "there is a topic of that name already"});
    stored.id = database.number("SELECT last_insert_rowid()");
    for (ProtocolValue value : values) {
      value.topic_id = stored.id;
      set_value(database, value);
    }
    transaction.commit();
    return database.finish(std::move(stored));
  });
}

Outcome<void> TopicStore::delete_topic(std::int64_t topic_id) {
  return changed(parts_->file, [&] {
    Database& database = parts_->file.database();
    Transaction transaction{database};
    delete_rows(database, topic_id);
    transaction.commit();
    return database.finish();
  });
}

Outcome<void> TopicStore::can_delete_topic(std::int64_t topic_id) {
  return changed(parts_->file, [&] {
    Database& database = parts_->file.database();
    Transaction transaction{database};  // Never committed.
    delete_rows(database, topic_id);
    database.write_out();
    return database.finish();
  });
}

Outcome<std::int64_t> TopicStore::change_password(std::int64_t topic_id, const Verifier& verifier) {
  return changed(parts_->file, [&] {
    Database& database = parts_->file.database();
    Transaction transaction{database};
    const std::int64_t version = next_verifier_version(database);
    change_one(database, "UPDATE topics SET verifier = ?, verifier_version = ? WHERE id = ?",
               std::string_view{print_verifier(verifier)}, version, topic_id);
    transaction.commit();
    return database.finish(version);
  });
}

Outcome<void> TopicStore::set_consumers(std::int64_t topic_id, Consumers consumers,
                                        std::string_view group) {
  if (const auto problem = problem_of_group_name(group)) return *problem;
  return changed(parts_->file, [&] {
    Database& database = parts_->file.database();
    Transaction transaction{database};
    change_one(database, "UPDATE topics SET consumers = ?, consumer_group = ? WHERE id = ?",
               name_of(consumers), group, topic_id);
    transaction.commit();
    return database.finish();
  });
}

Outcome<std::vector<ProtocolValue>> TopicStore::values(std::string_view protocol) {
  Database& database = parts_->file.database();
  Statement row{database,
                "SELECT topic_id, name, value FROM protocol_values WHERE protocol = ?"
                " ORDER BY topic_id, name"};
  row.bind(protocol);
  std::vector<ProtocolValue> values;
  while (row.step())
    values.push_back({std::string{protocol}, row.number(0), row.text(1), row.text(2)});
  return database.finish(std::move(values));
}

Outcome<void> TopicStore::set_values(const std::vector<ProtocolValue>& values) {
  return changed(parts_->file, [&]() -> Outcome<void> {
    Database& database = parts_->file.database();
    // Little is added, so a full disk is no reason to refuse it: there is what was kept back.
    parts_->file.keep_room();
    if (auto kept = database.finish(); !kept && kept.problem().code != Errc::no_space) return kept;
    Transaction transaction{database};
    for (const ProtocolValue& value : values) {
      if (value.topic_id != 0) require_topic(database, value.topic_id);
      set_value(database, value);
    }
    transaction.commit();
    return database.finish();
  });
}

Problem TopicStore::damaged(std::string_view what) const {
  return damaged_store(parts_->file.database().path(), what);
}

Outcome<std::vector<Right>> TopicStore::rights(std::int64_t topic_id) {
  Database& database = parts_->file.database();
  return database.finish(rights_in(database, topic_id));
}

Outcome<Right> TopicStore::grant(std::int64_t topic_id, const Right& right) {
  if (const auto problem = problem_of_user(right.user)) return *problem;
  return changed(parts_->file, [&] {
    Database& database = parts_->file.database();
    parts_->file.keep_room();
    Transaction transaction{database};
    require_topic(database, topic_id);
    Right stored = right;
    const std::vector<Right> before = rights_in(database, topic_id);
    const auto same = std::find_if(before.begin(), before.end(),
                                   [&](const Right& other) { return other.user == right.user; });
    if (!right.verifier && same != before.end()) {
      stored.verifier = same->verifier;
      stored.verifier_version = same->verifier_version;
    } else {
      stored.verifier_version = next_verifier_version(database);
    }
    database.run("INSERT OR REPLACE INTO rights VALUES (?, ?, ?, ?, ?, ?)", topic_id,
                 std::string_view{right.user}, std::int64_t{right.may_read},
                 std::int64_t{right.may_write}, std::string_view{text_of(stored.verifier)},
                 stored.verifier_version);
    transaction.commit();
    return database.finish(std::move(stored));
  });
}

Outcome<void> TopicStore::revoke(std::int64_t topic_id, std::string_view user) {
  return changed(parts_->file, [&] {
    Database& database = parts_->file.database();
    Transaction transaction{database};
    database.run("DELETE FROM rights WHERE topic_id = ? AND user = ?", topic_id, user);
    if (database.number("SELECT changes()") == 0)
      database.fail({Errc::not_found, "the user has no right on this topic"});
    transaction.commit();
    return database.finish();
  });
}

}  // namespace leat::broker
