#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <linux/membarrier.h>
#include <pwd.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "cgroup.hpp"
#include "cli/cli.hpp"
#include "cli/topic/room.hpp"
#include "doctor.hpp"
#include "leat/admin.hpp"
#include "leat/os/os.hpp"

namespace leat::cli {

Kind kind_of(const std::string& path) {
  constexpr std::uint32_t kZfsMagic = 0x2fc1'2fc1;  // Not in linux/magic.h.
  constexpr std::uint32_t kBcachefsMagic = 0xca45'1a4e;
  struct statfs status {};
  if (::statfs(path.c_str(), &status) != 0) return {"unknown", false, false};
  switch (static_cast<std::uint32_t>(status.f_type)) {
    case TMPFS_MAGIC: return {"tmpfs", true, false};
    case RAMFS_MAGIC: return {"ramfs", true, false};
    case HUGETLBFS_MAGIC: return {"hugetlbfs", true, false};
    case EXT4_SUPER_MAGIC: return {"ext4", false, false};
    case XFS_SUPER_MAGIC: return {"xfs", false, false};
    case BTRFS_SUPER_MAGIC: return {"btrfs", false, false};
    case OVERLAYFS_SUPER_MAGIC: return {"overlayfs", false, false};
    case kZfsMagic: return {"zfs", false, false, true};
    case kBcachefsMagic: return {"bcachefs", false, false, true};
    case NFS_SUPER_MAGIC: return {"nfs", false, true};
    case SMB_SUPER_MAGIC:
    case SMB2_SUPER_MAGIC:
    case CIFS_SUPER_MAGIC: return {"cifs", false, true};
    case V9FS_MAGIC: return {"9p", false, true};
    case FUSE_SUPER_MAGIC: return {"fuse", false, true};
    default:
      return {fmt::format("type {:#x}", static_cast<std::uint32_t>(status.f_type)), false, false};
  }
}

namespace {

std::string first_line(const std::string& path) {
  std::ifstream file{path};
  std::string line;
  std::getline(file, line);
  return line;
}

// ---- Where topics live -------------------------------------------------------------------------

Finding check_directory(const std::string& directory) {
  Finding finding{.name = "directory"};
  const std::string existing = existing_part(directory);
  const bool exists = existing == directory;
  if (exists) {
    if (auto opened = check_topics_directory(); !opened) {
      finding.severity = Severity::problem;
      finding.found = fmt::format("{} cannot be used: {}", directory, describe(opened.error()));
      finding.advice = directory == default_topics_directory()
                           ? "it must be a directory of your own and no link; --dir or LEAT_DIR "
                             "choose another one"
                           : "--dir or LEAT_DIR choose another one";
      return finding;
    }
  }
  if (::access(existing.c_str(), W_OK | X_OK) != 0) {
    finding.found = fmt::format("{} cannot be written: {}", existing, std::strerror(errno));
    // Another user's, who shares it: each topic has a mode of its own.
    const bool is_shared = exists && ::access(existing.c_str(), R_OK | X_OK) == 0;
    finding.severity = is_shared ? Severity::note : Severity::problem;
    finding.advice =
        is_shared ? "you may use topics of others there, but not create or delete any; --dir "
                    "or LEAT_DIR choose a directory of your own"
                  : "choose a directory that you may write with --dir or LEAT_DIR";
    return finding;
  }
  const Kind kind = kind_of(existing);
  struct statvfs status {};
  if (::statvfs(existing.c_str(), &status) != 0) {
    finding.severity = Severity::problem;
    finding.found = fmt::format("{}: {}", existing, std::strerror(errno));
    return finding;
  }
  const std::uint64_t size = status.f_blocks * status.f_frsize;
  const std::uint64_t free = status.f_bavail * status.f_frsize;
  finding.facts = {
      {"path", directory}, {"kind", kind.name}, {"size_bytes", size}, {"free_bytes", free}};
  finding.found = fmt::format("{}: {}, {}, {} free{}", directory, kind.name, size_text(size),
                              size_text(free), exists ? "" : " (made when first used)");
  if (kind.is_shared_with_machines) {
    finding.severity = Severity::problem;
    finding.advice =
        "processes of other machines could take part, whose death this kernel does not know of: "
        "use "
        "/dev/shm or a local disk with --dir";
  } else if (free < TopicOptions::kDefaultCapacity + kMiB) {
    finding.severity = Severity::problem;
    finding.advice =
        "there is no room for a topic of the default size; " + how_to_get_room(existing, 64 * kMiB);
  } else if (has_few_inodes(status)) {
    finding.severity = Severity::problem;
    finding.advice = fmt::format("it has {} free inodes, and each file of a topic needs one: {}",
                                 status.f_favail, how_to_get_inodes(existing));
  } else if (free < 64 * kMiB) {
    finding.severity = Severity::warning;
    finding.advice = "little room; " + how_to_get_room(existing, 64 * kMiB);
  } else if (kind.moves_writes) {
    finding.severity = Severity::warning;
    finding.advice =
        "when this file system is full, publishers and subscribers are killed by SIGBUS: use "
        "/dev/shm, or --dir on another one";
  } else if (!kind.is_memory) {
    finding.severity = Severity::warning;
    finding.advice = "the kernel also writes the records to this disk; /dev/shm is faster";
  }
  return finding;
}

Finding check_memory(const std::string& directory) {
  Finding finding{.name = "memory"};
  const std::uint64_t available = memory_figure("MemAvailable");
  const std::uint64_t swap = memory_figure("SwapTotal");
  finding.found = fmt::format("{} available, {} of swap", size_text(available),
                              swap == 0 ? "none" : size_text(swap));
  finding.facts = {{"available_bytes", available},
                   {"swap_bytes", swap},
                   {"limit_bytes", nullptr},
                   {"limit_free_bytes", nullptr}};
  if (available == 0) {
    finding.severity = Severity::note;
    finding.found = "unknown, because /proc is not mounted here";
    finding.facts["available_bytes"] = finding.facts["swap_bytes"] = nullptr;
    finding.advice =
        "the first process that opens a durable topic needs it: mount -t proc proc /proc (as root)";
  }
  const auto limit = memory_limit();
  if (limit) {
    finding.found += fmt::format("; a memory cgroup allows {}, {} of it free",
                                 size_text(limit->bytes), size_text(limit->free_bytes));
    finding.facts["limit_bytes"] = limit->bytes;
    finding.facts["limit_free_bytes"] = limit->free_bytes;
  }
  struct statvfs status {};
  if (!kind_of(existing_part(directory)).is_memory ||
      ::statvfs(existing_part(directory).c_str(), &status) != 0) {
    return finding;
  }
  const std::uint64_t room = status.f_bavail * status.f_frsize;
  if (limit && room > limit->free_bytes + std::min(swap, limit->free_swap_bytes)) {
    finding.severity = Severity::warning;
    finding.advice =
        "the directory offers more room than the cgroup allows: the kernel kills a process that "
        "creates a larger topic";
  } else if (available != 0 && room > available + swap) {
    finding.severity = Severity::note;
    finding.advice =
        "the directory offers more room than there is memory: the sum of topics is limited by "
        "memory";
  } else if (swap != 0) {
    finding.severity = Severity::note;
    finding.advice =
        "when memory is short, records may be swapped out; a first access then waits for the disk";
  }
  return finding;
}

Finding check_huge_pages() {
  Finding finding{.name = "huge pages"};
  const std::string line = first_line("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
  const std::size_t open = line.find('[');
  const std::size_t close = line.find(']');
  if (open == std::string::npos || close == std::string::npos || close < open) {
    finding.found = "this kernel has none for shared memory";
    finding.facts = {{"shmem_enabled", nullptr}};
    return finding;
  }
  const std::string setting = line.substr(open + 1, close - open - 1);
  finding.found = fmt::format("shmem_enabled is '{}'", setting);
  finding.facts = {{"shmem_enabled", setting}};
  if (setting == "never" || setting == "deny") {
    finding.severity = Severity::note;
    finding.advice =
        "topics of many MiB take fewer TLB misses with: echo within_size > "
        "/sys/kernel/mm/transparent_hugepage/shmem_enabled (as root)";
  }
  return finding;
}

Finding check_locked_memory() {
  Finding finding{.name = "locked memory"};
  rlimit limit{};
  ::getrlimit(RLIMIT_MEMLOCK, &limit);
  const bool is_unlimited = limit.rlim_cur == RLIM_INFINITY;
  finding.found = is_unlimited ? "no limit" : fmt::format("at most {}", size_text(limit.rlim_cur));
  if (is_unlimited)
    finding.facts = {{"limit_bytes", nullptr}};
  else
    finding.facts = {{"limit_bytes", limit.rlim_cur}};
  if (!is_unlimited && limit.rlim_cur < TopicOptions::kDefaultCapacity &&
      memory_figure("SwapTotal") != 0) {
    finding.severity = Severity::note;
    finding.advice =
        "a program that locks its topics against swapping (mlock) needs more: ulimit -l, or "
        "LimitMEMLOCK= "
        "of its service";
  }
  return finding;
}

Finding check_cores() {
  Finding finding{.name = "cores"};
  cpu_set_t set;
  CPU_ZERO(&set);
  const int usable = ::sched_getaffinity(0, sizeof(set), &set) == 0
                         ? CPU_COUNT(&set)
                         : static_cast<int>(std::thread::hardware_concurrency());
  const long online = ::sysconf(_SC_NPROCESSORS_ONLN);
  finding.found = fmt::format("{} usable of {}", usable, online);
  finding.facts = {{"usable", usable}, {"online", online}};
  if (usable < 2) {
    finding.severity = Severity::warning;
    finding.advice =
        "publisher and subscriber take turns on one core: every wake-up costs a switch";
  }
  return finding;
}

// ---- What the kernel offers --------------------------------------------------------------------

Finding check_locks(const std::string& directory) {
  constexpr std::int64_t kByte = std::int64_t{1} << 56;  // Where topics have theirs.
  Finding finding{.name = "locks"};
  std::string path = existing_part(directory) + "/.doctor-XXXXXX";
  const os::Fd mine{::mkostemp(path.data(), O_CLOEXEC)};
  if (!mine) {
    finding.found = fmt::format("not tried: cannot make a file in {}: {}", existing_part(directory),
                                std::strerror(errno));
    const bool may_write = ::access(existing_part(directory).c_str(), W_OK | X_OK) == 0;
    finding.severity = may_write ? Severity::problem : Severity::note;
    finding.advice = "choose another place with --dir or LEAT_DIR";
    return finding;
  }
  const os::Fd other{::open(path.c_str(), O_RDWR | O_CLOEXEC)};
  ::unlink(path.c_str());
  const auto locked = os::try_lock_byte(mine.get(), kByte);
  const bool works = locked && *locked && other && os::byte_is_locked(other.get(), kByte) &&
                     !os::byte_is_locked(other.get(), kByte + 1);
  finding.facts = {{"open_file_description_locks", works}};
  finding.found =
      works ? "the kernel tells who is alive" : "open file description locks do not work here";
  if (!works) {
    finding.severity = Severity::problem;
    finding.advice = "deaths could not be noticed: use /dev/shm or a local disk with --dir";
  }
  return finding;
}

Finding check_kernel() {
  Finding finding{.name = "kernel"};
  const long commands = ::syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
  const bool membarrier = commands > 0 && (commands & MEMBARRIER_CMD_GLOBAL_EXPEDITED) != 0;
  const bool waitv = os::has_futex_waitv();
  void* page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const bool populate = page != MAP_FAILED && ::madvise(page, 4096, MADV_POPULATE_WRITE) == 0;
  if (page != MAP_FAILED) ::munmap(page, 4096);
  finding.facts = {
      {"membarrier", membarrier}, {"futex_waitv", waitv}, {"populate_write", populate}};
  finding.found =
      fmt::format("membarrier {}, futex_waitv {}, MADV_POPULATE_WRITE {}",
                  membarrier ? "yes" : "no", waitv ? "yes" : "no", populate ? "yes" : "no");
  if (!membarrier) {
    finding.advice +=
        "without membarrier exclusive publishers pay a fence per record, and sleepers look every "
        "millisecond; ";
  }
  if (!waitv)
    finding.advice +=
        "without futex_waitv (Linux 5.16) waiting for several topics looks every millisecond; ";
  if (!populate) {
    finding.advice +=
        "without MADV_POPULATE_WRITE (Linux 5.14) the first round through a topic is slower; ";
  }
  if (!finding.advice.empty()) {
    finding.advice.resize(finding.advice.size() - 2);
    finding.severity = Severity::warning;
  }
  return finding;
}

// ---- systemd -----------------------------------------------------------------------------------

// The last RemoveIPC= of logind's files, as systemd reads them; it is on unless they say otherwise.
bool removes_ipc() {
  std::map<std::string, std::string>
      drop_ins;  // By file name: the first directory that has it wins.
  for (const char* directory :
       {"/etc/systemd", "/run/systemd", "/usr/local/lib/systemd", "/usr/lib/systemd"}) {
    std::error_code ignored;
    for (const auto& entry :
         std::filesystem::directory_iterator{std::string{directory} + "/logind.conf.d", ignored}) {
      if (entry.path().extension() == ".conf")
        drop_ins.emplace(entry.path().filename(), entry.path());
    }
  }
  std::vector<std::string> files;
  for (const char* main :
       {"/etc/systemd/logind.conf", "/run/systemd/logind.conf", "/usr/lib/systemd/logind.conf"}) {
    if (files.empty() && ::access(main, R_OK) == 0) files.emplace_back(main);
  }
  for (const auto& [name, path] : drop_ins) files.push_back(path);
  bool on = true;
  for (const std::string& path : files) {
    std::ifstream file{path};
    std::string line;
    while (std::getline(file, line)) {
      line.erase(std::remove_if(line.begin(), line.end(),
                                [](char c) { return c == ' ' || c == '\t' || c == '\r'; }),
                 line.end());
      if (!line.starts_with("RemoveIPC=")) continue;
      const std::string value = line.substr(line.find('=') + 1);
      on = value.empty() || value == "yes" || value == "true" || value == "1" || value == "on";
    }
  }
  return on;
}

Finding check_remove_ipc(const std::string& directory) {
  constexpr ::uid_t kFirstRegularUser = 1000;
  Finding finding{.name = "RemoveIPC"};
  if (::access("/run/systemd/system", F_OK) != 0) {
    finding.found = "systemd does not run here";
    finding.facts = {{"systemd", false}, {"remove_ipc", false}};
    return finding;
  }
  const bool on = removes_ipc();
  finding.facts = {{"systemd", true}, {"remove_ipc", on}};
  finding.found =
      on ? "systemd-logind removes a user's files in /dev/shm at the last logout" : "off";
  const ::passwd* user = ::getpwuid(::geteuid());
  const bool lingers =
      user != nullptr &&
      ::access((std::string{"/var/lib/systemd/linger/"} + user->pw_name).c_str(), F_OK) == 0;
  if (!on) return finding;
  if (::geteuid() < kFirstRegularUser || lingers || !directory.starts_with("/dev/shm")) {
    finding.found += ", which does not concern you";
    return finding;
  }
  finding.severity = Severity::warning;
  finding.advice = fmt::format(
      "for topics that outlive your session: loginctl enable-linger {}, or RemoveIPC=no in "
      "/etc/systemd/logind.conf, or --dir outside of /dev/shm",
      user != nullptr ? user->pw_name : "USER");
  return finding;
}

}  // namespace

std::vector<Finding> examine_machine(const std::string& directory) {
  return {check_directory(directory),
          check_memory(directory),
          check_huge_pages(),
          check_locked_memory(),
          check_cores(),
          check_locks(directory),
          check_kernel(),
          check_remove_ipc(directory)};
}

}  // namespace leat::cli
