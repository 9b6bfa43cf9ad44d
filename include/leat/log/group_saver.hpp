// Saves the groups of a durable topic, for the archiver: where they are, and what is not acknowledged.
//
//     GroupSaver groups{topic, disk, directory, manifest};
//     groups.begin(epoch);
//     if (groups.next_ns() <= now_ns()) groups.save();
//
// Used by one thread at a time. docs/internals/durable.md, "Groups", says what survives what.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "leat/base/clock.hpp"
#include "leat/log/committed_prefix.hpp"
#include "leat/log/group_takes.hpp"
#include "leat/log/mapped_topic.hpp"
#include "leat/store/manifest.hpp"
#include "leat/store/saved_groups.hpp"

namespace leat::inline v0::detail {

class GroupSaver {
 public:
  // `directory` is the topic's data directory. All must outlive it.
  GroupSaver(MappedTopic& topic, Disk& disk, int directory, const Manifest& manifest) noexcept
      : topic_{topic}, disk_{disk}, directory_{directory}, manifest_{manifest} {}

  // Called when an epoch begins. What its archiver saves goes to files of its own.
  void begin(std::uint64_t epoch) {
    epoch_ = epoch;
    known_.clear();
    is_restless_ =
        true;  // The last archiver may have died before it saved something: save at once.
    saved_ns_ = now_ns() - kSaveEvery;
  }

  static constexpr std::int64_t kSaveEvery = 1'000'000'000;  // ns

  // When groups are to be saved, in ns on the monotonic clock.
  static constexpr std::int64_t kNever = INT64_MAX;
  std::int64_t next_ns() const noexcept {
    // [sync] seq_cst: read after the sleep is announced.
    const auto news = group_news(load_seq_cst<Edge::sync>(topic_.durable()->header().groups));
    if (news == GroupNews::urgent) return has_failed_ ? saved_ns_ + kTryAgain : 0;
    return news == GroupNews::moved || is_restless_ ? saved_ns_ + kSaveEvery : kNever;
  }

  // Saves the groups that have changed since the last call. `is_closing`: nobody takes any more.
  //   not_in_flight  this archiver was superseded
  //   others         a group could not be saved; the call may be tried again
  Result<void> save(bool is_closing = false) {
    // [sync] seq_cst: before the groups are read. What moves now is saved the next time.
    std::uint32_t& word = topic_.durable()->header().groups;
    (void)exchange<Edge::sync>(word, kGroupsUnsettled);
    LEAT_CRASH_POINT("group:unsettled");
    saved_ns_ = now_ns();
    is_restless_ = has_failed_ = false;
    std::erase_if(known_, [this](const auto& one) { return !topic_.has_group(one.first); });
    for (std::uint32_t slot = 0; slot < kMaxGroups; ++slot) {
      if (topic_.group_number(slot) == 0) continue;
      auto group = topic_.group(slot);
      // Without a descriptor, say. When the topic is closed, this is the last chance, unless somebody removed
      // LEAT_DIR: then what was saved before counts.
      if (!group && is_closing && topic_.has_files()) return group.error();
      is_restless_ = is_restless_ || !group;
      if (!group || *group == nullptr || (*group)->is_closed()) continue;
      if (auto saved = save_one(**group, is_closing); !saved) {
        is_restless_ = has_failed_ = true;
        return saved;
      }
    }
    LEAT_CRASH_POINT("group:all_saved");
    // Otherwise the word stays, so that a process that stands by takes over if this archiver dies: an acknowledgement
    // wakes nobody.
    if (std::uint32_t settled = kGroupsUnsettled; !is_restless_)
      compare_exchange<Edge::sync>(word, settled, 0U);
    return {};
  }

 private:
  static constexpr std::int64_t kTryAgain = 100'000'000;
  // At most once: how many offsets the saved position is ahead of what was taken.
  static constexpr std::uint64_t kFewAhead = 1024;
  static constexpr std::uint64_t kManyAhead = std::uint64_t{1} << 16;

  // What this archiver has saved of a group.
  struct Known {
    SavedGroup saved;
    std::vector<std::uint64_t> ahead;  // At most once: how far it was saved ahead, by partition.
    SectionsPair files;
    bool is_saved = false;
  };

  Result<void> save_one(const GroupView& group, bool is_closing) {
    Known& known = known_[group.geometry().number];
    const bool saves_ahead = group.geometry().at_most_once();
    if (saves_ahead) {
      if (auto owned = own_limits(group, is_closing); !owned) return owned;
    }
    SavedGroup now = snapshot(group, known, is_closing);
    // A record that is held may be acknowledged, and nobody tells.
    is_restless_ = is_restless_ || !now.in_flight.empty();
    if (known.is_saved && is_same(known.saved, now)) return {};
    is_restless_ = true;
    if (auto written = write(known, now, saves_ahead ? 2 : 1); !written) return written;
    known.saved = std::move(now);
    if (!saves_ahead || is_closing) return {};
    for (std::uint32_t i = 0; i < known.saved.offsets.size(); ++i) {
      if (!set_owned(group.cursor(i).limit, epoch_, known.saved.offsets[i]))
        return Errc::not_in_flight;
    }
    LEAT_CRASH_POINT("group:limit_moved");
    MappedTopic::wake(topic_.header().data_wake);
    return {};
  }

  // Takes over the limits, so that a superseded archiver no longer moves them. When the topic is closed, nothing may be
  // handed out any more: neither what is taken from now on nor what is saved as taken and not handed out.
  Result<void> own_limits(const GroupView& group, bool is_closing) {
    for (std::uint32_t i = 0; i < group.geometry().partition_count; ++i) {
      OwnedWord& limit = group.cursor(i).limit;
      if (read_owned(limit).epoch != epoch_ && !take_owned(limit, epoch_))
        return Errc::not_in_flight;
      if (!is_closing) continue;
      if (!set_owned(limit, epoch_, 0)) return Errc::not_in_flight;
      // [group-cursor] seq_cst: a member either sees the limit, or this archiver sees its take.
      for (CursorValue cursor = group.load_cursor(i); !group.swap_cursor(i, cursor, cursor);)
        cursor = group.load_cursor(i);
    }
    return {};
  }

  // Reads the cursors first, then the entries: records that a cursor has passed have entries by then.
  SavedGroup snapshot(const GroupView& group, Known& known, bool is_closing) {
    SavedGroup now;
    const GroupGeometry& geometry = group.geometry();
    const GroupHeader& header = group.header();
    now.facts = facts_of(geometry);
    now.facts.id = load_relaxed<Why::constant>(header.saved_id);
    now.facts.epoch = epoch_;
    now.facts.created_ms = load_relaxed<Why::constant>(header.created_ms);
    now.facts.redelivered = load_acquire<Edge::in_flight>(header.redelivered);
    now.facts.dead_letters = load_acquire<Edge::in_flight>(header.dead_letters);
    now.name = group.name();
    const bool saves_ahead = geometry.at_most_once() && !is_closing;
    for (std::uint32_t i = 0; i < geometry.partition_count; ++i) {
      const std::uint64_t offset = group.load_position(i);
      now.offsets.push_back(saves_ahead ? ahead_of(group, known, i, offset) : offset);
    }
    if (saves_ahead) return now;
    group.each_entry(
        [&](std::uint32_t, std::uint32_t, const InFlightEntry& entry, std::uint64_t word) {
          if (auto saved = read_entry(group, entry, word)) now.in_flight.push_back(*saved);
        });
    drop_taken_again(now);
    return now;
  }

  // A limit ahead of the cursor. What is published after a failure of the machine is not skipped: numbering
  // goes on behind more offsets than the window has room for (Archiver::store_checkpoint).
  std::uint64_t ahead_of(const GroupView& group, Known& known, std::uint32_t partition,
                         std::uint64_t offset) const {
    known.ahead.resize(group.geometry().partition_count);
    std::uint64_t& ahead = known.ahead[partition];
    const std::uint64_t limit = read_owned(group.cursor(partition).limit).value;
    const std::uint64_t left = limit > offset ? limit - offset : 0;
    if (left > ahead / 2) return limit;
    // Twice as many if they were used up before the next save was due.
    ahead = std::clamp(left == 0 ? 2 * ahead : ahead / 2, kFewAhead, kManyAhead);
    const Geometry& geometry = topic_.geometry();
    const std::uint64_t window = geometry.segment_granules * geometry.segment_count;
    const std::uint64_t end = std::max(end_of_claims(topic_, partition), offset);
    return std::max(limit, std::min(offset + ahead, end + window));
  }

  // Nothing if the record is done, or its take is not made. A record keeps its entry until it is acknowledged, so no
  // other entry can have it.
  static std::optional<SavedInFlight> read_entry(const GroupView& group, const InFlightEntry& entry,
                                                 std::uint64_t word) noexcept {
    for (;;) {
      const InFlightState state = InFlightState::unpack(word);
      if (state.phase == InFlightPhase::free || InFlightState::is_reserved(word))
        return std::nullopt;
      // relaxed, all: of this record if the state has not changed afterwards.
      SavedInFlight saved{
          load_relaxed<Why::rechecked>(entry.offset), load_relaxed<Why::rechecked>(entry.key), 0,
          InFlightPlace::unpack(load_relaxed<Why::rechecked>(entry.where)).partition,
          state.deliveries};
      const std::int64_t visible_at = load_relaxed<Why::rechecked>(entry.visible_at_ns);
      fence_acquire<Edge::in_flight>();
      const std::uint64_t again = load_acquire<Edge::in_flight>(entry.state);
      if (again != std::exchange(word, again)) continue;
      if (state.phase == InFlightPhase::delivered && group.geometry().at_most_once())
        return std::nullopt;
      if (may_be_unmade(group, state)) return std::nullopt;
      if (!group.geometry().by_key()) saved.key = 0;
      if (state.delayed) saved.delay_ns = std::max<std::int64_t>(visible_at - now_ns(), 0);
      return saved;
    }
  }

  // Drops what was taken since the cursors were read, or by a take that failed.
  static void drop_taken_again(SavedGroup& group) {
    const auto place = [](const SavedInFlight& one) { return std::tie(one.partition, one.offset); };
    std::erase_if(group.in_flight, [&group](const SavedInFlight& one) {
      return one.partition >= group.offsets.size() || one.offset >= group.offsets[one.partition];
    });
    std::sort(group.in_flight.begin(), group.in_flight.end(),
              [&](const SavedInFlight& one, const SavedInFlight& two) {
                return place(one) < place(two);
              });
    group.in_flight.erase(std::unique(group.in_flight.begin(), group.in_flight.end(),
                                      [&](const SavedInFlight& one, const SavedInFlight& two) {
                                        return place(one) == place(two);
                                      }),
                          group.in_flight.end());
  }

  // All but how long a record is still to wait.
  static bool is_same(const SavedGroup& one, const SavedGroup& two) noexcept {
    const auto is_same_entry = [](const SavedInFlight& a, const SavedInFlight& b) {
      return a.offset == b.offset && a.partition == b.partition && a.deliveries == b.deliveries;
    };
    return one.offsets == two.offsets && one.facts.redelivered == two.facts.redelivered &&
           one.facts.dead_letters == two.facts.dead_letters &&
           std::equal(one.in_flight.begin(), one.in_flight.end(), two.in_flight.begin(),
                      two.in_flight.end(), is_same_entry);
  }

  // Both files the first time: then one that is not whole is damage. At most once always both: an older
  // one would deliver records again.
  Result<void> write(Known& known, const SavedGroup& group, int copies) {
    const std::uint64_t id = group.facts.id;
    const std::string name = saved_group_name(id, epoch_);
    const auto sections = group.sections();
    const SectionsKind kind{kSavedGroupMagic, manifest_.topic.salt};
    for (int copy = 0; copy < (known.is_saved ? copies : 2); ++copy) {
      auto done =
          known.files.replace_older(disk_, directory_, name, kind, sections, manifest_.access());
      if (!done) return done;
      LEAT_CRASH_POINT("group:saved");
    }
    if (std::exchange(known.is_saved, true)) return {};
    // The group may have been deleted meanwhile: then these files are not to stay. Otherwise they take the
    // place of those of earlier archivers.
    auto names = names_in(directory_);
    if (!names) return names.error();
    const bool is_deleted = std::ranges::find(*names, saved_group_name(id)) == names->end();
    for (const std::string& one : *names) {
      const auto file = SavedGroupFile::parse(one);
      if (file && file->id == id && file->epoch != 0 && (is_deleted || file->epoch < epoch_))
        (void)disk_.delete_file(directory_, one.c_str());
    }
    LEAT_CRASH_POINT("group:earlier_deleted");
    return {};
  }

  MappedTopic& topic_;
  Disk& disk_;
  int directory_;
  const Manifest& manifest_;
  std::uint64_t epoch_ = 0;
  std::map<std::uint64_t, Known> known_;  // By the group's number.
  std::int64_t saved_ns_ = 0;             // When the last save began.
  bool is_restless_ = false;  // Something may change, or may have changed, and nobody tells.
  bool has_failed_ = false;   // The last save.
};

}  // namespace leat::inline v0::detail
