// A disk that does not return some blocks of some files: reading them is EIO, as on a drive with bad sectors.
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
  // What is read ahead becomes pieces of this size in the page cache, which are always read as a whole.
  void cache_pieces_of(std::uint64_t bytes) noexcept { piece_ = bytes; }
  // The page cache has these blocks, until they are dropped. A read of such blocks alone succeeds although they are bad.
  void keep_cached(int directory, const std::string& name, std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t at = from; at < to; at += kBlock)
      cached_.insert({inode(directory, name), at});
  }
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
    if (is_cached(status.st_ino, at, at + size)) return Disk::read(file, to, size, at);
    const std::uint64_t begin = piece_with(status.st_ino, at).first;
    const std::uint64_t end = piece_with(status.st_ino, at + size - 1).second;
    for (const Bad& one : bad_) {
      if (one.name.empty() && one.inode == status.st_ino && begin < one.to && end > one.from)
        return fail();
    }
    return Disk::read(file, to, size, at);
  }
  void set_read_ahead(int /*file*/, bool is_on) noexcept override { reads_ahead_ = is_on; }
  void drop_cached(int file, std::uint64_t at, std::uint64_t size) noexcept override {
    struct stat status {};
    if (::fstat(file, &status) != 0) return;
    const auto is_dropped = [&](const Place& place, std::uint64_t bytes) {
      return place.first == status.st_ino && place.second >= at &&
             place.second + bytes <= at + size;
    };
    std::erase_if(pieces_, [&](const Place& piece) { return is_dropped(piece, piece_); });
    std::erase_if(cached_, [&](const Place& block) { return is_dropped(block, kBlock); });
  }

 private:
  static constexpr std::uint64_t kBlock = 4096;
  using Place = std::pair<std::uint64_t, std::uint64_t>;  // inode, offset
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
  bool is_cached(std::uint64_t file, std::uint64_t at, std::uint64_t end) const {
    for (at = at / kBlock * kBlock; at < end; at += kBlock)
      if (!cached_.contains({file, at})) return false;
    return true;
  }
  // Begin and end of what is read for a byte.
  Place piece_with(std::uint64_t file, std::uint64_t at) {
    const std::uint64_t begin = at / piece_ * piece_;
    if (reads_ahead_) pieces_.insert({file, begin});
    if (!pieces_.contains({file, begin})) return {at, at + 1};
    return {begin, begin + piece_};
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
  std::set<Place> tried_;
  std::set<Place> pieces_;  // of the page cache
  std::set<Place> cached_;  // blocks
};

}  // namespace leat::testing
