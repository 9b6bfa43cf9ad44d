// What the processes of an outage share, and what each of them does. docs/ARCHITECTURE.md, "How it is
// tested".
#pragma once

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "leat/leat.hpp"
#include "steps.hpp"
#include "support/account.hpp"
#include "support/process.hpp"
#include "support/trail.hpp"

namespace leat::testing {

inline constexpr std::uint32_t kMaxPartitions = 3;
inline constexpr std::uint32_t kPublishers = 6;     // Processes that publish, at most.
inline constexpr std::uint32_t kForkPublisher = 5;  // Of these: for the children of others.
inline constexpr std::uint32_t kMaxAtOnce = 8;      // Records in one call that takes.
inline constexpr std::uint32_t kMaxProcesses = 20;

// A publisher counts its records by partition: each of these numbers stands for one partition.
constexpr std::uint32_t number_of(std::uint32_t publisher, std::uint32_t partition) noexcept {
  return publisher * kMaxPartitions + partition;
}
inline constexpr std::size_t kRecords = 200'000;  // Of each such number.
using OutageLedger = LedgerOf<kPublishers * kMaxPartitions, kRecords>;
using OutageAccount = AccountOf<kPublishers * kMaxPartitions, kRecords>;

enum class Kind : std::uint32_t {
  // The spared. One of each; their progress is watched, and they say at the end what was wrong.
  steady_publisher,
  reader,
  worker,   // a member of the group that is never moved
  janitor,  // ends what groups were left that hold room for nobody
  // The victims.
  publisher,
  subscriber,
  member,
  mover,   // makes, moves, joins and deletes groups
  renewer  // makes and deletes topics beside
};
inline constexpr std::size_t kKinds = 9;
constexpr bool is_spared(Kind kind) noexcept { return kind < Kind::publisher; }

struct OutageOptions {
  std::uint32_t partitions = 1;
  std::uint32_t segments = 5;  // of 4 KiB
  Policy policy = Policy::block;
  std::chrono::nanoseconds revoke_after{0};
  std::uint32_t publishers = 3;
  std::uint32_t subscribers = 2;
  std::uint32_t members = 0;  // 0: nor is there a group
  GroupOptions group = {};
  std::uint32_t movers = 0;
  std::uint32_t renewers = 0;
};

struct Life {
  Blow blow;
  alignas(64) std::atomic<std::int64_t> progress_ns;  // When it last got something done.
};

// Starts as zero bytes.
struct OutageShared {
  OutageLedger ledger;
  OutageAccount account;
  std::array<Life, kMaxProcesses> lives;
  std::array<Labels, kKinds> labels;
  std::atomic<std::uint32_t> joined;          // of the spared
  std::atomic<std::int64_t> silent_until_ns;  // Nobody publishes before.
  std::atomic<bool> victims_stop;
  std::atomic<bool> publishing_stops;
  std::atomic<bool> all_stop;
  std::array<std::atomic<std::uint64_t>, kMaxPartitions> end;  // Of the partitions, at the end.
  std::atomic<std::uint32_t> fork_publishes;                   // Somebody uses kForkPublisher.
  std::atomic<std::uint64_t> taken;
};

struct World {
  OutageOptions options;
  TemporaryDirectory directory{};
  Shared<OutageShared> shared{};

  Topic open() const;
  static constexpr const char* kTopic = "topic";
  static constexpr const char* kGroup = "group";
};

// One process.
struct Actor {
  World& world;
  Kind kind;
  std::uint32_t number;  // Of its kind.
  Life& life;
  Random random;

  int run();
  std::uint64_t below(std::uint64_t limit) { return testing::below(random, limit); }
  // Once in a while; half of the time not at all.
  void pause(std::uint32_t one_in, std::uint64_t at_most_us);
  void goes_on() noexcept { life.progress_ns = detail::now_ns(); }
  bool must_end() const noexcept { return world.shared->victims_stop; }
};

// What each kind does. In publishers.cpp, subscribers.cpp, members.cpp, movers.cpp.
int publish_steadily(Actor& self);
int publish(Actor& self);
int read_everything(Actor& self);
int subscribe(Actor& self);
int work_steadily(Actor& self);
int work(Actor& self);
int sweep(Actor& self);
int move_groups(Actor& self);
int renew_topics(Actor& self);

// A child that outlives its parent for a while: it touches nothing, or uses handles of its own.
void fork_a_child(Actor& self);

// Ends the process with status 1 unless the error is one of those that may come of `call`.
void expect(const Error& error, std::initializer_list<Errc> allowed, const char* call);

// Until there is a slot; those of the dead are freed when all others are taken.
template <class Join>
auto join_at_last(Join&& join) {
  auto joined = join();
  while (!joined) {
    expect(joined.error(), {Errc::too_many}, "join");
    ::usleep(500);
    joined = join();
  }
  return joined;
}

}  // namespace leat::testing
