// Where a process of a multi-failure test stops itself. The supervisor chooses a label, in memory that both
// share, and kills the process there or lets it continue.
//
//     obey(blow, labels);                    // the process, once: checks labels from now on
//     blow.arm(labels.pick(random), 3);      // the supervisor: stop at the third pass
//
// Labels need not be listed anywhere: processes note those that they reach.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "support/random.hpp"

namespace leat::testing {

// The labels that one kind of process has reached. Processes are forks of one program, so a string
// literal has the same address in all of them. Initially all bytes are zero.
class Labels {
 public:
  void note(const char* name) noexcept;
  // One of them, from the family `of` if that is not empty. Null means whichever label comes next.
  const char* pick(Random& random, std::string_view of = {}) const noexcept;
  // The part before the colon: "claim" for "claim:won".
  static std::string_view family(const char* label) noexcept;

 private:
  std::array<std::atomic<const char*>, 96> names_;
};

// For one process. Initially all bytes are zero.
class Blow {
 public:
  void arm(const char* label, std::uint32_t passes) noexcept;
  void disarm() noexcept { armed_ = 0; }
  void forget() noexcept { where_ = nullptr; }
  const char* where() const noexcept { return where_; }  // Where it stopped itself, or null.

 private:
  friend void obey(Blow& blow, Labels& labels) noexcept;
  void pass(const char* name) noexcept;

  std::atomic<std::uint32_t> armed_;
  std::atomic<const char*> label_;     // Null: any label.
  std::atomic<std::uint32_t> passes_;  // Passes that are left until it stops.
  std::atomic<const char*> where_;
};

void obey(Blow& blow, Labels& labels) noexcept;
void obey_nobody() noexcept;  // For children of such a process.

}  // namespace leat::testing
