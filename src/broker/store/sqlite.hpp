// One SQLite database and its statements.
//
//     auto database = Database::open("/var/lib/leat/+broker/broker.db");
//     Transaction transaction{**database};
//     (*database)->run("INSERT INTO facts VALUES (?, ?)", "version", std::int64_t{17});
//     transaction.commit();
//     return (*database)->finish();
//
// The first failure is kept. Until finish() returns it, statements do nothing, and return 0, "" or no row; so work need not check
// each step. Each sentence names the file. Only files of this folder use it, by one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "outcome/outcome.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace leat::broker {

// What the sentence is when a store is not what was once written.
Problem damaged_store(const std::string& path, std::string_view what);

class Database {
 public:
  // Opens a file that exists.
  static Outcome<std::unique_ptr<Database>> open(const std::string& path);
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database();

  // One statement, without what it returns.
  template <class... Values>
  void run(const char* sql, const Values&... values);
  // The first column of the first row as a number, or as text; 0 or "" if there is none.
  std::int64_t number(const char* sql);
  std::string text(const char* sql);

  // Something failed, unless something else did before.
  void fail(Problem problem);
  // Something in it is not what was once written.
  void fail_as_damaged(std::string_view what);
  bool has_failed() const noexcept { return problem_.has_value(); }
  // The first failure since the last finish(), if there was one.
  Outcome<void> finish();
  // The same, or this value.
  template <class Value>
  Outcome<Value> finish(Value value) {
    if (auto done = finish(); !done) return done.problem();
    return value;
  }

  // In a transaction: writes what it has changed so far, so that only little is left to commit().
  void write_out();
  // Reserves room on disk for a file of so many bytes, before pages are written to it.
  //   no_space
  void reserve(std::int64_t bytes);

  // The file of the write-ahead log stays when the database is closed, and holds its room. It is empty to SQLite then, so that
  // nothing in it is applied to a backup that is put in the database's place.
  void keep_log();
  std::string log_path() const { return path_ + "-wal"; }

  const std::string& path() const noexcept { return path_; }

 private:
  friend class Statement;
  friend class Transaction;
  explicit Database(const std::string& path) : path_{path} {}
  // Whether SQLite returned what it was to return.
  bool is_done(int code, int wanted);
  void empty_log();

  std::string path_;
  sqlite3* handle_ = nullptr;
  bool keeps_log_ = false;
  std::optional<Problem> problem_;
};

class Statement {
 public:
  Statement(Database& database, const char* sql);
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  ~Statement();

  // Gives the next ? its value.
  void bind(std::int64_t value);
  void bind(std::string_view value);
  void bind(std::span<const unsigned char> value);

  // Goes to the next row. False after the last one.
  bool step();
  std::int64_t number(int column) const;
  std::string text(int column) const;  // Of text and of blobs.

 private:
  Database& database_;
  sqlite3_stmt* handle_ = nullptr;
  int bound_ = 0;
};

template <class... Values>
void Database::run(const char* sql, const Values&... values) {
  Statement statement{*this, sql};
  (statement.bind(values), ...);
  while (statement.step()) {
  }
}

// Everything until commit() happens, and is on stable storage when commit() returns; or nothing does.
class Transaction {
 public:
  explicit Transaction(Database& database) : database_{database} {
    database.run("BEGIN IMMEDIATE");
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction();
  void commit();

 private:
  Database& database_;
  bool is_open_ = true;  // Or was never begun, which is the same to SQLite.
};

}  // namespace leat::broker
