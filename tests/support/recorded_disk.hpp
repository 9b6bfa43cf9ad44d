// A disk that records every call, and what may be on stable storage if the power fails after some of them.
//
//     RecordedDisk disk{directory};           // its content is on the stable
//     …                                       // whatever uses a Disk
//     disk.replay(cut, random, other);        // the power failed after the first `cut` calls
//
// Only what POSIX promises is kept. fdatasync makes the earlier writes to a file, and its size, durable;
// fsync of a directory its names. Of everything else any part may have reached stable storage, in any
// order: single pages of a write, single sectors of a page, an old size or a new one, some names. Only
// a sector is whole: what it holds, the file held there at some moment. Any thread may use it.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "leat/os/disk.hpp"
#include "support/random.hpp"

namespace leat::testing {

class RecordedDisk : public detail::Disk {
 public:
  static constexpr std::size_t kPage = 4096;
  static constexpr std::size_t kSector = 512;
  // Calls that a broken disk does not do, although it says so.
  struct Lies {
    bool sync = false;
    bool sync_directory = false;
  };

  // Everything that changes files of this directory, or of directories in it, goes through this disk
  // from now on.
  explicit RecordedDisk(const std::string& path) : lies_{} { adopt(path, 0); }
  RecordedDisk(const std::string& path, Lies lies) : lies_{lies} { adopt(path, 0); }

  // Calls so far that changed something, or made something durable.
  std::size_t calls() const {
    const std::lock_guard guard{mutex_};
    return calls_.size();
  }
  // The process is killed before call number `call`: from then on every call fails. What it had
  // written stays readable, as it does in the page cache.
  void die_at(std::size_t call) { dies_at_ = call; }
  void live() { dies_at_ = ~std::size_t{0}; }
  bool is_dead() const { return calls_.size() >= dies_at_; }

  // Builds in the empty directory `path` what stable storage may hold.
  void replay(std::size_t cut, Random& random, const std::string& path) const;

  Result<detail::Fd> open(int directory, const char* name, int flags,
                          ::mode_t mode) noexcept override;
  Result<void> write(int file, std::span<const Part> parts, std::uint64_t at) noexcept override;
  Result<void> allocate(int file, std::uint64_t size) noexcept override;
  Result<void> truncate(int file, std::uint64_t size) noexcept override;
  Result<void> sync(int file) noexcept override;
  bool start_sync(detail::BackgroundSync& sync, int file) noexcept override;
  std::optional<Result<void>> end_sync(detail::BackgroundSync& sync, int file,
                                       bool waits) noexcept override;
  Result<void> sync_directory(int directory) noexcept override;
  Result<void> rename(int directory, const char* from, const char* to) noexcept override;
  Result<void> link(int from_directory, const char* from, int to_directory,
                    const char* to) noexcept override;
  Result<void> make_directory(int directory, const char* name) noexcept override;
  Result<void> delete_file(int directory, const char* name) noexcept override;
  using Disk::write;

 private:
  using Id = std::size_t;  // of a file or directory; directory 0 is the root
  using Names = std::map<std::string, Id>;
  enum class What { write, grow, truncate, sync, create, rename, erase, sync_directory };
  struct Call {
    What what;
    Id where;              // the file, or the directory of the names
    std::uint64_t at = 0;  // size of grow and truncate
    std::string bytes{};   // of a write
    std::string name{};    // of create, rename (from), erase
    std::string to{};
    Id made = 0;  // what create made
  };
  struct Object {
    bool is_directory = false;
    std::string bytes{};  // on stable storage when recording began
    Names names{};
  };
  // One file: what a process reads, what stable storage may hold, and sizes that it may have there.
  struct StableFile {
    std::string current;
    std::string bytes;
    std::vector<std::uint64_t> sizes;

    void grow(std::uint64_t size) {
      if (current.size() < size) current.resize(size);
      if (bytes.size() < size) bytes.resize(size);
    }
  };

  static constexpr Error dead() { return {Errc::io_error, EIO}; }

  static ::ino_t inode(int fd) {
    struct stat status {};
    EXPECT_EQ(::fstat(fd, &status), 0);
    return status.st_ino;
  }
  Id id_of(int fd) const { return by_inode_.at(inode(fd)); }
  void adopt(const std::string& path, Id id);
  Id create(Id directory, const char* name, bool is_directory);

  std::string file_after(Id id, std::size_t cut, Random& random) const;
  Names names_after(Id id, std::size_t cut, Random& random) const;
  void build(Id id, std::size_t cut, Random& random, const std::string& path) const;
  static void apply_names(Names& names, const Call& call);
  static void write_some(StableFile& stable, const Call& call, Random& random);

  mutable std::mutex mutex_;  // for everything below
  Lies lies_;
  std::vector<Object> objects_;
  std::map<::ino_t, Id> by_inode_;
  std::map<Id, Names> names_;  // as a process sees them
  std::vector<Call> calls_;
  std::size_t dies_at_ = ~std::size_t{0};
  static constexpr int kPolls = 40;
  int polls_left_ = 0;  // until the sync in the background is over
};

// ---- Recording ---------------------------------------------------------------------------------

inline void RecordedDisk::adopt(const std::string& path, Id id) {
  auto directory = detail::open_directory_path(path, false, false);
  ASSERT_TRUE(directory);
  if (objects_.empty()) objects_.push_back({.is_directory = true});
  by_inode_[inode(directory->get())] = id;
  auto names = detail::names_in(directory->get());
  ASSERT_TRUE(names);
  for (const std::string& name : *names) {
    if (name == "." || name == "..") continue;
    const std::string child = path + '/' + name;
    struct stat status {};
    ASSERT_EQ(::stat(child.c_str(), &status), 0);
    const Id made = objects_.size();
    objects_.push_back({.is_directory = S_ISDIR(status.st_mode)});
    objects_[id].names[name] = made;
    if (objects_[made].is_directory) {
      adopt(child, made);
      continue;
    }
    by_inode_[status.st_ino] = made;
    auto file = detail::open_file_at(directory->get(), name.c_str(), O_RDONLY);
    ASSERT_TRUE(file);
    std::string& bytes = objects_[made].bytes;
    bytes.resize(static_cast<std::size_t>(status.st_size));
    ASSERT_TRUE(
        Disk::read(file->get(), reinterpret_cast<std::byte*>(bytes.data()), bytes.size(), 0));
  }
  names_[id] = objects_[id].names;
}

inline RecordedDisk::Id RecordedDisk::create(Id directory, const char* name, bool is_directory) {
  const Id made = objects_.size();
  objects_.push_back({.is_directory = is_directory});
  names_[directory][name] = made;
  calls_.push_back({.what = What::create, .where = directory, .name = name, .made = made});
  return made;
}

inline Result<detail::Fd> RecordedDisk::open(int directory, const char* name, int flags,
                                             ::mode_t mode) noexcept {
  const std::lock_guard guard{mutex_};
  const Id where = id_of(directory);
  const bool is_new = !names_[where].contains(name);
  const bool changes = ((flags & O_CREAT) != 0 && is_new) || (flags & O_TRUNC) != 0;
  if (is_dead() && changes) return dead();
  auto file = Disk::open(directory, name, flags, mode);
  if (!file || !changes) return file;
  if (is_new) {
    by_inode_[inode(file->get())] = create(where, name, false);
  } else {
    calls_.push_back({.what = What::truncate, .where = names_[where][name]});
  }
  return file;
}

inline Result<void> RecordedDisk::write(int file, std::span<const Part> parts,
                                        std::uint64_t at) noexcept {
  const std::lock_guard guard{mutex_};
  if (is_dead()) return dead();
  auto done = Disk::write(file, parts, at);
  Call call{.what = What::write, .where = id_of(file), .at = at};
  for (const Part& part : parts)
    call.bytes.append(reinterpret_cast<const char*>(part.data()), part.size());
  calls_.push_back(std::move(call));
  return done;
}

inline Result<void> RecordedDisk::allocate(int file, std::uint64_t size) noexcept {
  const std::lock_guard guard{mutex_};
  if (is_dead()) return dead();
  auto done = Disk::allocate(file, size);
  if (done) calls_.push_back({.what = What::grow, .where = id_of(file), .at = size});
  return done;
}

inline Result<void> RecordedDisk::truncate(int file, std::uint64_t size) noexcept {
  const std::lock_guard guard{mutex_};
  if (is_dead()) return dead();
  auto done = Disk::truncate(file, size);
  if (done) calls_.push_back({.what = What::truncate, .where = id_of(file), .at = size});
  return done;
}

inline Result<void> RecordedDisk::sync(int file) noexcept {
  const std::lock_guard guard{mutex_};
  if (is_dead()) return dead();
  if (!lies_.sync) calls_.push_back({.what = What::sync, .where = id_of(file)});
  return {};
}

// One in the background is over after a few looks, or when somebody waits for it.
inline bool RecordedDisk::start_sync(detail::BackgroundSync& /*sync*/, int /*file*/) noexcept {
  const std::lock_guard guard{mutex_};
  polls_left_ = kPolls;
  return true;
}
inline std::optional<Result<void>> RecordedDisk::end_sync(detail::BackgroundSync& /*sync*/,
                                                          int file, bool waits) noexcept {
  {
    const std::lock_guard guard{mutex_};
    if (!waits && polls_left_-- > 0) return std::nullopt;
  }
  return sync(file);
}

inline Result<void> RecordedDisk::sync_directory(int directory) noexcept {
  const std::lock_guard guard{mutex_};
  if (is_dead()) return dead();
  if (!lies_.sync_directory)
    calls_.push_back({.what = What::sync_directory, .where = id_of(directory)});
  return {};
}

inline Result<void> RecordedDisk::rename(int directory, const char* from, const char* to) noexcept {
  const std::lock_guard guard{mutex_};
  if (is_dead()) return dead();
  auto done = Disk::rename(directory, from, to);
  if (!done) return done;
  Call call{.what = What::rename, .where = id_of(directory), .name = from, .to = to};
  call.made = names_[call.where].at(from);
  apply_names(names_[call.where], call);
  calls_.push_back(std::move(call));
  return {};
}

// A second name is one more file that was created, with the same content.
inline Result<void> RecordedDisk::link(int from_directory, const char* from, int to_directory,
                                       const char* to) noexcept {
  const std::lock_guard guard{mutex_};
  if (is_dead()) return dead();
  auto done = Disk::link(from_directory, from, to_directory, to);
  if (!done) return done;
  Call call{.what = What::create, .where = id_of(to_directory), .name = to};
  call.made = names_[id_of(from_directory)].at(from);
  apply_names(names_[call.where], call);
  calls_.push_back(std::move(call));
  return {};
}

inline Result<void> RecordedDisk::make_directory(int directory, const char* name) noexcept {
  const std::lock_guard guard{mutex_};
  if (is_dead()) return dead();
  auto done = Disk::make_directory(directory, name);
  if (!done) return done;
  const Id made = create(id_of(directory), name, true);
  auto opened = detail::open_directory_at(directory, name);
  if (!opened) return opened.error();
  by_inode_[inode(opened->get())] = made;
  return {};
}

inline Result<void> RecordedDisk::delete_file(int directory, const char* name) noexcept {
  const std::lock_guard guard{mutex_};
  if (is_dead()) return dead();
  auto done = Disk::delete_file(directory, name);
  if (!done) return done;
  Call call{.what = What::erase, .where = id_of(directory), .name = name};
  apply_names(names_[call.where], call);
  calls_.push_back(std::move(call));
  return {};
}

// ---- After the failure -------------------------------------------------------------------------

inline void RecordedDisk::apply_names(Names& names, const Call& call) {
  if (call.what == What::create) names[call.name] = call.made;
  if (call.what == What::erase) names.erase(call.name);
  if (call.what == What::rename) {
    names.erase(call.name);
    names[call.to] = call.made;
  }
}

// Each page of a write is there, is not, or partly: sectors of it.
inline void RecordedDisk::write_some(StableFile& stable, const Call& call, Random& random) {
  const std::uint64_t end = call.at + call.bytes.size();
  for (std::uint64_t page = call.at / kPage * kPage; page < end; page += kPage) {
    const std::uint64_t how = below(random, 5);
    const std::uint64_t border = below(random, kPage / kSector + 1);
    for (std::uint64_t i = 0; i < kPage / kSector; ++i) {
      const bool is_kept = how == 0 || (how == 1 && i < border) || (how == 2 && i >= border) ||
                           (how == 3 && below(random, 2) == 0);
      const std::uint64_t from = page + i * kSector;
      if (!is_kept || from + kSector <= call.at || from >= end) continue;
      // What earlier calls wrote into this sector goes with it.
      const std::uint64_t size = std::min<std::uint64_t>(kSector, stable.current.size() - from);
      std::memcpy(stable.bytes.data() + from, stable.current.data() + from, size);
    }
  }
}

inline std::string RecordedDisk::file_after(Id id, std::size_t cut, Random& random) const {
  StableFile stable{objects_[id].bytes, objects_[id].bytes, {objects_[id].bytes.size()}};
  // Calls before this one are on stable storage, if they are about this file.
  std::size_t synced = 0;
  for (std::size_t i = 0; i < cut; ++i)
    if (calls_[i].what == What::sync && calls_[i].where == id) synced = i;
  // How much of what was not synced is kept differs: nothing (0), everything (1), or parts.
  const std::uint64_t mood = below(random, 5);
  for (std::size_t i = 0; i < cut; ++i) {
    const Call& call = calls_[i];
    if (call.where != id || call.what > What::truncate) continue;
    const bool is_all_kept = i < synced || mood == 1;
    const bool is_kept = is_all_kept || (mood != 0 && below(random, 2) == 0);
    if (call.what == What::write) {
      stable.grow(call.at + call.bytes.size());
      std::memcpy(stable.current.data() + call.at, call.bytes.data(), call.bytes.size());
      if (is_kept && !is_all_kept) write_some(stable, call, random);
    } else if (call.what == What::grow) {
      stable.grow(call.at);
    } else {
      stable.current.resize(call.at);
      if (is_kept) stable.bytes.resize(call.at);
      stable.grow(call.at);
    }
    if (is_all_kept) {
      stable.bytes = stable.current;
      stable.sizes.clear();
    }
    stable.sizes.push_back(stable.current.size());
  }
  stable.bytes.resize(mood == 0 ? stable.sizes.front()
                                : stable.sizes[below(random, stable.sizes.size())]);
  return std::move(stable.bytes);
}

inline RecordedDisk::Names RecordedDisk::names_after(Id id, std::size_t cut, Random& random) const {
  Names names = objects_[id].names;
  std::size_t synced = 0;
  for (std::size_t i = 0; i < cut; ++i)
    if (calls_[i].what == What::sync_directory && calls_[i].where == id) synced = i;
  const std::uint64_t mood = below(random, 5);
  std::vector<const Call*> open;
  for (std::size_t i = 0; i < cut; ++i) {
    const Call& call = calls_[i];
    if (call.where != id || call.what < What::create || call.what > What::erase) continue;
    if (i < synced || mood == 1) {
      apply_names(names, call);
    } else {
      open.push_back(&call);
    }
  }
  if (mood == 0) return names;
  if (mood == 2) open.resize(below(random, open.size() + 1));  // In order, as far as it got.
  for (const Call* call : open) {
    if (mood == 2 || below(random, 2) == 0) apply_names(names, *call);
  }
  return names;
}

inline void RecordedDisk::build(Id id, std::size_t cut, Random& random,
                                const std::string& path) const {
  for (const auto& [name, child] : names_after(id, cut, random)) {
    const std::string to = path + '/' + name;
    if (objects_[child].is_directory) {
      ASSERT_EQ(::mkdir(to.c_str(), 0700), 0);
      build(child, cut, random, to);
      continue;
    }
    const std::string bytes = file_after(child, cut, random);
    const detail::Fd file{::open(to.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)};
    ASSERT_TRUE(file);
    ASSERT_EQ(::pwrite(file.get(), bytes.data(), bytes.size(), 0),
              static_cast<::ssize_t>(bytes.size()));
  }
}

inline void RecordedDisk::replay(std::size_t cut, Random& random, const std::string& path) const {
  build(0, std::min(cut, calls_.size()), random, path);
}

}  // namespace leat::testing
