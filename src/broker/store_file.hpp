// The file of the broker's store: making it, opening it, its schema and its versions.
//
//     StoreFile file = StoreFile::open("/var/lib/leat/+broker", kMaxPages);      // throws a Problem
//     file.database().run("DELETE FROM topics WHERE id = ?", id);
//
// The state directory belongs to one broker, by a lock on its file `lock`. A new database is built beside its
// place and renamed: a file of that name without the schema is therefore damaged, and never taken for a first start,
// which would give the topics away. SQLite's write-ahead log with synchronous=FULL: a change is on the medium when
// its transaction returns, and is there whole or not at all after a crash.
#pragma once

#include <memory>
#include <string>

#include "broker/sqlite.hpp"
#include "leat/os/lock_file.hpp"

namespace leat::broker {

class StoreFile {
 public:
  static constexpr char kName[] = "broker.db";
  static constexpr char kLock[] = "lock";
  // Of the schema that this program writes. An older one is brought up to it when it is opened.
  static int version() noexcept;

  static StoreFile open(std::string directory, std::int64_t max_pages);

  Database& database() noexcept { return *database_; }

 private:
  StoreFile(leat::detail::LockFile lock, std::unique_ptr<Database> database)
      : lock_{std::move(lock)}, database_{std::move(database)} {}

  leat::detail::LockFile lock_;  // First: it goes last.
  std::unique_ptr<Database> database_;
};

}  // namespace leat::broker
