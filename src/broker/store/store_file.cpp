#include "store_file.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "broker/crypto/hmac.hpp"
#include "schema.hpp"

namespace leat::broker {
namespace {

using leat::os::Fd;
using leat::os::LockFile;

constexpr std::int64_t kApplicationId =
    0x4C454154;  // "LEAT"; `file` and SQLite's own tools show it.

constexpr std::size_t kPageSize = 4096;
constexpr std::int64_t kEnough = 16;  // Pages; one change needs fewer.

Problem problem_of(const std::string& directory, Error error) {
  const char* const reason =
      error.system_error != 0 ? std::strerror(error.system_error) : "it is not a regular file";
  return {error.code,
          fmt::format("the broker's state directory '{}' cannot be used: {}", directory, reason)};
}

Outcome<Fd> open_state_directory(const std::string& directory) {
  auto opened = leat::os::open_directory_path(directory, true, true);
  if (opened) return std::move(*opened);
  if (opened.error().code == Errc::permission && opened.error().system_error == 0) {
    return Problem{Errc::permission,
                   fmt::format("the broker's state directory '{}' must belong to the user who runs "
                               "the broker, and nobody else may write to it",
                               directory)};
  }
  return problem_of(directory, opened.error());
}

Outcome<LockFile> lock_directory(const Fd& opened, const std::string& directory) {
  auto file = LockFile::open(opened.get(), StoreFile::kLock, O_RDWR | O_CREAT, 0600);
  if (!file) return problem_of(directory, file.error());
  const auto locked = file->try_lock(0);
  if (!locked) return problem_of(directory, locked.error());
  if (!*locked) {
    return Problem{Errc::busy,
                   fmt::format("another broker uses the state directory '{}'", directory)};
  }
  return std::move(*file);
}

void delete_with_companions(const Fd& directory, const std::string& name) {
  for (const char* const suffix : {"-journal", "-wal", "-shm", ""})
    leat::os::delete_file_at(directory.get(), (name + suffix).c_str());
}

Outcome<void> make(const Fd& opened, const std::string& directory) {
  const std::string name = std::string{StoreFile::kName} + ".new";
  delete_with_companions(opened, name);  // Of a first start that was killed.
  if (const auto file =
          leat::os::open_file_at(opened.get(), name.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
      !file)
    return problem_of(directory, file.error());
  {
    auto database = Database::open(directory + "/" + name);
    if (!database) return database.problem();
    Database& made = **database;
    made.run(fmt::format("PRAGMA application_id = {}", kApplicationId).c_str());
    made.run(fmt::format("PRAGMA page_size = {}", kPageSize).c_str());
    made.run("PRAGMA synchronous = FULL");
    Transaction transaction{made};
    make_first_schema(made);
    made.run("INSERT INTO facts VALUES ('token_secret', ?)",
             std::span<const unsigned char>{random_bytes<32>()});
    transaction.commit();
    if (auto done = made.finish(); !done) return done;
  }
  // Companions of a database that somebody moved away do not belong to this one.
  delete_with_companions(opened, StoreFile::kName);
  const auto renamed = leat::os::rename_at(opened.get(), name.c_str(), StoreFile::kName);
  if (!renamed) return problem_of(directory, renamed.error());
  if (::fsync(opened.get()) != 0) return problem_of(directory, leat::last_system_error());
  return {};
}

// Whether the last broker was not killed: then there is no log, or one without a header.
bool was_closed(const Fd& opened) {
  const std::string name = std::string{StoreFile::kName} + "-wal";
  const auto log = leat::os::open_file_at(opened.get(), name.c_str(), O_RDONLY);
  char first = 0;
  if (!log) return log.error().system_error == ENOENT;
  const ::ssize_t count = ::pread(log->get(), &first, 1, 0);
  return count == 0 || (count == 1 && first == 0);
}

// The file itself, before SQLite looks at it. SQLite would take an empty one for a new database, and a last page
// that is not whole for one that ends with zeros.
Outcome<void> check_file(const Fd& opened, const std::string& directory, const std::string& path) {
  const auto file = leat::os::open_file_at(opened.get(), StoreFile::kName, O_RDONLY);
  if (!file) return problem_of(directory, file.error());
  const auto size = leat::os::file_size(file->get());
  if (!size) return problem_of(directory, size.error());
  // After a crash the write-ahead log may hold what is missing, so then the end is SQLite's to judge.
  if (*size == 0 || (*size % kPageSize != 0 && was_closed(opened)))
    return damaged_store(path, "it was cut off");
  (void)::fchmod(file->get(), 0600);  // A copy that was restored may be open to all.
  return {};
}

void check_content(Database& database) {
  if (database.number("PRAGMA application_id") != kApplicationId)
    database.fail_as_damaged("it is not of a broker");
  const std::int64_t version = database.number("PRAGMA user_version");
  if (version > kSchemaVersion) {
    database.fail({Errc::wrong_format,
                   fmt::format("the broker's store '{}' is of a newer broker: its version is {}, "
                               "and this one knows versions up to {}",
                               database.path(), version, kSchemaVersion)});
  }
  if (version < 1) database.fail_as_damaged("it has no version");
  // The first line only names the database.
  if (const std::string found = database.text("PRAGMA integrity_check(1)"); found != "ok")
    database.fail_as_damaged(found.substr(found.rfind('\n') + 1));
  bring_up_to_date(database, version);
}

Outcome<void> prepare(Database& database, std::int64_t max_pages) {
  database.run("PRAGMA cell_size_check = ON");
  database.run("PRAGMA locking_mode = EXCLUSIVE");  // Before WAL: it then needs no shared memory.
  if (const std::string mode = database.text("PRAGMA journal_mode = WAL"); mode != "wal")
    database.fail(
        {Errc::permission, fmt::format("the broker's store '{}' is read-only", database.path())});
  database.run("PRAGMA synchronous = FULL");
  if (auto done = database.finish(); !done) return done;
  database.keep_log();
  database.run(fmt::format("PRAGMA max_page_count = {}", max_pages).c_str());
  check_content(database);
  return database.finish();
}

}  // namespace

StoreFile::StoreFile(LockFile lock, std::unique_ptr<Database> database)
    : lock_{std::move(lock)}, database_{std::move(database)} {
  struct ::stat found {};
  if (::stat(database_->path().c_str(), &found) != 0) return;
  device_ = found.st_dev;
  inode_ = found.st_ino;
  has_log_ = ::stat(database_->log_path().c_str(), &found) == 0 &&
             found.st_size >= kEnough * static_cast<std::int64_t>(kPageSize);
}

bool StoreFile::is_in_place() const noexcept {
  struct ::stat found {};
  return ::stat(database_->path().c_str(), &found) == 0 && found.st_dev == device_ &&
         found.st_ino == inode_;
}

// A table is filled and dropped: its pages stay in the file, which SQLite never makes smaller. The log has held all of
// them, and is as long from then on.
void StoreFile::keep_room() {
  constexpr std::int64_t kWanted = 48;
  if (database_->has_failed()) return;
  if (has_log_ && database_->number("PRAGMA freelist_count") >= kEnough) return;
  // With no more pages allowed, there may be room on the disk.
  const std::int64_t most = database_->number("PRAGMA max_page_count");
  const std::int64_t pages = database_->number("PRAGMA page_count");
  if (pages + kWanted > most) return;
  // Else, on a full disk, the log would get pages that find no place in the file, and could never begin anew: what is kept
  // back would be gone.
  begin_log();
  constexpr std::int64_t kOfTheTable = 2;
  database_->reserve((pages + kWanted + kOfTheTable) * static_cast<std::int64_t>(kPageSize));
  database_->run("DROP TABLE IF EXISTS room");  // Of a broker that was killed.
  {
    Transaction transaction{*database_};
    database_->run("CREATE TABLE room (bytes BLOB NOT NULL) STRICT");
    database_->run("INSERT INTO room VALUES (zeroblob(?))",
                   kWanted * static_cast<std::int64_t>(kPageSize));
    transaction.commit();
  }
  begin_log();  // The pages are in the file then.
  database_->run("DROP TABLE room");
  if (!database_->has_failed()) has_log_ = true;
}

void StoreFile::begin_log() { database_->run("PRAGMA wal_checkpoint(RESTART)"); }

Outcome<StoreFile> StoreFile::open(std::string directory, std::int64_t max_pages) {
  while (directory.size() > 1 && directory.ends_with('/')) directory.pop_back();
  auto opened = open_state_directory(directory);
  if (!opened) return opened.problem();
  auto locked = lock_directory(*opened, directory);
  if (!locked) return locked.problem();
  if (!leat::os::has_name(opened->get(), kName)) {
    if (auto made = make(*opened, directory); !made) return made.problem();
  }
  const std::string path = directory + "/" + kName;
  if (auto checked = check_file(*opened, directory, path); !checked) return checked.problem();
  auto database = Database::open(path);
  if (!database) return database.problem();
  if (auto ready = prepare(**database, max_pages); !ready) return ready.problem();
  StoreFile file{std::move(*locked), std::move(*database)};
  file.keep_room();
  const auto kept = file.database().finish();
  if (!kept && kept.problem().code != Errc::no_space) return kept.problem();
  if (!kept)
    spdlog::warn("{}; until there is room, little can be changed", kept.problem().sentence);
  return file;
}

}  // namespace leat::broker
