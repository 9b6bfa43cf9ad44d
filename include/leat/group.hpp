// Consumer groups: a position in a topic, and members that share the records from there on.
//
//     auto group = topic->group("workers", {.from = leat::From::beginning});
//     auto member = group->join();          // in any number of threads and processes
//
// Every group sees every record once, whatever other groups and subscribers do. A group lives in the
// topic: its position outlasts its members and holds room until the group is deleted. A Group may be
// used by several threads.
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
}  // namespace detail

enum class GroupMode : std::uint32_t {
  at_least_once = 0,  // what is not acknowledged is delivered again
  at_most_once = 1,   // taken means done: what a dead member was handed is not delivered again
};

// Counts for whoever creates the group.
struct GroupOptions {
  From from = From::end;  // an offset beyond the end is an invalid argument
  GroupMode mode = GroupMode::at_least_once;
  bool by_key = false;             // equal keys to one member at a time, in order
  std::uint32_t members = 64;      // at a time; at most 255
  std::uint32_t in_flight = 1024;  // records that a member may hold unacknowledged; at most 65,536
  // Handed out so often, a record goes to topic TOPIC.GROUP.dead (GroupInfo::dead_letter_topic) when it
  // comes back; at most 65,534. 0 = no limit.
  std::uint32_t max_deliveries = 0;
  std::chrono::nanoseconds lease{0};  // held for longer, a record goes to another; 0 = never
};

struct MemberInfo {
  std::uint32_t pid = 0;
  std::string name;
  std::uint64_t in_flight = 0;
};
struct GroupInfo {
  std::string name;
  GroupMode mode = GroupMode::at_least_once;
  bool by_key = false;
  std::uint32_t max_deliveries = 0;
  std::chrono::nanoseconds lease{0};
  std::uint32_t in_flight_limit = 0;  // of each member
  std::uint64_t lag = 0;              // records that no member has claimed
  std::uint64_t in_flight = 0;        // claimed, or given back, and not acknowledged
  std::uint64_t redelivered = 0;      // deliveries beyond the first
  std::uint64_t returned = 0;         // given back or left, or waiting for their key
  std::uint64_t returned_limit = 0;   // spare room for such, beyond what members have for their own
  // redelivery_full if that room is full: then no member claims anything more whose own room is, too.
  Errc claiming = Errc::ok;
  std::uint64_t dead_letters = 0;      // records handed out too often, and put aside
  std::string dead_letter_topic;       // where they are; empty without max_deliveries
  std::vector<MemberInfo> members;     // the living
  std::vector<std::uint64_t> offsets;  // of the next record to be claimed, by partition
};

class Group {
 public:
  // A member for the calling thread.
  //   too_many   every seat of the group, or participant slot of the topic, is taken by somebody alive
  //   closed     the group was deleted
  //   no_space   there is no memory for what a member needs; later it needs none
  //   permission, deleted
  Result<Member> join(const MemberOptions& options = {}) const;

  GroupInfo info() const;

  // Moves the position, in all partitions or one. Records that members hold stay theirs.
  //   invalid_argument   no such partition, an offset beyond the end or in several partitions at once
  //   not_allowed        a time on a topic without timestamps
  //   too_many, closed, permission, deleted
  Result<void> seek(From to, std::optional<std::uint32_t> partition = {}) const;

  const std::string& name() const noexcept { return name_; }
  bool was_created() const noexcept { return was_created_; }  // by the call that returned this

  // Offset of the next record of a partition to be claimed.
  std::uint64_t position(std::uint32_t partition = 0) const noexcept;
  // How many records of a partition the group is done with at least, counted from offset 0. Never
  // falls, unless the group is moved back.
  std::uint64_t released(std::uint32_t partition = 0) const noexcept;

 private:
  friend class Topic;
  Result<Member> make_member(const MemberOptions& options) const;
  Group(Topic topic, std::shared_ptr<detail::GroupView> view, bool was_created);

  // Held until what it returns is gone; given back by the kernel if its owner dies.
  static Result<detail::GroupLock> lock(detail::SharedTopic& topic);
  // Under that lock.
  static void finish_deletions(detail::SharedTopic& topic);
  static Result<std::shared_ptr<detail::GroupView>> find(detail::SharedTopic& topic,
                                                         const std::string& name);
  static Result<std::shared_ptr<detail::GroupView>> create(const Topic& topic,
                                                           const std::string& name,
                                                           const GroupOptions& options);
  static Result<std::shared_ptr<detail::GroupView>> make_file(
      detail::SharedTopic& topic, const std::string& name, const GroupOptions& options,
      const std::vector<detail::CursorValue>& cursors);
  static Result<Group> open(const Topic& topic, const std::string& name,
                            const GroupOptions* options);
  static Result<void> delete_group(const Topic& topic, const std::string& name, bool force);

  // Where `from` is, while `reader` keeps the room from there on.
  static Result<detail::CursorValue> place_of(const Topic& topic,
                                              const detail::PartitionReader& reader,
                                              const From& from);
  static std::uint64_t offset_of_cursor(const detail::SharedTopic& topic,
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
