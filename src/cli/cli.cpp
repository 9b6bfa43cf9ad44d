#include "cli.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "cli/topic/room.hpp"
#include "leat/admin.hpp"
#include "leat/os/os.hpp"
#include "leat/topic.hpp"
#include "tool/did_you_mean.hpp"

namespace leat::cli {
namespace {

// Why publishing to it has no room, or cannot begin. `memory_bytes`: what its memory needs, 0 if that is not known.
std::string no_space_sentence(Error error, const std::string& topic, const std::string& path,
                              std::uint64_t memory_bytes) {
  const std::string memory = topics_directory();
  const std::int32_t reason = error.system_error;
  if (!inspect_memory(topic))
    return fmt::format("topic '{}': no room in {} or for its memory in {}: {}", topic, path, memory,
                       what_is_missing_in_one(reason, path, memory, memory_bytes));
  if (is_full_disk(reason))
    return fmt::format("topic '{}': {}; publishing goes on when there is room", topic,
                       what_is_missing(reason, path));
  const char* const limit =
      reason == EFBIG ? ": raise its `ulimit -f`, or open the topic in another process" : "";
  return fmt::format(
      "topic '{}': its archiver cannot write to {} ({}){}; publishing goes on when it can", topic,
      path, std::strerror(reason), limit);
}

// False only if nothing has the topic's name.
bool has_entry(const std::string& directory, const std::string& topic) {
  struct stat status {};
  return ::lstat((directory + '/' + topic).c_str(), &status) == 0 || errno != ENOENT;
}

// Whether a file or a symbolic link has the path. The latter may lead to a directory.
bool is_no_directory(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && !S_ISDIR(status.st_mode);
}

// Why the kernel refuses to use what has the path. `reason`: EACCES, another errno, or 0 for is_locked_in_place().
std::string why_refused(std::int32_t reason, const std::string& path) {
  if (reason == EACCES)
    return fmt::format("its owner, mode or group, or a security policy, do not let you (ls -l {})",
                       path);
  if (reason == 0)
    return fmt::format(
        "it, or a file of it, is immutable or append-only (lsattr {}), or something is mounted "
        "there",
        path);
  return fmt::format(
      "{}: it, or a file of it, belongs to another user (ls -l {}) or is immutable (lsattr), or a "
      "sandbox forbids the call",
      std::strerror(reason), path);
}

// Names every place where the topic could be.
std::string not_found_sentence(const std::string& topic) {
  const std::string problem = problem_of_data_variable();
  const std::string data = data_directory();
  const std::string other = problem.empty() && check_data_directory() ? " or " + data : "";
  return fmt::format("there is no topic '{}' in {}{}{}; {}`leat topic list` shows what there is",
                     topic, topics_directory(), other, similar_topic(topic),
                     problem.empty() ? "" : problem + "; ");
}

std::string exists_sentence(const std::string& topic) {
  const std::string directory = topics_directory();
  if (has_entry(directory, topic))
    return fmt::format("topic '{}' exists already in {}", topic, directory);
  const std::string data = data_directory();
  const std::string path = data + '/' + topic;
  if (is_no_directory(path)) return no_directory_sentence(topic, path);
  return fmt::format("topic '{}' exists already in {}", topic, data);
}

// Who has a topic that has no memory here; empty if it has.
std::string busy_sentence(const TopicFiles& files, const ManifestInfo& manifest,
                          const std::string& topic, const std::string& path) {
  if (inspect_memory(topic)) return {};
  if (files.is_open_elsewhere(topic))
    return fmt::format("topic '{}' is in use with --dir {}, and its files with it ({})", topic,
                       manifest.memory_directory, path);
  return fmt::format(
      "another process opens, closes or deletes topic '{}', or has it open where this one cannot "
      "look: try again ({})",
      topic, path);
}

// What is wrong with a durable topic's files, or who else uses them; empty if that is not the reason.
std::string durable_sentence(Error error, const std::string& topic) {
  if (!has_files(topic)) return {};
  const std::string path = data_directory() + '/' + topic;
  auto files = TopicFiles::open(topic);
  auto manifest = files ? files->manifest() : files.error();
  if (error.code == Errc::no_space)
    return no_space_sentence(error, topic, path, manifest ? manifest->memory_bytes : 0);
  const std::string reason =
      error.system_error != 0 ? fmt::format(" ({})", std::strerror(error.system_error)) : "";
  if (error.code == Errc::read_only)
    return fmt::format(
        "topic '{}' is read-only since writing to {} failed{}: mend the disk, then "
        "`leat fsck --repair {}`",
        topic, path, reason, topic);
  if (error.code == Errc::not_durable)
    return fmt::format(
        "topic '{}' has the records, but they are not on stable storage{}; they will be as "
        "soon as {} takes them",
        topic, reason, path);
  if (error.code == Errc::busy && manifest) return busy_sentence(*files, *manifest, topic, path);
  if (error.code == Errc::wrong_format && is_no_directory(path))
    return no_directory_sentence(topic, path);
  auto is_topic = files ? files->is_topic() : files.error();
  if (error.code == Errc::wrong_format && is_topic && !*is_topic)
    return fmt::format("{} is no topic's: use another name, or remove it if it is yours", path);
  if (error.code == Errc::wrong_format || error.code == Errc::corrupt)
    return fmt::format("the files of topic '{}' cannot be used: `leat fsck {}` says why ({})",
                       topic, topic, path);
  const std::string window = topics_directory();
  if (error.code == Errc::permission && !has_entry(window, topic) && !may_create_in(window))
    return fmt::format("topic '{0}' is not open, and you may not open it in {1} (ls -ld {1})",
                       topic, window);
  if (error.code == Errc::permission)
    return fmt::format("no permission for topic '{}' or its files: {}", topic,
                       why_refused(error.system_error, path));
  return {};
}

// Why a topic that is here cannot be opened, if this process does not get to its files; else empty.
std::string missing_files_sentence(const std::string& topic) {
  const auto memory = inspect_memory(topic);
  if (!memory || !memory->is_durable) return {};
  const std::string& path = memory->files;
  auto directory = os::open_directory_path(path, false, false);
  if (directory.error() == Errc::permission)
    return fmt::format(
        "no permission for the files of topic '{}' in {}: it, or a directory above it, does not "
        "let you in",
        topic, path);
  if (directory.error() == Errc::not_found)
    return fmt::format(
        "the files of topic '{}' are not in {}: bring that directory back, or name the directory "
        "that has them here with --data-dir",
        topic, path);
  return {};
}

bool is_read_only(const std::string& path) {
  struct statvfs status {};
  return ::statvfs(path.c_str(), &status) == 0 && (status.f_flag & ST_RDONLY) != 0;
}

// What is wrong if this process may not do something with a topic; empty if nothing special is.
std::string permission_sentence(Error error, const std::string& topic) {
  if (error.system_error == EROFS) {
    const std::string files = data_directory() + '/' + topic;
    return fmt::format(
        "topic '{}' cannot be used: the file system of {} is read-only; mount it writable first",
        topic, is_read_only(files) ? files : topics_directory());
  }
  const auto memory = inspect_memory(topic);
  const std::string sentence = memory && memory->is_deleted ? lock_sentence(topic) : std::string{};
  return sentence.empty() ? missing_files_sentence(topic) : sentence;
}

}  // namespace

std::string lock_sentence(const std::string& topic) {
  const std::string path = topics_directory();
  auto directory = os::open_directory_path(path, false, path == default_topics_directory());
  if (!directory || !os::may_delete_directory_at(directory->get(), topic.c_str())) return {};
  auto lock = os::LockFile::open(directory->get(), kDeletionLock, O_RDWR);
  if (lock || lock.error() != Errc::permission) return {};
  return fmt::format(
      "what topic '{0}' has in {1} cannot be removed: you may not write to {1}/{2}, which that "
      "locks; its owner or root can delete that file, and the next deletion makes it for all who "
      "may write to the directory",
      topic, path, kDeletionLock);
}

void fail_to_sync(Error error, const std::string& topic, const std::string& after) {
  if (error.code != Errc::io_error) fail(error, topic, after);
  const std::string reason =
      error.system_error == 0 ? "" : fmt::format(" ({})", std::strerror(error.system_error));
  throw Failure{kExitFailed,
                fmt::format("writing to {}/{} failed{}: the topic is read-only now, and whether "
                            "its last records survive a failure of the machine is unknown{}",
                            data_directory(), topic, reason, after)};
}

void fail(Error error, const std::string& topic, const std::string& after) {
  const std::string directory = topics_directory();
  const bool is_missing = !has_entry(directory, topic);
  if (error.code == Errc::not_found || (error.code == Errc::permission && is_missing))
    check_named_data_directory();
  std::string sentence;
  if (error.code == Errc::permission) sentence = permission_sentence(error, topic);
  if (error.code == Errc::wrong_format) sentence = missing_files_sentence(topic);
  if (sentence.empty()) sentence = durable_sentence(error, topic);
  if (!sentence.empty()) throw Failure{exit_code_for(error.code), sentence + after};
  switch (error.code) {
    case Errc::not_found: sentence = not_found_sentence(topic); break;
    case Errc::exists: sentence = exists_sentence(topic); break;
    case Errc::permission:
      sentence = !is_missing || may_create_in(directory)
                     ? fmt::format("no permission for topic '{}': {}", topic,
                                   why_refused(error.system_error, directory + '/' + topic))
                     : fmt::format(
                           "topic '{0}' is not in {1}, and you may not create one there "
                           "(ls -ld {1})",
                           topic, directory);
      break;
    case Errc::wrong_format:
      sentence = fmt::format(
          "'{}' in {} is not a topic of this version of Leat; use another name, or remove it if it "
          "is yours",
          topic, directory);
      break;
    case Errc::corrupt:
      sentence = fmt::format(
          "topic '{}' is corrupt: a check on its memory failed; delete it (leat topic delete "
          "--force {})",
          topic, topic);
      break;
    case Errc::no_space:
      sentence = fmt::format("no space for topic '{}': {}", topic,
                             what_is_missing(error.system_error, directory));
      break;
    case Errc::deleted: sentence = fmt::format("topic '{}' was deleted", topic); break;
    case Errc::too_many:
      sentence = fmt::format(
          "topic '{}' has no free participant slot: end a publisher or subscriber, or create it "
          "with more "
          "--participants",
          topic);
      break;
    default: sentence = fmt::format("topic '{}': {}", topic, describe(error)); break;
  }
  throw Failure{exit_code_for(error.code), sentence + after};
}

std::string no_directory_sentence(const std::string& topic, const std::string& path) {
  return fmt::format(
      "{} is not a directory, and symbolic links are not followed: move the files of topic '{}' "
      "there, or name their directory with --data-dir",
      path, topic);
}

bool may_create_in(const std::string& directory) {
  return os::may_write_at(AT_FDCWD, directory.c_str()).has_value();
}

void check_topic_name(const std::string& name) { check_name("topic", name); }

void check_name(const std::string& kind, const std::string& name) {
  if (is_valid_name(name)) return;
  const std::string shown = name.size() <= 60 ? name : name.substr(0, 60) + "…";
  std::string problem = "has a character that is not allowed";
  if (name.empty()) problem = "is empty";
  if (name.size() > 200) problem = fmt::format("has {} characters", name.size());
  if (name == "." || name == "..") problem = "is a directory's";
  if (name.find("://") != std::string::npos)
    throw Failure{
        kExitUsage,
        fmt::format("'{}' is not the name of a {}; --broker lightq://USER@HOST:PORT names "
                    "a broker",
                    shown, kind)};
  throw Failure{kExitUsage,
                fmt::format("{} name '{}' {}: 1 to 200 letters, digits, '.', '_' or '-' are right",
                            kind, shown, problem)};
}

std::uint32_t partition_of(const Topic& topic, std::uint64_t asked) {
  if (asked < topic.partitions()) return static_cast<std::uint32_t>(asked);
  throw Failure{kExitUsage,
                fmt::format("--partition: there is no partition {}: topic '{}' has 0 to {}", asked,
                            topic.name(), topic.partitions() - 1)};
}

std::string similar_topic(const std::string& name) {
  const auto names = Topic::list();
  return names ? tool::did_you_mean(name, *names) : std::string{};
}

void check_at_most_one(std::initializer_list<Given> options) {
  const Given* first = nullptr;
  for (const Given& option : options) {
    if (!option.is_given) continue;
    if (first != nullptr) {
      throw Failure{kExitUsage,
                    fmt::format("{} and {} exclude each other", first->name, option.name)};
    }
    first = &option;
  }
}

std::uint64_t memory_figure(const std::string& name) {
  std::ifstream file{"/proc/meminfo"};
  std::string line;
  while (std::getline(file, line)) {
    if (!line.starts_with(name + ":")) continue;
    std::istringstream rest{line.substr(name.size() + 1)};
    std::uint64_t kib = 0;
    rest >> kib;
    return kib * 1024;
  }
  return 0;
}

std::string size_text(std::uint64_t bytes) {
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return fmt::format("{} bytes", bytes);
  auto value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  std::string text = fmt::format("{:.1f}", value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text + " " + kUnits[unit];
}

std::string size_argument(std::uint64_t bytes) {
  constexpr std::pair<std::uint64_t, const char*> kUnits[] = {
      {1ULL << 40, "TiB"}, {1ULL << 30, "GiB"}, {1ULL << 20, "MiB"}, {1ULL << 10, "KiB"}};
  for (const auto& [unit, name] : kUnits) {
    if (bytes != 0 && bytes % unit == 0) return fmt::format("{}{}", bytes / unit, name);
  }
  return std::to_string(bytes);
}

std::string number_text(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

std::string duration_text(std::chrono::nanoseconds duration) {
  constexpr std::pair<const char*, std::int64_t> kUnits[] = {
      {"h", 3'600'000'000'000}, {"m", 60'000'000'000}, {"s", 1'000'000'000},
      {"ms", 1'000'000},        {"us", 1'000},         {"ns", 1}};
  for (const auto& [unit, factor] : kUnits) {
    if (duration.count() % factor == 0) return fmt::format("{}{}", duration.count() / factor, unit);
  }
  return {};
}

}  // namespace leat::cli
