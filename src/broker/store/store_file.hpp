// The file of the broker's store: making it, opening it, its schema and its versions.
//
//     auto file = StoreFile::open("/var/lib/leat/+broker", kMaxPages);
//     file->database().run("DELETE FROM topics WHERE id = ?", id);
//
// The state directory belongs to one broker, by a lock on its file `lock`. A new database is built beside its
// place and renamed: a file of that name without the schema is therefore damaged, and never taken for a first start,
// which would give the topics away. SQLite's write-ahead log with synchronous=FULL: a change is on stable storage when
// its transaction returns, and is there whole or not at all after a crash.
// Whoever may write to a durable topic can fill the disk. The store keeps some room back, so that the administrator can still
// take a right away; also after it was stopped, while others filled the disk.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "leat/os/os.hpp"
#include "sqlite.hpp"

namespace leat::broker {

class StoreFile {
 public:
  static constexpr char kName[] = "broker.db";
  static constexpr char kLock[] = "lock";

  static Outcome<StoreFile> open(std::string directory, std::int64_t max_pages);

  Database& database() noexcept { return *database_; }

  // Free pages that are in the file already, and a write-ahead log that is at least as long. So a change that needs no more
  // finds its room on a full disk, as long as it begins in a log that has begin_log().
  // The database has failed with `no_space` afterwards if the disk has no room for them.
  void keep_room();
  void begin_log();
  // Somebody has removed or replaced the file: what is written to it is gone at the next start.
  bool is_in_place() const noexcept;

 private:
  StoreFile(leat::os::LockFile lock, std::unique_ptr<Database> database);

  leat::os::LockFile lock_;  // First: it goes last.
  std::unique_ptr<Database> database_;
  std::uint64_t device_ = 0;  // Of the file, when it was opened.
  std::uint64_t inode_ = 0;
  bool has_log_ = false;  // The log is as long as keep_room() needs it.
};

}  // namespace leat::broker
