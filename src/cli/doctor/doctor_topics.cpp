#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <thread>

#include "cli/cli.hpp"
#include "cli/topic/room_holders.hpp"
#include "description/topic_description.hpp"
#include "doctor.hpp"
#include "leat/admin.hpp"
#include "leat/os/os.hpp"
#include "tool/private_directory.hpp"

namespace leat::cli {

std::uint64_t bytes_of(const std::string& path) {
  std::uint64_t bytes = 0;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::recursive_directory_iterator{path, ignored}) {
    struct stat status {};
    if (::lstat(entry.path().c_str(), &status) == 0)
      bytes += static_cast<std::uint64_t>(status.st_blocks) * 512;
  }
  return bytes;
}

std::vector<std::string> topic_names_in(const std::string& directory) {
  auto opened = os::open_directory_path(directory, false, false);
  auto names = opened ? os::names_in(opened->get()) : opened.error();
  if (!names) return {};
  std::erase_if(*names, [](const std::string& name) { return !is_valid_name(name); });
  std::sort(names->begin(), names->end());
  return std::move(*names);
}

std::string names_text(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i)
    text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kShown) text += fmt::format(" and {} more", names.size() - kShown);
  return text;
}

namespace {

// A topic without room, and how much was published when it was looked at.
struct FullTopic {
  Topic topic;
  std::uint64_t published;
};

struct Topics {
  std::vector<std::string> usable;
  std::vector<std::string> unused;
  std::vector<std::string> with_dead;   // "name (pid 12, pid 14)"
  std::vector<std::string> unreadable;  // "name (why)"
  std::vector<std::string> foreign;     // Files and directories of other programs.
  std::vector<std::string> forbidden;
  std::vector<std::string> idle_groups;  // "topic/group (12 records)"
  std::vector<FullTopic> full;
  std::uint64_t bytes = 0;
  std::uint64_t unused_bytes = 0;
};

// Finds groups that hold records and have no members, and whether the topic is full.
void inspect_room(const std::string& directory, const std::string& name, Topics& topics) {
  auto topic = Topic::open(name, Deadline::immediate(), directory);
  if (!topic) return;
  if (const TopicInfo info = topic->info(); !info.room_holders.empty())
    topics.full.push_back({*topic, description::total_published(info)});
  auto names = topic->group_names();
  if (!names) return;
  std::sort(names->begin(), names->end());
  for (const std::string& group_name : *names) {
    auto group = topic->find_group(group_name);
    if (!group) continue;  // Deleted since.
    const GroupInfo info = group->info();
    const std::uint64_t held = info.lag + info.in_flight;
    if (!info.members.empty() || held == 0) continue;
    topics.idle_groups.push_back(fmt::format("{}/{} ({} record{})", name, group_name,
                                             number_text(held), held == 1 ? "" : "s"));
  }
}

void inspect_topic(const std::string& directory, const std::string& name, Topics& topics) {
  const auto memory = inspect_memory(name, directory);
  if (!memory) {
    const Error error = memory.error();
    if (error == Errc::not_found && !has_memory(name, directory)) return;  // Deleted since.
    if (is_foreign(name, directory))
      topics.foreign.push_back(name);
    else if (error == Errc::permission)
      topics.forbidden.push_back(name);
    else
      topics.unreadable.push_back(fmt::format("{} ({})", name, describe(error)));
    return;
  }
  const std::uint64_t bytes = bytes_of(directory + "/" + name);
  topics.usable.push_back(name);
  topics.bytes += bytes;
  std::string dead;
  for (const std::uint32_t pid : memory->dead)
    dead += fmt::format("{}pid {}", dead.empty() ? "" : ", ", pid);
  if (!dead.empty()) topics.with_dead.push_back(fmt::format("{} ({})", name, dead));
  if (memory->living.empty()) {
    topics.unused.push_back(name);
    topics.unused_bytes += bytes;
  }
  // Opening a durable topic that nobody has open would recover and close it.
  if (!memory->is_durable || !memory->living.empty()) inspect_room(directory, name, topics);
}

// Topics that take nothing. One that was only full for a moment, because its readers are slow, is not meant.
std::optional<Finding> blocked_finding(const std::vector<FullTopic>& full) {
  Finding finding{.name = "blocked", .severity = Severity::problem};
  std::vector<std::string> names;
  if (!full.empty()) std::this_thread::sleep_for(std::chrono::milliseconds{100});
  for (const FullTopic& one : full) {
    const TopicInfo info = one.topic.info();
    if (info.room_holders.empty() || description::total_published(info) != one.published) continue;
    const HoldersText text = holders_text(one.topic.name(), info.room_holders);
    if (names.empty()) finding.advice = text.remedy;
    names.push_back(fmt::format("{} (waits for {})", one.topic.name(), text.who));
  }
  finding.found = "full, so that publishers wait or fail: " + names_text(names);
  finding.facts = {{"topics", names}};
  return names.empty() ? std::nullopt : std::optional{std::move(finding)};
}

}  // namespace

os::Fd lock_left_over(const std::string& path) {
  return os::lock_left_over(AT_FDCWD, path.c_str());
}

std::vector<Leftover> find_leftovers(const std::string& directory) {
  std::vector<Leftover> leftovers;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator{directory, ignored}) {
    const std::string name = entry.path().filename();
    const std::string path = entry.path();
    Leftover leftover{.name = name};
    if (name.starts_with(os::kNewPrefix)) leftover.what = "a topic never finished";
    if (name.starts_with(tool::kDemoPrefix)) leftover.what = "of a demo that was killed";
    if (name.starts_with(tool::kBenchPrefix)) leftover.what = "of a measurement that was killed";
    leftover.is_locked_by_owner = !leftover.what.empty();
    // Renamed for deletion: nobody can open it any more, and anybody may finish deleting it.
    if (name.starts_with(os::kDeletedPrefix)) leftover.what = "a topic half deleted";
    if (leftover.what.empty() || (leftover.is_locked_by_owner && !lock_left_over(path))) continue;
    leftover.bytes = bytes_of(path);
    leftovers.push_back(std::move(leftover));
  }
  return leftovers;
}

Finding leftovers_finding(const std::string& directory) {
  Finding finding{.name = "leftovers"};
  const std::vector<Leftover> leftovers = find_leftovers(directory);
  std::vector<std::string> names;
  std::uint64_t bytes = 0;
  for (const Leftover& leftover : leftovers) {
    names.push_back(fmt::format("{} ({})", leftover.name, leftover.what));
    bytes += leftover.bytes;
  }
  finding.facts = {{"names", nlohmann::ordered_json::array()}, {"bytes", bytes}};
  for (const Leftover& leftover : leftovers) finding.facts["names"].push_back(leftover.name);
  if (leftovers.empty()) {
    finding.found = "none";
    return finding;
  }
  finding.severity = Severity::warning;
  finding.found =
      fmt::format("{} of {}: {}", leftovers.size(), size_text(bytes), names_text(names));
  finding.advice = "remove them with: leat doctor --clean";
  return finding;
}

std::vector<Finding> examine_topics(const std::string& directory) {
  std::error_code ignored;
  Topics topics;
  if (std::filesystem::is_directory(directory, ignored)) {
    for (const std::string& name : topic_names_in(directory))
      inspect_topic(directory, name, topics);
  }
  std::vector<Finding> findings{leftovers_finding(directory)};
  Finding all{.name = "topics"};
  all.found = fmt::format("{} of {}", topics.usable.size(), size_text(topics.bytes));
  all.facts = {{"count", topics.usable.size()}, {"bytes", topics.bytes}};
  findings.push_back(std::move(all));
  if (!topics.unreadable.empty()) {
    findings.push_back(
        {.name = "unreadable",
         .severity = Severity::problem,
         .found = names_text(topics.unreadable),
         .advice = fmt::format("made by another version, or damaged: move or remove it from {}",
                               directory),
         .facts = {{"topics", topics.unreadable}}});
  }
  if (!topics.foreign.empty()) {
    findings.push_back({.name = "others",
                        .severity = Severity::note,
                        .found = "not topics: " + names_text(topics.foreign),
                        .advice = "they belong to other programs; no topic can have their names",
                        .facts = {{"names", topics.foreign}}});
  }
  if (!topics.forbidden.empty()) {
    findings.push_back(
        {.name = "forbidden",
         .severity = Severity::note,
         .found = names_text(topics.forbidden),
         .advice = "they belong to others; their --mode and --group do not let you in",
         .facts = {{"topics", topics.forbidden}}});
  }
  if (!topics.with_dead.empty()) {
    findings.push_back({.name = "dead",
                        .severity = Severity::note,
                        .found = "died while attached: " + names_text(topics.with_dead),
                        .advice = "nothing to do: whoever needs their room or place takes it over",
                        .facts = {{"topics", topics.with_dead}}});
  }
  if (auto blocked = blocked_finding(topics.full)) findings.push_back(std::move(*blocked));
  if (!topics.idle_groups.empty()) {
    findings.push_back(
        {.name = "idle groups",
         .severity = Severity::note,
         .found = "without members: " + names_text(topics.idle_groups),
         .advice = "they hold room until somebody joins (leat sub TOPIC --group NAME); or delete "
                   "them (leat group delete TOPIC NAME)",
         .facts = {{"groups", topics.idle_groups}}});
  }
  if (!topics.unused.empty()) {
    findings.push_back(
        {.name = "unused",
         .severity = Severity::note,
         .found = fmt::format("nobody is attached to {} ({})", names_text(topics.unused),
                              size_text(topics.unused_bytes)),
         .advice = "if not needed any more: leat topic delete NAME",
         .facts = {{"topics", topics.unused}, {"bytes", topics.unused_bytes}}});
  }
  return findings;
}

}  // namespace leat::cli
