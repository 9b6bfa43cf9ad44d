// Where a process of an outage stops itself: the supervisor arms it, in memory that both share, and
// kills it there, or lets it go on.
//
//     obey(blow, labels);                    // the process, once: from now on LEAT_CRASH_POINT looks
//     blow.arm(labels.pick(random), 3);      // the supervisor: at the third time it comes by
//
// Labels need not be listed anywhere: processes note those that they come by.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "support/random.hpp"

namespace leat::testing {

// The labels that one kind of process has come by. Processes are forks of one program, so a literal
// has the same address in all of them. Starts as zero bytes.
class Labels {
 public:
  void note(const char* name) noexcept;
  // One of them, of this family if it has any. Null: any, wherever it is next.
  const char* pick(Random& random, std::string_view of = {}) const noexcept;
  // "claim" of "claim:won".
  static std::string_view family(const char* label) noexcept;

 private:
  std::array<std::atomic<const char*>, 96> names_;
};

// One process's. Starts as zero bytes.
class Blow {
 public:
  void arm(const char* label, std::uint32_t passes) noexcept;
  void disarm() noexcept { armed_ = 0; }
  void forget() noexcept { where_ = nullptr; }
  const char* where() const noexcept { return where_; }  // It stopped itself there; else null.

 private:
  friend void obey(Blow& blow, Labels& labels) noexcept;
  void pass(const char* name) noexcept;

  std::atomic<std::uint32_t> armed_;
  std::atomic<const char*> label_;     // Null: any.
  std::atomic<std::uint32_t> passes_;  // Left.
  std::atomic<const char*> where_;
};

void obey(Blow& blow, Labels& labels) noexcept;
void obey_nobody() noexcept;  // In a child of such a process.

}  // namespace leat::testing
