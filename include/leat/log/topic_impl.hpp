// Topics: creating, opening, deleting, joining.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "leat/base/config.hpp"
#include "leat/log/directory.hpp"
#include "leat/log/durable_topic.hpp"
#include "leat/log/durable_wait.hpp"
#include "leat/log/shrink.hpp"
#include "leat/os/event.hpp"
#include "leat/topic.hpp"

namespace leat::inline v0 {

LEAT_INLINE Topic::Topic(std::string name, std::shared_ptr<detail::MappedTopic> topic,
                         std::string directory) noexcept
    : name_{std::move(name)}, topic_{std::move(topic)}, directory_{std::move(directory)} {}

LEAT_INLINE TopicId Topic::id() const noexcept {
  const auto& id = topic_->header().id;
  // relaxed: constant once the topic has its name.
  const std::array words{detail::load_relaxed<detail::Why::constant>(id[0]),
                         detail::load_relaxed<detail::Why::constant>(id[1])};
  return {std::bit_cast<std::array<std::byte, 16>>(words)};
}
LEAT_INLINE std::uint64_t Topic::max_capacity_limit() const noexcept {
  return topic_->geometry().partition_size();
}
LEAT_INLINE std::uint64_t Topic::min_capacity() const noexcept {
  const detail::Geometry& geometry = topic_->geometry();
  return geometry.grows() ? geometry.first_segments * geometry.segment_size
                          : geometry.partition_size();
}
LEAT_INLINE Result<void> Topic::repair(const Deadline& deadline, bool interruptible) const {
  detail::DurableWindow* const window = topic_->durable();
  if (window == nullptr) return Errc::needs_durable;
  // The next archiver writes everything from `durable` on again.
  detail::OwnedWord& trouble = window->header().trouble;
  detail::OwnedWord seen = detail::read_owned(trouble);
  while (window->state() == detail::DiskState::read_only) {
    // [archiver] seq_cst: the next archiver sees that it may write.
    if (detail::compare_exchange_pair<detail::Edge::archiver>(
            &trouble.value, {seen.value, seen.epoch}, {0, seen.epoch}))
      break;
    seen = detail::read_owned(trouble);
  }
  topic_->wake_everybody();
  detail::WaitEnd wait_end;
  wait_end.interruptible = interruptible;
  for (std::uint32_t i = 0; i < partitions(); ++i) {
    const auto end = detail::known_end_of_claims(*topic_, i);
    if (!end) return end.error();
    detail::request_sync(*topic_, i, *end);
    const Error error = detail::await_durable(*topic_, i, *end, deadline, nullptr, wait_end);
    if (error.code != Errc::ok) return error;
  }
  return {};
}
LEAT_INLINE Result<void> Topic::sync(const Deadline& deadline, const std::stop_token& stop) const {
  if (topic_->durable() == nullptr) return Errc::needs_durable;
  Error error;
  for (std::uint32_t i = 0; i < partitions(); ++i) {
    const auto end = detail::known_end_of_claims(*topic_, i);
    if (end) detail::request_sync(*topic_, i, *end);
    const Error missing =
        end ? detail::await_durable(*topic_, i, *end, deadline, &stop) : end.error();
    if (missing.code != Errc::ok) error = missing;
  }
  return error;
}
LEAT_INLINE void Topic::recheck_offset_limits() const noexcept { topic_->wake_everybody(); }
LEAT_INLINE std::uint32_t Topic::partitions() const noexcept {
  return topic_->geometry().partition_count;
}
LEAT_INLINE std::uint64_t Topic::end_offset(std::uint32_t partition) const noexcept {
  LEAT_ASSERT(partition < partitions());
  return detail::end_of_claims(*topic_, partition);
}
LEAT_INLINE bool Topic::is_deleted() const noexcept {
  return topic_->is_deleted() || !topic_->has_files();
}
LEAT_INLINE Policy Topic::policy() const noexcept {
  return static_cast<Policy>(topic_->geometry().policy);
}
LEAT_INLINE std::size_t Topic::max_record_size() const noexcept {
  return topic_->geometry().max_payload();
}
LEAT_INLINE std::uint64_t Topic::segment_bytes() const noexcept {
  return topic_->geometry().segment_size;
}

LEAT_INLINE Result<Topic> Topic::create(const std::string& name, const TopicOptions& options) {
  if (options.durable != Durability::none) return create_durable(name, options);
  const bool has_durability = options.retention_bytes != 0 || options.retention.count() != 0 ||
                              options.sync_interval.count() != 0;
  if (has_durability) return Errc::invalid_argument;
  auto created = new_topic(options);
  if (!created) return created.error();
  return create(name, *created, options.directory, options.data_directory);
}

LEAT_INLINE Result<Topic> Topic::open(const std::string& name, Deadline deadline,
                                      const std::string& directory_name,
                                      const std::stop_token& stop,
                                      const std::string& data_directory, bool interruptible) {
  constexpr std::int64_t kFirstBackoff = 5'000'000;      // ns
  constexpr std::int64_t kLongestBackoff = 125'000'000;  // docs/decisions/0026-opening-naps.md
  constexpr std::int64_t kInterruptibleBackoff = 250'000'000;
  if (!detail::is_valid_topic_name(name)) return Errc::invalid_argument;
  // Waiting for a topic requires a directory to look into. A durable topic may have lost its own
  // in a restart of the machine.
  const bool make = !deadline.is_immediate() || detail::has_store(data_directory, name);
  auto directory = detail::open_directory(directory_name, make);
  if (!directory) return directory.error();
  // A caller that wants signals calls open() again and again, so short first back-offs would cost too much.
  for (std::int64_t backoff = kFirstBackoff;; backoff = std::min(2 * backoff, kLongestBackoff)) {
    if (interruptible) backoff = kInterruptibleBackoff;
    auto topic = attach(*directory, name, directory_name, data_directory);
    if (topic || topic.error().code != Errc::not_found || deadline.is_immediate()) return topic;
    if (stop.stop_requested()) return Errc::stopped;
    if (deadline.passed()) return Errc::not_found;
    const detail::Readable end = detail::wait_readable(-1, -1, deadline.at_most_ns(backoff));
    if (end == detail::Readable::interrupted && interruptible) return Errc::interrupted;
  }
}

LEAT_INLINE Result<Topic> Topic::open_or_create(const std::string& name,
                                                const TopicOptions& options) {
  while (true) {
    auto opened = open(name, Deadline::immediate(), options.directory, {}, options.data_directory);
    if (opened || opened.error().code != Errc::not_found) return opened;
    auto created = create(name, options);
    if (created || created.error().code != Errc::exists) return created;
  }
}

LEAT_INLINE Result<std::vector<std::string>> Topic::list(const std::string& directory_name,
                                                         const std::string& data_directory) {
  std::vector<std::string> all;
  auto directory = detail::open_directory(directory_name, false);
  if (!directory && directory.error() != Errc::not_found) return directory.error();
  // A user who may not enter the data directory has no durable topics.
  auto data = detail::open_data_directory(data_directory, false);
  for (const auto* place : {&directory, &data}) {
    if (!*place) continue;
    auto names = detail::topic_names(**place);
    if (!names) return names.error();
    all.insert(all.end(), names->begin(), names->end());
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

LEAT_INLINE Result<detail::NewTopic> Topic::new_topic(const TopicOptions& options) {
  constexpr std::uint64_t kSegmentsByDefault = 8;
  constexpr std::uint64_t kMaxCapacity = 1ULL << 40;
  if (options.participants == 0 || options.participants > detail::kMaxParticipants)
    return Errc::invalid_argument;
  const std::uint64_t capacity = options.capacity_bytes != 0 ? options.capacity_bytes
                                 : options.durable != Durability::none
                                     ? TopicOptions::kDefaultWindow
                                     : TopicOptions::kDefaultCapacity;
  if (capacity > kMaxCapacity) return Errc::invalid_argument;
  if (options.segment_bytes > detail::Geometry::kMaxSegmentSize) return Errc::invalid_argument;
  if ((options.mode & ~0666U) != 0 || (options.mode & 0600) != 0600)
    return Errc::invalid_argument;  // The owner must be able to participate.
  // A topic that retains everything has nothing to overwrite or add, and nobody to evict.
  if (options.retain_all && (options.policy == Policy::overwrite ||
                             options.policy == Policy::grow || options.evict_after.count() != 0))
    return Errc::invalid_argument;
  if (options.policy != Policy::grow &&
      (options.max_capacity_bytes != 0 || options.grow_below_bytes != 0))
    return Errc::invalid_argument;
  detail::NewTopic topic;
  detail::Geometry& geometry = topic.geometry;
  const std::uint64_t wanted =
      options.segment_bytes != 0 ? options.segment_bytes : capacity / kSegmentsByDefault;
  geometry.segment_size = detail::Geometry::round_up(
      std::max(wanted, detail::Geometry::kMinSegmentSize), detail::kPage);
  const std::uint64_t segments =
      std::max<std::uint64_t>(2, (capacity + geometry.segment_size - 1) / geometry.segment_size);
  if (segments > detail::kMaxSegments) return Errc::invalid_argument;
  geometry.segment_count = static_cast<std::uint32_t>(segments);
  topic.id = options.id.is_known() ? options.id : detail::make_topic_id();
  geometry.key = detail::make_random();
  geometry.partition_count = options.partitions;
  geometry.participant_capacity = options.participants + detail::kSpareSlots;
  geometry.policy = static_cast<std::uint32_t>(options.policy);
  geometry.flags = (options.retain_all ? detail::kRetainAll : 0U) |
                   (options.single_writer ? detail::kSingleWriter : 0U) |
                   (options.timestamps ? detail::kTimestamps : 0U) |
                   (options.delete_when_unused ? detail::kDeleteWhenUnused : 0U) |
                   (options.durable != Durability::none ? detail::kDurable : 0U);
  geometry.revoke_after_ns = options.revoke_after.count();
  geometry.evict_after_ns = options.evict_after.count();
  if (geometry.grows() && !plan_growth(options, topic)) return Errc::invalid_argument;
  if (!geometry.is_valid()) return Errc::invalid_argument;
  geometry.derive();
  topic.mode = options.mode;
  if (!options.file_group.empty()) {
    const auto file_group = detail::find_file_group(options.file_group);
    if (!file_group) return Errc::invalid_argument;
    topic.file_group = *file_group;
  }
  return topic;
}

// The capacity is only the initial size: control describes as many segments as the
// maximum may ever be.
LEAT_INLINE bool Topic::plan_growth(const TopicOptions& options, detail::NewTopic& topic) {
  constexpr std::uint64_t kMaxMapped = 1ULL << 44;  // bytes; a process can map 2^47 in all
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

LEAT_INLINE Result<void> Topic::set_max_capacity(std::uint64_t bytes) const {
  const detail::Geometry& geometry = topic_->geometry();
  if (!geometry.grows()) return Errc::needs_growing;
  if (topic_->is_deleted()) return Errc::deleted;
  if (bytes < min_capacity() || bytes > max_capacity_limit()) return Errc::invalid_argument;
  const auto segments =
      static_cast<std::uint32_t>((bytes + geometry.segment_size - 1) / geometry.segment_size);
  // [sleeping] seq_cst: stored before publishers that wait for room are woken.
  (void)detail::exchange<detail::Edge::sleeping>(topic_->header().max_segments, segments);
  detail::MappedTopic::wake(topic_->header().space_wake);
  return {};
}

LEAT_INLINE Result<std::uint64_t> Topic::shrink() const {
  const detail::Geometry& geometry = topic_->geometry();
  if (!geometry.grows()) return Errc::needs_growing;
  auto me = join(detail::ParticipantRole::repairer, [](std::uint32_t) {});
  if (!me) return me.error();
  auto lock = detail::RecordsLock::take(*topic_, detail::LockKind::exclusive);
  for (const Deadline deadline{std::chrono::seconds{1}};
       lock.error().code == Errc::busy && !deadline.passed();) {
    detail::sleep_a_millisecond();
    lock = detail::RecordsLock::take(*topic_, detail::LockKind::exclusive);
  }
  if (!lock) return lock.error();
  LEAT_CRASH_POINT("shrink:locked");
  auto before = detail::file_memory(lock->fd());
  if (!before) return before.error();
  std::uint64_t used = 0;
  for (std::uint32_t i = 0; i < geometry.partition_count; ++i)
    used += detail::SegmentMemory{*topic_, i}.count() * geometry.segment_size;
  for (std::uint32_t i = 0; i < geometry.partition_count; ++i) {
    detail::Shrinker shrinker{*topic_, i, me->index(), lock->fd()};
    auto done = *before > used ? shrinker.finish() : Result<void>{};
    if (done) done = shrinker.shrink();
    if (!done) return done.error();
  }
  auto after = detail::file_memory(lock->fd());
  if (!after) return after.error();
  return std::uint64_t{*before > *after ? *before - *after : 0};
}

LEAT_INLINE Result<Topic> Topic::create(const std::string& name, const detail::NewTopic& created,
                                        const std::string& directory_name,
                                        const std::string& data_directory) {
  if (!detail::is_valid_topic_name(name)) return Errc::invalid_argument;
  auto directory = detail::open_directory(directory_name, true);
  if (!directory) return directory.error();
  while (true) {
    if (detail::has_store(data_directory, name)) return Errc::exists;
    auto existing =
        attach(*directory, name, directory_name, data_directory);  // Also finishes a deletion.
    if (existing) return Errc::exists;
    if (existing.error().code != Errc::not_found) return existing.error();
    std::optional<Topic> whole;  // Before it gets its name: what may throw comes first.
    const auto use = [&](std::unique_ptr<detail::MappedTopic> attached) -> Result<void> {
      std::shared_ptr<detail::MappedTopic> topic = std::move(attached);
      if ((topic->geometry().flags & detail::kDeleteWhenUnused) != 0) {
        auto kept = keep_while_open(std::move(topic), name);
        if (!kept) return kept.error();
        topic = std::move(*kept);
      }
      whole = Topic{name, std::move(topic), directory_name};
      return {};
    };
    if (auto made = detail::create_topic(*directory, name, created, use); !made)
      return made.error();
    whole->topic_->note_made();
    return std::move(*whole);
  }
}

LEAT_INLINE Result<Topic> Topic::attach(const detail::Fd& directory, const std::string& name,
                                        const std::string& directory_name,
                                        const std::string& data_directory) {
  for (const Deadline deadline{detail::kOpeningTakes};;) {
    auto attached = detail::attach_files(directory, name);
    if (!attached && attached.error() != Errc::not_found) return attached.error();
    if (!attached) {
      auto data = detail::open_data_directory(data_directory, false);
      if (!data) return Errc::not_found;  // A user who may not enter it has no durable topics.
      auto made = detail::make_window(directory, name, *data);
      if (made) return Topic{name, std::move(*made), directory_name};
      // Another process makes or deletes the window.
      const bool is_there = detail::has_name(data->get(), name.c_str());
      if (made.error() != Errc::not_found || !is_there) return made.error();
      if (deadline.passed()) return Errc::busy;
      continue;
    }
    std::shared_ptr<detail::MappedTopic> topic{std::move(*attached)};
    const bool is_durable = topic->durable() != nullptr;
    if (is_durable && !topic->is_deleted()) {
      auto joined = detail::join_window(topic, data_directory, name);
      if (joined) return Topic{name, std::move(*joined), directory_name};
      if (joined.error() != Errc::not_found) return joined.error();
      if (deadline.passed()) return Errc::busy;
      detail::sleep_a_millisecond();
      continue;
    }
    if ((topic->geometry().flags & detail::kDeleteWhenUnused) != 0 && !topic->is_deleted()) {
      auto kept = keep_while_open(std::move(topic), name);
      if (!kept) return kept.error();
      topic = std::move(*kept);
    }
    if (!topic->is_deleted()) return Topic{name, topic, directory_name};
    topic.reset();
    if (auto finished = detail::finish_deletion(directory, name); !finished)
      return finished.error();
    if (!is_durable) return Errc::not_found;
  }
}

// Makes the files first: their directory decides who gets the name.
LEAT_INLINE Result<Topic> Topic::create_durable(const std::string& name,
                                                const TopicOptions& options) {
  if (!detail::is_valid_topic_name(name)) return Errc::invalid_argument;
  const bool makes_no_sense = options.policy == Policy::overwrite ||
                              options.policy == Policy::grow || options.retain_all ||
                              options.evict_after.count() != 0 || options.delete_when_unused;
  if (makes_no_sense) return Errc::not_with_durable;
  auto created = new_topic(options);
  if (!created) return created.error();
  detail::Manifest manifest = detail::manifest_of(*created, options);
  if (!manifest.is_valid()) return Errc::invalid_argument;
  auto directory = detail::open_directory(options.directory, true);
  if (!directory) return directory.error();
  for (const Deadline deadline{detail::kOpeningTakes};;) {
    auto taken = detail::attach_files(*directory, name);
    if (taken && (*taken)->is_deleted()) {
      if (auto finished = detail::finish_deletion(*directory, name); !finished)
        return finished.error();
      taken = Errc::not_found;
    }
    if (taken || taken.error() != Errc::not_found)
      return taken ? Error{Errc::exists} : taken.error();
    auto data = detail::open_data_directory(options.data_directory, true);
    if (!data) return data.error();
    auto made = detail::create_store(detail::Disk::system(), data->get(), name, manifest);
    if (!made) return made.error();
    auto topic = attach(*directory, name, options.directory, options.data_directory);
    if (topic) return topic;
    if (topic.error() != Errc::not_found) {
      *directory = detail::Fd{};  // Frees descriptors, for lack of which it may have failed.
      *data = detail::Fd{};
      detail::delete_unopened(options.data_directory, name, manifest.id);
      return topic;
    }
    // Another process has deleted the topic, and may have used it. So the next one has an identity of its own.
    if (deadline.passed()) return Errc::deleted;
    manifest.id = detail::make_topic_id();
    manifest.topic.salt = detail::make_random();
  }
}

// For a topic with delete_when_unused: keeps it while this process has it open, by a lock that all
// such processes share and nobody takes exclusively. A process that used the topic and closes it
// leaves the number of a deletion attempt in `deleting`; the last process to close the topic finds
// the number and decides it. docs/internals/log.md, "Deleting".
LEAT_INLINE Result<std::shared_ptr<detail::MappedTopic>> Topic::keep_while_open(
    std::shared_ptr<detail::MappedTopic> topic, const std::string& name) {
  using namespace detail;
  // `busy`: a foreign lock, because no participant takes an exclusive one.
  auto lock = topic->lock_while_open();
  if (!lock) return lock.error() == Errc::deleted ? Error{Errc::not_found} : lock.error();
  // A process that is about to decide may have checked before the lock was taken: replace its
  // attempt's number with a new one, so that its swap fails.
  std::uint64_t attempt = read_attempt(*topic);
  while (attempt != 0 && attempt != kDeletionDecided &&
         !compare_exchange<Edge::topic_state>(topic->header().deleting, attempt,
                                              topic->new_deletion_attempt())) {
  }
  MappedTopic* const whole = topic.get();
  const std::shared_ptr<HeritableLock> kept = std::move(*lock);
  // Runs when the last handle in this process is gone. Whoever had no lock decides nothing.
  const auto let_go = [kept, name, topic = std::move(topic)](MappedTopic*) {
    if (!kept->release()) return;
    LEAT_CRASH_POINT("unused:let_go");
    delete_if_unused(*topic, name);
  };
  return std::shared_ptr<MappedTopic>{whole, let_go};
}

// Acts on exactly this topic; its name may belong to another one by now.
LEAT_INLINE void Topic::delete_if_unused(detail::MappedTopic& topic, const std::string& name) {
  using namespace detail;
  std::uint64_t attempt = topic.was_used() ? topic.announce_attempt() : read_attempt(topic);
  if (attempt == 0) return;
  if (attempt != kDeletionDecided) {
    // [topic-state] seq_cst: the lock was released and the attempt announced before this check.
    if (byte_is_locked(topic.control_fd(), lock_offset(kOpenLock)) ||
        has_living_participants(topic))
      return;
    LEAT_CRASH_POINT("unused:decided");
    // Fails if somebody opened or joined it meanwhile.
    if (!compare_exchange<Edge::topic_state>(topic.header().deleting, attempt, kDeletionDecided) &&
        attempt != kDeletionDecided)
      return;
  }
  LEAT_CRASH_POINT("delete:decided");
  topic.announce_deletion();
  LEAT_CRASH_POINT("delete:announced");
  if (auto directory = open_directory_at(topic.directory_fd(), ".."))
    (void)finish_deletion(*directory, name);
}

// Reads `deleting`, right after locking or unlocking the kOpenLock byte.
LEAT_INLINE std::uint64_t Topic::read_attempt(detail::MappedTopic& topic) noexcept {
  // [topic-state] seq_cst: a read-modify-write, so that the read is not ahead of the system call
  // that changed the lock.
  return detail::fetch_or<detail::Edge::topic_state>(topic.header().deleting, 0);
}

LEAT_INLINE bool Topic::has_living_participants(const detail::MappedTopic& topic) {
  for (std::uint32_t i = 0; i < topic.participant_high(); ++i) {
    // [topic-state] seq_cst: the attempt was stored before.
    const std::uint64_t state =
        detail::load_seq_cst<detail::Edge::topic_state>(topic.participant(i).state);
    if (state != 0 && !detail::is_dead(topic, state)) return true;
  }
  return false;
}

LEAT_INLINE Result<void> Topic::delete_topic(const std::string& name,
                                             const DeleteOptions& options) {
  if (!detail::is_valid_topic_name(name)) return Errc::invalid_argument;
  auto directory = detail::open_directory(options.directory, false);
  if (!directory && directory.error() == Errc::not_found) directory = detail::Fd{};
  if (!directory) return directory.error();
  auto found = detail::window_to_delete(*directory, options.data_directory, name);
  if (!found) return found.error();
  if (*found == nullptr) return {};
  const std::shared_ptr<detail::MappedTopic> topic{std::move(*found)};
  detail::find_files(*topic, options.data_directory, name);
  // Before it is decided, because that cannot be undone. Also of a window that is deleted already, as by a process that
  // closed the topic: its files are there.
  if (auto may = detail::may_delete_topic(*directory, name, *topic); !may) return may;
  if (!topic->is_deleted()) {
    detail::TopicHeader& header = topic->header();
    if (options.force) {
      (void)detail::exchange<detail::Edge::topic_state>(header.deleting, detail::kDeletionDecided);
    } else {
      const std::uint64_t attempt = topic->announce_attempt();
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
    LEAT_CRASH_POINT("delete:decided");
  }
  topic->announce_deletion();
  LEAT_CRASH_POINT("delete:announced");
  if (topic->durable() != nullptr) {
    if (auto done = detail::delete_files_of(*topic); !done) return done;
  }
  return detail::finish_deletion(*directory, name);
}

// Joins. If every slot is taken, frees those of dead participants and tries once more.
LEAT_INLINE Result<detail::Participant> Topic::join(
    detail::ParticipantRole role, const Callback<void(std::uint32_t)>& fill) const {
  auto joined = detail::Participant::join(topic_, role, fill);
  if (joined || joined.error().code != Errc::too_many) return joined;
  const auto reap_dead = [&](std::uint32_t own_slot, bool publishers) {
    for (std::uint32_t i = 0; i < topic_->participant_high(); ++i) {
      const std::uint64_t state =
          detail::load_acquire<detail::Edge::slot>(topic_->participant(i).state);
      if (state == 0 || (detail::is_publisher(state) && !publishers)) continue;
      if (detail::is_dead(*topic_, state)) detail::Repair{*topic_, 0, own_slot}.reap(i, state);
    }
  };
  // Only publishers leave holes, whose repair needs a slot of our own. The others are reaped first,
  // because the slots reserved for repairers may belong to dead repairers.
  constexpr std::uint32_t kNoSlot = 0;  // Not used for those.
  reap_dead(kNoSlot, false);
  if (auto repairer = detail::Participant::join(topic_, detail::ParticipantRole::repairer,
                                                [](std::uint32_t) {})) {
    reap_dead(repairer->index(), true);
  }
  return detail::Participant::join(topic_, role, fill);
}

// Makes `me` the topic's only publisher. Records that a dead exclusive publisher left
// open become gaps.
LEAT_INLINE Result<void> Topic::become_exclusive(const detail::Participant& me) const {
  detail::TopicHeader& header = topic_->header();
  const std::uint64_t identity = detail::identity_of(me.state());
  std::uint64_t holder = 0;
  // [exclusive] seq_cst: the word is set before slots are read.
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

}  // namespace leat::inline v0
