// What the system knows of the user and of this run of itself.
#pragma once

#include <fcntl.h>
#include <pwd.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <string>

#include "leat/os/fd.hpp"

namespace leat::inline v0::detail {

// The user's home directory; empty if there is none.
inline std::string home_directory() {
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') return home;
  ::passwd entry{};
  ::passwd* found = nullptr;
  std::array<char, 4096> text{};
  const bool is_known =
      ::getpwuid_r(::geteuid(), &entry, text.data(), text.size(), &found) == 0 && found != nullptr;
  return is_known ? entry.pw_dir : "";
}

// Changes with every start of the system; zeros if the system does not say.
using BootId = std::array<std::byte, 16>;
inline BootId boot_id() noexcept {
  BootId id{};
  std::array<char, 36> text{};
  const Fd file{::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC)};
  if (!file || ::read(file.get(), text.data(), text.size()) != 36) return id;
  std::size_t digits = 0;
  for (const char c : text) {
    const int value = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (value < 0 || digits == 2 * id.size()) continue;
    id[digits / 2] |= static_cast<std::byte>(digits % 2 == 0 ? value << 4 : value);
    ++digits;
  }
  return id;
}

}  // namespace leat::inline v0::detail
