// A storm over a consumer group: members and publishers do random work on one small topic while
// they are killed, stopped, continued and restarted at random. At the end the account in shared
// memory shows whether every record was delivered, and none again after it was acknowledged.
//
//     GroupStorm storm{{.group = {.mode = GroupMode::at_most_once}}, seed};
//     storm.run(4s);           // GoogleTest failures, if any
//
// LEAT_SEED repeats a storm as far as the kernel's scheduler permits.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "storm.hpp"
#include "support/account.hpp"

namespace leat::testing {

inline constexpr std::uint32_t kGroupPublishers = 3;
using GroupStormAccount = AccountOf<kGroupPublishers, 300'000>;

inline constexpr std::uint32_t kMaxAtOnce = 8;  // The most records that one call takes.

struct GroupStormOptions {
  GroupOptions group = {};
  std::uint32_t publishers = 2;
  std::uint32_t members = 3;
  bool subscriber = false;  // A gating subscriber that is not killed reads beside the group.
  bool stops = true;
  bool polls = false;  // Members also call poll().
  std::uint32_t in_flight = 24;
  std::uint32_t partitions = 1;
};

struct GroupStormShared {
  GroupStormAccount account;
  std::atomic<bool> publishers_stop;
  std::atomic<bool> members_stop;
  std::atomic<std::uint64_t> read;  // Records read by the subscriber.
  std::atomic<std::uint64_t> taken;
};

class GroupStorm {
 public:
  GroupStorm(const GroupStormOptions& options, std::uint64_t seed);
  void run(std::chrono::milliseconds duration);

 private:
  struct Process {
    enum class Kind { publisher, member, subscriber } kind;
    std::uint32_t number;
    std::optional<Child> child;
    std::optional<std::chrono::steady_clock::time_point> continue_at;  // Set while it is stopped.
    std::string name() const;
  };

  void start(Process& process);
  void hurt_somebody();
  void continue_stopped(bool all);
  void end(Process::Kind kind);
  void take_the_rest();

  // In children.
  Topic open() const;
  int publish(std::uint32_t id, Random random);
  int work(Random random);
  int subscribe();
  void poll_some(Member& member, Random& random);
  void let_go(Member& member, std::vector<Delivery>& held, Random& random);
  void note(const Delivery& delivery, std::int64_t call_began_ns);

  GroupStormOptions options_;
  Random random_;
  TemporaryDirectory directory_;
  Shared<GroupStormShared> shared_;
  std::optional<Topic> topic_;
  std::optional<Group> group_;
  std::vector<Process> processes_;
  std::uint64_t kills_ = 0;
  std::uint64_t stops_ = 0;
};

}  // namespace leat::testing
