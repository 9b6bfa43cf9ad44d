// A disk that does not return some blocks of some files: reading them is EIO, as on a medium with bad sectors.
//
//     BadSectorDisk disk;
//     disk.spoil(directory, "segment-…", 8192, 12288);   // bytes from, to
//     disk.spoil(directory, "checkpoint-0");             // nor can it be opened
//     disk.mend();
//
// Used by one thread, or set up before others use it.
#pragma once

#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "leat/os/disk.hpp"

namespace leat::testing {

class BadSectorDisk : public detail::Disk {
 public:
  void spoil(int directory, const std::string& name, std::uint64_t from, std::uint64_t to) {
    bad_.push_back({inode(directory, name), {}, from, to});
  }
  void spoil(int /*directory*/, const std::string& name) { bad_.push_back({0, name, 0, 0}); }
  // Of all calls that open or read, only this one fails.
  void fail_once(std::uint64_t call) noexcept { fails_at_ = call; }
  // Whatever is read fails at first, as what is read ahead together with a bad block.
  void fail_first_reads() noexcept { fails_first_ = true; }
  // The page cache holds pieces of this size, and reads whole ones while it may read ahead.
  void cache_pieces_of(std::uint64_t bytes) noexcept { piece_ = bytes; }
  void mend() { bad_.clear(); }
  std::uint64_t failures() const noexcept { return failures_; }

  Result<detail::Fd> open(int directory, const char* name, int flags,
                          ::mode_t mode) noexcept override {
    if (calls_++ == fails_at_) return fail();
    for (const Bad& one : bad_)
      if (one.name == name) return fail();
    return Disk::open(directory, name, flags, mode);
  }
  Result<std::size_t> read(int file, std::byte* to, std::size_t size,
                           std::uint64_t at) noexcept override {
    if (calls_++ == fails_at_) return fail();
    struct stat status {};
    if (::fstat(file, &status) != 0) return last_system_error();
    if (fails_first_ && tried_.insert({status.st_ino, at}).second) return fail();
    const std::uint64_t piece = reads_ahead_ ? piece_ : 1;
    const std::uint64_t begin = at / piece * piece;
    const std::uint64_t end = (at + size + piece - 1) / piece * piece;
    for (const Bad& one : bad_) {
      if (one.name.empty() && one.inode == status.st_ino && begin < one.to && end > one.from)
        return fail();
    }
    return Disk::read(file, to, size, at);
  }
  void set_read_ahead(int /*file*/, bool is_on) noexcept override { reads_ahead_ = is_on; }

 private:
  struct Bad {
    std::uint64_t inode;
    std::string name;
    std::uint64_t from;
    std::uint64_t to;
  };
  static std::uint64_t inode(int directory, const std::string& name) noexcept {
    struct stat status {};
    return ::fstatat(directory, name.c_str(), &status, 0) == 0 ? status.st_ino : 0;
  }
  Error fail() noexcept {
    ++failures_;
    errno = EIO;
    return last_system_error();
  }

  std::vector<Bad> bad_;
  std::uint64_t calls_ = 0;
  std::uint64_t fails_at_ = ~std::uint64_t{0};
  std::uint64_t failures_ = 0;
  bool fails_first_ = false;
  std::uint64_t piece_ = 1;
  bool reads_ahead_ = true;
  std::set<std::pair<std::uint64_t, std::uint64_t>> tried_;  // inode, place
};

}  // namespace leat::testing
