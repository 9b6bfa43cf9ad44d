#include "disk.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>

#include "bench/harness/clock.hpp"
#include "bench/harness/processes.hpp"
#include "leat/base/crc32c.hpp"
#include "leat/os/file.hpp"

namespace leat::bench {
namespace {

constexpr std::size_t kPiece = 64 << 10;
constexpr std::chrono::seconds kTimeLimit{120};

// Runs `work`, which returns how many bytes it went through, in a pinned process of its own.
template <class Work>
DiskCost measured_alone(const char* name, int cpu, const Work& work) {
  const Shared<DiskCost> cost;
  run_roles({{name, cpu,
              [&](Barrier&) {
                const std::uint64_t started_ns = now_ns();
                const std::uint64_t cpu_ns = thread_cpu_ns();
                const auto bytes = static_cast<double>(work());
                cost->bytes_per_second = bytes * 1e9 / static_cast<double>(now_ns() - started_ns);
                cost->cpu_ns_per_byte = static_cast<double>(thread_cpu_ns() - cpu_ns) / bytes;
              }}},
            kTimeLimit);
  return *cost;
}

}  // namespace

DiskCost file_write_cost(const std::string& directory, std::uint64_t bytes, int cpu) {
  // Without a name, so that nothing is left behind.
  const detail::Fd file(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!file) throw system_failure("cannot make a file in " + directory);
  const std::vector<std::byte> piece(kPiece, std::byte{1});
  return measured_alone("writer of a file", cpu, [&] {
    for (std::uint64_t left = bytes; left != 0;) {
      const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(left, piece.size()));
      if (::write(file.get(), piece.data(), size) != static_cast<ssize_t>(size))
        throw system_failure("cannot write to a file in " + directory);
      left -= size;
    }
    return bytes;
  });
}

Waker::Waker()
    : thread_{[](const std::stop_token& stop) {
        while (!stop.stop_requested()) std::this_thread::sleep_for(std::chrono::microseconds{200});
      }} {}

DiskCost file_sync_cost(const std::string& directory, std::uint64_t bytes, std::uint64_t group,
                        int cpu) {
  const detail::Fd file(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!file || ::fallocate(file.get(), 0, 0, static_cast<off_t>(bytes + group)) != 0)
    throw system_failure("cannot make a file in " + directory);
  const std::vector<std::byte> piece(group, std::byte{1});
  return measured_alone("writer of synced groups", cpu, [&] {
    const Waker waker;
    std::uint64_t done = 0;
    for (; done < bytes; done += group) {
      if (::write(file.get(), piece.data(), group) != static_cast<ssize_t>(group) ||
          ::fdatasync(file.get()) != 0)
        throw system_failure("cannot write to a file in " + directory);
    }
    return done;
  });
}

DiskCost file_read_cost(const std::vector<std::string>& files, int cpu) {
  return measured_alone("reader of files", cpu, [&] {
    std::vector<std::byte> piece(kPiece);
    const Shared<std::uint32_t> sum(0u);  // So that the sums are not dropped as unused.
    std::uint64_t total = 0;
    for (const std::string& path : files) {
      const detail::Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
      if (!file) throw system_failure("cannot open " + path);
      for (std::uint64_t at = 0;;) {
        const auto size = ::pread(file.get(), piece.data(), piece.size(), static_cast<off_t>(at));
        if (size < 0) throw system_failure("cannot read " + path);
        if (size == 0) break;
        *sum = detail::crc32c(*sum, piece.data(), static_cast<std::size_t>(size));
        at += static_cast<std::uint64_t>(size);
        total += static_cast<std::uint64_t>(size);
      }
    }
    return total;
  });
}

}  // namespace leat::bench
