#include "password.hpp"

#include <fcntl.h>

#include <cerrno>
#include <cstring>

#include "admin.hpp"
#include "shown.hpp"

namespace leat::lightq {
namespace {

Errc code_of(int error) noexcept {
  if (error == ENOENT || error == ENOTDIR) return Errc::not_found;
  if (error == EACCES || error == EPERM) return Errc::permission;
  return Errc::io_error;
}

}  // namespace

Outcome<std::string> password_from_file(const std::string& path) {
  const auto fail = [&] {
    return Problem{code_of(errno),
                   "cannot read the password in '" + shown(path) + "': " + std::strerror(errno)};
  };
  const os::Fd file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!file) return fail();
  std::string text(kMaxPassword + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {  // A pipe may bring it in pieces.
    const ::ssize_t count = ::read(file.get(), text.data() + size, text.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail();
    if (count == 0) break;
    size += static_cast<std::size_t>(count);
  }
  std::string password = text.substr(0, std::min(text.find('\n'), size));
  wipe(text);
  if (password.empty() || password.size() > kMaxPassword) {
    return Problem{Errc::invalid_argument,
                   "the first line of '" + shown(path) + "' is no password: 1 to 1024 bytes are"};
  }
  return password;
}

Outcome<os::Fd> password_pipe(const std::string& password) {
  if (password.empty() || password.size() > kMaxPassword || password.find('\n') != password.npos)
    return Problem{Errc::invalid_argument, "a password is one line of 1 to 1024 bytes"};
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return Problem{Errc::io_error, std::string{"cannot make a pipe: "} + std::strerror(errno)};
  os::Fd reading{ends[0]};
  const os::Fd writing{ends[1]};
  std::string line = password + "\n";
  // A pipe has room for it.
  const bool is_whole =
      ::write(writing.get(), line.data(), line.size()) == static_cast<::ssize_t>(line.size());
  wipe(line);
  if (!is_whole)
    return Problem{Errc::io_error, std::string{"cannot write to a pipe: "} + std::strerror(errno)};
  return reading;
}

}  // namespace leat::lightq
