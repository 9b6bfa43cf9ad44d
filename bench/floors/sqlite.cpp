#include "sqlite.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <string>

#include "bench/floors/disk.hpp"
#include "bench/harness/clock.hpp"
#include "bench/harness/processes.hpp"

namespace leat::bench {
namespace {

constexpr std::chrono::seconds kTimeLimit{300};

class Database {
 public:
  Database(const std::string& path, SqliteLevel level) {
    check(::sqlite3_open(path.c_str(), &database_));
    run("PRAGMA journal_mode=WAL");
    run(fmt::format("PRAGMA synchronous={}", name_of(level)));
    run("CREATE TABLE log (number INTEGER PRIMARY KEY, value BLOB NOT NULL)");
    check(::sqlite3_prepare_v2(database_, "INSERT INTO log (value) VALUES (?)", -1, &insert_,
                               nullptr));
  }
  ~Database() {
    ::sqlite3_finalize(insert_);
    ::sqlite3_close(database_);
  }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  void run(const std::string& statement) {
    check(::sqlite3_exec(database_, statement.c_str(), nullptr, nullptr, nullptr));
  }
  void insert(const std::string& value) {
    check(::sqlite3_bind_blob(insert_, 1, value.data(), static_cast<int>(value.size()),
                              SQLITE_STATIC));
    if (::sqlite3_step(insert_) != SQLITE_DONE) fail();
    check(::sqlite3_reset(insert_));
  }

 private:
  void check(int result) {
    if (result != SQLITE_OK) fail();
  }
  [[noreturn]] void fail() {
    throw Failure(fmt::format("SQLite: {}", ::sqlite3_errmsg(database_)));
  }

  ::sqlite3* database_ = nullptr;
  ::sqlite3_stmt* insert_ = nullptr;
};

}  // namespace

const char* name_of(SqliteLevel level) noexcept {
  if (level == SqliteLevel::off) return "OFF";
  return level == SqliteLevel::normal ? "NORMAL" : "FULL";
}

double sqlite_records_per_second(const std::string& directory, std::uint64_t records,
                                 std::size_t size, std::uint32_t transaction, SqliteLevel level,
                                 int cpu) {
  const Shared<double> per_second;
  run_roles({{"SQLite", cpu,
              [&](Barrier&) {
                Database database(directory + "/log.db", level);
                const std::string value(size, 'x');
                const Waker waker;
                const std::uint64_t started_ns = now_ns();
                for (std::uint64_t left = records; left != 0;) {
                  const std::uint64_t now = std::min<std::uint64_t>(left, transaction);
                  database.run("BEGIN");
                  for (std::uint64_t i = 0; i < now; ++i) database.insert(value);
                  database.run("COMMIT");
                  left -= now;
                }
                *per_second =
                    static_cast<double>(records) * 1e9 / static_cast<double>(now_ns() - started_ns);
              }}},
            kTimeLimit);
  return *per_second;
}

}  // namespace leat::bench
