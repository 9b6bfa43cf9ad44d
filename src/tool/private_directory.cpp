#include "private_directory.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace leat::tool {

Result<PrivateDirectory> PrivateDirectory::make(const std::string& parent,
                                                const std::string& prefix) {
  while (true) {
    std::string path = parent + "/" + prefix + "XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) return last_system_error();
    os::Fd lock{::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (!lock || ::flock(lock.get(), LOCK_EX) != 0) {
      const Error error = last_system_error();
      ::rmdir(path.c_str());
      if (error == Errc::not_found && ::access(parent.c_str(), F_OK) == 0) continue;
      return error;
    }
    // `leat doctor --clean` may have locked and removed it first.
    if (::access(path.c_str(), F_OK) == 0)
      return PrivateDirectory{std::move(path), std::move(lock)};
  }
}

PrivateDirectory::~PrivateDirectory() {
  std::error_code ignored;
  if (lock_) std::filesystem::remove_all(path_, ignored);
}

}  // namespace leat::tool
