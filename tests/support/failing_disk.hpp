// A disk of which one call fails, so that a test can fail each call of a scenario in turn.
//
//     for (std::uint64_t call = 0;; ++call) {
//       FailingDisk disk{{.call = call, .error = EIO}};
//       scenario(disk);
//       if (!disk.has_failed()) break;      // every call had its turn
//     }
#pragma once

#include <cerrno>
#include <cstdint>
#include <limits>
#include <optional>

#include "leat/os/disk.hpp"

namespace leat::testing {

class FailingDisk : public detail::Disk {
 public:
  struct Plan {
    std::uint64_t call = std::numeric_limits<std::uint64_t>::max();  // which one fails
    int error = EIO;
    bool from_then_on = false;
    std::uint64_t written = 0;  // bytes of a failing write() that are written nevertheless
  };

  explicit FailingDisk(Plan plan) noexcept : plan_{plan} {}

  bool has_failed() const noexcept { return has_failed_; }
  // Whether a sync was among what failed.
  bool has_failed_to_sync() const noexcept { return has_failed_to_sync_; }
  // From here on nothing fails any more.
  void mend() noexcept { plan_.call = std::numeric_limits<std::uint64_t>::max(); }
  std::uint64_t calls() const noexcept { return calls_; }

  Result<detail::Fd> open(int directory, const char* name, int flags,
                          ::mode_t mode) noexcept override {
    if (fails()) return error();
    return Disk::open(directory, name, flags, mode);
  }
  Result<void> write(int file, std::span<const Part> parts, std::uint64_t at) noexcept override {
    if (!fails()) return Disk::write(file, parts, at);
    std::uint64_t left = plan_.written;
    for (const Part& part : parts) {
      const Part some = part.first(std::min<std::uint64_t>(part.size(), left));
      (void)Disk::write(file, std::span{&some, 1}, at);
      at += some.size();
      left -= some.size();
    }
    return error();
  }
  Result<std::size_t> read(int file, std::byte* to, std::size_t size,
                           std::uint64_t at) noexcept override {
    if (fails()) return error();
    return Disk::read(file, to, size, at);
  }
  Result<std::uint64_t> size(int file) noexcept override {
    if (fails()) return error();
    return Disk::size(file);
  }
  Result<void> allocate(int file, std::uint64_t size) noexcept override {
    if (fails()) return error();
    return Disk::allocate(file, size);
  }
  Result<void> truncate(int file, std::uint64_t size) noexcept override {
    if (fails()) return error();
    return Disk::truncate(file, size);
  }
  Result<void> sync(int file) noexcept override {
    if (fails()) return sync_error();
    return Disk::sync(file);
  }
  std::optional<Result<void>> end_sync(detail::BackgroundSync& sync, int file,
                                       bool waits) noexcept override {
    auto ended = Disk::end_sync(sync, file, waits);
    if (ended && fails()) return Result<void>{sync_error()};
    return ended;
  }
  Result<void> sync_directory(int directory) noexcept override {
    if (fails()) return sync_error();
    return Disk::sync_directory(directory);
  }
  Result<void> rename(int directory, const char* from, const char* to) noexcept override {
    if (fails()) return error();
    return Disk::rename(directory, from, to);
  }
  Result<void> link(int from_directory, const char* from, int to_directory,
                    const char* to) noexcept override {
    if (fails()) return error();
    return Disk::link(from_directory, from, to_directory, to);
  }
  Result<void> make_directory(int directory, const char* name) noexcept override {
    if (fails()) return error();
    return Disk::make_directory(directory, name);
  }
  Result<void> delete_file(int directory, const char* name) noexcept override {
    if (fails()) return error();
    return Disk::delete_file(directory, name);
  }

 private:
  bool fails() noexcept {
    const std::uint64_t call = calls_++;
    if (call != plan_.call && !(plan_.from_then_on && call > plan_.call)) return false;
    has_failed_ = true;
    return true;
  }
  Error error() const noexcept {
    errno = plan_.error;
    return last_system_error();
  }

  Error sync_error() noexcept {
    has_failed_to_sync_ = true;
    return {Errc::io_error, plan_.error};
  }

  Plan plan_;
  std::uint64_t calls_ = 0;
  bool has_failed_ = false;
  bool has_failed_to_sync_ = false;
};

}  // namespace leat::testing
