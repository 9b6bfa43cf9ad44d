#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/cli.hpp"
#include "cli/topic/room.hpp"
#include "doctor.hpp"
#include "leat/admin.hpp"

namespace leat::cli {
namespace {

// What was found in the directories of topics. Lists have "name (why)".
struct Stores {
  std::vector<std::string> names;
  std::vector<std::string> unclosed;
  std::vector<std::string> damaged;  // One of two copies, or both checkpoints: can be made anew.
  std::vector<std::string> lost;     // Without a manifest nothing can be read.
  std::vector<std::string> newer;
  std::vector<std::string> forbidden;
  std::vector<std::string> cut;
  std::uint64_t bytes = 0;
};

// Durable topics in memory.
struct Windows {
  std::vector<std::string> read_only;
  std::vector<std::string> full;
  std::vector<std::string> unwritable;  // For a reason in the archiver's own process.
  std::vector<std::string> stray;       // They belong to no files.
};

struct NamedMemory {
  std::string name;
  TopicMemory memory;
};

std::vector<NamedMemory> durable_topics(const std::string& directory) {
  std::vector<NamedMemory> topics;
  for (std::string& name : topic_names_in(directory)) {
    auto memory = inspect_memory(name, directory);
    if (memory && memory->is_durable && !memory->is_deleted)
      topics.push_back({std::move(name), std::move(*memory)});
  }
  return topics;
}

void inspect_window(const NamedMemory& topic, Windows& windows) {
  const auto& [name, memory] = topic;
  if (memory.is_stray) {
    windows.stray.push_back(fmt::format("{} ({})", name, memory.files));
  } else if (memory.state == Errc::read_only) {
    windows.read_only.push_back(name);
  } else if (memory.state == Errc::no_space) {
    if (is_full_disk(memory.reason))
      windows.full.push_back(fmt::format("{} ({})", name, memory.files));
    else
      windows.unwritable.push_back(
          fmt::format("{} ({}: {})", name, memory.files, std::strerror(memory.reason)));
  }
}

// Adds what is wrong with the copies of the manifest or the checkpoint. False if neither can be used. `lost`: the list for
// topics with two damaged copies.
bool inspect_copies(const CopiesInfo& copies, const std::string& topic, const char* name,
                    std::vector<std::string>& lost, Stores& stores) {
  switch (copies.state) {
    case Errc::ok: break;
    case Errc::permission: stores.forbidden.push_back(topic); return false;
    case Errc::wrong_format: stores.newer.push_back(topic); return false;
    default: lost.push_back(fmt::format("{} (both copies of the {})", topic, name)); return false;
  }
  if (!copies.bad_copy.empty())
    stores.damaged.push_back(fmt::format("{} ({} is {})", topic, copies.bad_copy,
                                         copies.is_missing ? "missing" : "damaged"));
  return true;
}

void inspect_store(const std::string& data, const std::string& name, Stores& stores) {
  const std::string path = data + '/' + name;
  auto files = TopicFiles::open_path(path);
  if (!files && files.error() == Errc::permission) stores.forbidden.push_back(name);
  auto info = files ? files->inspect() : files.error();
  if (!info) return;  // Of another program, or gone.
  stores.names.push_back(name);
  stores.bytes += bytes_of(path);
  if (info->cut_files != 0)
    stores.cut.push_back(fmt::format("{} ({} file{} of {})", name, info->cut_files,
                                     info->cut_files == 1 ? "" : "s", size_text(info->cut_bytes)));
  if (!inspect_copies(info->manifest, name, "manifest", stores.lost, stores)) return;
  if (info->error != Errc::ok)
    return (info->error == Errc::wrong_format ? stores.newer : stores.lost).push_back(name);
  if (!inspect_copies(info->checkpoint, name, "checkpoint", stores.damaged, stores)) return;
  if (info->needs_recovery) stores.unclosed.push_back(name);
}

// Kind and room of a data directory's file system.
Finding check_data_directory(const std::string& path) {
  Finding finding{.name = "data directory"};
  const std::string existing = existing_part(path);
  const Kind kind = kind_of(existing);
  struct statvfs status {};
  if (::statvfs(existing.c_str(), &status) != 0) {
    finding.severity = Severity::problem;
    finding.found = fmt::format("{}: {}", existing, std::strerror(errno));
    finding.advice = "--data-dir or LEAT_DATA_DIR choose another one";
    return finding;
  }
  const std::uint64_t size = status.f_blocks * status.f_frsize;
  const std::uint64_t free = status.f_bavail * status.f_frsize;
  finding.facts = {{"path", path}, {"kind", kind.name}, {"size_bytes", size}, {"free_bytes", free}};
  finding.found = fmt::format("{}: {}, {}, {} free{}", path, kind.name, size_text(size),
                              size_text(free), existing == path ? "" : " (made when first used)");
  if (existing != path) {
    if (::access(existing.c_str(), W_OK | X_OK) == 0) return finding;
    finding.severity = Severity::note;
    finding.found = fmt::format("{} cannot be made: {}: {}", path, existing, std::strerror(errno));
    finding.advice = "for durable topics choose another one with --data-dir or LEAT_DATA_DIR";
    return finding;
  }
  const auto warn = [&](const std::string& advice) {
    finding.severity = Severity::warning;
    finding.advice += (finding.advice.empty() ? "" : "; ") + advice;
  };
  if (kind.is_memory)
    warn(
        "it is in memory, and a restart of the machine takes every durable topic: choose a disk "
        "with "
        "--data-dir or LEAT_DATA_DIR");
  if (kind.is_shared_with_machines)
    warn(
        "another machine could open its topics, whose locks this kernel may not see: use a local "
        "disk, or make sure that only one machine does");
  if (free < 64 * kMiB || free < size / 100)
    warn(
        "when the little room is used up, publishers get `no space`: make room, or keep less (leat "
        "topic create --retention-bytes)");
  if (has_few_inodes(status))
    warn(fmt::format("it has {} free inodes, and each file of a topic needs one: {}",
                     status.f_favail, how_to_get_inodes(path)));
  if (finding.advice.empty() && ::access(path.c_str(), W_OK | X_OK) != 0) {
    finding.severity = Severity::note;
    finding.advice =
        "you may not make durable topics there; --data-dir or LEAT_DATA_DIR choose "
        "another one";
  }
  return finding;
}

class Findings {
 public:
  // Unless the list is empty. `found` ends before the names.
  void add(const char* name, Severity severity, const std::string& found,
           const std::vector<std::string>& names, std::string advice) {
    if (names.empty()) return;
    all.push_back({.name = name,
                   .severity = severity,
                   .found = found + names_text(names),
                   .advice = std::move(advice),
                   .facts = {{"topics", names}}});
  }
  std::vector<Finding> all;
};

void add_stores(const std::string& path, Findings& findings) {
  findings.all.push_back(check_data_directory(path));
  Stores stores;
  for (const std::string& name : topic_names_in(path)) inspect_store(path, name, stores);
  if (!stores.names.empty() || existing_part(path) == path)
    findings.all.push_back(
        {.name = "durable topics",
         .found = fmt::format("{} of {}", stores.names.size(), size_text(stores.bytes)),
         .facts = {{"count", stores.names.size()}, {"bytes", stores.bytes}}});
  if (Finding leftovers = leftovers_finding(path); leftovers.severity != Severity::ok) {
    leftovers.name = "data leftovers";
    findings.all.push_back(std::move(leftovers));
  }
  findings.add("lost topics", Severity::problem, "no whole manifest: ", stores.lost,
               "they cannot be opened: restore them from a backup (leat restore)");
  findings.add("newer files", Severity::problem, "of another version: ", stores.newer,
               "use the version of Leat that made them");
  findings.add(
      "damaged files", Severity::warning, "", stores.damaged,
      "the other copy is used, or recovery reads everything; leat fsck NAME --repair makes "
      "them anew, while no process has the topic open");
  findings.add("no access", Severity::note, "", stores.forbidden,
               "they belong to others; their --mode and --group do not let you in");
  findings.add("not closed", Severity::note, "nobody has them open: ", stores.unclosed,
               "nothing to do: the next process that opens them recovers them");
  findings.add("cut off", Severity::note, "by recovery: ", stores.cut,
               "what was never written whole; leat fsck NAME lists the files, and you may delete "
               "them");
}

}  // namespace

std::vector<std::string> data_directories(const std::string& directory) {
  std::vector<std::string> paths{data_directory()};
  for (const NamedMemory& topic : durable_topics(directory)) {
    const std::string path = std::filesystem::path{topic.memory.files}.parent_path();
    const bool is_known = std::any_of(paths.begin(), paths.end(), [&](const std::string& one) {
      std::error_code ignored;
      return one == path || std::filesystem::equivalent(one, path, ignored);
    });
    if (!is_known) paths.push_back(path);
  }
  return paths;
}

std::vector<Finding> examine_data(const std::string& directory) {
  Findings findings;
  for (const std::string& path : data_directories(directory)) add_stores(path, findings);
  Windows windows;
  for (const NamedMemory& topic : durable_topics(directory)) inspect_window(topic, windows);
  findings.add("read-only", Severity::problem, "writing to their disk failed: ", windows.read_only,
               "mend the disk, then: leat fsck --repair NAME");
  findings.add("full disk", Severity::warning, "their disk has no room: ", windows.full,
               "publishing goes on by itself when there is room");
  findings.add("cannot write", Severity::warning,
               "their archiver cannot write its files: ", windows.unwritable,
               "raise its limit or give it the right, or open the topic in another process");
  findings.add(
      "stray memory", Severity::warning,
      "of topics whose files are gone or in use with "
      "another directory: ",
      windows.stray,
      fmt::format("what was not on disk is only there; remove it from {} when nobody needs "
                  "it",
                  directory));
  return std::move(findings.all);
}

}  // namespace leat::cli
