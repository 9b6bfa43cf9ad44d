#include "data_files.hpp"

#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "cli/cli.hpp"
#include "cli/topic/room.hpp"
#include "leat/os/os.hpp"

namespace leat::cli {

namespace {

[[noreturn]] void fail_data_directory(Error error) {
  const std::string path = data_directory();
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
  const std::string above = existing_part(std::filesystem::path{path}.parent_path().string());
  struct statvfs status {};
  const bool is_full = ::statvfs(above.c_str(), &status) == 0 && has_few_inodes(status);
  if (error == Errc::no_space || (error == Errc::not_found && is_full))
    throw Failure{kExitFull, fmt::format("no space for the directory {}: {}", path,
                                         what_is_missing(ENOSPC, above))};
  if (error == Errc::not_found && !may_create_in(above))
    throw Failure{kExitPermission,
                  fmt::format("cannot make the directory {} for durable topics' files: you may not "
                              "write to {} (ls -ld {}); --data-dir or LEAT_DATA_DIR choose another "
                              "one",
                              path, above, above)};
  throw Failure{exit_code_for(error.code),
                fmt::format("cannot use the directory {} for durable topics' files: {}; --data-dir "
                            "or LEAT_DATA_DIR choose another one",
                            path, std::strerror(error.system_error))};
}

}  // namespace

std::string writable_data_directory() {
  const std::string path = data_directory();
  refuse_system_directory(path,
                          "durable topics need a directory of their own for their files; name one "
                          "with --data-dir or LEAT_DATA_DIR, for example ~/leat");
  if (auto made = check_data_directory({}, true); !made) fail_data_directory(made.error());
  if (auto may = os::may_write_at(AT_FDCWD, path.c_str()); !may) fail_data_directory(may.error());
  return path;
}

DataFiles open_data_files(const std::string& topic) {
  check_topic_name(topic);
  const std::string path = data_directory();
  const Error error = check_data_directory().error();
  if (const auto memory = inspect_memory(topic); !has_files(topic) && memory && !memory->is_durable)
    throw Failure{kExitUsage,
                  fmt::format("topic '{}' is in memory only: it has no files (leat topic create "
                              "--durable)",
                              topic)};
  if (error.system_error == ENOENT)
    throw Failure{kExitNotThere,
                  fmt::format("there is no directory {}, where durable topics keep their files; "
                              "--data-dir or LEAT_DATA_DIR names another one",
                              path)};
  if (error.code != Errc::ok) fail_data_directory(error);
  DataFiles data{topic, path + '/' + topic, {}};
  auto files = TopicFiles::open(topic);
  if (!files && files.error().system_error == ENOTDIR)
    throw Failure{kExitFormat, no_directory_sentence(topic, data.path)};
  if (!files && files.error() == Errc::not_found)
    throw Failure{kExitNotThere, fmt::format("there is no durable topic '{}' in {}{}", topic, path,
                                             similar_topic(topic))};
  if (!files) fail(files.error(), data);
  data.files = std::move(*files);
  return data;
}

ManifestInfo manifest_of(const DataFiles& data) {
  auto manifest = data.files.manifest();
  if (manifest) return std::move(*manifest);
  if (manifest.error() == Errc::not_found)
    throw Failure{kExitFormat,
                  fmt::format("{} is not the directory of a topic: it has no manifest", data.path)};
  if (manifest.error() == Errc::corrupt)
    throw Failure{kExitFormat,
                  fmt::format("both copies of the manifest in {} are damaged: restore one of them "
                              "from a backup",
                              data.path)};
  fail(manifest.error(), data);
}

void fail(Error error, const DataFiles& data) {
  if (error.system_error == EROFS)
    throw Failure{
        kExitPermission,
        fmt::format("the file system of {} is read-only; mount it writable first", data.path)};
  switch (error.code) {
    case Errc::permission:
      throw Failure{kExitPermission,
                    fmt::format("no permission for the files of topic '{}' (ls -l {})", data.topic,
                                data.path)};
    case Errc::wrong_format:
      if (const auto name = data.files.irregular_file(); name && !name->empty())
        throw Failure{
            kExitFormat,
            fmt::format("{}/{} is not a regular file: move it away, and put the file back "
                        "if you have it",
                        data.path, *name)};
      throw Failure{kExitFormat,
                    fmt::format("{} was written by a newer version of Leat, or is not the "
                                "directory of a topic",
                                data.path)};
    case Errc::not_found:
      throw Failure{kExitFormat, fmt::format("a file in {} has disappeared", data.path)};
    default:
      throw Failure{exit_code_for(error.code),
                    fmt::format("the files of topic '{}' in {}: {}", data.topic, data.path,
                                error.code == Errc::corrupt ? "they contradict each other"
                                                            : describe(error))};
  }
}

std::string describe(const CopyReport& copied) {
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
