// What the processes of a multi-failure test share, and what each kind of process does.
// docs/ARCHITECTURE.md, "How it is tested".
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
inline constexpr std::uint32_t kPublishers = 6;     // The most processes that publish.
inline constexpr std::uint32_t kForkPublisher = 5;  // The number for children of other processes.
inline constexpr std::uint32_t kMaxAtOnce = 8;      // The most records that one call takes.
inline constexpr std::uint32_t kMaxProcesses = 20;

// A publisher numbers its records separately in each partition. So the ledger has one publisher
// number for each pair of a process and a partition.
constexpr std::uint32_t number_of(std::uint32_t publisher, std::uint32_t partition) noexcept {
  return publisher * kMaxPartitions + partition;
}
inline constexpr std::size_t kRecords = 200'000;  // The most records for each such number.
using MultiFailureLedger = LedgerOf<kPublishers * kMaxPartitions, kRecords>;
using MultiFailureAccount = AccountOf<kPublishers * kMaxPartitions, kRecords>;

enum class Kind : std::uint32_t {
  // Spared processes, one of each. Their progress is watched, and at the end
  // they report what was wrong.
  steady_publisher,
  reader,
  worker,   // a member of the group that is never moved
  janitor,  // moves or deletes groups that hold room without working members
  // Victims.
  publisher,
  subscriber,
  member,
  mover,   // makes, moves, joins and deletes groups
  renewer  // makes and deletes other topics
};
inline constexpr std::size_t kKinds = 9;
constexpr bool is_spared(Kind kind) noexcept { return kind < Kind::publisher; }

struct MultiFailureOptions {
  std::uint32_t partitions = 1;
  std::uint32_t segments = 5;  // 4 KiB each.
  Policy policy = Policy::block;
  std::chrono::nanoseconds revoke_after{0};
  std::uint32_t publishers = 3;
  std::uint32_t subscribers = 2;
  std::uint32_t members = 0;  // 0: there is no group either.
  GroupOptions group = {};
  std::uint32_t movers = 0;
  std::uint32_t renewers = 0;
};

struct Life {
  Blow blow;
  alignas(64) std::atomic<std::int64_t> progress_ns;  // When it last made progress.
};

// Initially all bytes are zero.
struct MultiFailureShared {
  MultiFailureLedger ledger;
  MultiFailureAccount account;
  std::array<Life, kMaxProcesses> lives;
  std::array<Labels, kKinds> labels;
  std::atomic<std::uint32_t> joined;          // How many of the spared processes have joined.
  std::atomic<std::int64_t> silent_until_ns;  // Nobody publishes until then.
  std::atomic<bool> victims_stop;
  std::atomic<bool> publishing_stops;
  std::atomic<bool> all_stop;
  std::array<std::atomic<std::uint64_t>, kMaxPartitions> end;  // Final end of each partition.
  std::atomic<std::uint32_t> fork_publishes;                   // kForkPublisher is in use.
  std::atomic<std::uint64_t> taken;
};

struct World {
  MultiFailureOptions options;
  TemporaryDirectory directory{};
  Shared<MultiFailureShared> shared{};

  Topic open() const;
  static constexpr const char* kTopic = "topic";
  static constexpr const char* kGroup = "group";
};

// One process.
struct Actor {
  World& world;
  Kind kind;
  std::uint32_t number;  // Among the processes of its kind.
  Life& life;
  Random random;

  int run();
  std::uint64_t below(std::uint64_t limit) { return testing::below(random, limit); }
  // Sometimes pauses: one call in `one_in`, for up to `at_most_us`.
  void pause(std::uint32_t one_in, std::uint64_t at_most_us);
  void goes_on() noexcept { life.progress_ns = detail::now_ns(); }
  bool must_end() const noexcept { return world.shared->victims_stop; }
};

// What each kind of process does: in publishers.cpp, subscribers.cpp, members.cpp and movers.cpp.
int publish_steadily(Actor& self);
int publish(Actor& self);
int read_everything(Actor& self);
int subscribe(Actor& self);
int work_steadily(Actor& self);
int work(Actor& self);
int sweep(Actor& self);
int move_groups(Actor& self);
int renew_topics(Actor& self);

// Forks a child that outlives its parent for a while. It uses nothing, or only handles of its own.
void fork_a_child(Actor& self);

// Exits with status 1 unless the error is one of those that `call` may return.
void expect(const Error& error, std::initializer_list<Errc> allowed, const char* call);

// Tries to join until a slot is free. Slots of the dead are freed when all others are taken.
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
