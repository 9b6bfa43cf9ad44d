// One process's mapping of a durable topic's file `durable`: how far the log is on disk.
//
// A segment is kept in memory until it is on disk as the topic's durability wants it (kept_from), and a
// reader that falls behind reads from disk up to `written`. The archiver moves these words
// (log/archiver_thread.hpp). docs/internals/durable.md, "Epochs", says why a superseded archiver cannot.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "leat/base/atomic.hpp"
#include "leat/format/durable_layout.hpp"
#include "leat/format/store_layout.hpp"
#include "leat/os/directory.hpp"
#include "leat/os/file.hpp"
#include "leat/os/fork.hpp"
#include "leat/record.hpp"

namespace leat::inline v0::detail {

class ArchiverThread;

inline constexpr char kDurableFile[] = "durable";

// Where a partition's window begins, and where its files end.
struct WindowStart {
  std::uint64_t next_offset = 0;
  std::uint64_t frames_end = 0;
  // The file that is continued; generation 0: a new one is begun.
  std::uint64_t file_base = 0;
  std::uint64_t file_generation = 0;
  std::uint64_t file_bytes = 0;
  std::int64_t newest_ms = 0;
};
// What a new window must know of its data directory.
struct NewWindow {
  std::string data_path;  // of the topic's data directory
  StoredDurability durability = StoredDurability::os;
  std::int64_t sync_interval_ns = 0;
  std::uint64_t epoch = 0;
  std::uint64_t cut_bytes = 0;
  std::uint64_t cut_records = 0;
  std::uint64_t damaged = 0;
  std::vector<WindowStart> partitions;
};

inline OwnedWord read_owned(const OwnedWord& word) noexcept {
  return {load_acquire<Edge::archiver>(word.value), load_acquire<Edge::archiver>(word.epoch)};
}
// Changes a word if it belongs to `epoch`. [archiver] seq_cst: after what the value says.
inline bool set_owned(OwnedWord& word, std::uint64_t epoch, std::uint64_t to) noexcept {
  const OwnedWord seen = read_owned(word);
  return seen.epoch == epoch &&
         compare_exchange_pair<Edge::archiver>(&word.value, {seen.value, epoch}, {to, epoch});
}
// Gives a word to an epoch. False if it belongs to a later one.
inline bool take_owned(OwnedWord& word, std::uint64_t epoch) noexcept {
  for (;;) {
    const OwnedWord seen = read_owned(word);
    if (seen.epoch > epoch) return false;
    if (compare_exchange_pair<Edge::archiver>(&word.value, {seen.value, seen.epoch},
                                              {seen.value, epoch}))
      return true;
  }
}

class DurableWindow {
 public:
  //   wrong_format  the file does not belong to this topic, or is of another version
  static Result<std::unique_ptr<DurableWindow>> attach(int topic_directory,
                                                       const Geometry& geometry) {
    auto fd = open_file_at(topic_directory, kDurableFile, O_RDWR);
    if (!fd) return fd.error();
    auto size = file_size(fd->get());
    if (!size) return size.error();
    if (*size != durable_size(geometry.partition_count)) return Errc::wrong_format;
    auto populate = may_populate(fd->get(), *size);
    if (!populate) return populate.error();
    auto mapping = Mapping::map(fd->get(), *size, true, *populate);
    if (!mapping) return mapping.error();
    auto window = std::make_unique<DurableWindow>();
    window->mapping_ = std::move(*mapping);
    const DurableHeader& header = window->header();
    if (load_relaxed<Why::constant>(header.magic) != kDurableMagic ||
        load_relaxed<Why::constant>(header.version) != kDurableVersion ||
        load_relaxed<Why::constant>(header.key) != geometry.key ||
        load_relaxed<Why::constant>(header.partition_count) != geometry.partition_count)
      return Errc::wrong_format;
    window->partition_count_ = geometry.partition_count;
    window->durability_ = StoredDurability{load_relaxed<Why::constant>(header.durability)};
    window->sync_interval_ns_ = load_relaxed<Why::constant>(header.sync_interval_ns);
    if (!is_durability(window->durability_, window->sync_interval_ns_)) return Errc::wrong_format;
    const auto* path = header.data_path;
    window->data_path_.assign(path, ::strnlen(path, sizeof header.data_path));
    return window;
  }

  DurableHeader& header() const noexcept {
    return *reinterpret_cast<DurableHeader*>(mapping_.data());
  }
  DurablePartition& partition(std::uint32_t index) const noexcept {
    return reinterpret_cast<DurablePartition*>(mapping_.data() + sizeof(DurableHeader))[index];
  }
  // Path of the topic's data directory, as the process sees it that made the window; see find_files().
  const std::string& data_path() const noexcept { return data_path_; }
  // For this process only, before others use this object.
  void set_data_path(std::string path) noexcept { data_path_ = std::move(path); }
  StoredDurability durability() const noexcept { return durability_; }
  std::int64_t sync_interval_ns() const noexcept { return sync_interval_ns_; }
  // The epoch, and whether it is vacant; changes with every archiver.
  std::uint64_t epoch() const noexcept { return load_acquire<Edge::archiver>(header().epoch); }

  // Everything before this offset can be read from disk.
  std::uint64_t written(std::uint32_t index) const noexcept {
    // [archiver] acquire: the frames were written before.
    return load_acquire<Edge::archiver>(partition(index).written.value);
  }
  // Offset of the window's first record. What no file has before it is lost.
  std::uint64_t begin_offset(std::uint32_t index) const noexcept {
    return load_relaxed<Why::constant>(partition(index).begin_offset);
  }
  // Everything before this offset is on stable storage.
  std::uint64_t durable(std::uint32_t index) const noexcept {
    // [sync] seq_cst: read after a sleep is announced. [archiver] acquire: as `written`.
    return load_seq_cst<Edge::sync>(partition(index).durable.value);
  }
  // Nothing from this offset on may be overwritten in memory: it would be lost with the machine, or,
  // with durability os, with all processes.
  std::uint64_t kept_from(std::uint32_t index) const noexcept {
    return durability_ == StoredDurability::os ? written(index) : durable(index);
  }
  // Where the frames before `written` end: there, unless the window began behind lost offsets and
  // nothing was written since.
  std::uint64_t end_before(std::uint32_t index, std::uint64_t written) const noexcept {
    const DurablePartition& part = partition(index);
    return written == load_relaxed<Why::constant>(part.begin_offset)
               ? load_relaxed<Why::constant>(part.frames_end)
               : written;
  }
  // How far a reader may read from disk that is shown records at this stage.
  std::uint64_t readable(std::uint32_t index, Stage stage) const noexcept {
    return stage == Stage::durable ? durable(index) : written(index);
  }

  // Asks for a sync of everything before `until`.
  void want(std::uint32_t index, std::uint64_t until) const noexcept {
    std::uint64_t& wanted = partition(index).wanted;
    std::uint64_t seen = load_relaxed<Why::swap_checks>(wanted);
    // [sync] seq_cst: the request is stored before `archiver_wake` is woken.
    while (seen < until && !compare_exchange<Edge::sync>(wanted, seen, until)) {
    }
  }
  bool is_wanted(std::uint32_t index) const noexcept {
    // [sync] seq_cst: read after the sleep is announced.
    return load_seq_cst<Edge::sync>(partition(index).wanted) > durable(index);
  }
  bool is_any_wanted() const noexcept {
    for (std::uint32_t i = 0; i < partition_count_; ++i)
      if (is_wanted(i)) return true;
    return false;
  }
  // This process's share in keeping the topic; null until it has one, and in a forked child. It lives as long as
  // the topic is open.
  ArchiverThread* archiver() const noexcept { return is_inherited() ? nullptr : archiver_; }
  void set_archiver(ArchiverThread* archiver) noexcept { archiver_ = archiver; }
  // A forked child has neither the locks nor the thread that keep the topic.
  bool is_inherited() const noexcept { return fork_generation_ != fork_generation(); }

  // What the disk is like, and the errno of what failed.
  DiskState state() const noexcept { return disk_state(header()); }
  std::int32_t reason() const noexcept { return disk_reason(header()); }
  // Why nothing can be written; ok if it can.
  Errc trouble() const noexcept {
    switch (state()) {
      case DiskState::ok: return Errc::ok;
      case DiskState::no_space: return Errc::no_space;
      case DiskState::read_only: return Errc::read_only;
    }
    return Errc::corrupt;
  }

 private:
  Mapping mapping_;
  ArchiverThread* archiver_ = nullptr;
  std::uint32_t fork_generation_ = fork_generation();
  std::string data_path_;
  std::uint32_t partition_count_ = 0;
  StoredDurability durability_ = StoredDurability::os;  // A copy, as the next.
  std::int64_t sync_interval_ns_ = 0;
};

// How far a record comes before it is acknowledged and shown, unless somebody wants it otherwise.
inline Stage stage_of(const DurableWindow& window) noexcept {
  return window.durability() == StoredDurability::fsync ? Stage::durable : Stage::committed;
}

// Writes the content of a new file `durable`, which is zero and has its final size.
inline Result<void> initialise_durable(int fd, const Geometry& geometry, const NewWindow& window) {
  auto mapping = Mapping::map(fd, durable_size(geometry.partition_count), true);
  if (!mapping) return mapping.error();
  auto& header = *reinterpret_cast<DurableHeader*>(mapping->data());
  if (window.data_path.size() >= sizeof header.data_path) return Errc::invalid_argument;
  // relaxed, all: the rename publishes them.
  store_relaxed<Why::published_later>(header.version, kDurableVersion);
  store_relaxed<Why::published_later>(header.partition_count, geometry.partition_count);
  store_relaxed<Why::published_later>(header.key, geometry.key);
  std::memcpy(header.data_path, window.data_path.data(), window.data_path.size());
  store_relaxed<Why::published_later>(header.durability,
                                      static_cast<std::uint32_t>(window.durability));
  store_relaxed<Why::published_later>(header.sync_interval_ns, window.sync_interval_ns);
  store_relaxed<Why::published_later>(header.epoch, window.epoch << 1 | 1);
  store_relaxed<Why::published_later>(header.cut_bytes, window.cut_bytes);
  store_relaxed<Why::published_later>(header.cut_records, window.cut_records);
  store_relaxed<Why::published_later>(header.damaged, window.damaged);
  auto* partitions = reinterpret_cast<DurablePartition*>(mapping->data() + sizeof(DurableHeader));
  for (std::uint32_t i = 0; i < geometry.partition_count; ++i) {
    const WindowStart& start = window.partitions[i];
    DurablePartition& to = partitions[i];
    const std::pair<OwnedWord*, std::uint64_t> words[] = {
        {&to.written, start.next_offset},
        {&to.durable, start.next_offset},
        {&to.file_base, start.file_base},
        {&to.file_generation, start.file_generation},
        {&to.file_bytes, start.file_bytes},
        {&to.newest_ms, static_cast<std::uint64_t>(start.newest_ms)}};
    for (const auto& [word, value] : words) {
      store_relaxed<Why::published_later>(word->value, value);
      store_relaxed<Why::published_later>(word->epoch, window.epoch);
    }
    store_relaxed<Why::published_later>(to.begin_offset, start.next_offset);
    store_relaxed<Why::published_later>(to.frames_end, start.frames_end);
  }
  store_relaxed<Why::published_later>(header.magic, kDurableMagic);
  return {};
}

}  // namespace leat::inline v0::detail
