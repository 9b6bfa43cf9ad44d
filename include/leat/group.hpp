// Consumer groups: a position in a topic, and members that share the records from there on.
//
//     auto group = topic->group("workers", {.from = leat::From::beginning});
//     auto member = group->join();          // in any number of threads and processes
//
// Every group gets every record once, independently of other groups and subscribers. A group lives
// in the topic: its position outlives its members, and keeps room from being reused until the group
// is deleted. A Group may be used by several threads at once.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "leat/member.hpp"
#include "leat/topic.hpp"

namespace leat::inline v0 {

namespace detail {
struct CursorValue;
class GroupLock;
class GroupView;
struct GroupGeometry;
struct SavedGroup;
}  // namespace detail

// When a record counts as done.
enum class GroupMode : std::uint32_t {
  at_least_once = 0,  // records that were not acknowledged are delivered again
  at_most_once = 1,   // records that a dead member had in its hands are not delivered again
};

// Durable topics: where a group continues if retention has deleted its next record. Its members are told
// of the gap (Member::on_event).
enum class OnExpired : std::uint8_t {
  start,  // at the oldest record
  end,    // after everything that is there now
  stop,   // nowhere: members get `expired` until somebody moves the group (Group::seek)
};

// Options of a new group.
struct GroupOptions {
  From from = From::end;  // an offset beyond the end is an invalid argument
  GroupMode mode = GroupMode::at_least_once;
  bool by_key = false;             // records of one key go to one member at a time, in order
  std::uint32_t members = 64;      // at a time; at most 255
  std::uint32_t in_flight = 1024;  // unacknowledged records that a member may hold; at most 65,536
  // A record that comes back after this many deliveries goes to the dead-letter topic
  // (GroupInfo::dead_letter_topic). At most 65,534; 0 = no limit.
  std::uint32_t max_deliveries = 0;
  // A record held for longer than this goes to another member; 0 = never.
  std::chrono::nanoseconds lease{0};
  OnExpired on_expired = OnExpired::start;  // needs_durable for topics that are not durable
};

// A living member, as Group::info() shows it.
struct MemberInfo {
  std::uint32_t pid = 0;
  std::string name;
  std::uint64_t in_flight = 0;  // records that it holds or has taken
};
// What Group::info() returns: a snapshot, taken while members go on.
struct GroupInfo {
  std::string name;
  GroupMode mode = GroupMode::at_least_once;
  bool by_key = false;
  std::uint32_t max_deliveries = 0;
  std::chrono::nanoseconds lease{0};
  OnExpired on_expired = OnExpired::start;  // durable topics
  std::uint32_t in_flight_limit = 0;        // for each member
  std::uint64_t lag = 0;                    // records that no member has taken yet
  std::uint64_t in_flight = 0;              // taken or returned, and not acknowledged
  std::uint64_t redelivered = 0;            // deliveries after the first
  std::uint64_t returned = 0;               // waiting for redelivery or for their key
  std::uint64_t returned_limit = 0;  // spare room for returned records, beyond the members' own
  // redelivery_full if that room is full: members whose own room is also full then take nothing new.
  Errc taking = Errc::ok;
  std::uint64_t dead_letters = 0;      // records that went to the dead-letter topic
  std::string dead_letter_topic;       // its name; empty without max_deliveries
  std::vector<MemberInfo> members;     // living members only
  std::vector<std::uint64_t> offsets;  // of the next record to be taken, by partition
};

// A handle of an open group. All member functions may be called by several threads at once.
class Group {
 public:
  // Makes a member, for use by one thread at a time.
  //   invalid_argument   the name has more than 63 bytes
  //   too_many           every seat of the group, or participant slot of the topic, is in use
  //   closed             the group was deleted
  //   no_memory          out of memory; later a member needs memory only for copies (lease)
  //   permission, deleted
  Result<Member> join(const MemberOptions& options = {}) const;

  // What it was made with; `from` has its default. Reads memory only.
  GroupOptions options() const noexcept;

  // A snapshot of the group and its members. Takes no lock and holds up nobody. Durable topics: it reads files.
  GroupInfo info() const;

  // Moves the position, in all partitions or in one. Records that members hold stay theirs.
  //   invalid_argument   no such partition; an offset beyond the end or in several partitions
  //   needs_timestamps   a time on a topic without timestamps
  //   busy               an offset behind a record that its publisher has claimed and not committed for 200 ms;
  //                      or publishers took the room for 5 s (TopicOptions::evict_after)
  //   too_many, closed, permission, deleted
  Result<void> seek(From to, std::optional<std::uint32_t> partition = {}) const;

  const std::string& name() const noexcept { return name_; }
  // Whether the call that returned this object created the group.
  bool was_created() const noexcept { return was_created_; }

  // Offset of the next record to be taken in a partition.
  std::uint64_t position(std::uint32_t partition = 0) const noexcept;
  // A lower bound of the number of records, counted from offset 0, that the group is done with in a
  // partition. Never decreases, unless the group is moved back.
  std::uint64_t released(std::uint32_t partition = 0) const noexcept;

 private:
  friend class Topic;
  // Nothing in them: the subscriber that keeps the room was evicted.
  using Places = std::optional<std::vector<detail::CursorValue>>;
  using Slot = std::optional<std::uint32_t>;
  Result<Member> make_member(const MemberOptions& options) const;
  Result<bool> seek_once(From to, std::optional<std::uint32_t> partition, std::size_t& moved) const;
  Group(Topic topic, std::shared_ptr<detail::GroupView> view, bool was_created);

  // Takes the topic's group lock; released by the destructor, or by the kernel if the owner dies.
  static Result<detail::GroupLock> lock(detail::MappedTopic& topic);
  // The caller holds the group lock.
  static void finish_deletions(detail::MappedTopic& topic);
  static Result<std::shared_ptr<detail::GroupView>> find(detail::MappedTopic& topic,
                                                         const std::string& name);
  static Result<std::shared_ptr<detail::GroupView>> create(const Topic& topic,
                                                           const std::string& name,
                                                           const GroupOptions& options);
  static Result<Slot> create_once(const Topic& topic, const std::string& name,
                                  const GroupOptions& options);
  static Result<std::shared_ptr<detail::GroupView>> create_saved(const Topic& topic,
                                                                 const std::string& name,
                                                                 const GroupOptions& options);
  static Result<std::shared_ptr<detail::GroupView>> make_saved(
      detail::MappedTopic& topic, const detail::SavedGroup& saved,
      const detail::GroupGeometry& geometry, const std::vector<detail::CursorValue>& cursors);
  static Result<std::shared_ptr<detail::GroupView>> restore(detail::MappedTopic& topic,
                                                            const std::string& name);
  static Result<void> delete_saved(detail::MappedTopic& topic, const detail::GroupView& view);
  static Result<std::vector<std::string>> stored_names(detail::MappedTopic& topic);
  static Result<Group> open(const Topic& topic, const std::string& name,
                            const GroupOptions* options);
  static Result<void> delete_group(const Topic& topic, const std::string& name, bool force);

  // The place that `from` means. `reader` keeps the room from there on.
  static Result<detail::CursorValue> place_of(const Topic& topic, detail::PartitionReader& reader,
                                              const From& from);
  static Result<Places> places_of(const Topic& topic, Subscriber& subscriber, const From& from);
  static bool was_evicted(const Subscriber& subscriber) noexcept;
  static Result<detail::CursorValue> offset_of_place(detail::MappedTopic& topic,
                                                     detail::PartitionReader& reader,
                                                     const From& from);
  static std::uint64_t offset_of_cursor(const detail::MappedTopic& topic,
                                        const detail::GroupView& view,
                                        std::uint32_t partition) noexcept;

  Topic topic_;
  std::shared_ptr<detail::GroupView> view_;
  std::string name_;
  bool was_created_;
};

}  // namespace leat::inline v0

#ifndef LEAT_COMPILED
#include "leat/group/impl.hpp"
#endif
