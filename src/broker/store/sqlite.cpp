#include "sqlite.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sqlite3.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace leat::broker {
namespace {

// Nothing of ours is larger; a damaged size must not become a request for gigabytes.
constexpr int kMaxValue = 1 << 20;

std::string sentence(const std::string& path, std::string_view what) {
  return fmt::format("the broker's store '{}' {}", path, what);
}

}  // namespace

Problem damaged_store(const std::string& path, std::string_view what) {
  return {Errc::corrupt,
          sentence(path, fmt::format("is damaged ({}): restore it from a backup and remove its "
                                     "'-wal' file, or move it away and the broker begins anew",
                                     what))};
}

namespace {

Problem system_problem(const std::string& path, int error_number, const char* otherwise) {
  if (error_number == EFBIG)
    return {Errc::no_space, sentence(path,
                                     "cannot be written: it would be larger than `ulimit -f` or "
                                     "the file system allows")};
  if (error_number == EDQUOT)
    return {Errc::no_space, sentence(path, "cannot be written: the disk quota is used up")};
  if (error_number == ENOSPC)
    return {Errc::no_space,
            sentence(path, "cannot be written: the disk is full, or has no free inodes")};
  const char* const reason = error_number != 0 ? std::strerror(error_number) : otherwise;
  const bool is_denied = error_number == EACCES || error_number == EPERM || error_number == EROFS;
  return {is_denied ? Errc::permission : Errc::io_error,
          sentence(path, fmt::format("cannot be read or written: {}", reason))};
}

Problem problem_of(const std::string& path, sqlite3* handle, int code) {
  const int error_number = handle == nullptr ? 0 : ::sqlite3_system_errno(handle);
  switch (code & 0xFF) {
    case SQLITE_FULL:
      return {
          Errc::no_space,
          sentence(path, "cannot be written: the disk, or what the store may have of it, is full")};
    case SQLITE_NOMEM:
    case SQLITE_TOOBIG: return {Errc::no_memory, sentence(path, "needs more memory than there is")};
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return {Errc::busy, sentence(path, "is in use by another program")};
    case SQLITE_READONLY:
    case SQLITE_PERM: return {Errc::permission, sentence(path, "is read-only")};
    case SQLITE_IOERR:
      if (code == SQLITE_IOERR_CORRUPTFS) break;
      return system_problem(path, error_number, ::sqlite3_errstr(code));
    case SQLITE_CANTOPEN: return system_problem(path, error_number, ::sqlite3_errstr(code));
    default: break;
  }
  // CORRUPT and NOTADB; and, as our statements are right, everything that says that they do not fit.
  return damaged_store(path, handle == nullptr ? ::sqlite3_errstr(code) : ::sqlite3_errmsg(handle));
}

}  // namespace

Outcome<std::unique_ptr<Database>> Database::open(const std::string& path) {
  std::unique_ptr<Database> database{new Database{path}};
  const int code = ::sqlite3_open_v2(
      path.c_str(), &database->handle_,
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE, nullptr);
  sqlite3* const handle = database->handle_;
  if (code != SQLITE_OK) return problem_of(path, handle, code);
  if (::sqlite3_db_readonly(handle, "main") == 1)  // It was opened, but only for reading.
    return problem_of(path, nullptr, SQLITE_READONLY);
  ::sqlite3_extended_result_codes(handle, 1);
  ::sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, kMaxValue);
  // A changed file must not run code of its own.
  for (const int off : {SQLITE_DBCONFIG_ENABLE_TRIGGER, SQLITE_DBCONFIG_ENABLE_VIEW,
                        SQLITE_DBCONFIG_TRUSTED_SCHEMA})
    ::sqlite3_db_config(handle, off, 0, nullptr);
  ::sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  return database;
}

Database::~Database() {
  if (keeps_log_) empty_log();
  ::sqlite3_close(handle_);
}

// Without its header, SQLite takes a log for an empty one.
void Database::empty_log() {
  if (::sqlite3_wal_checkpoint_v2(handle_, "main", SQLITE_CHECKPOINT_RESTART, nullptr, nullptr) !=
      SQLITE_OK)
    return;
  sqlite3_file* log = nullptr;
  ::sqlite3_file_control(handle_, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
  if (log == nullptr || log->pMethods == nullptr) return;
  constexpr char kNoHeader[32] = {};
  int code = log->pMethods->xWrite(log, kNoHeader, sizeof kNoHeader, 0);
  if (code == SQLITE_OK) code = log->pMethods->xSync(log, SQLITE_SYNC_NORMAL);
  if (code != SQLITE_OK)
    spdlog::warn("cannot empty '{}' ({}): remove it before you restore a backup of '{}'",
                 log_path(), ::sqlite3_errstr(code), path_);
}

void Database::keep_log() {
  int on = 1;
  ::sqlite3_file_control(handle_, "main", SQLITE_FCNTL_PERSIST_WAL, &on);
  keeps_log_ = true;
}

void Database::fail(Problem problem) {
  if (!problem_) problem_ = std::move(problem);
}

void Database::fail_as_damaged(std::string_view what) { fail(damaged_store(path_, what)); }

Outcome<void> Database::finish() {
  const auto problem = std::exchange(problem_, std::nullopt);
  if (problem) return *problem;
  return {};
}

bool Database::is_done(int code, int wanted) {
  if (code == wanted) return true;
  fail(problem_of(path_, handle_, code));
  return false;
}

void Database::write_out() {
  if (!has_failed()) (void)is_done(::sqlite3_db_cacheflush(handle_), SQLITE_OK);
}

void Database::reserve(std::int64_t bytes) {
  if (has_failed()) return;
  int step = 4096;  // Without one, SQLite reserves nothing.
  ::sqlite3_file_control(handle_, "main", SQLITE_FCNTL_CHUNK_SIZE, &step);
  if (::sqlite3_file_control(handle_, "main", SQLITE_FCNTL_SIZE_HINT, &bytes) != SQLITE_OK)
    fail({Errc::no_space,
          sentence(path_,
                   "is not changed: the disk, a quota or `ulimit -f` leaves no room, and "
                   "what the store has is for rights that are taken away and for new passwords")});
}

std::int64_t Database::number(const char* sql) {
  Statement statement{*this, sql};
  return statement.step() ? statement.number(0) : 0;
}

std::string Database::text(const char* sql) {
  Statement statement{*this, sql};
  return statement.step() ? statement.text(0) : "";
}

// Without a handle, the other calls do nothing.
Statement::Statement(Database& database, const char* sql) : database_{database} {
  if (database.has_failed()) return;
  (void)database.is_done(::sqlite3_prepare_v2(database.handle_, sql, -1, &handle_, nullptr),
                         SQLITE_OK);
}

Statement::~Statement() { ::sqlite3_finalize(handle_); }

void Statement::bind(std::int64_t value) {
  if (handle_ != nullptr)
    (void)database_.is_done(::sqlite3_bind_int64(handle_, ++bound_, value), SQLITE_OK);
}

void Statement::bind(std::string_view value) {
  if (handle_ == nullptr) return;
  // A null pointer would be a NULL.
  const int code =
      ::sqlite3_bind_text(handle_, ++bound_, value.data() == nullptr ? "" : value.data(),
                          static_cast<int>(value.size()), SQLITE_TRANSIENT);
  (void)database_.is_done(code, SQLITE_OK);
}

void Statement::bind(std::span<const unsigned char> value) {
  if (handle_ == nullptr) return;
  const int code = ::sqlite3_bind_blob(handle_, ++bound_, value.data(),
                                       static_cast<int>(value.size()), SQLITE_TRANSIENT);
  (void)database_.is_done(code, SQLITE_OK);
}

bool Statement::step() {
  if (handle_ == nullptr || database_.has_failed()) return false;
  const int code = ::sqlite3_step(handle_);
  if (code == SQLITE_ROW) return true;
  (void)database_.is_done(code, SQLITE_DONE);
  return false;
}

std::int64_t Statement::number(int column) const { return ::sqlite3_column_int64(handle_, column); }

std::string Statement::text(int column) const {
  const void* const bytes = ::sqlite3_column_blob(handle_, column);  // Before its size is asked.
  const auto size = static_cast<std::size_t>(::sqlite3_column_bytes(handle_, column));
  return bytes == nullptr ? std::string{} : std::string{static_cast<const char*>(bytes), size};
}

// SQLite may have rolled back already, which is why we are here.
Transaction::~Transaction() {
  if (is_open_) (void)::sqlite3_exec(database_.handle_, "ROLLBACK", nullptr, nullptr, nullptr);
}

void Transaction::commit() {
  database_.run("COMMIT");
  is_open_ = database_.has_failed();
}

}  // namespace leat::broker
