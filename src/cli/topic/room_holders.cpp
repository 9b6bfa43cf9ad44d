#include "room_holders.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>

#include "leat/admin.hpp"

namespace leat::cli {
namespace {

constexpr std::size_t kNamed = 3;  // Others are only counted.

bool is_left(const RoomHolder& holder) {
  return holder.kind == RoomHolder::Kind::group && holder.pids.empty();
}

std::string members_text(const RoomHolder& group) {
  if (group.pids.empty()) return ", which has no members";
  if (group.pids.size() == 1) return fmt::format(" (its member has pid {})", group.pids.front());
  return fmt::format(" ({} members, one has pid {})", group.pids.size(), group.pids.front());
}

std::string who(const RoomHolder& holder) {
  const std::uint32_t pid = holder.pids.empty() ? 0 : holder.pids.front();
  switch (holder.kind) {
    case RoomHolder::Kind::subscriber: return fmt::format("the subscriber with pid {}", pid);
    case RoomHolder::Kind::group:
      return fmt::format("group '{}'{}", holder.group, members_text(holder));
    case RoomHolder::Kind::publisher:
      return fmt::format("a record that the publisher with pid {} has claimed and not committed",
                         pid);
    case RoomHolder::Kind::archiver:
      return pid == 0 ? "the disk" : fmt::format("the disk, to which pid {} writes", pid);
  }
  return {};
}

// Whether the process that has this pid here has the topic open. The number may be one of another PID namespace, where
// it is another process.
bool is_here(const std::string& topic, std::uint32_t pid) {
  struct stat control {};
  const std::string path = fmt::format("{}/{}/control", topics_directory(), topic);
  if (::stat(path.c_str(), &control) != 0) return false;
  const std::string inode = fmt::format(" {} ", control.st_ino);
  std::ifstream maps{fmt::format("/proc/{}/maps", pid)};
  for (std::string line; std::getline(maps, line);)
    if (line.find(inode) != std::string::npos) return true;
  return false;
}

std::string remedy(const std::string& topic, const RoomHolder& holder) {
  const std::uint32_t pid = holder.pids.empty() ? 0 : holder.pids.front();
  switch (holder.kind) {
    case RoomHolder::Kind::subscriber:
    case RoomHolder::Kind::publisher:
      if (is_here(topic, pid)) return fmt::format("`kill {}` ends it", pid);
      return "end it in its container, or as its user: here, no process with this pid is known to "
             "have the topic open";
    case RoomHolder::Kind::group:
      if (!is_valid_name(holder.group))  // Not to be pasted into a shell.
        return fmt::format("its file is damaged: `leat topic delete --force {}` deletes the topic",
                           topic);
      if (!is_left(holder))
        return fmt::format("`leat group info {} {}` shows what its members hold", topic,
                           holder.group);
      return fmt::format(
          "`leat sub {0} --group {1}` reads on, `leat group delete {0} {1}` gives its records up",
          topic, holder.group);
    case RoomHolder::Kind::archiver:
      return fmt::format("`leat topic info {}` shows its state", topic);
  }
  return {};
}

}  // namespace

HoldersText holders_text(const std::string& topic, std::vector<RoomHolder> holders) {
  std::ranges::stable_partition(holders, is_left);
  HoldersText text{.who = {}, .remedy = remedy(topic, holders.front())};
  for (std::size_t i = 0; i < std::min(holders.size(), kNamed); ++i)
    text.who += (i == 0 ? "" : " and ") + who(holders[i]);
  if (const std::size_t others = holders.size() - std::min(holders.size(), kNamed); others != 0)
    text.who += fmt::format(" and {} other{}", others, others == 1 ? "" : "s");
  return text;
}

}  // namespace leat::cli
