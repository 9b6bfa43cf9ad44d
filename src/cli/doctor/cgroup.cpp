#include "cgroup.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>
#include <vector>

namespace leat::cli {
namespace {

// The files of one version of memory cgroups.
struct Version {
  std::string_view file_system;
  const char* limit;
  const char* used;
  std::string_view cache;  // A line of memory.stat.
  // Of swap alone in version 2, of memory and swap together in version 1.
  const char* swap_limit;
  const char* swap_used;
};
constexpr Version kVersions[] = {
    {"cgroup", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file",
     "memory.memsw.limit_in_bytes", "memory.memsw.usage_in_bytes"},
    {"cgroup2", "memory.max", "memory.current", "inactive_file", "memory.swap.max",
     "memory.swap.current"},
};

bool lists(const std::string& text, const std::string& word) {
  return ("," + text + ",").find("," + word + ",") != std::string::npos;
}

// The process's path in the hierarchy, by /proc/self/cgroup: "4:memory:/a/b", in version 2 "0::/a/b".
std::optional<std::string> path_in(const Version& version, const std::string& system) {
  std::ifstream file{system + "/proc/self/cgroup"};
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool matches =
        version.file_system == "cgroup2" ? controllers.empty() : lists(controllers, "memory");
    if (matches) return line.substr(second + 1);
  }
  return std::nullopt;
}

// Where the hierarchy is mounted, and which part of it.
struct Mount {
  std::string root;
  std::string point;
};
std::optional<Mount> mount_of(const Version& version, const std::string& system) {
  std::ifstream file{system + "/proc/self/mountinfo"};
  for (std::string line; std::getline(file, line);) {
    std::istringstream text{line};
    const std::vector<std::string> words{std::istream_iterator<std::string>{text}, {}};
    const auto dash = std::find(words.begin(), words.end(), "-");
    if (words.size() < 6 || words.end() - dash < 4 || *(dash + 1) != version.file_system) continue;
    if (version.file_system == "cgroup" && !lists(*(dash + 3), "memory")) continue;
    return Mount{words[3], words[4]};
  }
  return std::nullopt;
}

// A number alone in its file. "max" is none, nor is what version 1 says instead.
std::optional<std::uint64_t> number_in(const std::string& path) {
  constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 62;
  std::ifstream file{path};
  std::uint64_t number = 0;
  if (!(file >> number) || number >= kNoLimit) return std::nullopt;
  return number;
}

std::uint64_t cache_in(const std::string& path, std::string_view name) {
  std::ifstream file{path};
  std::string word;
  for (std::uint64_t number = 0; file >> word >> number;)
    if (word == name) return number;
  return 0;
}

// How much may be swapped out; nothing if there is no limit.
std::optional<std::uint64_t> free_swap(const std::string& directory, const Version& version) {
  const auto limit = number_in(directory + "/" + version.swap_limit);
  const auto used = number_in(directory + "/" + version.swap_used);
  if (!limit || !used) return std::nullopt;
  if (version.file_system == "cgroup2") return *limit - std::min(*limit, *used);
  // What memory alone may use is counted, too.
  const auto memory_limit = number_in(directory + "/" + version.limit);
  const auto memory_used = number_in(directory + "/" + version.used);
  if (!memory_limit || !memory_used) return std::nullopt;
  const std::uint64_t free = *limit - std::min(*limit, *used);
  return free - std::min(free, *memory_limit - std::min(*memory_limit, *memory_used));
}

void scan_hierarchy(const std::string& directory, const Version& version,
                    std::optional<MemoryLimit>& found) {
  const auto limit = number_in(directory + "/" + version.limit);
  const auto all = number_in(directory + "/" + version.used);
  if (!limit || !all) return;
  const std::uint64_t used =
      *all - std::min(*all, cache_in(directory + "/memory.stat", version.cache));
  const MemoryLimit one{.bytes = *limit, .free_bytes = *limit - std::min(*limit, used)};
  if (!found || one.free_bytes < found->free_bytes) found = one;
}

}  // namespace

std::optional<MemoryLimit> memory_limit(const std::string& system) {
  std::optional<MemoryLimit> found;
  std::uint64_t swap = UINT64_MAX;
  for (const Version& version : kVersions) {
    auto path = path_in(version, system);
    const auto mount = mount_of(version, system);
    if (!path || !mount) continue;
    // In a container only its own part may be mounted, and the path may begin outside of it.
    if (mount->root != "/")
      *path = path->starts_with(mount->root) ? path->substr(mount->root.size()) : "";
    if (path->find("..") != std::string::npos) path->clear();
    while (path->ends_with('/')) path->pop_back();
    for (;; path->resize(path->rfind('/'))) {
      scan_hierarchy(system + mount->point + *path, version, found);
      swap = std::min(swap, free_swap(system + mount->point + *path, version).value_or(swap));
      if (path->find('/') == std::string::npos) break;
    }
  }
  if (found) found->free_swap_bytes = swap;
  return found;
}

}  // namespace leat::cli
