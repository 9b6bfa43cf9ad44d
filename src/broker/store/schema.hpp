// The schema of the broker's store, and its versions.
//
//     bring_up_to_date(database, database.number("PRAGMA user_version"));
//     if (auto done = database.finish(); !done) return done;
#pragma once

#include <cstdint>

#include "sqlite.hpp"

namespace leat::broker {

// Of the schema that this program writes.
inline constexpr std::int64_t kSchemaVersion = 3;

// In a new database, within a transaction: version 1.
void make_first_schema(Database& database);
// From an older version, in one transaction. What is not as that version wrote it is damage.
void bring_up_to_date(Database& database, std::int64_t version);

}  // namespace leat::broker
