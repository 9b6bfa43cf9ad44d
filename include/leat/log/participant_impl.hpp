// Joining a topic and leaving it.
#pragma once

#include <memory>
#include <utility>

#include "leat/base/config.hpp"
#include "leat/base/crash_point.hpp"
#include "leat/base/replace.hpp"
#include "leat/log/participants.hpp"
#include "leat/os/fork_state.hpp"

namespace leat::inline v0::detail {

// Resets the slot's lines for a new owner. relaxed, except the phase: the slot's state
// publishes them.
inline void clear_lines(MappedTopic& topic, std::uint32_t index) noexcept {
  for (std::uint32_t i = 0; i < topic.geometry().partition_count; ++i) {
    PartitionSlot& line = topic.partition(i).slots[index];
    // The claim number continues, so that a withdrawal of the last owner's claim cannot apply to
    // the next owner's. [intent] release: a repairer that judges one of the last owner's holes by
    // this phase sees what that owner committed.
    store_release<Edge::intent>(line.phase,
                                (load_relaxed<Why::own>(line.phase) & ~kPhaseMask) | kIdle);
    store_relaxed<Why::published_later>(line.reader_mode,
                                        static_cast<std::uint64_t>(ReaderMode::none));
    store_relaxed<Why::published_later>(line.settled, 0);
    store_relaxed<Why::published_later>(line.pin, 0);
    store_relaxed<Why::published_later>(line.repair_pin, 0);
  }
}

// Calls off a deletion that is not decided yet, because somebody participates now. `deleted` if
// it is decided.
inline Result<void> cancel_deletion(MappedTopic& topic) noexcept {
  // [topic-state] seq_cst: a deleter stores its attempt and then reads slots; a joiner fills its
  // slot and then reads this word. At least one sees the other, and one swap decides.
  std::uint64_t deleting = load_seq_cst<Edge::topic_state>(topic.header().deleting);
  while (deleting != 0 && deleting != kDeletionDecided) {
    if (compare_exchange<Edge::topic_state>(topic.header().deleting, deleting, 0)) break;
  }
  if (deleting == kDeletionDecided) return Errc::deleted;
  return {};
}

LEAT_INLINE Result<Participant> Participant::join(std::shared_ptr<MappedTopic> topic,
                                                  ParticipantRole role,
                                                  const Callback<void(std::uint32_t)>& fill) {
  Participant me;
  if (topic->durable() != nullptr && topic->durable()->is_inherited()) return Errc::forked;
  auto opened = topic->open_control_to_lock();
  // Somebody removed LEAT_DIR: processes that have a durable topic open still write what is in memory.
  if (opened.error() == Errc::deleted && role == ParticipantRole::repairer &&
      topic->durable() != nullptr)
    opened = topic->open_control_again();
  if (!opened) return opened.error();
  me.lock_ = std::make_unique<LockFile>(std::move(*opened));
  me.fork_generation_ = fork_generation();
  TopicHeader& header = topic->header();
  const std::uint64_t identity = 1 + fetch_add<Edge::slot>(header.next_identity, 1);
  auto locked = me.lock_->try_lock(lock_offset(identity));
  if (!locked) return locked.error();
  if (!*locked) return Errc::corrupt;  // The identity is in use, so the counter was corrupted.
  LEAT_CRASH_POINT("join:locked");

  const std::uint64_t reserved = make_state(identity, ParticipantRole::reserved);
  const std::uint32_t spare = role == ParticipantRole::repairer ? 0 : kSpareSlots;
  for (std::uint32_t index = 0; index < topic->geometry().participant_capacity - spare; ++index) {
    ParticipantSlot& slot = topic->participant(index);

    std::uint64_t free = load_relaxed<Why::swap_checks>(slot.state);
    if (free != 0 || !compare_exchange<Edge::slot>(slot.state, free, reserved)) continue;
    std::uint32_t high = load_relaxed<Why::swap_checks>(header.participant_high);
    while (high <= index &&
           !compare_exchange<Edge::slot>(header.participant_high, high, index + 1)) {
    }
    LEAT_CRASH_POINT("join:reserved");

    clear_lines(*topic, index);
    store_relaxed<Why::published_later>(slot.process, process_token());
    store_relaxed<Why::published_later>(slot.thread, thread_token() | kNotPolledYet);
    store_relaxed<Why::published_later>(slot.pid, static_cast<std::uint32_t>(::getpid()));
    if (fill) fill(index);

    topic->note_use();
    me.topic_ = std::move(topic);
    me.index_ = index;
    me.state_ = make_state(identity, role);
    // [slot] release, and seq_cst: a thread that sees the role sees the lines above, and the role
    // is visible before this participant reads oldest_segment, exclusive and deleting.
    (void)exchange<Edge::slot>(slot.state, me.state_);
    LEAT_CRASH_POINT("join:active");
    if (auto state = cancel_deletion(*me.topic_); !state) return state.error();
    return me;
  }
  return Errc::too_many;
}

LEAT_INLINE Participant::Participant() noexcept = default;
LEAT_INLINE Participant::Participant(Participant&& other) noexcept
    : topic_{std::move(other.topic_)},
      lock_{std::move(other.lock_)},
      index_{other.index_},
      state_{std::exchange(other.state_, 0)},
      fork_generation_{std::exchange(other.fork_generation_, 0)} {}
LEAT_INLINE Participant& Participant::operator=(Participant&& other) noexcept {
  return replace(*this, other);
}
LEAT_INLINE Participant::~Participant() { leave(); }

LEAT_INLINE void Participant::leave() noexcept {
  if (state_ == 0) return;
  if (!forked()) {
    // [exclusive] seq_cst: threads that sleep from now on need no membarrier.
    std::uint64_t expected = identity_of(state_);
    if (role_of(state_) == ParticipantRole::exclusive_publisher) {
      compare_exchange<Edge::exclusive>(topic_->header().exclusive, expected, 0);
    }
    expected = state_;
    compare_exchange<Edge::slot>(slot().state, expected, 0);
    LEAT_CRASH_POINT("leave:free");
    MappedTopic::wake(topic_->header().space_wake);
  }
  state_ = 0;
  lock_.reset();
  topic_.reset();
}

LEAT_INLINE ParticipantSlot& Participant::slot() const noexcept {
  return topic_->participant(index_);
}
LEAT_INLINE PartitionSlot& Participant::partition_slot(std::uint32_t partition) const noexcept {
  return topic_->partition(partition).slots[index_];
}

}  // namespace leat::inline v0::detail
