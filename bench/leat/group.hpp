// One measurement of a consumer group: publishers and members in pinned processes of their own; each
// record goes to one member.
//
//     MessageCost cost = measure_group({.size = 100, .publishers = 2, .members = 2}, {0, 1});
//
// The topic holds 8 MiB and blocks when full. Every record is verified, and afterwards that each
// record of every publisher was received by exactly one member; throws Failure if not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "bench/harness/group.hpp"
#include "log.hpp"

namespace leat::bench {

inline constexpr std::size_t kMinGroupSize = 8;  // A record must tell who sent it, and which it is.
inline constexpr std::size_t kMaxGroupSize = 64u << 10;
inline constexpr std::uint64_t kMaxGroupRecords = 100'000'000;  // Each costs every member one bit.

struct GroupLoad {
  std::size_t size = 100;             // kMinGroupSize to kMaxGroupSize
  std::uint64_t records = 1'000'000;  // By all publishers together.
  std::uint32_t publishers = 1;
  std::uint32_t members = 1;
  Mode mode = Mode::shared;
  // 0: members poll as many records as there are. Else they take up to this many and acknowledge each.
  std::uint32_t batch = 0;
  std::uint32_t keys = 0;  // How many different keys the records have; 0: none.
  bool by_key = false;     // Whether the group hands out records by key.
  Verify verify = Verify::ends;
};

// What this is for the harness.
Load load_of(const GroupLoad& load);

// CPU time is summed over the publishers, and over the members.
MessageCost measure_group(const GroupLoad& load, const std::vector<int>& cpus);

// The same through leat/compat/simple_ipc.hpp, by threads of one process: all with one instance of
// CSimpleIPC, or each with its own. Ignores the load's mode and batch: one record at a time.
enum class Instance { own, shared };
inline constexpr std::uint32_t kIpcBlocks = 8192;
MessageCost measure_simple_ipc(Instance instance, const GroupLoad& load,
                               const std::vector<int>& cpus);

// CPU time of one publisher per record, at a rate that everybody keeps up with: beside a subscriber
// alone, or beside one and a group with one member.
double publisher_cpu_ns(const GroupLoad& load, std::uint64_t rate, bool with_group,
                        const std::vector<int>& cpus);

}  // namespace leat::bench
