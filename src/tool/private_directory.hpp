// A private directory of one command, among the topics; the destructor deletes it.
//
//     auto directory = PrivateDirectory::make(parent, kBenchPrefix);
//     auto topic = Topic::create("log", {.directory = directory->path()});
//
// It is locked while in use, so that `leat doctor` recognizes what a killed command left behind.
// Forked children share the lock; they must not run the destructor.
#pragma once

#include <string>

#include "leat/os/os.hpp"

namespace leat::tool {

// With a plus sign, which topic names cannot have.
inline constexpr char kDemoPrefix[] = "+demo-";
inline constexpr char kBenchPrefix[] = "+bench-";

class PrivateDirectory {
 public:
  static Result<PrivateDirectory> make(const std::string& parent, const std::string& prefix);
  PrivateDirectory(PrivateDirectory&&) noexcept = default;
  ~PrivateDirectory();

  const std::string& path() const noexcept { return path_; }

 private:
  PrivateDirectory(std::string path, os::Fd lock) noexcept
      : path_{std::move(path)}, lock_{std::move(lock)} {}

  std::string path_;
  os::Fd lock_;  // Empty once moved from.
};

}  // namespace leat::tool
