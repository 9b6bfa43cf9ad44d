// One SQLite database and its statements; every failure is thrown as a Problem that names the file.
//
//     Database database{"/var/lib/leat/+broker/broker.db"};
//     Transaction transaction{database};
//     database.run("INSERT INTO facts VALUES (?, ?)", "next_port", std::int64_t{5501});
//     transaction.commit();
//     Statement topics{database, "SELECT name FROM topics"};  while (topics.step()) use(topics.text(0));
//
// Only topic_store.cpp and store_file.cpp use it. What is thrown is a Problem, not an exception of the standard
// library, so that nothing else catches it by accident. Used by one thread at a time.
#pragma once

#include <cstdint>
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
  explicit Database(const std::string& path);
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database();

  // One statement, without what it returns.
  template <class... Values>
  void run(const char* sql, const Values&... values);
  // The first column of the first row as a number, or as text; 0 or "" if there is none.
  std::int64_t number(const char* sql);
  std::string text(const char* sql);

  // Throws what the last call to SQLite returned.
  [[noreturn]] void fail(int code) const;
  // Something in it is not what was once written.
  [[noreturn]] void fail_as_damaged(std::string_view what) const;

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
  void empty_log();

  std::string path_;
  sqlite3* handle_ = nullptr;
  bool keeps_log_ = false;
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
  bool is_open_ = true;
};

}  // namespace leat::broker
