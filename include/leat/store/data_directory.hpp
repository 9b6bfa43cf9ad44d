// Where durable topics keep their files: one directory per topic, with the topic's name.
#pragma once

#include <cstdlib>
#include <string>
#include <string_view>

#include "leat/os/directory.hpp"
#include "leat/os/user.hpp"

namespace leat::inline v0::detail {

// The given directory, or $LEAT_DATA_DIR, or the default: $XDG_DATA_HOME/leat, else
// ~/.local/share/leat. Without a slash at the end.
inline std::string data_directory_path(std::string_view wanted) {
  const auto variable = [](const char* name) -> std::string_view {
    const char* value = std::getenv(name);
    return value == nullptr ? std::string_view{} : value;
  };
  std::string path{wanted.empty() ? variable("LEAT_DATA_DIR") : wanted};
  if (path.empty() && variable("XDG_DATA_HOME").starts_with('/'))
    path = std::string{variable("XDG_DATA_HOME")} + "/leat";
  if (path.empty()) path = home_directory() + "/.local/share/leat";
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

// Opens the data directory. With `make`, creates it and the directories above it, with mode 0700.
inline Result<Fd> open_data_directory(std::string_view wanted, bool make) {
  const std::string path = data_directory_path(wanted);
  if (make) {
    for (std::size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1))
      make_directory(path.substr(0, at));
    make_directory(path);
  }
  return open_directory_path(path, make, false);
}

}  // namespace leat::inline v0::detail
