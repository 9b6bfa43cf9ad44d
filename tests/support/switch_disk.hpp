// A disk whose calls fail, or wait, while a test wants them to; and the operating system's disk for as long
// as the object lives.
//
//     SwitchDisk disk;                       // before any durable topic is open
//     disk.fail_syncs(EIO);
//     …
//     disk.mend();
//
// Any thread may call any function. Its calls are those of all durable topics of this process.
#pragma once

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <thread>

#include "leat/os/disk.hpp"

namespace leat::testing {

class SwitchDisk : public detail::Disk {
 public:
  SwitchDisk() { Disk::replace_system(this); }
  ~SwitchDisk() override { Disk::replace_system(nullptr); }
  SwitchDisk(const SwitchDisk&) = delete;
  SwitchDisk& operator=(const SwitchDisk&) = delete;

  void fail_syncs(int error) noexcept { sync_error_ = error; }
  // Of directories.
  void fail_syncs_of_names(int error) noexcept { names_error_ = error; }
  // The next sync by the thread that made this object, and no other.
  void fail_an_own_sync(int error) noexcept { own_sync_error_ = error; }
  bool has_failed_an_own_sync() const noexcept { return own_sync_error_ == 0; }
  void fail_writes(int error) noexcept { write_error_ = error; }
  void fail_opens(int error) noexcept { open_error_ = error; }
  // Opens of the files that groups are saved in.
  void fail_groups(int error) noexcept { group_error_ = error; }
  // Reads of both copies of the checkpoint.
  void hide_checkpoints(bool on) noexcept { hides_checkpoints_ = on; }
  void mend() noexcept {
    sync_error_ = names_error_ = read_error_ = write_error_ = open_error_ = group_error_ = 0;
    hides_checkpoints_ = false;
  }
  // Syncs, or room for new files, take as long as this, and then go on.
  void hold_syncs(bool on) noexcept { holds_syncs_ = on; }
  void hold_allocations(bool on) noexcept { holds_allocations_ = on; }
  // Reads by other threads than the one that made this object take as long as this, too.
  void hold_reads(bool on) noexcept { holds_reads_ = on; }
  void fail_reads(int error) noexcept { read_error_ = error; }
  // Opens and reads of files by the thread that made this object.
  std::uint64_t own_reads() const noexcept { return own_reads_; }
  std::uint64_t syncs() const noexcept { return syncs_; }
  // Those by the thread that made this object.
  std::uint64_t own_syncs() const noexcept { return own_syncs_; }
  bool is_holding() const noexcept { return held_ != 0; }

  Result<detail::Fd> open(int directory, const char* name, int flags,
                          ::mode_t mode) noexcept override {
    if (std::this_thread::get_id() == owner_) ++own_reads_;
    if (open_error_ != 0) return error_of(open_error_);
    if (const int number = group_error_;
        number != 0 && std::string_view{name}.starts_with("group-"))
      return error_of(number);
    if (hides_checkpoints_ && (flags & O_CREAT) == 0 &&
        std::string_view{name}.starts_with("checkpoint-"))
      return error_of(EIO);
    return Disk::open(directory, name, flags, mode);
  }
  Result<void> write(int file, std::span<const Part> parts, std::uint64_t at) noexcept override {
    if (write_error_ != 0) return error_of(write_error_);
    return Disk::write(file, parts, at);
  }
  Result<std::size_t> read(int file, std::byte* to, std::size_t size,
                           std::uint64_t at) noexcept override {
    if (std::this_thread::get_id() == owner_) {
      ++own_reads_;
    } else {
      wait_while(holds_reads_);
    }
    if (const int number = read_error_; number != 0) return error_of(number);
    return Disk::read(file, to, size, at);
  }
  Result<void> allocate(int file, std::uint64_t size) noexcept override {
    wait_while(holds_allocations_);
    return Disk::allocate(file, size);
  }
  Result<void> sync(int file) noexcept override {
    ++syncs_;
    const bool is_own = std::this_thread::get_id() == owner_;
    if (is_own) ++own_syncs_;
    wait_while(holds_syncs_);
    if (const int number = is_own ? own_sync_error_.exchange(0) : 0; number != 0)
      return Error{Errc::io_error, number};
    if (const int number = sync_error_; number != 0) return Error{Errc::io_error, number};
    return Disk::sync(file);
  }
  Result<void> sync_directory(int directory) noexcept override {
    if (const int number = names_error_; number != 0) {
      ++failed_syncs_of_names_;
      return Error{Errc::io_error, number};
    }
    return Disk::sync_directory(directory);
  }
  std::uint64_t failed_syncs_of_names() const noexcept { return failed_syncs_of_names_; }
  // Goes on while syncs are held, and fails as they do.
  std::optional<Result<void>> end_sync(detail::BackgroundSync& sync, int file,
                                       bool waits) noexcept override {
    if (holds_syncs_ && !waits) return std::nullopt;
    wait_while(holds_syncs_);
    auto ended = Disk::end_sync(sync, file, waits);
    if (ended) ++background_syncs_;
    if (const int number = sync_error_; ended && number != 0)
      return Result<void>{Error{Errc::io_error, number}};
    return ended;
  }
  // False: this system has none.
  bool start_sync(detail::BackgroundSync& sync, int file) noexcept override {
    return can_sync_in_background_ && Disk::start_sync(sync, file);
  }
  void can_sync_in_background(bool can) noexcept { can_sync_in_background_ = can; }
  std::uint64_t background_syncs() const noexcept { return background_syncs_; }

 private:
  const std::thread::id owner_ = std::this_thread::get_id();
  std::atomic<std::uint64_t> own_syncs_ = 0;
  void wait_while(const std::atomic<bool>& holds) noexcept {
    ++held_;
    while (holds) std::this_thread::sleep_for(std::chrono::microseconds{100});
    --held_;
  }
  static Error error_of(int number) noexcept {
    errno = number;
    return last_system_error();
  }
  std::atomic<int> sync_error_ = 0;
  std::atomic<int> names_error_ = 0;
  std::atomic<std::uint64_t> failed_syncs_of_names_ = 0;
  std::atomic<int> own_sync_error_ = 0;
  std::atomic<int> read_error_ = 0;
  std::atomic<std::uint64_t> own_reads_ = 0;
  std::atomic<int> write_error_ = 0;
  std::atomic<int> open_error_ = 0;
  std::atomic<int> group_error_ = 0;
  std::atomic<bool> hides_checkpoints_ = false;
  std::atomic<bool> holds_reads_ = false;
  std::atomic<bool> holds_syncs_ = false;
  std::atomic<bool> holds_allocations_ = false;
  std::atomic<std::uint64_t> syncs_ = 0;
  std::atomic<bool> can_sync_in_background_ = true;
  std::atomic<std::uint64_t> background_syncs_ = 0;
  std::atomic<int> held_ = 0;
};

}  // namespace leat::testing
