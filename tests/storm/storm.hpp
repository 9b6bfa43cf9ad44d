// A storm: processes publish and subscribe on one small topic while they are killed, stopped,
// continued and restarted at random. At the end every subscriber that was spared compares what it
// got with what was published.
//
//     Storm storm{{.revoke_after = 3ms, .stops = true}, seed};
//     storm.run(4s);           // GoogleTest failures, if any
//
// LEAT_SEED repeats a storm as far as the kernel's scheduler permits.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "leat/leat.hpp"
#include "support/process.hpp"
#include "support/random.hpp"
#include "support/trail.hpp"

namespace leat::testing {

inline constexpr std::uint32_t kMaxPublishers = 6;
// The last publisher publishes after the storm.
using StormLedger = LedgerOf<kMaxPublishers + 1, 400'000>;

struct StormOptions {
  std::uint32_t publishers = 3;
  std::uint32_t gating = 2;  // Spared.
  std::uint32_t gating_victims = 1;
  std::uint32_t lossy = 1;  // Spared.
  std::uint32_t lossy_victims = 1;
  std::uint32_t segments = 5;  // 4 KiB each.
  Policy policy = Policy::block;
  bool exclusive = false;  // Each publisher is exclusive, and the others wait until it ends.
  bool kills = true;
  bool stops = false;
  bool in_place = false;  // Lossy subscribers read in place.
  std::chrono::nanoseconds revoke_after{0};
  std::chrono::nanoseconds evict_after{0};
};

struct StormShared {
  StormLedger ledger;
  std::atomic<std::uint32_t> spared_joined;
  std::atomic<bool> publishers_stop;
  std::atomic<bool> victims_stop;
  std::atomic<std::uint64_t> final_end;  // 0 while it is not known.
};

class Storm {
 public:
  Storm(const StormOptions& options, std::uint64_t seed);
  void run(std::chrono::milliseconds duration);

 private:
  struct Process {
    enum class Kind { publisher, gating, lossy } kind;
    std::uint32_t number;
    bool spared;
    std::optional<Child> child;
    std::optional<std::chrono::steady_clock::time_point> continue_at;  // Set while it is stopped.
    std::string name() const;
  };

  void start(Process& process);
  void hurt_somebody();
  void requeue();
  void continue_stopped(bool all);
  bool all_spared_live();
  void end_publishers();
  void publish_in_the_calm();
  void end_subscribers();
  void wait_for(Process& process);

  // In children.
  Topic open() const;
  int publish(std::uint32_t id, Random random);
  int subscribe(const Process& process, Random random);
  void publish_one(Publisher& publisher, std::uint32_t id, Random& random);
  void publish_batch(Publisher& publisher, std::uint32_t id, Random& random);
  void claim_one(Publisher& publisher, std::uint32_t id, Random& random);

  StormOptions options_;
  Random random_;
  TemporaryDirectory directory_;
  Shared<StormShared> shared_;
  std::optional<Topic> topic_;
  std::vector<Process> processes_;
  std::uint64_t kills_ = 0;
  std::uint64_t stops_ = 0;
  std::uint64_t freed_ = 0;  // In bytes.
};

}  // namespace leat::testing
