// What ends a measurement early: one sentence for a person and the exit code of `leat`.
#pragma once

#include <stdexcept>
#include <string>

namespace leat::bench {

inline constexpr int kExitFailed = 1;
inline constexpr int kExitBadUsage = 2;
inline constexpr int kExitNotFound = 3;
inline constexpr int kExitPermission = 4;
inline constexpr int kExitFull = 6;

class Failure : public std::runtime_error {
 public:
  Failure(int exit_code, const std::string& sentence)
      : std::runtime_error(sentence), exit_code_{exit_code} {}
  explicit Failure(const std::string& sentence) : Failure(kExitFailed, sentence) {}

  int exit_code() const noexcept { return exit_code_; }

 private:
  int exit_code_;
};

// The failure of a system call, from errno: "cannot map 8 MiB: Cannot allocate memory".
[[nodiscard]] Failure system_failure(const std::string& what);

}  // namespace leat::bench
