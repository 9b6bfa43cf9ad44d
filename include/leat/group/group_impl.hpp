// Group: creating, finding, moving, inspecting and deleting groups.
#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "leat/base/config.hpp"
#include "leat/group.hpp"
#include "leat/group/closing.hpp"
#include "leat/group/member_impl.hpp"
#include "leat/group/new_group.hpp"
#include "leat/group/stored_group.hpp"
#include "leat/log/directory.hpp"

namespace leat::inline v0 {

namespace detail {

// How long a search for a place waits for living publishers with open claims in front of it.
inline constexpr std::chrono::milliseconds kHolePatience{200};
// How long a group is created or moved again because publishers evicted the subscriber that kept its room.
inline constexpr std::chrono::seconds kEvictedPatience{5};

// Whether a scan that found nothing more may find something now: it is at a hole that was repaired, or whose
// owner is alive and has a moment left. `reader` keeps the room.
//   corrupt   nobody owns the hole
inline Result<bool> repair_for_scan(MappedTopic& topic, const PartitionReader& reader,
                                    RecordScanner& scanner, HoleWatch& hole,
                                    const Deadline& until) {
  const std::uint32_t partition = reader.partition();
  if (!has_hole_at(topic.geometry(), topic.partition(partition), scanner.hole())) return false;
  Repair repair{topic, partition, reader.own_slot()};
  if (!repair.pin(scanner.segment())) return false;  // The reader was evicted.
  auto checked = hole.check(topic, partition, reader.own_slot(), scanner.hole());
  repair.unpin();
  if (!checked) return checked.error();
  if (scanner.is_ready_at(scanner.cursor(0, 0))) return true;
  if (until.passed()) return false;
  sleep_a_millisecond();
  return true;
}

}  // namespace detail

LEAT_INLINE Group::Group(Topic topic, std::shared_ptr<detail::GroupView> view, bool was_created)
    : topic_{std::move(topic)},
      view_{std::move(view)},
      name_{view_->name()},
      was_created_{was_created} {}

// ---- The topic's group lock: creating, finding and deleting -------------------------------------

// One process at a time creates, finds or deletes groups of a topic. Members at work and publishers
// never wait for it.
LEAT_INLINE Result<detail::GroupLock> Group::lock(detail::MappedTopic& topic) {
  auto lock = topic.open_control_to_lock();
  if (!lock) return lock.error();
  for (const Deadline deadline{std::chrono::seconds{5}};; detail::sleep_a_millisecond()) {
    auto locked = lock->try_lock(detail::kGroupLock);
    if (!locked) return locked.error();
    if (*locked) break;
    if (deadline.passed()) return Errc::busy;
  }
  finish_deletions(topic);
  return detail::GroupLock{topic, std::move(*lock)};
}

// Finishes what dead processes left: carries out decided deletions, calls off undecided ones, and
// deletes files that no slot names.
LEAT_INLINE void Group::finish_deletions(detail::MappedTopic& topic) {
  std::vector<std::string> known;
  for (std::uint32_t slot = 0; slot < detail::kMaxGroups; ++slot) {
    const std::uint64_t number = topic.group_number(slot);
    if (number == 0) continue;
    known.push_back(detail::group_file_name(number));
    auto group = topic.group(slot);
    if (!group || *group == nullptr) continue;
    detail::settle_deletion(topic, **group);
    (void)(*group)->call_off();  // Its maker is dead.
    // A process that died after it had decided may have left some of what is saved.
    if ((*group)->is_closed()) (void)delete_saved(topic, **group);
  }
  detail::take_closed_groups_out(topic);
  auto files = detail::names_in(topic.directory_fd());
  if (!files) return;
  for (const std::string& file : *files) {
    if (file.starts_with(detail::kGroupPrefix) &&
        std::find(known.begin(), known.end(), file) == known.end())
      detail::delete_file_at(topic.directory_fd(), file.c_str());
  }
}

LEAT_INLINE Result<std::shared_ptr<detail::GroupView>> Group::find(detail::MappedTopic& topic,
                                                                   const std::string& name) {
  for (std::uint32_t slot = 0; slot < detail::kMaxGroups; ++slot) {
    if (topic.group_number(slot) == 0) continue;
    auto group = topic.group(slot);
    if (!group) return group.error();
    // A closed group is still there for members that have not noticed yet. Its name is free.
    if (*group != nullptr && !(*group)->is_closed() && (*group)->name() == name) return group;
  }
  if (topic.durable() != nullptr) return restore(topic, name);
  return Errc::not_found;
}

// Durable topics: `saved` as a group in memory.
LEAT_INLINE Result<std::shared_ptr<detail::GroupView>> Group::make_saved(
    detail::MappedTopic& topic, const detail::SavedGroup& saved,
    const detail::GroupGeometry& geometry, const std::vector<detail::CursorValue>& cursors) {
  auto group = detail::NewGroup::make(topic, saved.name, geometry);
  if (!group) return group.error();
  group->set_cursors(cursors);
  if (auto restored = group->restore(saved); !restored) return restored.error();
  auto slot = group->enter(detail::kGroupOpen);
  if (!slot) return slot.error();
  return topic.group(*slot);
}

// Durable topics: a group that no process has used since the topic was opened, if there is one.
//   not_found
//   corrupt     it, or another group, is damaged
LEAT_INLINE Result<std::shared_ptr<detail::GroupView>> Group::restore(detail::MappedTopic& topic,
                                                                      const std::string& name) {
  using namespace detail;
  auto groups = StoredGroups::open(topic);
  if (!groups) return groups.error();
  auto saved = groups->find(name);
  if (!saved) return saved.error();
  std::vector<CursorValue> cursors;
  for (std::uint32_t i = 0; i < topic.geometry().partition_count; ++i) {
    // Not behind the end, as after a group of a later backup: nobody would get what comes next.
    const auto end = known_end_of_claims(topic, i);
    if (!end) return end.error();
    const std::uint64_t offset = std::min(saved->offsets[i], *end);
    if (offset > kMaxPosition) return Errc::corrupt;
    cursors.push_back(CursorValue::make(offset, 0, 0, 0, 0));
  }
  LEAT_CRASH_POINT("group:restoring");
  return make_saved(topic, *saved, geometry_of(saved->facts), cursors);
}

// Durable topics: also those that nobody has used since the topic was opened.
LEAT_INLINE Result<std::vector<std::string>> Group::stored_names(detail::MappedTopic& topic) {
  auto groups = detail::StoredGroups::open(topic);
  if (!groups) return groups.error();
  auto all = groups->load_only();
  if (!all) return all.error();
  std::vector<std::string> names;
  for (const detail::StoredGroup& one : *all) {
    if (one.saved) names.push_back(one.saved->name);
  }
  return names;
}

// Durable topics: deletes what is saved of a group. `view`: the group in memory.
LEAT_INLINE Result<void> Group::delete_saved(detail::MappedTopic& topic,
                                             const detail::GroupView& view) {
  using namespace detail;
  if (topic.durable() == nullptr) return {};
  auto groups = StoredGroups::open(topic);
  if (!groups) return groups.error();
  return groups->delete_group(load_relaxed<Why::constant>(view.header().saved_id));
}

// The same for a durable topic.
LEAT_INLINE Result<detail::CursorValue> Group::offset_of_place(detail::MappedTopic& topic,
                                                               detail::PartitionReader& reader,
                                                               const From& from) {
  using namespace detail;
  std::uint64_t offset = reader.offset();
  const auto end = known_end_of_claims(topic, reader.partition());
  if (!end) return end.error();
  if (from.at_ == StartAt::offset && offset > *end) return Errc::invalid_argument;
  bool is_found = from.time_ms_ < 0;
  const Deadline until{kHolePatience};
  while (!is_found) {
    auto polled = reader.poll(
        1,
        [&](const Record& record) {
          offset = record.offset;
          is_found = true;
        },
        [](const Event&) {});
    if (!polled) return polled.error();
    if (is_found || reader.is_ready()) continue;
    if (reader.has_hole() && !until.passed()) {
      if (auto checked = reader.repair_hole(); !checked) return checked.error();
      if (!reader.is_ready()) sleep_a_millisecond();
      continue;
    }
    offset = reader.offset();
    break;
  }
  if (offset > kMaxPosition) return Errc::corrupt;
  return CursorValue::make(offset, 0, 0, 0, 0);
}

// The cursor for `from`. `reader` keeps the room from there on.
LEAT_INLINE Result<detail::CursorValue> Group::place_of(const Topic& topic,
                                                        detail::PartitionReader& reader,
                                                        const From& from) {
  using namespace detail;
  MappedTopic& shared = *topic.topic_;
  if (shared.durable() != nullptr) return offset_of_place(shared, reader, from);
  auto records = shared.records_for_reading();
  if (!records) return records.error();
  const RecordPlace begin = reader.place();
  // The end of a segment that is full to its last granule is the beginning of the next one.
  const bool is_at_end = begin.granules == shared.geometry().segment_granules;
  CursorValue cursor =
      CursorValue::make(begin.segment * shared.geometry().segment_granules + begin.granules, 0,
                        is_at_end ? 0 : begin.records, 0, 0);
  const bool by_time = from.time_ms_ >= 0;
  const bool by_offset = from.at_ == StartAt::offset || from.at_ == StartAt::last;
  if (!by_offset && !by_time) return cursor;
  // What is published from now on is wanted, even if the clock of a publisher is behind.
  const auto end = known_end_of_claims(shared, reader.partition());
  if (!end) return end.error();
  if (from.at_ == StartAt::offset && reader.offset() > *end) return Errc::invalid_argument;
  const Deadline until{kHolePatience};
  HoleWatch hole;
  RecordScanner scanner{shared, reader.partition(), *records};
  const Scan at = scanner.go_to(cursor);
  if (at == Scan::corrupt) return Errc::corrupt;
  if (at == Scan::nothing) return cursor;
  while (true) {
    cursor = scanner.cursor(0, 0);
    if (scanner.offset() >= (by_offset ? reader.offset() : *end)) return cursor;
    ScannedRecord found;
    switch (scanner.next(found)) {
      case Scan::skipped: break;
      case Scan::corrupt: return Errc::corrupt;
      case Scan::nothing:
        if (auto again = repair_for_scan(shared, reader, scanner, hole, until); !again) {
          return again.error();
        } else if (*again) {
          break;
        }
        // A claim before the offset is open: what is behind it has no place yet.
        return from.at_ == StartAt::offset ? Result<CursorValue>{Errc::busy} : cursor;
      case Scan::record:
        if (!by_time) break;
        Record record;
        if (!read_payload(found.detail, Bytes{found.payload, found.detail & kDetailLength}, record))
          return Errc::corrupt;
        if (record.timestamp_ms >= from.time_ms_) return cursor;
    }
  }
}

// The cursors for `from`, one for each of the subscriber's partitions. Nothing if it was evicted meanwhile.
LEAT_INLINE Result<Group::Places> Group::places_of(const Topic& topic, Subscriber& subscriber,
                                                   const From& from) {
  std::vector<detail::CursorValue> places;
  for (detail::PartitionReader& one : subscriber.readers_) {
    auto place = place_of(topic, one, from);
    if (was_evicted(subscriber)) return Places{};  // What it says is not true then.
    if (!place) return place.error();
    places.push_back(*place);
  }
  return Places{std::move(places)};
}

LEAT_INLINE bool Group::was_evicted(const Subscriber& subscriber) noexcept {
  return std::any_of(subscriber.readers_.begin(), subscriber.readers_.end(),
                     [](const detail::PartitionReader& one) { return one.is_evicted(); });
}

LEAT_INLINE Result<std::shared_ptr<detail::GroupView>> Group::create(const Topic& topic,
                                                                     const std::string& name,
                                                                     const GroupOptions& options) {
  // The name of the dead-letter topic must be valid, too.
  if (options.max_deliveries != 0 &&
      !detail::is_valid_topic_name(detail::dead_letter_topic_name(topic.name(), name)))
    return Errc::invalid_argument;
  detail::MappedTopic& shared = *topic.topic_;
  if (shared.durable() != nullptr) return create_saved(topic, name, options);
  // A group that is called off is made anew.
  for (const Deadline until{detail::kEvictedPatience};;) {
    auto slot = create_once(topic, name, options);
    if (!slot) return slot.error();
    if (*slot) return shared.group(**slot);
    detail::take_closed_groups_out(shared);
    if (until.passed()) return Errc::busy;
  }
}

// In memory. Nothing if the subscriber that keeps the room was evicted meanwhile.
LEAT_INLINE Result<Group::Slot> Group::create_once(const Topic& topic, const std::string& name,
                                                   const GroupOptions& options) {
  using namespace detail;
  // First what may take long.
  auto group = NewGroup::make(*topic.topic_, name, geometry_of(options));
  if (!group) return group.error();
  // Keeps the room until the group does.
  auto reader = topic.subscriber({.from = options.from});
  if (!reader) return reader.error();
  auto cursors = places_of(topic, *reader, options.from);
  if (!cursors) return cursors.error();
  if (!*cursors) return Slot{};
  group->set_cursors(**cursors);
  auto slot = group->enter(kGroupMaking);
  if (!slot) return slot.error();
  // A publisher that evicted the subscriber and did not find the group did so before this look. One
  // that finds the group calls it off.
  if (was_evicted(*reader) || !group->open()) {
    group->call_off();
    return Slot{};
  }
  return Slot{*slot};
}

LEAT_INLINE Result<std::shared_ptr<detail::GroupView>> Group::create_saved(
    const Topic& topic, const std::string& name, const GroupOptions& options) {
  auto reader = topic.subscriber({.from = options.from});
  if (!reader) return reader.error();
  auto cursors = places_of(topic, *reader, options.from);
  if (!cursors) return cursors.error();
  detail::MappedTopic& shared = *topic.topic_;
  const detail::GroupGeometry geometry = detail::geometry_of(options);
  const detail::SavedGroup saved = detail::saved_group_of(geometry, name, **cursors);
  if (!saved.is_valid()) return Errc::invalid_argument;
  auto groups = detail::StoredGroups::open(shared);
  if (!groups) return groups.error();
  if (auto made = groups->make(saved); !made) return made.error();
  LEAT_CRASH_POINT("group:file_made");
  auto made = make_saved(shared, saved, geometry, **cursors);
  if (!made) (void)groups->delete_group(saved.facts.id);
  return made;
}

LEAT_INLINE Result<Group> Group::open(const Topic& topic, const std::string& name,
                                      const GroupOptions* options) {
  if (!detail::is_valid_topic_name(name)) return Errc::invalid_argument;
  if (topic.topic_->is_deleted()) return Errc::deleted;
  if (topic.policy() == Policy::overwrite) return Errc::not_with_overwrite;
  if (options != nullptr && options->on_expired != OnExpired::start &&
      topic.topic_->durable() == nullptr)
    return Errc::needs_durable;
  auto locked = lock(*topic.topic_);
  if (!locked) return locked.error();
  auto found = find(*topic.topic_, name);
  if (found) return Group{topic, *found, false};
  if (found.error().code != Errc::not_found) return found.error();
  if (options == nullptr) return topic.is_deleted() ? Errc::deleted : Errc::not_found;
  auto made = create(topic, name, *options);
  // The files are made in the topic's directories. What is not found is a directory that was deleted meanwhile.
  if (!made) return made.error() == Errc::not_found ? Error{Errc::deleted} : made.error();
  return Group{topic, *made, true};
}

LEAT_INLINE Result<void> Group::delete_group(const Topic& topic, const std::string& name,
                                             bool force) {
  using namespace detail;
  if (!is_valid_topic_name(name)) return Errc::invalid_argument;
  MappedTopic& shared = *topic.topic_;
  auto locked = lock(shared);
  if (!locked) return locked.error();
  auto found = find(shared, name);
  if (!found) return found.error();
  GroupView& view = **found;
  (void)exchange<Edge::group>(view.header().closed, kGroupClosing);
  LEAT_CRASH_POINT("group:closing");
  if (!force && has_living_members(shared, view)) {
    (void)exchange<Edge::group>(view.header().closed, kGroupOpen);
    return Errc::busy;
  }
  // First what is saved: otherwise the group would come back as it was then, and deliver records again.
  auto deleted = delete_saved(shared, view);
  if (!deleted && can_go_on(shared, view)) {
    (void)exchange<Edge::group>(view.header().closed, kGroupOpen);
    return deleted;
  }
  (void)exchange<Edge::group>(view.header().closed, kGroupClosed);
  LEAT_CRASH_POINT("group:closed");
  (void)delete_saved(shared, view);  // The archiver may just have saved it once more.
  take_closed_groups_out(shared);
  shared.wake_everybody();  // Members must notice; publishers may have room.
  return deleted;
}

// ---- Topic's calls ------------------------------------------------------------------------------

LEAT_INLINE Result<Group> Topic::group(const std::string& name, const GroupOptions& options) const {
  return Group::open(*this, name, &options);
}
LEAT_INLINE Result<Group> Topic::group(const std::string& name) const { return group(name, {}); }
LEAT_INLINE Result<Group> Topic::find_group(const std::string& name) const {
  return Group::open(*this, name, nullptr);
}
LEAT_INLINE Result<void> Topic::delete_group(const std::string& name, bool force) const {
  return Group::delete_group(*this, name, force);
}
LEAT_INLINE Result<std::vector<std::string>> Topic::group_names() const {
  std::vector<std::string> names;
  for (std::uint32_t slot = 0; slot < detail::kMaxGroups; ++slot) {
    if (topic_->group_number(slot) == 0) continue;
    auto group = topic_->group(slot);
    if (!group) return group.error();
    if (*group != nullptr && (*group)->is_there()) names.push_back((*group)->name());
  }
  if (topic_->durable() == nullptr) return names;
  auto stored = Group::stored_names(*topic_);
  if (!stored) return stored.error();
  for (std::string& name : *stored) {
    if (std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(std::move(name));
  }
  return names;
}

// ---- Group --------------------------------------------------------------------------------------

LEAT_INLINE Result<Member> Group::join(const MemberOptions& options) const {
  try {
    return make_member(options);
  } catch (const std::bad_alloc&) {
    return Error{Errc::no_memory};
  }
}
LEAT_INLINE Result<Member> Group::make_member(const MemberOptions& options) const {
  using namespace detail;
  const std::shared_ptr<MappedTopic>& shared = topic_.topic_;
  auto records = shared->records_for_reading();
  if (!records) return records.error();
  auto joined = topic_.join(ParticipantRole::member, [](std::uint32_t) {});
  if (!joined) return joined.error();
  Member::Core core{new MemberCore{topic_, view_, std::move(*joined), *records, options}};
  if (auto seated = core->take_seat(options.name); !seated) return seated.error();
  // [group] seq_cst: the seat is taken before `closed` is read.
  const std::uint64_t closed = load_seq_cst<Edge::group>(view_->header().closed);
  if (closed == kGroupOpen) return Member{std::move(core)};
  if (closed == kGroupClosing) {
    // A process is deleting the group, or died while it did. With the lock, this is decided.
    auto locked = lock(*shared);
    if (!locked) return locked.error();
    if (load_seq_cst<Edge::group>(view_->header().closed) == kGroupOpen)
      return Member{std::move(core)};
  }
  return Errc::closed;
}

// Offset of the next record to be taken. If the cursor is in a segment that is not mapped yet, it
// is at the end of the one before, and has passed all records there.
LEAT_INLINE std::uint64_t Group::offset_of_cursor(const detail::MappedTopic& topic,
                                                  const detail::GroupView& view,
                                                  std::uint32_t partition) noexcept {
  using namespace detail;
  const Geometry& geometry = topic.geometry();
  const PartitionView words = topic.partition(partition);
  std::uint64_t offset = 0;
  if (topic.durable() != nullptr) return view.load_cursor(partition).position();
  for (std::uint32_t attempt = 0; attempt < 1000; ++attempt) {
    const CursorValue cursor = view.load_cursor(partition);
    const std::uint64_t segment = cursor.position() / geometry.segment_granules;
    const SegmentEntry& entry = words.entry(segment);
    // [segment-map] acquire: base_offset was stored before.
    const bool is_mapped = load_acquire<Edge::segment_map>(entry.map) >> kPhysicalBits == segment;
    if (is_mapped) {
      offset = load_relaxed<Why::stored_before>(entry.base_offset) + cursor.records_before() +
               cursor.batch_index();
    } else {
      const SegmentEntry& last = words.entry(segment - 1);
      const std::uint64_t claim = load_acquire<Edge::claim>(words.control->claim);
      offset =
          load_relaxed<Why::rechecked>(last.base_offset) + geometry.claim_layout.records(claim);
    }
    if (view.load_cursor(partition) == cursor) break;
  }
  return offset;
}

LEAT_INLINE std::uint64_t Group::position(std::uint32_t partition) const noexcept {
  if (partition >= view_->geometry().partition_count) return 0;
  return offset_of_cursor(*topic_.topic_, *view_, partition);
}

LEAT_INLINE std::uint64_t Group::released(std::uint32_t partition) const noexcept {
  using namespace detail;
  if (partition >= view_->geometry().partition_count) return 0;
  // [group-cursor] acquire: the cursor is read first. Records that it has passed have their entries.
  const std::uint64_t offset = offset_of_cursor(*topic_.topic_, *view_, partition);
  std::uint64_t held = 0;
  view_->each_entry([&](std::uint32_t, std::uint32_t, const InFlightEntry& entry, std::uint64_t) {
    // Records that are claimed meanwhile have offsets beyond it.
    if (InFlightPlace::unpack(load_relaxed<Why::stored_before>(entry.where)).partition ==
            partition &&
        load_relaxed<Why::stored_before>(entry.offset) < offset)
      ++held;
  });
  return held < offset ? offset - held : 0;
}

LEAT_INLINE GroupOptions Group::options() const noexcept {
  return detail::options_of(view_->geometry());
}

LEAT_INLINE GroupInfo Group::info() const {
  using namespace detail;
  const GroupGeometry& geometry = view_->geometry();
  const GroupOptions options = this->options();
  GroupInfo info;
  info.name = name_;
  info.mode = options.mode;
  info.by_key = options.by_key;
  info.max_deliveries = options.max_deliveries;
  info.lease = options.lease;
  info.on_expired = options.on_expired;
  info.in_flight_limit = options.in_flight;
  info.redelivered = load_acquire<Edge::in_flight>(view_->header().redelivered);
  info.dead_letters = load_acquire<Edge::in_flight>(view_->header().dead_letters);
  if (info.max_deliveries != 0)
    info.dead_letter_topic = dead_letter_topic_name(topic_.name(), name_);
  for (std::uint32_t i = 0; i < geometry.partition_count; ++i)
    info.offsets.push_back(offset_of_cursor(*topic_.topic_, *view_, i));
  const TopicInfo topic = topic_.info();
  for (std::uint32_t i = 0; i < geometry.partition_count; ++i)
    info.lag += topic.partitions[i].count_from(info.offsets[i]);
  view_->each_entry(
      [&](std::uint32_t, std::uint32_t, const InFlightEntry&, std::uint64_t) { ++info.in_flight; });
  std::uint64_t spare = 0;
  view_->each_entry(
      [&](std::uint32_t row, std::uint32_t, const InFlightEntry&, std::uint64_t word) {
        if (phase_of(word) == InFlightPhase::returned) ++info.returned;
        if (row == geometry.seat_count) ++spare;
      });
  info.returned_limit = geometry.spare_count();
  if (spare == info.returned_limit) info.taking = Errc::redelivery_full;
  view_->each_living_member(topic_.topic_->control_fd(), [&](const GroupSeat& seat) {
    const std::size_t size =
        std::min<std::size_t>(load_relaxed<Why::hint>(seat.name_size), sizeof(seat.name));
    info.members.push_back({load_relaxed<Why::hint>(seat.pid), std::string{seat.name, size},
                            load_relaxed<Why::hint>(seat.in_flight)});
  });
  return info;
}

LEAT_INLINE Result<void> Group::seek(From to, std::optional<std::uint32_t> partition) const {
  using namespace detail;
  std::size_t moved = 0;  // partitions
  for (const Deadline until{kEvictedPatience};;) {
    auto done = seek_once(to, partition, moved);
    if (!done) return done.error();
    if (*done) break;
    if (until.passed()) return Errc::busy;
  }
  topic_.topic_->wake_everybody();
  if (topic_.topic_->durable() != nullptr) announce_group_moved(*topic_.topic_, GroupNews::moved);
  return {};
}

// Moves all partitions but the first `moved`, and counts them. False if the subscriber that keeps the
// room was evicted meanwhile.
LEAT_INLINE Result<bool> Group::seek_once(From to, std::optional<std::uint32_t> partition,
                                          std::size_t& moved) const {
  using namespace detail;
  // Keeps the room from there on until the cursors do.
  auto reader = topic_.subscriber({.from = to, .partition = partition});
  if (!reader) return reader.error();
  auto targets = places_of(topic_, *reader, to);
  if (!targets) return targets.error();
  if (!*targets) return false;
  if (view_->is_closed()) return Errc::closed;
  const bool is_durable = topic_.topic_->durable() != nullptr;
  for (; moved < (*targets)->size(); ++moved) {
    const PartitionReader& one = reader->readers_[moved];
    const std::uint64_t state =
        load_acquire<Edge::slot>(topic_.topic_->participant(one.own_slot()).state);
    for (std::uint32_t attempt = 0;; ++attempt) {
      if (attempt == kManyMoves) return Errc::corrupt;
      CursorValue cursor = view_->load_cursor(one.partition());
      note_take(*view_, one.partition(), cursor);
      LEAT_CRASH_POINT("seek:noted");
      if (!is_durable) {
        // From here on a publisher that needs room undoes the mark, and with it the move.
        const CursorValue marked = cursor.marked(identity_of(state));
        if (!view_->swap_cursor(one.partition(), cursor, marked)) continue;
        if (one.is_evicted()) return false;
        LEAT_CRASH_POINT("seek:marked");
        cursor = marked;
      }
      if (view_->swap_cursor(one.partition(), cursor, (**targets)[moved])) break;
    }
    LEAT_CRASH_POINT("seek:moved");
  }
  return true;
}

}  // namespace leat::inline v0
