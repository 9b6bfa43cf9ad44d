// One measurement of a consumer group, or of another queue in its place: publishers and members in
// pinned processes of their own; each record goes to one member.
//
//     GroupCost cost = measure_group({.size = 100, .publishers = 2, .members = 2}, {0, 1});
//     GroupCost peer = measure_peer(Peer::boost_mq, load, {0, 1});  // the same processes
//
// The topic holds 8 MiB and blocks when full. Every record is verified, and afterwards that each of
// every publisher's was received by exactly one member; throws Failure if not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "log_run.hpp"
#include "payload.hpp"
#include "peer_queues.hpp"
#include "processes.hpp"

namespace leat::bench {

inline constexpr std::size_t kMinGroupSize = 8;  // To tell whose a record is, and which one.
inline constexpr std::size_t kMaxGroupSize = 64u << 10;
inline constexpr std::uint32_t kMaxGroupRoles = 64;             // Publishers, and members.
inline constexpr std::uint64_t kMaxGroupRecords = 100'000'000;  // Each costs every member one bit.

struct GroupLoad {
  std::size_t size = 100;             // kMinGroupSize to kMaxGroupSize
  std::uint64_t records = 1'000'000;  // By all publishers together.
  std::uint32_t publishers = 1;
  std::uint32_t members = 1;
  Mode mode = Mode::shared;
  // 0: members poll as many records as there are. Else they take up to so many and acknowledge each.
  std::uint32_t batch = 0;
  std::uint32_t keys = 0;  // Different ones of the records; 0: they have none.
  bool by_key = false;     // How the group goes.
  Verify verify = Verify::ends;
};

// Sums over the publishers and over the members, divided by the records.
struct GroupCost {
  double ns_per_record = 0;                // First send until the last record has been verified.
  double publisher_cpu_ns_per_record = 0;  // Without the waiting.
  double publisher_wait_ns_per_record = 0;
  double member_cpu_ns_per_record = 0;  // With what they spin before they sleep.

  double records_per_second() const noexcept { return ns_per_record > 0 ? 1e9 / ns_per_record : 0; }
};

GroupCost measure_group(const GroupLoad& load, const std::vector<int>& cpus);

// The same through leat/compat/simple_ipc.hpp, by threads of one process: all with one instance of
// CSimpleIPC, or each with its own. Of the load: no mode, and one record at a time.
enum class Instance { own, shared };
inline constexpr std::uint32_t kIpcBlocks = 8192;
GroupCost measure_simple_ipc(Instance instance, const GroupLoad& load,
                             const std::vector<int>& cpus);

// Of the load: no mode, and one record at a time whatever its batch.
GroupCost measure_peer(Peer peer, const GroupLoad& load, const std::vector<int>& cpus);

// CPU time of one publisher per record, at a rate that everybody keeps up with: beside a subscriber
// alone, or beside one and a group with one member.
double publisher_cpu_ns(const GroupLoad& load, std::uint64_t rate, bool with_group,
                        const std::vector<int>& cpus);

// Which records each member received: one bit for each, in memory that all processes share, so that
// members need not look at each other's until they are done.
class Receipts {
 public:
  Receipts(std::uint32_t members, std::uint32_t publishers, std::uint64_t records_of_each);

  // In the member's process, before the time starts.
  void prefault(std::uint32_t member) const { bits_[member]->prefault(); }
  // False if the member had it before, or if no publisher has such a record.
  bool note(std::uint32_t member, std::uint64_t publisher, std::uint64_t record) const noexcept;
  // Throws Failure if a record was received by two members or by none.
  void check() const;

 private:
  std::uint64_t* words(std::uint32_t member) const noexcept {
    return reinterpret_cast<std::uint64_t*>(bits_[member]->data());
  }

  std::uint32_t publishers_;
  std::uint64_t records_of_each_;
  std::size_t words_of_each_;
  std::vector<std::unique_ptr<SharedMemory>> bits_;  // By member, then by publisher.
};

}  // namespace leat::bench
