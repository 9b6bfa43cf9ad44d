// Topics: create, open, look at, delete; and the way to publishers and subscribers.
//
//     auto topic = leat::Topic::create("orders", {.capacity_bytes = 8 << 20});
//     auto topic = leat::Topic::open("orders", 5s);     // waits for it to appear
//     auto publisher = topic->publisher();
//     auto subscriber = topic->subscriber({.from = leat::From::beginning});
//
// A Topic may be used by several threads; each publisher or subscriber made from it belongs to one.
// The topic lives in files, not in this object: it stays when all processes are gone.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "leat/publisher.hpp"
#include "leat/subscriber.hpp"

namespace leat::inline v0 {

namespace detail {
class Fd;
struct NewTopic;
class SharedTopic;
}  // namespace detail

class Group;  // group.hpp; the four calls that make one are defined there, too.
struct GroupOptions;

// What becomes of a publish() when the topic is full.
//   block       it waits for room
//   fail        it returns `full` at once
//   overwrite   it takes the room of the oldest records
//   grow        as block, but room is added up to a maximum before anybody waits
enum class Policy : std::uint32_t { block = 0, fail = 1, overwrite = 2, grow = 3 };
static_assert(static_cast<std::uint32_t>(Policy::grow) == detail::kGrowPolicy);

struct TopicOptions {
  std::uint64_t capacity_bytes = 8 << 20;  // per partition
  std::uint64_t segment_bytes = 0;         // 0: an eighth of the capacity
  Policy policy = Policy::block;
  std::uint64_t max_capacity_bytes = 0;  // policy grow; per partition. 0: 8 times the capacity
  std::uint64_t grow_below_bytes = 0;  // policy grow: room is added at so little free. 0: a segment
  bool retain_all = false;             // never reuse room: full means full
  std::uint32_t partitions = 1;
  bool single_writer = false;  // every publisher is exclusive
  bool timestamps = false;
  bool delete_when_unused = false;  // once used, it goes when the last process lets go of it
  std::chrono::nanoseconds revoke_after{
      0};  // give up claims of publishers stopped so long; 0 = never
  std::chrono::nanoseconds evict_after{
      0};                            // make gating subscribers that block so long lossy; 0 = never
  std::uint32_t participants = 256;  // publishers and subscribers at a time
  std::uint32_t mode = 0600;         // of the files
  std::string file_group = {};       // Unix group of the files; empty: the caller's
  std::string directory = {};        // empty: $LEAT_DIR or /dev/shm/leat-<uid>
};

struct DeleteOptions {
  bool force = false;  // also while participants live: they get `deleted`
  std::string directory = {};
};

struct PartitionInfo {
  std::uint64_t start = 0;           // oldest offset that can be read
  std::uint64_t end = 0;             // offset of the next claim
  std::uint64_t capacity_bytes = 0;  // now
};
struct ParticipantInfo {
  std::uint32_t pid = 0;
  std::string role;          // publisher, exclusive-publisher, subscriber, lossy-subscriber, member
  std::uint64_t offset = 0;  // subscribers: records read, summed over partitions
  std::uint64_t lag = 0;     // subscribers: records not read yet
  bool blocking = false;     // holds the oldest segment of a partition that has no other room
};
struct TopicInfo {
  std::string name;
  Policy policy = Policy::block;
  std::uint64_t capacity_bytes = 0;      // per partition; policy grow: what the largest one has now
  std::uint64_t max_capacity_bytes = 0;  // the same unless the policy is grow
  std::uint64_t segment_bytes = 0;
  bool retain_all = false;
  bool single_writer = false;
  bool timestamps = false;
  std::vector<PartitionInfo> partitions;
  std::vector<ParticipantInfo> participants;
};

class Topic {
 public:
  // Makes a topic and opens it. Exclusive: of several creators one wins, the others get `exists`.
  //   invalid_argument   name or options
  //   no_space           the file system has no room for it; nothing is left behind
  static Result<Topic> create(const std::string& name, const TopicOptions& options = {});

  // Opens a topic, waiting until the deadline for it to be created.
  //   not_found      it does not exist (or did not appear in time)
  //   stopped        the stop token asked for it; looked at 20 times a second
  //   wrong_format   something else has that name
  static Result<Topic> open(const std::string& name, Deadline deadline = Deadline::immediate(),
                            const std::string& directory_name = {},
                            const std::stop_token& stop = {});

  // Opens the topic if it exists, with whatever options it has; else creates it.
  static Result<Topic> open_or_create(const std::string& name, const TopicOptions& options = {});

  // Deletes a topic. Without `force` only if nobody takes part in it: else `busy`. Participants of a
  // topic deleted by force get `deleted`; their mappings stay valid, and what they read in place stays.
  static Result<void> delete_topic(const std::string& name, const DeleteOptions& options = {});

  // Names of all topics in the directory; none if there is no such directory.
  static Result<std::vector<std::string>> list(const std::string& directory_name = {});

  // A publisher for the calling thread.
  //   busy       an exclusive publisher lives, or (exclusive) any other publisher does
  //   too_many   every participant slot is taken by a living process
  //   permission, deleted
  Result<Publisher> publisher(const PublisherOptions& options = {}) const;

  // A subscriber for the calling thread.
  //   not_allowed        gating on a topic with policy overwrite, or a time on one without timestamps
  //   invalid_argument   no such partition, or an offset in several partitions at once
  //   too_many, permission, deleted
  Result<Subscriber> subscriber(const SubscriberOptions& options = {}) const;

  // Policy grow: how far each partition may grow from now on, rounded up to whole segments. What it
  // already has beyond that stays.
  //   not_allowed        another policy
  //   invalid_argument   less than min_capacity(), or more than max_capacity_limit()
  Result<void> set_max_capacity(std::uint64_t bytes) const;
  std::uint64_t max_capacity_limit() const noexcept;
  // What it began with, and keeps.
  std::uint64_t min_capacity() const noexcept;

  // What some publisher's `offset_limit` returns has changed: all of them ask it again, also those that are
  // below its last answer, from their next record on.
  void make_publishers_look() const noexcept;

  // Policy grow: gives memory back that is beyond what the topic began with and that no gating
  // subscriber has still to read. Returns how many bytes.
  //   not_allowed   another policy
  //   busy          somebody just adds or gives back
  //   too_many, permission, deleted
  Result<std::uint64_t> shrink() const;

  // Opens the consumer group of that name, or creates it: then, and only then, the options count.
  //   invalid_argument   name (1 to 200 of A-Z a-z 0-9 . _ -) or options
  //   not_allowed        the topic has policy overwrite, or no timestamps to begin at a time
  //   too_many           the topic has 64 groups, or every participant slot is taken
  //   busy               another process holds the topic's group lock and does not move on
  //   no_space, permission, deleted
  Result<Group> group(const std::string& name, const GroupOptions& options) const;
  Result<Group> group(const std::string& name) const;
  // Only opens it: `not_found`.
  Result<Group> find_group(const std::string& name) const;
  Result<std::vector<std::string>> group_names() const;
  // Without `force` only if it has no living member: else `busy`. With it, members get `closed` from
  // their next call on; what they have in place stays until then. The name is free at once.
  Result<void> delete_group(const std::string& name, bool force = false) const;

  TopicInfo info() const;

  const std::string& name() const noexcept { return name_; }
  // Where the topic is, as it was named when it was opened; empty: the default.
  const std::string& directory() const noexcept { return directory_; }
  std::uint32_t partitions() const noexcept;
  Policy policy() const noexcept;
  // Of key, headers, timestamp and value together.
  std::size_t max_record_size() const noexcept;

 private:
  friend struct TopicTesting;
  friend class Group;
  Topic(std::string name, std::shared_ptr<detail::SharedTopic> topic,
        std::string directory) noexcept;

  static Result<detail::NewTopic> new_topic(const TopicOptions& options);
  static bool plan_growth(const TopicOptions& options, detail::NewTopic& topic);
  static Result<Topic> create(const std::string& name, const detail::NewTopic& created,
                              const std::string& directory_name);
  static Result<Topic> attach(const detail::Fd& directory, const std::string& name,
                              const std::string& directory_name);
  static Result<std::shared_ptr<detail::SharedTopic>> keep_while_open(
      std::shared_ptr<detail::SharedTopic> topic, const std::string& name);
  static void delete_if_unused(detail::SharedTopic& topic, const std::string& name);
  static std::uint64_t look_at_attempt(detail::SharedTopic& topic) noexcept;
  static std::uint64_t announce_attempt(detail::SharedTopic& topic) noexcept;
  static bool has_living_participants(const detail::SharedTopic& topic);
  Result<detail::Participant> join(detail::ParticipantRole role,
                                   const Callback<void(std::uint32_t)>& fill) const;
  Result<void> become_exclusive(const detail::Participant& me) const;

  std::string name_;
  std::shared_ptr<detail::SharedTopic> topic_;
  std::string directory_;
};

}  // namespace leat::inline v0

#ifndef LEAT_COMPILED
#include "leat/log/impl.hpp"
#endif
