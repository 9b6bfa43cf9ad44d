// Who is attached to a topic, and who of them is alive.
//
//     auto me = Participant::join(topic, ParticipantRole::subscriber, [&](std::uint32_t slot) {…});
//
// A participant is one slot of the control file, owned by one thread of one process at a time. Its
// life is proven by a kernel lock (os/lock.hpp): docs/internals/log.md, "Participants".
#pragma once

#include <memory>
#include <utility>

#include "leat/base/step.hpp"
#include "leat/log/shared_topic.hpp"

namespace leat::detail {

inline std::uint64_t make_state(std::uint64_t identity, ParticipantRole role) noexcept {
  return identity << 8 | static_cast<std::uint64_t>(role);
}
inline ParticipantRole role_of(std::uint64_t state) noexcept {
  return static_cast<ParticipantRole>(state & 0xff);
}
inline std::uint64_t identity_of(std::uint64_t state) noexcept { return state >> 8; }
inline bool is_publisher(std::uint64_t state) noexcept {
  return role_of(state) == ParticipantRole::publisher ||
         role_of(state) == ParticipantRole::exclusive_publisher;
}

// True only if the kernel says that the owner's lock is gone. About 0.6 us.
inline bool is_dead(const SharedTopic& topic, std::uint64_t state) noexcept {
  return !byte_is_locked(topic.control_fd(), lock_offset(identity_of(state)));
}

class Participant {
 public:
  Participant() noexcept = default;
  Participant(Participant&& other) noexcept
      : topic_{std::move(other.topic_)},
        lock_{std::move(other.lock_)},
        index_{other.index_},
        state_{std::exchange(other.state_, 0)},
        fork_generation_{other.fork_generation_} {}
  Participant& operator=(Participant&& other) noexcept {
    std::swap(topic_, other.topic_);
    std::swap(lock_, other.lock_);
    std::swap(index_, other.index_);
    std::swap(state_, other.state_);
    std::swap(fork_generation_, other.fork_generation_);
    return *this;
  }
  ~Participant() { leave(); }

  // Takes a free slot; `fill(slot)` prepares the participant's lines before others look at them.
  //   too_many  every slot is taken (some of them maybe by the dead: reap, then try again)
  //   deleted   the topic is deleted
  template <class Fill>
  static Result<Participant> join(std::shared_ptr<SharedTopic> topic, ParticipantRole role,
                                  Fill&& fill) {
    auto lock = topic->open_control_to_lock();
    if (!lock) return lock.error();
    TopicHeader& header = topic->header();
    const std::uint64_t identity = 1 + fetch_add<Edge::slot>(header.next_identity, 1);
    auto locked = lock->try_lock(lock_offset(identity));
    if (!locked) return locked.error();
    if (!*locked)
      return Errc::corrupt;  // An identity that is in use: the counter was scribbled on.
    LEAT_STEP("join:locked");

    const std::uint64_t reserved = make_state(identity, ParticipantRole::reserved);
    const std::uint32_t spare = role == ParticipantRole::repairer ? 0 : kSpareSlots;
    for (std::uint32_t index = 0; index < topic->geometry().participant_capacity - spare; ++index) {
      ParticipantSlot& slot = topic->participant(index);
      // relaxed: a guess that the swap checks.
      std::uint64_t free = load_relaxed(slot.state);
      if (free != 0 || !compare_exchange<Edge::slot>(slot.state, free, reserved)) continue;
      raise_high(header, index + 1);
      LEAT_STEP("join:reserved");

      clear_lines(*topic, index);
      store_relaxed(slot.process, process_token());
      store_relaxed(slot.thread, thread_token() | kNotPolledYet);
      store_relaxed(slot.pid, static_cast<std::uint32_t>(::getpid()));
      fill(index);

      topic->note_use();
      Participant me;
      me.topic_ = std::move(topic);
      me.lock_ = std::move(*lock);
      me.index_ = index;
      me.state_ = make_state(identity, role);
      me.fork_generation_ = fork_generation();
      // [slot] release, and seq_cst: the lines above are visible to whoever sees the role, and the
      // role is visible before this participant looks at start, exclusive and deleting.
      (void)exchange<Edge::slot>(slot.state, me.state_);
      LEAT_STEP("join:active");
      if (auto state = cancel_deletion(*me.topic_); !state) return state.error();
      return me;
    }
    return Errc::too_many;
  }

  explicit operator bool() const noexcept { return state_ != 0; }
  SharedTopic& topic() const noexcept { return *topic_; }
  const std::shared_ptr<SharedTopic>& shared_topic() const noexcept { return topic_; }
  std::uint32_t index() const noexcept { return index_; }
  std::uint64_t state() const noexcept { return state_; }
  bool forked() const noexcept { return fork_generation_ != fork_generation(); }
  ParticipantSlot& slot() const noexcept { return topic_->participant(index_); }
  PartitionSlot& partition_slot(std::uint32_t partition) const noexcept {
    return topic_->partition(partition).slots[index_];
  }

  // Gives the slot back. The owner has no open claim.
  void leave() noexcept {
    if (state_ == 0) return;
    if (!forked()) {
      // [exclusive] Whoever sleeps from now on needs no membarrier.
      std::uint64_t expected = identity_of(state_);
      if (role_of(state_) == ParticipantRole::exclusive_publisher) {
        compare_exchange<Edge::exclusive>(topic_->header().exclusive, expected, 0);
      }
      expected = state_;
      compare_exchange<Edge::slot>(slot().state, expected, 0);
      LEAT_STEP("leave:free");
      SharedTopic::wake(topic_->header().space_wake);
    }
    state_ = 0;
    lock_.close();
    topic_.reset();
  }

  // A deletion that is not decided yet is called off: somebody takes part now. `deleted` if it is.
  static Result<void> cancel_deletion(SharedTopic& topic) noexcept {
    // [topic-state] seq_cst; a deleter announces itself here and then looks at slots; a joiner fills
    // its slot and then looks here. At least one sees the other, and one swap decides.
    std::uint64_t deleting = load_seq_cst<Edge::topic_state>(topic.header().deleting);
    while (deleting != 0 && deleting != kDeletionDecided) {
      if (compare_exchange<Edge::topic_state>(topic.header().deleting, deleting, 0)) break;
    }
    if (deleting == kDeletionDecided) return Errc::deleted;
    return {};
  }

 private:
  static void raise_high(TopicHeader& header, std::uint32_t high) noexcept {
    std::uint32_t seen = load_relaxed(header.participant_high);  // relaxed: the swap checks it
    while (seen < high && !compare_exchange<Edge::slot>(header.participant_high, seen, high)) {
    }
  }

  // relaxed stores, but for one: the slot's state makes them visible.
  static void clear_lines(SharedTopic& topic, std::uint32_t index) noexcept {
    for (std::uint32_t i = 0; i < topic.geometry().partition_count; ++i) {
      PartitionSlot& line = topic.partition(i).slots[index];
      // A withdrawal of its last owner's claims must not be taken for one of the next owner's.
      // [intent] release: whoever judges a hole of the last owner's by this finds what that committed.
      store_release<Edge::intent>(line.phase, (load_relaxed(line.phase) & ~kPhaseMask) | kIdle);
      store_relaxed(line.reader_mode, static_cast<std::uint64_t>(ReaderMode::none));
      store_relaxed(line.settled, 0);
      store_relaxed(line.pin, 0);
      store_relaxed(line.repair_pin, 0);
    }
  }

  std::shared_ptr<SharedTopic> topic_;
  LockFile lock_;  // Its own file description: holds the life lock.
  std::uint32_t index_ = 0;
  std::uint64_t state_ = 0;  // 0: empty or moved from.
  std::uint32_t fork_generation_ = 0;
};

}  // namespace leat::detail
