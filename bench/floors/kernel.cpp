#include "kernel.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <vector>

#include "bench/harness/clock.hpp"
#include "leat/os/file.hpp"

namespace leat::bench {
namespace {

constexpr std::chrono::seconds kTimeLimit{60};

// Runs `measure` in a pinned process of its own.
template <class Measure>
double measured_alone(const char* name, int cpu, const Measure& measure) {
  const Shared<double> result(0.0);
  run_roles({{name, cpu, [&](Barrier&) { *result = measure(); }}}, kTimeLimit);
  return *result;
}

// Keeps the compiler from dropping writes that nothing reads.
void use_memory(const void* memory) { asm volatile("" : : "r"(memory) : "memory"); }

}  // namespace

double copy_gb_per_s(std::size_t size_bytes, int cpu) {
  return measured_alone("copier", cpu, [&] {
    constexpr std::size_t kBytesToCopy = 2u << 30;
    std::vector<std::byte> from(size_bytes, std::byte{1});
    std::vector<std::byte> to(size_bytes, std::byte{2});
    std::memcpy(to.data(), from.data(), size_bytes);
    const std::size_t copies = kBytesToCopy / size_bytes + 1;
    const std::uint64_t started_ns = now_ns();
    for (std::size_t i = 0; i < copies; ++i) {
      std::memcpy(to.data(), from.data(), size_bytes);
      use_memory(to.data());
    }
    return static_cast<double>(copies * size_bytes) / static_cast<double>(now_ns() - started_ns);
  });
}

double system_call_ns(std::uint64_t count, int cpu) {
  return measured_alone("caller of the kernel", cpu, [&] {
    const std::uint64_t started_ns = now_ns();
    for (std::uint64_t i = 0; i < count; ++i) ::syscall(SYS_getppid);
    return static_cast<double>(now_ns() - started_ns) / static_cast<double>(count);
  });
}

double first_touch_ns_per_page(std::size_t pages, int cpu) {
  return measured_alone("toucher", cpu, [&] {
    const auto page_size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const SharedMemory memory(pages * page_size);
    const std::uint64_t started_ns = now_ns();
    for (std::size_t page = 0; page < pages; ++page) {
      memory.data()[page * page_size] = std::byte{1};
      use_memory(memory.data());
    }
    return static_cast<double>(now_ns() - started_ns) / static_cast<double>(pages);
  });
}

double fdatasync_ns(const std::string& directory, int count) {
  // Without a name, so that nothing is left behind.
  const detail::Fd file(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!file) throw system_failure("cannot make a file in " + directory);

  constexpr std::size_t kBlockBytes = 4096;
  constexpr int kBlocks = 256;
  std::vector<std::byte> block(kBlockBytes, std::byte{1});
  const auto write_block = [&](int index) {
    const auto written = ::pwrite(file.get(), block.data(), block.size(),
                                  static_cast<off_t>(kBlockBytes) * (index % kBlocks));
    if (written != static_cast<ssize_t>(block.size())) {
      throw system_failure("cannot write to a file in " + directory);
    }
  };
  const auto sync = [&] {
    if (::fdatasync(file.get()) != 0) throw system_failure("cannot sync a file in " + directory);
  };

  // All blocks first, so that later neither the file's size nor the place of a block changes.
  for (int i = 0; i < kBlocks; ++i) write_block(i);
  if (::fsync(file.get()) != 0) throw system_failure("cannot sync a file in " + directory);

  std::vector<double> durations_ns;
  for (int i = 0; i < count; ++i) {
    block[0] = static_cast<std::byte>(i);
    write_block(i);
    const std::uint64_t started_ns = now_ns();
    sync();
    durations_ns.push_back(static_cast<double>(now_ns() - started_ns));
  }
  return median(std::move(durations_ns));
}

std::string file_system_of(const std::string& directory) {
  struct statfs facts {};
  if (::statfs(directory.c_str(), &facts) != 0) throw system_failure("cannot use " + directory);
  switch (static_cast<unsigned long>(facts.f_type)) {
    case 0x01021994: return "tmpfs";
    case 0xef53: return "ext4";  // Also ext2 and ext3.
    case 0x58465342: return "xfs";
    case 0x9123683e: return "btrfs";
    case 0x794c7630: return "overlay";
    default: return fmt::format("type {:#x}", static_cast<unsigned long>(facts.f_type));
  }
}

}  // namespace leat::bench
