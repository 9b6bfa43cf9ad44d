// Participation in a topic: one slot of the control file, owned by one thread of one
// process at a time.
//
//     auto me = Participant::join(topic, ParticipantRole::subscriber, [&](std::uint32_t slot) {…});
//
// A kernel lock proves that the owner is alive (os/lock.hpp):
// docs/internals/log.md, "Participants".
#pragma once

#include <cstdint>
#include <memory>

#include "leat/base/callback.hpp"
#include "leat/format/layout.hpp"
#include "leat/os/fork.hpp"
#include "leat/result.hpp"

namespace leat::inline v0::detail {

class LockFile;
class MappedTopic;

class Participant {
 public:
  Participant() noexcept;
  Participant(Participant&& other) noexcept;
  Participant& operator=(Participant&& other) noexcept;
  ~Participant();

  // Takes a free slot. `fill(slot)` prepares the participant's lines before others
  // can see the slot.
  //   too_many  every slot is taken, perhaps by dead participants: reap, then try again
  //   deleted   the topic is deleted
  //   forked    it is durable, and was opened by the parent process
  static Result<Participant> join(std::shared_ptr<MappedTopic> topic, ParticipantRole role,
                                  const Callback<void(std::uint32_t)>& fill);

  explicit operator bool() const noexcept { return state_ != 0; }
  MappedTopic& topic() const noexcept { return *topic_; }
  const std::shared_ptr<MappedTopic>& mapped_topic() const noexcept { return topic_; }
  std::uint32_t index() const noexcept { return index_; }
  std::uint64_t state() const noexcept { return state_; }
  bool forked() const noexcept { return fork_generation_ != fork_generation(); }
  ParticipantSlot& slot() const noexcept;
  PartitionSlot& partition_slot(std::uint32_t partition) const noexcept;

  // Frees the slot. There must be no open claim.
  void leave() noexcept;

 private:
  std::shared_ptr<MappedTopic> topic_;
  std::unique_ptr<LockFile> lock_;  // A file description of its own, which holds the liveness lock.
  std::uint32_t index_ = 0;
  std::uint64_t state_ = 0;  // 0: empty or moved from.
  std::uint32_t fork_generation_ = 0;
};

}  // namespace leat::inline v0::detail
