#include "private_directory.hpp"

#include <sys/file.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace leat::tool {

Result<PrivateDirectory> PrivateDirectory::make(const std::string& parent,
                                                const std::string& prefix) {
  std::string path = parent + "/" + prefix + "XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) return last_system_error();
  detail::Fd lock{::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (!lock || ::flock(lock.get(), LOCK_EX) != 0) {
    const Error error = last_system_error();
    ::rmdir(path.c_str());
    return error;
  }
  return PrivateDirectory{std::move(path), std::move(lock)};
}

PrivateDirectory::~PrivateDirectory() {
  std::error_code ignored;
  if (lock_) std::filesystem::remove_all(path_, ignored);
}

bool PrivateDirectory::is_abandoned(const std::string& path) {
  const detail::Fd directory{::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)};
  return directory && ::flock(directory.get(), LOCK_EX | LOCK_NB) == 0;
}

}  // namespace leat::tool
