// The same records in SQLite: what most people would use instead.
#pragma once

#include <cstdint>
#include <string>

namespace leat::bench {

// PRAGMA synchronous of a database in WAL mode.
//   off      survives the death of all processes
//   normal   survives a failure of the machine, but for the last transactions
//   full     survives it with everything that was committed
enum class SqliteLevel { off, normal, full };
const char* name_of(SqliteLevel level) noexcept;

// Inserts records of `size` bytes, `transaction` at a time, into a new database in this directory, which
// the caller deletes. Records per second.
double sqlite_records_per_second(const std::string& directory, std::uint64_t records,
                                 std::size_t size, std::uint32_t transaction, SqliteLevel level,
                                 int cpu);

}  // namespace leat::bench
