// A directory of one command's own among the topics; removed with the object.
//
//     auto directory = PrivateDirectory::make(parent, kBenchPrefix);
//     auto topic = Topic::create("log", {.directory = directory->path()});
//
// It is locked while in use, so that `leat doctor` knows what a killed command left behind. Children
// of a fork share the lock; they must not run the destructor.
#pragma once

#include <string>

#include "leat/os/file.hpp"

namespace leat::tool {

// With a plus sign, which no topic's name has.
inline constexpr char kDemoPrefix[] = "+demo-";
inline constexpr char kBenchPrefix[] = "+bench-";

class PrivateDirectory {
 public:
  static Result<PrivateDirectory> make(const std::string& parent, const std::string& prefix);
  PrivateDirectory(PrivateDirectory&&) noexcept = default;
  ~PrivateDirectory();

  const std::string& path() const noexcept { return path_; }

  // Whether it is locked by nobody: whoever made it has gone.
  static bool is_abandoned(const std::string& path);

 private:
  PrivateDirectory(std::string path, detail::Fd lock) noexcept
      : path_{std::move(path)}, lock_{std::move(lock)} {}

  std::string path_;
  detail::Fd lock_;  // None once moved from.
};

}  // namespace leat::tool
