#include "data_files.hpp"

#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "cli/cli.hpp"
#include "leat/store/data_directory.hpp"

namespace leat::cli {

namespace {

[[noreturn]] void fail_data_directory(Error error) {
  const std::string path = detail::data_directory_path({});
  if (error.system_error == ENOTDIR)
    throw Failure{kExitUsage,
                  fmt::format("{} is not a directory: --data-dir and LEAT_DATA_DIR name one, where "
                              "durable topics keep their files",
                              path)};
  if (error.system_error == EROFS)
    throw Failure{kExitPermission,
                  fmt::format("the file system of {}, where durable topics keep their files, is "
                              "read-only; mount it writable first, or choose another place with "
                              "--data-dir or LEAT_DATA_DIR",
                              path)};
  throw Failure{exit_code_for(error.code),
                fmt::format("cannot use the directory {} for durable topics' files: {}; --data-dir "
                            "or LEAT_DATA_DIR choose another one",
                            path, std::strerror(error.system_error))};
}

// The name of something that is not a regular file, where a topic has one; empty if there is none.
std::string find_irregular(const DataFiles& files) {
  auto names = detail::names_in(files.directory.get());
  if (!names) return {};
  for (const std::string& name : *names) {
    const bool is_own = name == detail::kDataLock || name.starts_with(detail::kManifest) ||
                        name.starts_with(detail::kCheckpoint) ||
                        name.starts_with(detail::kSegmentPrefix) ||
                        name.starts_with(detail::kSavedGroupPrefix);
    if (!is_own) continue;
    const auto file = detail::Disk::system().open(files.directory.get(), name.c_str(), O_RDONLY, 0);
    if (file.error() == Errc::wrong_format) return name;
  }
  return {};
}

}  // namespace

std::string writable_data_directory() {
  refuse_system_directory(detail::data_directory_path({}),
                          "durable topics need a directory of their own for their files; name one "
                          "with --data-dir or LEAT_DATA_DIR, for example ~/leat");
  auto data = detail::open_data_directory({}, true);
  if (!data) fail_data_directory(data.error());
  if (auto may = detail::may_write_at(data->get(), "."); !may) fail_data_directory(may.error());
  return detail::data_directory_path({});
}

DataFiles open_data_files(const std::string& topic) {
  check_topic_name(topic);
  const std::string path = detail::data_directory_path({});
  auto data = detail::open_data_directory({}, false);
  if (!data && data.error().system_error == ENOENT)
    throw Failure{kExitNotThere,
                  fmt::format("there is no directory {}, where durable topics keep their files; "
                              "--data-dir or LEAT_DATA_DIR names another one",
                              path)};
  if (!data) fail_data_directory(data.error());
  DataFiles files{topic, path + '/' + topic, {}};
  auto directory = detail::open_directory_at(data->get(), topic.c_str());
  if (!directory && directory.error().system_error == ENOTDIR)
    throw Failure{kExitFormat, no_directory_sentence(topic, files.path)};
  if (!directory && directory.error() == Errc::not_found)
    throw Failure{kExitNotThere, fmt::format("there is no durable topic '{}' in {}", topic, path)};
  if (!directory) fail(directory.error(), files);
  files.directory = std::move(*directory);
  return files;
}

detail::Manifest manifest_of(const DataFiles& files) {
  auto manifest = detail::load_manifest(detail::Disk::system(), files.directory.get());
  if (manifest) return std::move(*manifest);
  if (manifest.error() == Errc::not_found)
    throw Failure{kExitFormat, fmt::format("{} is not the directory of a topic: it has no manifest",
                                           files.path)};
  if (manifest.error() == Errc::corrupt)
    throw Failure{kExitFormat,
                  fmt::format("both copies of the manifest in {} are damaged: restore one of them "
                              "from a backup",
                              files.path)};
  fail(manifest.error(), files);
}

void fail(Error error, const DataFiles& files) {
  if (error.system_error == EROFS)
    throw Failure{
        kExitPermission,
        fmt::format("the file system of {} is read-only; mount it writable first", files.path)};
  switch (error.code) {
    case Errc::permission:
      throw Failure{kExitPermission,
                    fmt::format("no permission for the files of topic '{}' (ls -l {})", files.topic,
                                files.path)};
    case Errc::wrong_format:
      if (const std::string name = find_irregular(files); !name.empty())
        throw Failure{
            kExitFormat,
            fmt::format("{}/{} is not a regular file: move it away, and put the file back "
                        "if you have it",
                        files.path, name)};
      throw Failure{kExitFormat,
                    fmt::format("{} was written by a newer version of Leat, or is not the "
                                "directory of a topic",
                                files.path)};
    case Errc::not_found:
      throw Failure{kExitFormat, fmt::format("a file in {} has disappeared", files.path)};
    default:
      throw Failure{exit_code_for(error.code),
                    fmt::format("the files of topic '{}' in {}: {}", files.topic, files.path,
                                error.code == Errc::corrupt ? "they contradict each other"
                                                            : describe(error))};
  }
}

std::string describe(const detail::CopiedStore& copied) {
  const std::uint64_t others = copied.files - copied.linked;
  std::string text = fmt::format("{} file{} of {}", number_text(copied.files),
                                 copied.files == 1 ? "" : "s", size_text(copied.bytes));
  if (copied.linked != 0)
    text += fmt::format(" ({} linked, {} copied)", number_text(copied.linked), number_text(others));
  text += fmt::format(", {} offset{}", number_text(copied.offsets), copied.offsets == 1 ? "" : "s");
  if (copied.damaged != 0) text += fmt::format(", {} damaged", number_text(copied.damaged));
  return text;
}

void note_if_in_memory(const std::string& path) {
  struct statfs system {};
  if (::statfs(path.c_str(), &system) == 0 &&
      static_cast<std::uint32_t>(system.f_type) == TMPFS_MAGIC)
    print_notice(fmt::format(
        "note: {} is in memory (tmpfs): a restart of the machine takes it; name another "
        "place with --data-dir",
        path));
}

}  // namespace leat::cli
