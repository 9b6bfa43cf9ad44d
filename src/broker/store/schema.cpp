#include "schema.hpp"

#include <fmt/format.h>

#include <iterator>
#include <span>

namespace leat::broker {
namespace {

// Facts: admin_verifier, admin_verifier_version, last_verifier_version, token_secret; next_port before version 3.
constexpr const char* kVersion1[] = {
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value ANY NOT NULL) STRICT, WITHOUT ROWID",
    // AUTOINCREMENT: the id of a deleted topic is never given again, and tokens name ids.
    "CREATE TABLE topics (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE,"
    " type TEXT NOT NULL, user TEXT NOT NULL, verifier TEXT NOT NULL,"
    " verifier_version INTEGER NOT NULL, data_auth TEXT NOT NULL, pull_port INTEGER NOT NULL,"
    " push_port INTEGER NOT NULL, pub_port INTEGER NOT NULL, raw_port INTEGER NOT NULL,"
    " created_at_s INTEGER NOT NULL, pullers TEXT NOT NULL) STRICT",
    "CREATE TABLE rights (topic_id INTEGER NOT NULL, user TEXT NOT NULL,"
    " may_read INTEGER NOT NULL, may_write INTEGER NOT NULL, verifier TEXT NOT NULL,"
    " verifier_version INTEGER NOT NULL, PRIMARY KEY (topic_id, user)) STRICT, WITHOUT ROWID",
};

constexpr const char* kVersion2[] = {
    "ALTER TABLE topics ADD COLUMN slow_subscriber TEXT NOT NULL DEFAULT ''",
};

// Ports and types of LightQ's topics become values of a protocol, as those of any other protocol.
constexpr const char* kVersion3[] = {
    // topic_id 0: of the protocol itself.
    "CREATE TABLE protocol_values (topic_id INTEGER NOT NULL, protocol TEXT NOT NULL,"
    " name TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (topic_id, protocol, name))"
    " STRICT, WITHOUT ROWID",
    "INSERT INTO protocol_values"
    " SELECT id, 'lightq', 'pull_port', CAST(pull_port AS TEXT) FROM topics WHERE pull_port <> 0",
    "INSERT INTO protocol_values"
    " SELECT id, 'lightq', 'push_port', CAST(push_port AS TEXT) FROM topics WHERE push_port <> 0",
    "INSERT INTO protocol_values"
    " SELECT id, 'lightq', 'pub_port', CAST(pub_port AS TEXT) FROM topics WHERE pub_port <> 0",
    "INSERT INTO protocol_values"
    " SELECT id, 'lightq', 'raw_port', CAST(raw_port AS TEXT) FROM topics WHERE raw_port <> 0",
    "INSERT INTO protocol_values"
    " SELECT id, 'lightq', 'type', type FROM topics WHERE type IN ('direct', 'queue_file')",
    "INSERT INTO protocol_values SELECT 0, 'lightq', 'next_port', CAST(value AS TEXT) FROM facts"
    " WHERE name = 'next_port' AND value <> 0",
    "DELETE FROM facts WHERE name = 'next_port'",
    "ALTER TABLE topics ADD COLUMN durable INTEGER NOT NULL DEFAULT 0",
    "UPDATE topics SET durable = type IN ('file', 'queue_file')",
    "ALTER TABLE topics ADD COLUMN consumer_group TEXT NOT NULL DEFAULT ''",
    "UPDATE topics SET consumer_group = 'lightq'",
    "ALTER TABLE topics RENAME COLUMN pullers TO consumers",
    "ALTER TABLE topics DROP COLUMN type",
    "ALTER TABLE topics DROP COLUMN pull_port",
    "ALTER TABLE topics DROP COLUMN push_port",
    "ALTER TABLE topics DROP COLUMN pub_port",
    "ALTER TABLE topics DROP COLUMN raw_port",
};

// Each step turns one version into the next; the first one, nothing into version 1. Written ones never change.
using Step = std::span<const char* const>;
constexpr Step kSteps[] = {kVersion1, kVersion2, kVersion3};
static_assert(std::size(kSteps) == kSchemaVersion);

// Before a step drops or converts them.
void check_types(Database& database) {
  const std::int64_t wrong = database.number(
      "SELECT count(*) FROM topics"
      " WHERE type NOT IN ('queue', 'file', 'direct', 'queue_file')");
  if (wrong != 0) database.fail_as_damaged("a topic has a wrong type");
}

}  // namespace

void make_first_schema(Database& database) {
  for (const char* const sql : kSteps[0]) database.run(sql);
  database.run("PRAGMA user_version = 1");
}

void bring_up_to_date(Database& database, std::int64_t version) {
  if (database.has_failed() || version >= kSchemaVersion) return;
  // So that the changes have all of the log for themselves: the disk may be full.
  database.run("PRAGMA wal_checkpoint(RESTART)");
  Transaction transaction{database};
  for (std::int64_t from = version; from < kSchemaVersion; ++from) {
    if (from == 2) check_types(database);
    for (const char* const sql : kSteps[from]) database.run(sql);
  }
  database.run(fmt::format("PRAGMA user_version = {}", kSchemaVersion).c_str());
  transaction.commit();
}

}  // namespace leat::broker
