// Topics: create, open, inspect, delete; and make publishers, subscribers and groups.
//
//     auto topic = leat::Topic::create("orders", {.capacity_bytes = 8 << 20});
//     auto topic = leat::Topic::open("orders", 5s);     // waits up to 5 s for it to be created
//     auto publisher = topic->publisher();
//     auto subscriber = topic->subscriber({.from = leat::From::beginning});
//
// A Topic may be used by several threads at once; each publisher, subscriber or member made from it
// belongs to one thread at a time. The topic itself lives in files and outlives all processes,
// until it is deleted or the machine restarts.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "leat/publisher.hpp"
#include "leat/subscriber.hpp"
#include "leat/topic_id.hpp"

namespace leat::inline v0 {

namespace detail {
class Fd;
struct NewTopic;
class MappedTopic;
}  // namespace detail

class Group;  // group.hpp, which also defines the functions that return one.
struct GroupOptions;

// What publish() does when the topic is full.
//   block       waits for room
//   fail        returns `full` at once
//   overwrite   reuses the room of the oldest records
//   grow        as block, but adds memory up to a maximum before anybody waits
enum class Policy : std::uint32_t { block = 0, fail = 1, overwrite = 2, grow = 3 };
static_assert(static_cast<std::uint32_t>(Policy::fail) == detail::kFailPolicy);
static_assert(static_cast<std::uint32_t>(Policy::grow) == detail::kGrowPolicy);

// What survives what.
//   none   the topic lives in memory: it is gone when the machine restarts
//   os     records are also written to disk, at the latest 10 ms after they were published, and
//          survive the death of all processes. If the machine fails, what the operating system had
//          not written to stable storage is lost.
//   interval   also, records are synced to stable storage every TopicOptions::sync_interval: if the machine
//          fails, at most what was published during one interval and one sync is lost.
//   fsync  also, publish() returns when the record is on stable storage, and subscribers get it then:
//          nothing that was acknowledged is lost if the machine fails.
enum class Durability : std::uint32_t { none = 0, os = 1, interval = 2, fsync = 3 };

// Options of Topic::create(). Sizes in bytes; they are rounded up to whole segments and pages.
struct TopicOptions {
  static constexpr std::uint64_t kDefaultCapacity = 8 << 20;
  static constexpr std::uint64_t kDefaultWindow = 32 << 20;  // of a durable topic

  // Per partition; at least two segments, at most 1 TiB. 0: kDefaultCapacity, or kDefaultWindow.
  std::uint64_t capacity_bytes = 0;
  std::uint64_t segment_bytes = 0;  // 0: an eighth of the capacity; at most 1 GiB
  Policy policy = Policy::block;
  std::uint64_t max_capacity_bytes = 0;  // policy grow, per partition; 0: 8 times the capacity
  std::uint64_t grow_below_bytes = 0;    // policy grow: adds memory at this much free; 0: a segment
  bool retain_all = false;               // never reuse room: publish() returns `full` at the end
  std::uint32_t partitions = 1;
  bool single_writer = false;  // every publisher is exclusive
  bool timestamps = false;
  // Once the topic was used, delete it when the last process that has it open closes it.
  bool delete_when_unused = false;
  // Revoke a claim that was not committed for this long while a subscriber waits at it; 0 = never.
  std::chrono::nanoseconds revoke_after{0};
  // Make a gating subscriber lossy once it has kept the topic full for this long; 0 = never.
  std::chrono::nanoseconds evict_after{0};
  std::uint32_t participants = 256;  // publishers, subscribers and members at a time; at most 4096
  std::uint32_t mode = 0600;         // permission bits of the files; 0600 is required
  std::string file_group = {};       // Unix group of the files; empty: the caller's
  std::string directory = {};        // empty: $LEAT_DIR or /dev/shm/leat-<uid>
  Durability durable = Durability::none;
  std::chrono::nanoseconds sync_interval{0};  // durability interval; 1 ms to 1 h
  // Durable topics: size of a file with records; and the directory of all topics' files; empty:
  // $LEAT_DATA_DIR, else $XDG_DATA_HOME/leat, else ~/.local/share/leat.
  std::uint64_t file_bytes = 64 << 20;
  std::string data_directory = {};
  // Durable topics: what is kept on disk, in whole files. By default everything. The archiver deletes the
  // oldest files of a partition while the others have at least `retention_bytes`, and files that have
  // been full for longer than `retention`. 0: no limit.
  std::uint64_t retention_bytes = 0;
  std::chrono::milliseconds retention{0};
  TopicId
      id{};  // By default a new, random one. For a caller who must know it before the topic is there.
};

struct DeleteOptions {
  bool force = false;          // also while it has participants: they get `deleted`
  std::string directory = {};  // as in TopicOptions
  std::string data_directory = {};
};

struct OffsetRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;  // behind the last one
};
// What Topic::info() returns: a snapshot, taken while others go on. Sizes in bytes.
struct PartitionInfo {
  std::uint64_t start = 0;           // oldest offset that can be read; durable topics: from disk
  std::uint64_t end = 0;             // offset of the next claim
  std::uint64_t capacity_bytes = 0;  // current capacity
  std::uint64_t used_bytes = 0;      // from the oldest segment that can be read to the end
  std::uint64_t written = 0;         // durable topics: everything before can be read from disk,
  std::uint64_t durable = 0;         // and everything before is on stable storage
  // Offsets from `start` on that no record has, in ascending order: claims that were given up, as far as memory and, in
  // durable topics, the files show them (docs/guarantees.md, "Order and completeness"). Durable topics: also what is
  // lost, because numbering went on behind it after a failure of the machine.
  std::vector<OffsetRange> gaps;

  // How many offsets from `from` on are neither gone nor in `gaps`. Open claims count.
  std::uint64_t count_from(std::uint64_t from) const noexcept;
  // Where so many of them are left, or `start`.
  std::uint64_t offset_of_last(std::uint64_t count) const noexcept;
};
// Of a durable topic.
struct DurableInfo {
  Durability durability = Durability::os;
  std::chrono::nanoseconds sync_interval{0};  // durability interval
  std::string directory;                      // its data directory
  std::int64_t created_ms = 0;                // wall clock
  std::uint64_t file_bytes = 0;               // size of a full file
  std::uint64_t retention_bytes = 0;          // as in TopicOptions, as is the next
  std::chrono::milliseconds retention{0};
  std::uint64_t disk_bytes = 0;    // of all its files
  Errc state = Errc::ok;           // why nothing is written: no_space, read_only
  std::int32_t reason = 0;         // errno, unless the state is ok
  std::uint32_t archiver_pid = 0;  // 0: no archiver is needed yet
  std::uint64_t cut_bytes = 0;  // what recovery found when the topic was opened: bytes and records
  std::uint64_t cut_records = 0;  // that were never written whole,
  std::uint64_t damaged = 0;      // and offsets whose records cannot be read
};
struct ParticipantInfo {
  std::uint32_t pid = 0;     // in its own PID namespace
  std::string role;          // publisher, exclusive-publisher, subscriber, lossy-subscriber, member
  std::uint64_t offset = 0;  // subscribers: next offset, summed over partitions
  std::uint64_t lag = 0;     // subscribers: records not read yet, all partitions
  // Gating subscribers: holds the oldest segment of a full partition. Publishers: has an open claim
  // that others have claimed behind, so subscribers wait at it.
  bool blocking = false;
};
struct TopicInfo {
  std::string name;
  TopicId id{};
  Policy policy = Policy::block;
  std::uint64_t capacity_bytes = 0;      // per partition, now; policy grow: of the largest one
  std::uint64_t max_capacity_bytes = 0;  // equal to capacity_bytes unless the policy is grow
  std::uint64_t segment_bytes = 0;
  bool retain_all = false;
  bool single_writer = false;
  bool timestamps = false;
  bool delete_when_unused = false;
  std::chrono::nanoseconds revoke_after{0};  // 0 = never, as in the next
  std::chrono::nanoseconds evict_after{0};
  std::optional<DurableInfo> durable;
  std::vector<PartitionInfo> partitions;
  std::vector<ParticipantInfo> participants;
  std::vector<RoomHolder> room_holders;  // who keeps full partitions full
};

// A handle of an open topic. Cheap to copy: copies share one mapping, which publishers, subscribers
// and members also keep alive. All member functions may be called by several threads at once.
class Topic {
 public:
  // Creates a topic and opens it. Of several processes that create the same name at once exactly
  // one succeeds, the others get `exists`. Makes the directory if it is missing.
  //   invalid_argument   the name (1 to 200 of A-Z a-z 0-9 . _ -) or the options
  //   no_space           the file system has no room for it; nothing is left behind, except a durable topic that
  //                      another process has opened meanwhile: it stays
  //   not_with_durable   the options that a durable topic cannot have: the policies overwrite and
  //                      grow, retain_all, evict_after, delete_when_unused
  //   invalid_argument   also: a sync_interval with another durability than interval; retention of a
  //                      topic that is not durable, or below zero
  //   deleted            others delete the name again and again, for 5 s
  //   exists, permission, wrong_format, busy
  static Result<Topic> create(const std::string& name, const TopicOptions& options = {});

  // Opens a topic in a directory (empty: as in TopicOptions). A durable topic that no process has
  // open is recovered from disk first. Waits until the deadline for it
  // to be created: looks after 5 ms, then less and less often, in the end 8 times a second.
  //   invalid_argument   the name
  //   not_found          it does not exist, or was not created in time
  //   stopped            the stop token, which is checked as often
  //   interrupted        `interruptible`: a signal handler ran during the wait. It looks 4 times a second
  //                      from the start
  //   wrong_format       the name belongs to something else, or to another format version; or the data
  //                      directory was deleted
  //   busy               another process is deleting it, or (durable) opening or closing it, and does not finish
  //                      within 5 s; or it is open with another LEAT_DIR
  //   permission
  static Result<Topic> open(const std::string& name, Deadline deadline = Deadline::immediate(),
                            const std::string& directory_name = {},
                            const std::stop_token& stop = {},
                            const std::string& data_directory = {}, bool interruptible = false);

  // Opens the topic if it exists, whatever its options are; otherwise creates it. Errors as
  // create() and open(), except `exists` and `not_found`.
  static Result<Topic> open_or_create(const std::string& name, const TopicOptions& options = {});

  // Deletes a topic and frees its name. Without `force`, returns `busy` if it has
  // participants. With it, participants get `deleted`; their mappings stay valid, and so does
  // what they read in place.
  //   not_found
  //   busy               it has participants; or it is open with another LEAT_DIR; or another process that opens,
  //                      closes or deletes it does not finish within 5 s
  //   permission         to delete its names in both directories, or to lock LEAT_DIR/+lock; it is as it was
  //   no_space           for the file that a deletion locks
  //   wrong_format       the name belongs to something else, or a directory is in its data directory; it is as it was
  //   invalid_argument
  static Result<void> delete_topic(const std::string& name, const DeleteOptions& options = {});

  // The names of all topics in a directory (empty: as in TopicOptions), and of all durable ones in
  // the data directory, in no particular order; none if the directories are missing.
  //   permission
  static Result<std::vector<std::string>> list(const std::string& directory_name = {},
                                               const std::string& data_directory = {});

  // Makes a publisher, for use by one thread at a time.
  //   busy               an exclusive publisher exists, or (exclusive) any other publisher does
  //   needs_durable      acknowledge is durable, and the topic is not
  //   invalid_argument   no such partition
  //   too_many           every participant slot is in use by a living process
  //   permission, deleted
  //   forked             the topic is durable, and was opened by the parent process: open it again
  Result<Publisher> publisher(const PublisherOptions& options = {}) const;

  // Makes a subscriber, for use by one thread at a time.
  //   not_with_overwrite   gating, and the policy is overwrite
  //   not_with_durable     in_place, and the topic is durable
  //   needs_durable        read is durable, and the topic is not
  //   needs_timestamps     a time, and the topic has no timestamps
  //   invalid_argument     no such partition; an offset in several partitions; gating with in_place
  //   too_many             every participant slot is in use by a living process
  //   permission, deleted
  //   forked               the topic is durable, and was opened by the parent process: open it again
  Result<Subscriber> subscriber(const SubscriberOptions& options = {}) const;

  // Policy grow: sets how far each partition may grow from now on, in bytes, rounded up to whole
  // segments. A lower limit takes nothing away; see shrink().
  //   needs_growing      the topic has another policy
  //   invalid_argument   less than min_capacity(), or more than max_capacity_limit()
  //   deleted
  Result<void> set_max_capacity(std::uint64_t bytes) const;
  // The largest value that set_max_capacity() accepts, in bytes per partition. Fixed at creation.
  std::uint64_t max_capacity_limit() const noexcept;
  // The capacity at creation, in bytes per partition; shrink() does not go below it.
  std::uint64_t min_capacity() const noexcept;

  // To be called after the result of some publisher's PublisherOptions::offset_limit has
  // changed: wakes publishers that wait, and makes all publishers call offset_limit again before
  // their next record.
  void recheck_offset_limits() const noexcept;

  // Policy grow: frees idle memory beyond min_capacity(): memory that no gating subscriber or
  // group still needs, and that publishers would not add again at once. Returns how many bytes.
  //   needs_growing   the topic has another policy
  //   busy            another process has been adding or freeing memory for more than 1 s
  //   too_many, permission, deleted
  Result<std::uint64_t> shrink() const;

  // Opens the consumer group of that name, or creates it; the options apply only to a new group.
  //   invalid_argument     the name (1 to 200 of A-Z a-z 0-9 . _ -) or the options
  //   not_with_overwrite   the topic has policy overwrite
  //   needs_timestamps     `from` is a time, and the topic has no timestamps
  //   needs_durable        `on_expired` is not the default, and the topic is not durable
  //   too_many             the topic has 64 groups, or every participant slot is in use
  //   busy                 another process that creates, opens or deletes a group blocks it for 5 s; or `from` is an
  //                        offset behind a record that its publisher has claimed and not committed for 200 ms;
  //                        or publishers took the room for 5 s (evict_after)
  //   no_space, permission, deleted
  Result<Group> group(const std::string& name, const GroupOptions& options) const;
  Result<Group> group(const std::string& name) const;
  // Opens an existing group. `not_found` if there is none; otherwise errors as group().
  Result<Group> find_group(const std::string& name) const;
  // The names of the topic's groups, in no particular order.
  Result<std::vector<std::string>> group_names() const;
  // Deletes a group. Without `force`, returns `busy` if it has a living member. With it, members
  // get `closed` from their next call on; what they hold in place stays valid until then. The name
  // is free at once.
  //   invalid_argument   no group can have that name
  //   not_found
  //   busy               it has a living member; or as group()
  //   permission, deleted
  Result<void> delete_group(const std::string& name, bool force = false) const;

  // A durable topic that is read_only: writes everything in memory that may not be on stable storage, and makes
  // the topic writable again. Call it when the cause has been fixed. Waits until the deadline.
  //   io_error        the disk still fails; the topic stays read-only
  //   not_durable     the deadline passed, the disk is full, or (`interruptible`, with EINTR) a signal
  //                   handler ran during the wait: the topic is writable, and the archiver goes on
  //   needs_durable   the topic is not durable
  //   deleted
  Result<void> repair(const Deadline& deadline = Deadline::never(),
                      bool interruptible = false) const;

  // A durable topic: waits until everything that was claimed so far, in all partitions, is on stable storage. An error is of the
  // last partition that has one.
  //   io_error        the disk fails: the topic is read-only
  //   not_durable     the deadline passed, the stop token requested it, or (with an errno) the disk is full
  //   needs_durable   the topic is not durable
  //   corrupt, deleted
  Result<void> sync(const Deadline& deadline = Deadline::never(),
                    const std::stop_token& stop = {}) const;

  // A snapshot of the topic and its participants. Takes no lock and holds up nobody.
  TopicInfo info() const;

  // The offset behind the last record that was claimed in a partition; not all before it may be committed. Takes
  // no lock and makes no system call. 0 if it is unknown because the topic's memory was overwritten.
  std::uint64_t end_offset(std::uint32_t partition) const noexcept;

  // Whether the topic was deleted: by delete_topic(), or by deleting its directory. In the second case no
  // process is notified: those that have it open continue with each other, and no others can join them. A call
  // that needs a file which its process has not opened yet returns `deleted`.
  // Makes one system call.
  bool is_deleted() const noexcept;

  const std::string& name() const noexcept { return name_; }
  // Tells this topic from earlier and later ones of its name. Save it with an offset that you save.
  TopicId id() const noexcept;
  // The directory that was given when the topic was opened; empty: the default.
  const std::string& directory() const noexcept { return directory_; }
  std::uint32_t partitions() const noexcept;
  Policy policy() const noexcept;
  // Largest record in bytes: key, headers, timestamp and value together, encoded.
  std::size_t max_record_size() const noexcept;
  std::uint64_t segment_bytes() const noexcept;

 private:
  friend struct TopicTesting;
  friend class Group;
  Topic(std::string name, std::shared_ptr<detail::MappedTopic> topic,
        std::string directory) noexcept;

  static Result<detail::NewTopic> new_topic(const TopicOptions& options);
  static bool plan_growth(const TopicOptions& options, detail::NewTopic& topic);
  static Result<Topic> create(const std::string& name, const detail::NewTopic& created,
                              const std::string& directory_name,
                              const std::string& data_directory = {});
  static Result<Topic> attach(const detail::Fd& directory, const std::string& name,
                              const std::string& directory_name, const std::string& data_directory);
  static Result<Topic> create_durable(const std::string& name, const TopicOptions& options);
  static Result<std::shared_ptr<detail::MappedTopic>> keep_while_open(
      std::shared_ptr<detail::MappedTopic> topic, const std::string& name);
  static void delete_if_unused(detail::MappedTopic& topic, const std::string& name);
  static std::uint64_t read_attempt(detail::MappedTopic& topic) noexcept;
  static bool has_living_participants(const detail::MappedTopic& topic);
  Result<detail::Participant> join(detail::ParticipantRole role,
                                   const Callback<void(std::uint32_t)>& fill) const;
  Result<void> become_exclusive(const detail::Participant& me) const;

  std::string name_;
  std::shared_ptr<detail::MappedTopic> topic_;
  std::string directory_;
};

}  // namespace leat::inline v0

#ifndef LEAT_COMPILED
#include "leat/log/impl.hpp"
#endif
