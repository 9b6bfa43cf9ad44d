// How the executables report an error: one sentence on stderr, and an exit code.
//
//     if (!topic) throw Failure{exit_code_for(topic.error().code), "there is no topic 'news'"};
//
// Every error that ends a command early is thrown; only program.cpp prints it.
#pragma once

#include <cerrno>
#include <stdexcept>
#include <string>
#include <utility>

#include "leat/result.hpp"
#include "outcome/outcome.hpp"

namespace leat::tool {

inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitNotThere = 3;  // not found, exists, or busy
inline constexpr int kExitPermission = 4;
inline constexpr int kExitFormat = 5;  // wrong format or corrupt
inline constexpr int kExitFull = 6;

// What each of them means, for the manual.
struct ExitCode {
  int code;
  const char* meaning;
};
inline constexpr ExitCode kExitCodes[] = {
    {0, "Done."},
    {kExitFailed, "Failed, or a verification failed."},
    {kExitUsage, "Bad usage, or a name or size that is not possible."},
    {kExitNotThere, "Not found, exists already, or busy."},
    {kExitPermission, "No permission."},
    {kExitFormat, "Wrong format, or corrupt."},
    {kExitFull, "Full: no room in a topic, in memory or on a disk."}};

class Failure : public std::runtime_error {
 public:
  Failure(int exit_code, const std::string& sentence)
      : std::runtime_error{sentence}, exit_code_{exit_code} {}
  explicit Failure(const std::string& sentence) : Failure{kExitFailed, sentence} {}
  int exit_code() const noexcept { return exit_code_; }

 private:
  int exit_code_;
};

int exit_code_for(Errc code) noexcept;

// The failure that a problem is, where it ends a command.
[[nodiscard]] Failure failure_of(const Problem& problem);

// The value of an outcome. Without one, throws its problem as a Failure.
template <class T>
T or_fail(Outcome<T> outcome) {
  if (!outcome) throw failure_of(outcome.problem());
  return std::move(*outcome);
}
inline void or_fail(const Outcome<void>& outcome) {
  if (!outcome) throw failure_of(outcome.problem());
}

// For a failed system call: `what`, then the system's message for the error number, such as "cannot
// read 'x': No such file or directory".
[[nodiscard]] Failure system_failure(const std::string& what, int error_number = errno);

// Prints one line on stderr, "leat: …". Ignores errors.
void print_notice(std::string sentence);

}  // namespace leat::tool
