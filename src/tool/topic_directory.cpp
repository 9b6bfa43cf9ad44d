#include "topic_directory.hpp"

#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "failure.hpp"
#include "leat/admin.hpp"
#include "leat/os/os.hpp"

namespace leat::tool {

void refuse_system_directory(const std::string& path, const char* advice) {
  struct statfs status {};
  if (::statfs(path.c_str(), &status) != 0) return;
  std::error_code ignored;
  bool is_refused = std::filesystem::equivalent(path, "/", ignored);
  switch (static_cast<std::uint32_t>(status.f_type)) {
    case PROC_SUPER_MAGIC:
    case SYSFS_MAGIC:
    case DEVPTS_SUPER_MAGIC:
    case CGROUP_SUPER_MAGIC:
    case CGROUP2_SUPER_MAGIC: is_refused = true; break;
    default: break;
  }
  if (!is_refused) return;
  throw Failure{kExitPermission, fmt::format("{} is refused: {}", path, advice)};
}

namespace {

bool is_data_directory_named = false;

// Whether nothing has the path. `error`: the errno of opening it.
bool is_missing(const std::string& path, int error) {
  struct stat link {};
  return error == ENOENT && ::lstat(path.c_str(), &link) != 0;
}

// `name`: the option or variable that names it.
std::string why_unusable(const std::string& path, int error, const char* name) {
  return fmt::format("cannot use {}, which {} names: {}", path, name,
                     error == ENOENT ? "it is a link to nothing" : std::strerror(error));
}

}  // namespace

void check_named_data_directory() {
  if (!is_data_directory_named) return;
  const std::string path = data_directory();
  refuse_system_directory(path,
                          "durable topics have a directory of their own; name it with --data-dir");
  const auto checked = check_data_directory();
  if (checked) return;
  const int error = checked.error().system_error;
  if (is_missing(path, error))
    throw Failure{
        kExitNotThere,
        fmt::format("there is no directory {}, which --data-dir names; `leat topic create "
                    "--durable` makes it",
                    path)};
  throw Failure{error == ENOTDIR ? kExitUsage : exit_code_for(checked.error().code),
                why_unusable(path, error, "--data-dir")};
}

std::string problem_of_data_variable() {
  constexpr char kVariable[] = "LEAT_DATA_DIR";
  const char* const value = std::getenv(kVariable);
  if (is_data_directory_named || value == nullptr || *value == '\0') return {};
  const std::string path = data_directory();
  const auto checked = check_data_directory();
  if (checked) return {};
  const int error = checked.error().system_error;
  return is_missing(path, error)
             ? fmt::format("there is no directory {}, which {} names", path, kVariable)
             : why_unusable(path, error, kVariable);
}

void note_named_data_directory() noexcept { is_data_directory_named = true; }

namespace {

bool has_durable_topics() {
  auto data = os::open_directory_path(data_directory(), false, false);
  auto names = data ? os::names_in(data->get()) : data.error();
  return names && std::ranges::any_of(*names, is_valid_name);
}

}  // namespace

std::string usable_directory(Missing missing) {
  std::string path = topics_directory();
  refuse_system_directory(path);
  const bool is_named = path != default_topics_directory();
  const bool is_there = ::access(path.c_str(), F_OK) == 0;
  // A restart of the machine takes the directory, but not the durable topics.
  if (!is_there && has_durable_topics()) missing = Missing::is_made;
  const auto checked = check_topics_directory({}, missing == Missing::is_made);
  if (checked) {
    if (!is_there && is_named) print_notice(fmt::format("created directory {}", path));
    return path;
  }
  const Error error = checked.error();
  if (missing != Missing::is_made && error.system_error == ENOENT) {
    if (!is_named) return path;
    throw Failure{
        kExitNotThere,
        fmt::format("there is no directory {}, which --dir or LEAT_DIR names; `leat topic "
                    "create`, `leat pub` and `leat sub` make it",
                    path)};
  }
  const char* const reason = error.system_error == ENOSPC
                                 ? "no bytes or no inodes are free on its file system"
                                 : std::strerror(error.system_error);
  if (error.code == Errc::permission &&
      (error.system_error == 0 || error.system_error == ELOOP || error.system_error == ENOTDIR)) {
    throw Failure{
        kExitPermission,
        fmt::format("{} is refused: it must be a directory of your own and no link; remove it, or "
                    "choose another place with --dir or LEAT_DIR",
                    path)};
  }
  if (error.system_error == ENOTDIR) {
    throw Failure{kExitUsage,
                  fmt::format("{} is not a directory: --dir and LEAT_DIR name one", path)};
  }
  throw Failure{exit_code_for(error.code),
                fmt::format("cannot use the directory {}: {}; --dir or LEAT_DIR choose another one",
                            path, reason)};
}

}  // namespace leat::tool
