// A helper thread of each process that has a durable topic open. It is the archiver, or stands by.
//
// The archiver copies committed records to disk, and syncs them when the topic's durability or a caller
// requires it. The other threads sleep until there is something to copy, then check that the archiver copies
// it. If the archiver is dead, or makes no progress for 100 ms, one of them takes over. Closing the topic drains
// it in the calling thread; the last process to close it also ends the files and deletes the window.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "leat/log/archiver.hpp"
#include "leat/log/group_saver.hpp"

namespace leat::inline v0::detail {

class ArchiverThread {
 public:
  // What an archiver needs; moved into it.
  struct Place {
    Fd directory;       // the topic's data directory
    LockFile attached;  // kAttachLock, shared
    Manifest manifest;
    std::string name;
    Disk* disk;
  };

  // Starts the helper thread.
  static Result<std::shared_ptr<ArchiverThread>> start(std::shared_ptr<MappedTopic> topic,
                                                       Place place);
  ~ArchiverThread();
  ArchiverThread(const ArchiverThread&) = delete;
  ArchiverThread& operator=(const ArchiverThread&) = delete;

  // Drains the log and leaves the topic; called once, by the destructor or when the process exits.
  // In a forked child it does nothing.
  void close() noexcept;
  // The same when the process exits. If it still has publishers or members, this only writes what is there, and
  // the archiver goes on until the process ends.
  void close_at_exit() noexcept;

  // Called by a thread that waits for a sync. If this process is the archiver and the archiver's thread sleeps,
  // the calling thread does its work, which saves two thread switches.
  void sync_here() noexcept;

  bool is_archiver() const noexcept {
    return is_archiver_.load(std::memory_order_relaxed);  // relaxed: informational
  }

 private:
  // How often an archiver shows that it is alive while groups have to be saved, in ns.
  static constexpr std::int64_t kShowsLife = 250'000'000;
  // How often others check an archiver that only waits for acknowledgements, and so wakes once a second.
  static constexpr std::int64_t kCheckCalmArchiver = 1'250'000'000;
  // How long an archiver may do nothing although there is work to do, in ns.
  static constexpr std::int64_t kStalled = 100'000'000;

  ArchiverThread(std::shared_ptr<MappedTopic> topic, Place place) noexcept;

  void run() noexcept;
  void serve() noexcept;
  void stand_by() noexcept;
  void watch_archiver(bool is_calm) noexcept;
  bool try_to_take_over(std::uint64_t seen) noexcept;
  Result<void> save_groups(bool is_closing) noexcept;
  Result<void> store_gaps() noexcept;
  bool has_unwritten() const noexcept;
  bool is_safe() const noexcept;
  bool has_group_news() const noexcept;
  bool is_unsettled() const noexcept;
  std::int64_t slow_disk_ns() const noexcept;
  std::int64_t next_due_ns() const noexcept;
  Result<std::uint64_t> write() noexcept;
  void handle(Error error) noexcept;
  void announce(DiskState state, std::int32_t reason) noexcept;
  void drain() noexcept;
  bool delete_window() noexcept;
  bool has_users() const noexcept;
  void sleep_for_news() noexcept;
  bool is_due() noexcept;
  void back_off(std::int64_t ns) noexcept;
  bool is_stopping() const noexcept { return load_relaxed<Why::hint>(stopping_) != 0; }

  std::shared_ptr<MappedTopic> topic_;
  Place place_;
  // Held by the thread that does the archiver's work. Not held while the archiver's thread sleeps.
  std::mutex work_;
  bool was_helped_ = false;  // by sync_here(), since the thread last checked
  Error failed_here_;        // of sync_here(), for the thread to handle
  Archiver archiver_;
  GroupSaver groups_;
  bool is_new_archiver_ = false;  // serve() was not called since it took over.
  static constexpr std::int64_t kTryAgain = 100'000'000;  // ns, after a failure that may pass
  std::int64_t own_fault_backoff_ns_ = kTryAgain;
  std::int64_t holes_due_ns_ = 0;
  std::uint32_t stopping_ = 0;  // The thread sleeps on it; futex.
  std::atomic<bool> is_archiver_ = false;
  bool is_closed_ = false;
  std::uint32_t fork_generation_ = fork_generation();
  std::unique_ptr<std::thread> thread_;  // Kept by a forked child, which does not have it.
};

}  // namespace leat::inline v0::detail
