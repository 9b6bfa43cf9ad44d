#include "machine.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "bench/harness/processes.hpp"

namespace leat::bench {
namespace {

const std::string kUnknown = "unknown";

std::string first_line(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  return std::getline(file, line) && !line.empty() ? line : kUnknown;
}

// The value of the first "key : value" line of /proc/cpuinfo or /proc/meminfo.
std::string proc_value(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || line.compare(0, key.size(), key) != 0) continue;
    const std::size_t value = line.find_first_not_of(" \t", colon + 1);
    return value == std::string::npos ? kUnknown : line.substr(value);
  }
  return kUnknown;
}

// "always [madvise] never" -> "madvise"
std::string chosen_of(const std::string& choices) {
  const std::size_t begin = choices.find('[');
  const std::size_t end = choices.find(']');
  if (begin == std::string::npos || end == std::string::npos) return choices;
  return choices.substr(begin + 1, end - begin - 1);
}

std::string hypervisor() {
#if defined(__x86_64__)
  constexpr unsigned kHypervisorBit = 1u << 31;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & kHypervisorBit) == 0) return "none";
  __cpuid(0x40000000, a, b, c, d);
  char name[13] = {};
  std::memcpy(name, &b, 4);
  std::memcpy(name + 4, &c, 4);
  std::memcpy(name + 8, &d, 4);
  return name;
#else
  return first_line("/sys/hypervisor/type");
#endif
}

// The kernel's mitigation of each weakness that this CPU has.
Json mitigations() {
  Json facts = Json::object();
  std::error_code ignored;
  std::vector<std::filesystem::path> paths;
  for (const auto& entry :
       std::filesystem::directory_iterator("/sys/devices/system/cpu/vulnerabilities", ignored)) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  for (const auto& path : paths) {
    const std::string state = first_line(path);
    if (state != "Not affected") facts[path.filename().string()] = state;
  }
  return facts;
}

Json caches() {
  Json facts = Json::object();
  const std::filesystem::path root = "/sys/devices/system/cpu/cpu0/cache";
  for (int i = 0; std::filesystem::exists(root / ("index" + std::to_string(i))); ++i) {
    const auto index = root / ("index" + std::to_string(i));
    const std::string type = first_line(index / "type");
    if (type == "Instruction") continue;
    facts["L" + first_line(index / "level")] =
        first_line(index / "size") + " for CPUs " + first_line(index / "shared_cpu_list");
  }
  return facts;
}

std::string compiler() {
#if defined(__clang__)
  return "clang " __clang_version__;
#else
  return "g++ " __VERSION__;
#endif
}

}  // namespace

Json machine_facts() {
  utsname kernel{};
  ::uname(&kernel);
  double load[1] = {-1};
  if (::getloadavg(load, 1) < 1) load[0] = -1;
  const std::filesystem::path cpu = "/sys/devices/system/cpu";
  const std::filesystem::path huge = "/sys/kernel/mm/transparent_hugepage";
#if defined(__OPTIMIZE__)
  const bool optimized = true;
#else
  const bool optimized = false;
#endif
  return {
      {"cpu", proc_value("/proc/cpuinfo", "model name")},
      {"architecture", kernel.machine},
      {"cpus_online", ::sysconf(_SC_NPROCESSORS_ONLN)},
      {"cpus_usable", usable_cpus()},
      {"cpu0_thread_siblings", first_line(cpu / "cpu0/topology/thread_siblings_list")},
      {"caches", caches()},
      {"memory", proc_value("/proc/meminfo", "MemTotal")},
      {"page_bytes", ::sysconf(_SC_PAGESIZE)},
      {"kernel", std::string(kernel.sysname) + " " + kernel.release},
      {"hypervisor", hypervisor()},
      {"clock_source",
       first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource")},
      {"governor", first_line(cpu / "cpu0/cpufreq/scaling_governor")},
      {"mitigations", mitigations()},
      {"transparent_hugepage", chosen_of(first_line(huge / "enabled"))},
      {"transparent_hugepage_shmem", chosen_of(first_line(huge / "shmem_enabled"))},
      {"load_average_1min", load[0]},
      {"compiler", compiler()},
      {"optimized", optimized},
  };
}

}  // namespace leat::bench
