// The processes of one run of `leat demo`: forked, started together, watched, and never left behind.
//
//     Worker worker{report, [&](Start& start) { prepare(); start.wait(); work(); }};
//     Watch{…}.until_ready(workers); start all; Watch{…}.until_done(workers);
//
// A worker dies with its parent (PR_SET_PDEATHSIG), and when its Worker is destroyed. The parent
// holds no topic handle while it forks.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "leat/os/os.hpp"

namespace leat::cli {

// What a worker tells its parent, in memory that both map.
struct WorkerReport {
  std::atomic<std::uint64_t> done;  // Records so far. relaxed: for the progress bar.
  // The rest is read only after the worker has said that it is ready, or has ended.
  std::int64_t prepare_ns;
  std::int64_t work_ns;
  std::uint64_t verified;  // Records that were right.
  std::int32_t exit_code;  // 0, or why it failed, in `sentence`.
  char sentence[240];
};

// The worker's side of the common start.
class Start {
 public:
  Start(int ready, int go) noexcept : ready_{ready}, go_{go} {}
  // Says that all is prepared, and waits until everybody is.
  void wait() const;

 private:
  int ready_;
  int go_;
};

class Worker {
 public:
  // `work` runs in a child process; a Failure that it throws ends up in the report. `name` is for
  // messages: "subscriber 2".
  Worker(std::string name, const std::function<void(WorkerReport&, const Start&)>& work);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  const WorkerReport& report() const noexcept { return *report_; }
  // Readable (or hung up) when the worker got ready or ended.
  int ready_fd() const noexcept { return ready_.get(); }
  // Takes note of what ready_fd() brought. True once nothing more is to be expected in this phase.
  bool take_ready();
  bool is_ready() const noexcept { return ready_seen_; }
  bool has_ended() const noexcept { return ended_; }
  void go();

 private:
  [[noreturn]] void run_child(pid_t parent,
                              const std::function<void(WorkerReport&, const Start&)>& work,
                              const Start& start) noexcept;
  void collect();

  std::string name_;
  WorkerReport* report_;
  os::Fd ready_;
  os::Fd go_;
  pid_t pid_ = -1;
  bool ready_seen_ = false;
  bool ended_ = false;
};

// Waits for workers, calling `tick` about 20 times a second. Throws Failure when one of them fails,
// when the time is up, and on SIGINT, SIGTERM or SIGHUP (see stop_requested).
using Workers = std::span<const std::unique_ptr<Worker>>;
void wait_until_ready(Workers workers, std::chrono::steady_clock::time_point deadline);
void wait_until_done(Workers workers, std::chrono::steady_clock::time_point deadline,
                     const std::function<void()>& tick);

// From here on those signals do not end the process but make the waits above fail.
void catch_stop_signals();
void check_stop_signals();

}  // namespace leat::cli
