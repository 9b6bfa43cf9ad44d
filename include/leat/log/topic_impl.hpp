// The longer functions of Topic; included by topic.hpp only.
#pragma once

#include "leat/log/shrink.hpp"
#include "leat/log/topic.hpp"

namespace leat {

inline Result<detail::NewTopic> Topic::new_topic(const TopicOptions& options) {
  constexpr std::uint64_t kSegmentsByDefault = 8;
  constexpr std::uint64_t kMaxCapacity = 1ULL << 40;
  if (options.participants == 0 || options.participants > detail::kMaxParticipants)
    return Errc::invalid_argument;
  if (options.capacity_bytes == 0 || options.capacity_bytes > kMaxCapacity)
    return Errc::invalid_argument;
  if (options.segment_bytes > detail::Geometry::kMaxSegmentSize) return Errc::invalid_argument;
  if ((options.mode & ~0666U) != 0 || (options.mode & 0600) != 0600)
    return Errc::invalid_argument;  // The owner must be able to take part.
  // A topic that keeps everything has nothing to overwrite or to add, and nobody to push aside.
  if (options.retain_all && (options.policy == Policy::overwrite ||
                             options.policy == Policy::grow || options.evict_after.count() != 0))
    return Errc::invalid_argument;
  if (options.policy != Policy::grow &&
      (options.max_capacity_bytes != 0 || options.grow_below_bytes != 0))
    return Errc::invalid_argument;
  detail::NewTopic topic;
  detail::Geometry& geometry = topic.geometry;
  const std::uint64_t wanted = options.segment_bytes != 0
                                   ? options.segment_bytes
                                   : options.capacity_bytes / kSegmentsByDefault;
  geometry.segment_size = detail::Geometry::round_up(
      std::max(wanted, detail::Geometry::kMinSegmentSize), detail::kPage);
  const std::uint64_t segments = std::max<std::uint64_t>(
      2, (options.capacity_bytes + geometry.segment_size - 1) / geometry.segment_size);
  if (segments > detail::kMaxSegments) return Errc::invalid_argument;
  geometry.segment_count = static_cast<std::uint32_t>(segments);
  geometry.key = detail::make_random();
  geometry.partition_count = options.partitions;
  geometry.participant_capacity = options.participants + detail::kSpareSlots;
  geometry.policy = static_cast<std::uint32_t>(options.policy);
  geometry.flags = (options.retain_all ? detail::kRetainAll : 0U) |
                   (options.single_writer ? detail::kSingleWriter : 0U) |
                   (options.timestamps ? detail::kTimestamps : 0U) |
                   (options.remove_when_unused ? detail::kRemoveWhenUnused : 0U);
  geometry.revoke_after_ns = options.revoke_after.count();
  geometry.evict_after_ns = options.evict_after.count();
  if (geometry.grows() && !plan_growth(options, topic)) return Errc::invalid_argument;
  if (!geometry.is_valid()) return Errc::invalid_argument;
  geometry.derive();
  topic.mode = options.mode;
  if (!options.group.empty()) {
    const auto group = detail::find_group(options.group);
    if (!group) return Errc::invalid_argument;
    topic.group = *group;
  }
  return topic;
}

// The capacity is only the beginning: control describes as many segments as the maximum may ever be.
inline bool Topic::plan_growth(const TopicOptions& options, detail::NewTopic& topic) {
  constexpr std::uint64_t kMaxMapped = 1ULL << 44;  // bytes; processes map 2^47 in all
  constexpr std::uint64_t kMaxTimes = 8;
  detail::Geometry& geometry = topic.geometry;
  geometry.first_segments = geometry.segment_count;
  const auto segments_of = [&](std::uint64_t bytes) {
    return bytes / geometry.segment_size + (bytes % geometry.segment_size != 0 ? 1 : 0);
  };
  geometry.segment_count = detail::kMaxSegments;
  while (geometry.segment_count > geometry.first_segments &&
         (!geometry.is_valid() || geometry.records_size() > kMaxMapped)) {
    geometry.segment_count /= 2;
  }
  geometry.segment_count = std::max(geometry.segment_count, geometry.first_segments);
  const std::uint64_t maximum =
      options.max_capacity_bytes != 0
          ? segments_of(options.max_capacity_bytes)
          : std::min<std::uint64_t>(kMaxTimes * geometry.first_segments, geometry.segment_count);
  const std::uint64_t below =
      options.grow_below_bytes != 0 ? segments_of(options.grow_below_bytes) : 1;
  if (maximum < geometry.first_segments || maximum > geometry.segment_count) return false;
  if (below > maximum) return false;
  topic.max_segments = static_cast<std::uint32_t>(maximum);
  geometry.grow_below = static_cast<std::uint32_t>(below);
  return true;
}

inline Result<void> Topic::set_max_capacity(std::uint64_t bytes) const {
  const detail::Geometry& geometry = topic_->geometry();
  if (!geometry.grows()) return Errc::not_allowed;
  if (topic_->is_deleted()) return Errc::deleted;
  if (bytes < min_capacity() || bytes > max_capacity_limit()) return Errc::invalid_argument;
  const auto segments =
      static_cast<std::uint32_t>((bytes + geometry.segment_size - 1) / geometry.segment_size);
  // [sleeping] seq_cst: stored before publishers that wait for room are woken.
  (void)detail::exchange<detail::Edge::sleeping>(topic_->header().max_segments, segments);
  detail::SharedTopic::wake(topic_->header().space_wake);
  return {};
}

inline Result<std::uint64_t> Topic::shrink() const {
  const detail::Geometry& geometry = topic_->geometry();
  if (!geometry.grows()) return Errc::not_allowed;
  auto me = join(detail::ParticipantRole::repairer, [](std::uint32_t) {});
  if (!me) return me.error();
  auto lock = detail::RecordsLock::take(*topic_, detail::LockKind::exclusive);
  for (const Deadline deadline{std::chrono::seconds{1}};
       lock.error().code == Errc::busy && !deadline.passed();) {
    detail::sleep_a_millisecond();
    lock = detail::RecordsLock::take(*topic_, detail::LockKind::exclusive);
  }
  if (!lock) return lock.error();
  LEAT_STEP("shrink:locked");
  auto before = detail::file_memory(lock->fd());
  if (!before) return before.error();
  for (std::uint32_t i = 0; i < geometry.partition_count; ++i) {
    auto done = detail::Shrinker{*topic_, i, me->index(), lock->fd()}.shrink();
    if (!done) return done.error();
  }
  auto after = detail::file_memory(lock->fd());
  if (!after) return after.error();
  return std::uint64_t{*before > *after ? *before - *after : 0};
}

inline Result<Topic> Topic::create(const std::string& name, const detail::NewTopic& created,
                                   const std::string& directory_name) {
  if (!detail::is_valid_topic_name(name)) return Errc::invalid_argument;
  auto directory = detail::open_directory(directory_name, true);
  if (!directory) return directory.error();
  while (true) {
    auto existing = attach(*directory, name, directory_name);  // Also finishes a deletion.
    if (existing) return Errc::exists;
    if (existing.error().code != Errc::not_found) return existing.error();
    if (auto made = detail::create_topic(*directory, name, created); !made) return made.error();
    auto topic = attach(*directory, name, directory_name);
    if (topic) topic->topic_->note_made();
    if (topic || topic.error().code != Errc::not_found) return topic;
    return Errc::deleted;  // Somebody deleted it at once.
  }
}

inline Result<Topic> Topic::attach(const detail::Fd& directory, const std::string& name,
                                   const std::string& directory_name) {
  auto attached = detail::attach_files(directory, name);
  if (!attached) return attached.error();
  std::shared_ptr<detail::SharedTopic> topic{std::move(*attached)};
  if ((topic->geometry().flags & detail::kRemoveWhenUnused) != 0 && !topic->is_deleted()) {
    auto kept = keep_while_open(std::move(topic), name);
    if (!kept) return kept.error();
    topic = std::move(*kept);
  }
  if (!topic->is_deleted()) return Topic{name, topic, directory_name};
  topic.reset();
  if (auto finished = detail::finish_deletion(directory, name); !finished) return finished.error();
  return Errc::not_found;
}

// A topic that is removed when unused, kept by a lock that all share who have it open, and that nobody
// takes alone. Who used it and lets go leaves the number of a removal in `deleting`; whoever is the last to
// let go finds it there and decides it. docs/internals/log.md, "Deleting".
inline Result<std::shared_ptr<detail::SharedTopic>> Topic::keep_while_open(
    std::shared_ptr<detail::SharedTopic> topic, const std::string& name) {
  using namespace detail;
  auto lock = topic->open_control_to_lock();
  if (!lock) return lock.error() == Errc::deleted ? Error{Errc::not_found} : lock.error();
  auto locked = lock->try_lock(lock_offset(kOpenLock), LockKind::shared);
  if (!locked) return locked.error();
  if (!*locked) return Errc::busy;  // A lock that none of us takes.
  // Whoever is about to decide looked before the lock was there: let it fail. The number stays a removal's.
  std::uint64_t removal = look_at_removal(*topic);
  while (removal != 0 && removal != kDeletionDecided &&
         !compare_exchange<Edge::topic_state>(topic->header().deleting, removal,
                                              topic->new_removal())) {
  }
  SharedTopic* const whole = topic.get();
  const auto kept = std::make_shared<LockFile>(std::move(*lock));
  // Runs when the last handle of this process is gone.
  const auto let_go = [kept, name, topic = std::move(topic)](SharedTopic*) {
    if (kept->is_inherited()) return;
    kept->close();
    LEAT_STEP("unused:let_go");
    remove_if_unused(*topic, name);
  };
  return std::shared_ptr<SharedTopic>{whole, let_go};
}

// Acts on this very topic: its name may be another's by now.
inline void Topic::remove_if_unused(detail::SharedTopic& topic, const std::string& name) {
  using namespace detail;
  std::uint64_t removal = topic.was_used() ? announce_removal(topic) : look_at_removal(topic);
  if (removal == 0) return;
  if (removal != kDeletionDecided) {
    // [topic-state] seq_cst: let go of and announced before this is looked at.
    if (byte_is_locked(topic.control_fd(), lock_offset(kOpenLock)) ||
        has_living_participants(topic))
      return;
    LEAT_STEP("unused:decided");
    // Fails if somebody opened or joined it meanwhile.
    if (!compare_exchange<Edge::topic_state>(topic.header().deleting, removal, kDeletionDecided) &&
        removal != kDeletionDecided)
      return;
  }
  LEAT_STEP("delete:decided");
  topic.announce_deletion();
  LEAT_STEP("delete:announced");
  if (auto directory = open_directory_at(topic.directory_fd(), ".."))
    (void)finish_deletion(*directory, name);
}

// For who has just locked or unlocked the byte of those who have it open.
inline std::uint64_t Topic::look_at_removal(detail::SharedTopic& topic) noexcept {
  // [topic-state] a read-modify-write: the kernel's lists of locks are written before this is looked at.
  return detail::fetch_or<detail::Edge::topic_state>(topic.header().deleting, 0);
}

// Stores the number of a removal that is not decided yet, and returns it; or kDeletionDecided.
inline std::uint64_t Topic::announce_removal(detail::SharedTopic& topic) noexcept {
  using namespace detail;
  // A number of its own, so that the last swap decides about this attempt and no other.
  const std::uint64_t removal = topic.new_removal();
  std::uint64_t other = load_relaxed(topic.header().deleting);  // relaxed: the swap checks it
  // [topic-state] seq_cst: announced before the slots are looked at.
  while (other != kDeletionDecided &&
         !compare_exchange<Edge::topic_state>(topic.header().deleting, other, removal)) {
  }
  LEAT_STEP("delete:attempted");
  return other == kDeletionDecided ? other : removal;
}

inline bool Topic::has_living_participants(const detail::SharedTopic& topic) {
  for (std::uint32_t i = 0; i < topic.participant_high(); ++i) {
    // [topic-state] seq_cst: the deleting mark was set before.
    const std::uint64_t state =
        detail::load_seq_cst<detail::Edge::topic_state>(topic.participant(i).state);
    if (state != 0 && !detail::is_dead(topic, state)) return true;
  }
  return false;
}

inline Result<void> Topic::remove(const std::string& name, const RemoveOptions& options) {
  if (!detail::is_valid_topic_name(name)) return Errc::invalid_argument;
  auto directory = detail::open_directory(options.directory, false);
  if (!directory) return directory.error();
  auto attached = detail::attach_files(*directory, name);
  if (!attached) return attached.error();
  const std::shared_ptr<detail::SharedTopic> topic{std::move(*attached)};
  if (!topic->is_deleted()) {
    detail::TopicHeader& header = topic->header();
    if (options.force) {
      (void)detail::exchange<detail::Edge::topic_state>(header.deleting, detail::kDeletionDecided);
    } else {
      const std::uint64_t attempt = announce_removal(*topic);
      if (attempt != detail::kDeletionDecided) {
        const bool in_use = has_living_participants(*topic);
        std::uint64_t expected = attempt;
        const std::uint64_t decision = in_use ? 0 : detail::kDeletionDecided;
        // Fails if somebody joined meanwhile, or another deletion decides instead.
        const bool decided = detail::compare_exchange<detail::Edge::topic_state>(
            header.deleting, expected, decision);
        if (in_use || (!decided && expected != detail::kDeletionDecided)) return Errc::busy;
      }
    }
    LEAT_STEP("delete:decided");
  }
  topic->announce_deletion();
  LEAT_STEP("delete:announced");
  return detail::finish_deletion(*directory, name);
}

// Joins; when every slot is taken, frees those of the dead and tries once more.
inline Result<detail::Participant> Topic::join(
    detail::ParticipantRole role, const std::function<void(std::uint32_t)>& fill) const {
  auto joined = detail::Participant::join(topic_, role, fill);
  if (joined || joined.error().code != Errc::too_many) return joined;
  const auto reap_dead = [&](std::uint32_t self, bool publishers) {
    for (std::uint32_t i = 0; i < topic_->participant_high(); ++i) {
      const std::uint64_t state =
          detail::load_acquire<detail::Edge::slot>(topic_->participant(i).state);
      if (state == 0 || (detail::is_publisher(state) && !publishers)) continue;
      if (detail::is_dead(*topic_, state)) detail::Repair{*topic_, 0, self}.reap(i, state);
    }
  };
  // Only publishers leave holes, which are repaired from a slot of one's own. The others come first:
  // the slots kept for repairers may be taken by repairers that died.
  constexpr std::uint32_t kNoSlot = 0;  // Not used for those.
  reap_dead(kNoSlot, false);
  if (auto repairer = detail::Participant::join(topic_, detail::ParticipantRole::repairer,
                                                [](std::uint32_t) {})) {
    reap_dead(repairer->index(), true);
  }
  return detail::Participant::join(topic_, role, fill);
}

// Makes `me` the one publisher. Records that a dead exclusive publisher left open become gaps.
inline Result<void> Topic::become_exclusive(const detail::Participant& me) const {
  detail::TopicHeader& header = topic_->header();
  const std::uint64_t identity = detail::identity_of(me.state());
  std::uint64_t holder = 0;
  // [exclusive] seq_cst: the word is set before the slots are looked at.
  while (!detail::compare_exchange<detail::Edge::exclusive>(header.exclusive, holder, identity)) {
    if (detail::byte_is_locked(topic_->control_fd(), detail::lock_offset(holder)))
      return Errc::busy;
    detail::compare_exchange<detail::Edge::exclusive>(header.exclusive, holder, 0);
    holder = 0;
  }
  for (std::uint32_t i = 0; i < topic_->participant_high(); ++i) {
    // [exclusive] seq_cst
    const std::uint64_t state =
        detail::load_seq_cst<detail::Edge::exclusive>(topic_->participant(i).state);
    if (i == me.index() || !detail::is_publisher(state)) continue;
    if (detail::is_dead(*topic_, state) && detail::Repair{*topic_, 0, me.index()}.reap(i, state))
      continue;
    detail::store_release<detail::Edge::exclusive>(header.exclusive, 0);
    return Errc::busy;
  }
  return {};
}

inline Result<Publisher> Topic::publisher(const PublisherOptions& options) const {
  const detail::Geometry& geometry = topic_->geometry();
  if (options.partition && *options.partition >= geometry.partition_count)
    return Errc::invalid_argument;
  const bool exclusive = options.exclusive || (geometry.flags & detail::kSingleWriter) != 0;
  auto records = topic_->records_for_writing();
  if (!records) return records.error();

  auto joined = join(
      exclusive ? detail::ParticipantRole::exclusive_publisher : detail::ParticipantRole::publisher,
      [](std::uint32_t) {});
  if (!joined) return joined.error();
  if (exclusive) {
    if (auto alone = become_exclusive(*joined); !alone) return alone.error();
  } else {
    // [exclusive] seq_cst: the slot is visible before the word is looked at.
    std::uint64_t holder =
        detail::load_seq_cst<detail::Edge::exclusive>(topic_->header().exclusive);
    while (holder != 0) {
      if (detail::byte_is_locked(topic_->control_fd(), detail::lock_offset(holder)))
        return Errc::busy;
      // Dead: what it left open is repaired by readers, as for any publisher.
      detail::compare_exchange<detail::Edge::exclusive>(topic_->header().exclusive, holder, 0);
      holder = detail::load_seq_cst<detail::Edge::exclusive>(topic_->header().exclusive);
    }
  }

  Publisher publisher;
  const std::uint32_t index = joined->index();
  publisher.participant_ = std::move(*joined);
  publisher.max_payload_ = geometry.max_payload();
  publisher.exclusive_ = exclusive;
  publisher.timestamps_ = (geometry.flags & detail::kTimestamps) != 0;
  publisher.home_partition_ =
      options.partition ? *options.partition
      : geometry.partition_count == 1
          ? 0
          : detail::fetch_add<detail::Edge::slot>(topic_->header().next_partition, 1) %
                geometry.partition_count;
  const bool has_membarrier = detail::membarrier_register();
  if (options.room_until)
    publisher.room_until_ =
        std::make_unique<const std::function<std::uint64_t()>>(options.room_until);
  for (std::uint32_t i = 0; i < geometry.partition_count; ++i) {
    publisher.writers_.emplace_back(*topic_, i, index, *records, exclusive);
    publisher.writers_.back().set_limit(publisher.room_until_.get());
    if (!has_membarrier) publisher.writers_.back().use_fences();
  }
  return publisher;
}

inline Result<Subscriber> Topic::subscriber(const SubscriberOptions& options) const {
  const detail::Geometry& geometry = topic_->geometry();
  if (options.gating && policy() == Policy::overwrite) return Errc::not_allowed;
  if (options.gating && options.in_place)
    return Errc::invalid_argument;  // It reads in place anyway.
  if (options.partition && *options.partition >= geometry.partition_count)
    return Errc::invalid_argument;
  const bool by_offset = options.from.at_ == detail::StartAt::offset;
  if (by_offset && !options.partition && geometry.partition_count > 1)
    return Errc::invalid_argument;
  const bool by_time = options.from.time_ms_ >= 0;
  if (by_time && (geometry.flags & detail::kTimestamps) == 0) return Errc::not_allowed;
  auto records = topic_->records_for_reading();
  if (!records) return records.error();

  const auto mode = options.gating ? detail::ReaderMode::gating : detail::ReaderMode::lossy;
  const std::uint32_t first = options.partition.value_or(0);
  const std::uint32_t last = options.partition ? first : geometry.partition_count - 1;
  Subscriber subscriber;
  const auto prepare = [&](std::uint32_t index) {
    subscriber.readers_.clear();
    for (std::uint32_t i = first; i <= last; ++i) {
      subscriber.readers_.emplace_back(*topic_, i, index, *records, mode, options.in_place);
      subscriber.readers_.back().prepare(options.from.at_);
    }
  };
  auto joined = join(detail::ParticipantRole::subscriber, prepare);
  if (!joined) return joined.error();
  subscriber.participant_ = std::move(*joined);
  subscriber.in_place_ = options.in_place;
  const bool has_cores = std::thread::hardware_concurrency() > 1;
  subscriber.spin_ns_ = has_cores ? options.spin.count() : 0;
  subscriber.patience_.set(has_cores ? options.patience.count() : 0);
  for (auto& reader : subscriber.readers_) {
    if (auto settled = reader.settle(options.from.at_, options.from.offset_); !settled)
      return settled.error();
    if (by_time) reader.skip_until_time(options.from.time_ms_);
  }
  return subscriber;
}

// Claims that are open and not the last ones: they keep what was claimed behind them from being read.
inline std::vector<Topic::OpenClaim> Topic::claims_with_others_behind() const {
  std::vector<OpenClaim> claims;
  for (std::uint32_t slot = 0; slot < topic_->participant_high(); ++slot) {
    if (!detail::is_publisher(
            detail::load_acquire<detail::Edge::slot>(topic_->participant(slot).state)))
      continue;
    for (std::uint32_t i = 0; i < topic_->geometry().partition_count; ++i) {
      const detail::PartitionView view = topic_->partition(i);
      const auto facts = detail::read_claim(view.slots[slot]);
      if (!facts || facts->claim_phase() != detail::kClaimed) continue;
      // [claim] acquire
      const std::uint64_t end = detail::load_acquire<detail::Edge::claim>(view.control->claim);
      if (end != facts->word + facts->step) claims.push_back({slot, i, facts->phase});
    }
  }
  return claims;
}

inline TopicInfo Topic::info() const {
  const detail::Geometry& geometry = topic_->geometry();
  TopicInfo info;
  info.name = name_;
  info.policy = policy();
  info.segment_bytes = geometry.segment_size;
  info.retain_all = (geometry.flags & detail::kRetainAll) != 0;
  info.single_writer = (geometry.flags & detail::kSingleWriter) != 0;
  info.timestamps = (geometry.flags & detail::kTimestamps) != 0;
  std::vector<std::uint64_t> starts;
  std::vector<std::uint64_t> currents;
  std::vector<std::uint64_t> rooms;  // Segments, at most.
  for (std::uint32_t i = 0; i < geometry.partition_count; ++i) {
    const detail::PartitionView view = topic_->partition(i);
    PartitionInfo partition;
    std::uint64_t start = 0;
    std::uint64_t current = 0;
    for (int attempt = 0; attempt < 1000;
         ++attempt) {  // A snapshot; a busy topic may move meanwhile.
      start = detail::load_seq_cst<detail::Edge::retire>(view.control->start);
      current = detail::load_acquire<detail::Edge::segment_open>(view.control->current);
      const std::uint64_t claim = detail::load_acquire<detail::Edge::claim>(view.control->claim);
      auto first = detail::find_segment(*topic_, view, start);
      auto newest = detail::find_segment(*topic_, view, current);
      if (!first || !newest ||
          geometry.claim_layout.segment(claim) != geometry.claim_layout.truncate_segment(current)) {
        continue;
      }
      partition.start = first->base_offset;
      partition.end = newest->base_offset + geometry.claim_layout.records(claim);
      break;
    }
    const detail::Supply supply{*topic_, i};
    const std::uint64_t segments = geometry.grows() ? supply.count() : geometry.segment_count;
    const std::uint64_t maximum = geometry.grows() ? supply.maximum() : geometry.segment_count;
    partition.capacity_bytes = segments * geometry.segment_size;
    info.capacity_bytes = std::max(info.capacity_bytes, partition.capacity_bytes);
    info.max_capacity_bytes = maximum * geometry.segment_size;
    rooms.push_back(std::max(segments, maximum));
    info.partitions.push_back(partition);
    starts.push_back(start);
    currents.push_back(current);
  }
  // What somebody is just publishing is no news; a claim that is still open a moment later is.
  std::vector<OpenClaim> open_claims = claims_with_others_behind();
  if (!open_claims.empty()) {
    for (int i = 0; i < 1000; ++i) detail::spin_pause();
    const auto still_open = claims_with_others_behind();
    std::erase_if(open_claims, [&](const OpenClaim& claim) {
      return std::find(still_open.begin(), still_open.end(), claim) == still_open.end();
    });
  }
  for (std::uint32_t slot = 0; slot < topic_->participant_high(); ++slot) {
    const detail::ParticipantSlot& participant = topic_->participant(slot);
    const std::uint64_t state = detail::load_acquire<detail::Edge::slot>(participant.state);
    const auto role = detail::role_of(state);
    if (!detail::is_publisher(state) && role != detail::ParticipantRole::subscriber &&
        role != detail::ParticipantRole::member) {
      continue;
    }
    if (detail::is_dead(*topic_, state)) continue;
    ParticipantInfo one;
    one.pid = detail::load_relaxed(participant.pid);
    one.role = role == detail::ParticipantRole::publisher             ? "publisher"
               : role == detail::ParticipantRole::exclusive_publisher ? "exclusive-publisher"
               : role == detail::ParticipantRole::member              ? "member"
                                                                      : "subscriber";
    one.blocking = std::any_of(open_claims.begin(), open_claims.end(),
                               [&](const OpenClaim& claim) { return claim.slot == slot; });
    for (std::uint32_t i = 0;
         role == detail::ParticipantRole::subscriber && i < geometry.partition_count; ++i) {
      const detail::PartitionSlot& line = topic_->partition(i).slots[slot];
      const std::uint64_t mode = detail::load_acquire<detail::Edge::retire>(line.reader_mode);
      if (mode == static_cast<std::uint64_t>(detail::ReaderMode::none)) continue;
      const std::uint64_t offset = detail::load_relaxed(line.cursor_offset);
      one.offset += offset;
      if (info.partitions[i].end > offset) one.lag += info.partitions[i].end - offset;
      if (mode != static_cast<std::uint64_t>(detail::ReaderMode::gating)) {
        one.role = "lossy-subscriber";
      } else if (!info.retain_all &&
                 detail::load_acquire<detail::Edge::cursor>(line.cursor_segment) <= starts[i] &&
                 currents[i] - starts[i] + 1 >= rooms[i]) {
        one.blocking = true;
      }
    }
    info.participants.push_back(std::move(one));
  }
  return info;
}

}  // namespace leat
