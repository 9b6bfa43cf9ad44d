// A multi-failure test: processes publish, subscribe, consume from groups and move them, on one small topic.
// Meanwhile 2 to 5 of them are killed or stopped at a time: at the same moment, at labelled steps,
// or anywhere. The spared processes must continue, and every record must be accounted for.
//
//     Supervisor supervisor{{.members = 2, .movers = 1}, seed};
//     supervisor.run(4s);           // GoogleTest failures, if any
//
// LEAT_SEED repeats a test as far as the kernel's scheduler permits. LEAT_KEEP=DIRECTORY keeps
// the topic's files there after a failure.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "leat/group.hpp"
#include "world.hpp"

namespace leat::testing {

// Sums over several multi-failure tests.
struct MultiFailureTotals {
  std::uint64_t records = 0;
  std::uint64_t taken = 0;
  std::uint64_t strikes = 0;
  std::uint64_t kills = 0;
  std::uint64_t stops = 0;
  std::uint64_t at_steps = 0;   // How many kills and stops were at a label.
  std::int64_t longest_ns = 0;  // The longest time from a strike until all spared made progress.
  std::uint64_t late = 0;       // How many of these times were longer than promised.
};

class Supervisor {
 public:
  Supervisor(const MultiFailureOptions& options, std::uint64_t seed);
  ~Supervisor();
  void run(std::chrono::milliseconds duration, MultiFailureTotals& totals);

 private:
  struct Process {
    Kind kind;
    std::uint32_t number;
    Life* life;
    std::optional<Child> child;
    bool is_killed = false;
    std::string name() const;
  };
  enum class Ending { kills, kills_some, goes_on };

  void create();
  void add(Kind kind, std::uint32_t count);
  void start(Process& process);
  bool is_well();  // All spared processes are alive, and nothing has failed.
  void start_missing();
  void let_go_on(Process& process);
  void wait_for_end(Process& process);

  // strike.cpp
  void strike();
  std::vector<Process*> choose_victims();
  void stop_at_steps(const std::vector<Process*>& victims);
  void stop_as_group(const std::vector<Process*>& victims);
  void finish(Process& victim, bool kill);
  void expect_all_go_on(std::int64_t since_ns);

  void end();
  void end_victims();
  void wait_for_forks();
  void publish_in_the_calm();
  void wait_for_spared(Kind kind);
  void check_account();
  std::string history() const;
  void keep_files() const;

  World world_;
  Random random_;
  std::uint64_t seed_;
  std::optional<Topic> topic_;
  std::optional<Group> group_;
  std::vector<Process> processes_;
  std::deque<std::string> history_;  // The latest strikes.
  MultiFailureTotals totals_;
  int forks_[2] = {-1, -1};  // A pipe that all processes keep open; it is closed when none is left.
};

}  // namespace leat::testing
