#include "sqlite.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sqlite3.h>

#include <cerrno>
#include <cstring>

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

Database::Database(const std::string& path) : path_{path} {
  const int code = ::sqlite3_open_v2(
      path.c_str(), &handle_,
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE, nullptr);
  if (code != SQLITE_OK) {
    const Problem problem = problem_of(path_, handle_, code);
    ::sqlite3_close(handle_);
    throw problem;
  }
  if (::sqlite3_db_readonly(handle_, "main") == 1) {  // It was opened, but only for reading.
    ::sqlite3_close(handle_);
    throw problem_of(path_, nullptr, SQLITE_READONLY);
  }
  ::sqlite3_extended_result_codes(handle_, 1);
  ::sqlite3_limit(handle_, SQLITE_LIMIT_LENGTH, kMaxValue);
  // A changed file must not run code of its own.
  for (const int off : {SQLITE_DBCONFIG_ENABLE_TRIGGER, SQLITE_DBCONFIG_ENABLE_VIEW,
                        SQLITE_DBCONFIG_TRUSTED_SCHEMA})
    ::sqlite3_db_config(handle_, off, 0, nullptr);
  ::sqlite3_db_config(handle_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
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

void Database::fail(int code) const { throw problem_of(path_, handle_, code); }
void Database::fail_as_damaged(std::string_view what) const { throw damaged_store(path_, what); }

void Database::write_out() {
  if (const int code = ::sqlite3_db_cacheflush(handle_); code != SQLITE_OK) fail(code);
}

void Database::reserve(std::int64_t bytes) {
  int step = 4096;  // Without one, SQLite reserves nothing.
  ::sqlite3_file_control(handle_, "main", SQLITE_FCNTL_CHUNK_SIZE, &step);
  if (::sqlite3_file_control(handle_, "main", SQLITE_FCNTL_SIZE_HINT, &bytes) != SQLITE_OK)
    throw Problem{
        Errc::no_space,
        sentence(path_,
                 "is not changed: the disk, a quota or `ulimit -f` leaves no room, and "
                 "what the store has is for rights that are taken away and for new passwords")};
}

std::int64_t Database::number(const char* sql) {
  Statement statement{*this, sql};
  return statement.step() ? statement.number(0) : 0;
}

std::string Database::text(const char* sql) {
  Statement statement{*this, sql};
  return statement.step() ? statement.text(0) : "";
}

Statement::Statement(Database& database, const char* sql) : database_{database} {
  const int code = ::sqlite3_prepare_v2(database.handle_, sql, -1, &handle_, nullptr);
  if (code != SQLITE_OK) database.fail(code);
}

Statement::~Statement() { ::sqlite3_finalize(handle_); }

void Statement::bind(std::int64_t value) {
  const int code = ::sqlite3_bind_int64(handle_, ++bound_, value);
  if (code != SQLITE_OK) database_.fail(code);
}

void Statement::bind(std::string_view value) {
  // A null pointer would be a NULL.
  const int code =
      ::sqlite3_bind_text(handle_, ++bound_, value.data() == nullptr ? "" : value.data(),
                          static_cast<int>(value.size()), SQLITE_TRANSIENT);
  if (code != SQLITE_OK) database_.fail(code);
}

void Statement::bind(std::span<const unsigned char> value) {
  const int code = ::sqlite3_bind_blob(handle_, ++bound_, value.data(),
                                       static_cast<int>(value.size()), SQLITE_TRANSIENT);
  if (code != SQLITE_OK) database_.fail(code);
}

bool Statement::step() {
  const int code = ::sqlite3_step(handle_);
  if (code != SQLITE_ROW && code != SQLITE_DONE) database_.fail(code);
  return code == SQLITE_ROW;
}

std::int64_t Statement::number(int column) const { return ::sqlite3_column_int64(handle_, column); }

std::string Statement::text(int column) const {
  const void* const bytes = ::sqlite3_column_blob(handle_, column);  // Before its size is asked.
  const auto size = static_cast<std::size_t>(::sqlite3_column_bytes(handle_, column));
  return bytes == nullptr ? std::string{} : std::string{static_cast<const char*>(bytes), size};
}

Transaction::~Transaction() {
  if (!is_open_) return;
  try {
    database_.run("ROLLBACK");
  } catch (const Problem&) {  // SQLite rolled back already, which is why we are here.
  }
}

void Transaction::commit() {
  database_.run("COMMIT");
  is_open_ = false;
}

}  // namespace leat::broker
