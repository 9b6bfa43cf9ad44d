// Administration: inspects, checks, repairs, copies and reads topics, whether processes have them open or not.
//
//     auto memory = leat::inspect_memory("orders");
//     if (memory && !memory->dead.empty()) note("a process that used topic 'orders' has died");
//     auto files = leat::TopicFiles::open("orders");                      // of a durable topic
//     auto report = files ? files->check() : files.error();               // as `leat fsck orders`
//     if (report && report->is_damaged()) warn(report->findings.front().text);
//
// Topic::list() lists topics; Topic::info() and Group::info() describe those that a process has opened. What this header
// has for topics takes no part in them and recovers nothing. Not in leat/leat.hpp: include it by itself.
//
// Functions, and const functions of one object, may be called by several threads and processes at once, unless they say
// otherwise. An empty directory is the default, as in TopicOptions. docs/guide/cpp.md, "Administration".
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "leat/group.hpp"
#include "leat/os/fd.hpp"

namespace leat::inline v0 {

namespace detail {
class FilesScan;
}

// ---- Names and places ---------------------------------------------------------------------------

// Whether a topic or a group can have this name: 1 to 200 of A-Z a-z 0-9 . _ -, and neither "." nor "..".
bool is_valid_name(std::string_view name) noexcept;
// The topic that gets a group's records that fail too often (GroupOptions::max_deliveries).
std::string dead_letter_topic(std::string_view topic, std::string_view group);

// The path of the directory of topics: the given one, else $LEAT_DIR, else default_topics_directory(). Without a slash at
// the end. The directory need not exist.
std::string topics_directory(std::string_view directory = {});
// /dev/shm/leat-UID. Anybody may create names in /dev/shm, so this directory is used only if it belongs to the caller.
std::string default_topics_directory();
// The path of the directory of all durable topics' files: the given one, else $LEAT_DATA_DIR, else $XDG_DATA_HOME/leat,
// else ~/.local/share/leat.
std::string data_directory(std::string_view directory = {});
// The name of the file in the directory of topics that deletions lock. Who may not write to it cannot delete topics.
inline constexpr char kDeletionLock[] = "+lock";

// Opens the directory of topics, as the functions of Topic do, and closes it again. With `make`, creates it with mode 0700
// if it is missing.
//   not_found    it is missing
//   permission   also, with no errno, ELOOP or ENOTDIR: it is the default one, and a link or another user's
Result<void> check_topics_directory(std::string_view directory = {}, bool make = false);
// The same for the data directory. With `make`, creates the directories above it as well.
//   not_found, permission
Result<void> check_data_directory(std::string_view directory = {}, bool make = false);

// Whether something has this name in the directory of topics: the memory of a topic, unless it is_foreign().
bool has_memory(const std::string& name, std::string_view directory = {});
// Whether something has this name in the data directory: the files of a durable topic, as a rule.
bool has_files(const std::string& name, std::string_view data_directory = {});
// Whether what has a name in the directory of topics is another program's: a file, or a directory without any file of a
// topic's memory. False if nothing has the name.
bool is_foreign(const std::string& name, std::string_view directory = {});

// ---- Sizes --------------------------------------------------------------------------------------

// What topics and groups can have. Sizes in bytes.
struct TopicLimits {
  static constexpr std::uint64_t kPage = 4096;  // Segments have whole pages.
  static constexpr std::uint64_t kMinSegment = kPage;
  static constexpr std::uint64_t kMaxSegment = std::uint64_t{1} << 30;
  static constexpr std::uint32_t kMaxSegments = 1024;  // of a partition
  static constexpr std::uint64_t kMinCapacity = 2 * kMinSegment;
  static constexpr std::uint64_t kMaxCapacity = std::uint64_t{1} << 40;  // of a partition
  static constexpr std::uint32_t kMaxPartitions = 1024;
  static constexpr std::uint32_t kMaxParticipants = 4096;
  static constexpr std::uint32_t kMaxDeliveries = 65'534;  // GroupOptions::max_deliveries
  // Durable topics:
  static constexpr std::uint64_t kMinFile = std::uint64_t{64} << 10;
  static constexpr std::uint64_t kMaxFile = std::uint64_t{1} << 40;
  static constexpr std::chrono::nanoseconds kMinSyncInterval{1'000'000};
  static constexpr std::chrono::nanoseconds kMaxSyncInterval{3'600'000'000'000};
};

// The sizes of a topic in bytes, as Topic::create() rounds those of its options. Does not check the options.
struct TopicSizes {
  std::uint64_t segment_bytes = 0;
  std::uint64_t capacity_bytes = 0;  // of a partition
};
TopicSizes sizes_of(const TopicOptions& options) noexcept;

// The largest record of a topic with segments of this size: key, headers, timestamp and value together. Bytes.
std::uint64_t max_record_bytes(std::uint64_t segment_bytes) noexcept;
// The size of a record in bytes, to be compared with Topic::max_record_size(). `timestamps`: as in TopicOptions.
std::uint64_t record_bytes(const NewRecord& record, bool timestamps) noexcept;
// The room in a segment that a record of this size takes. Bytes.
std::uint64_t room_of_record(std::uint64_t record_bytes) noexcept;

// ---- Topics in memory ---------------------------------------------------------------------------

// What the directory of topics has of a topic: a snapshot, taken while others go on.
struct TopicMemory {
  // Process ids of its participants, each in its own PID namespace. Whoever needs the place of a dead one takes it over.
  std::vector<std::uint32_t> living;
  std::vector<std::uint32_t> dead;
  std::uint32_t owner = 0;  // user id
  std::uint32_t mode = 0;   // permission bits of its files
  bool is_deleted = false;  // It was deleted, but its name could not be removed yet.
  bool is_durable = false;
  // Durable topics:
  std::string files;        // path of the directory with its files
  Errc state = Errc::ok;    // why nothing is written to them: no_space, read_only
  std::int32_t reason = 0;  // errno, unless the state is ok
  // Its files are gone, or belong to other memory. What was not on disk is only here.
  bool is_stray = false;
};
// Looks at a topic's memory. Does not open a durable topic that no process has open: that would recover it.
//   not_found          nothing has the name, or a file of the topic is missing
//   wrong_format       the name belongs to something else, or to another format version
//   invalid_argument   the name
//   permission, corrupt
Result<TopicMemory> inspect_memory(const std::string& name, std::string_view directory = {},
                                   std::string_view data_directory = {});

// A durable topic that no process has open, as its files say.
struct ClosedTopic {
  TopicInfo info;
  // By name; without groups of which nothing can be read. Only name, lag, in_flight and offsets are set.
  std::vector<GroupInfo> groups;
};
// Reads what Topic::info() and Group::info() would say, without recovering the topic.
//   not_found
//   wrong_format   the directory of that name is not a topic's, or has files of another version
//   corrupt        its files contradict each other
//   permission, io_error
Result<ClosedTopic> inspect_closed(const std::string& name, std::string_view data_directory = {});

// ---- Files of durable topics --------------------------------------------------------------------

// What the manifest says, the file that describes the topic.
struct ManifestInfo {
  TopicId id{};  // Not known: a backup's.
  std::uint32_t partitions = 0;
  std::uint64_t memory_bytes = 0;  // that the topic's records take in the directory of topics
  std::string memory_directory;    // where it was opened last; empty: nowhere yet
};

// The manifest or the checkpoint. Each has two copies, of which one is enough.
struct CopiesInfo {
  Errc state = Errc::ok;  // why neither copy can be used
  // The file that is missing or damaged. Empty if both copies can be used, or neither.
  std::string bad_copy;
  bool is_missing = false;  // The bad copy is missing, not damaged.
};
// A quick look at a topic's files, which reads no records.
struct FilesInfo {
  // Files cut-…: what recovery found at the end and took out, because it was not written whole.
  std::uint64_t cut_files = 0;
  std::uint64_t cut_bytes = 0;
  bool is_open = false;  // Some process has the topic open.
  CopiesInfo manifest;
  // Why the topic cannot be used, although its manifest can be read: wrong_format, corrupt, …
  Errc error = Errc::ok;
  // The next two only if nothing is wrong above.
  CopiesInfo checkpoint;
  // No process has the topic open, and it was not closed. The next process that opens it recovers it.
  bool needs_recovery = false;
};

// What check() found.
struct FileFinding {
  std::string file;       // its name in the directory
  std::string text;       // one sentence, without a full stop
  bool is_damage = true;  // else a note
};
struct CheckReport {
  std::vector<FileFinding> findings;
  std::uint64_t files = 0;    // with records
  std::uint64_t bytes = 0;    // of these files
  std::uint64_t frames = 0;   // pieces with a checksum of their own
  std::uint64_t records = 0;  // that can be read
  std::uint64_t damaged = 0;  // offsets whose records cannot be read
  std::uint64_t lost = 0;     // offsets that a failure of the machine left without a record
  bool was_closed = false;    // Nothing needs recovery.

  bool is_damaged() const noexcept;
};

// What repair() did.
struct RepairReport {
  std::vector<std::string> deleted_groups;  // file names of groups of which nothing could be read
  // What was never written whole, at the ends of partitions. Files cut-… keep it.
  std::uint64_t cut_bytes = 0;
  std::uint64_t cut_records = 0;
};

// What back_up() and restore() copied.
struct CopyReport {
  std::uint64_t files = 0;   // with records
  std::uint64_t linked = 0;  // of these, hard links
  std::uint64_t bytes = 0;
  std::uint64_t offsets = 0;
  // Offsets whose records cannot be read, of those at the end that were looked at.
  std::uint64_t damaged = 0;
};
struct BackupOptions {
  // Copies every file. Otherwise full files become hard links, if both places are on one file system.
  bool copies = false;
  std::stop_token stop = {};  // checked before each file
};

// A record of a topic's files, or a gap: offsets without a record.
struct FilesEntry {
  bool is_record = false;
  Record record{};  // If it is a record. Its views are valid until the next call.
  Event gap{};      // If it is not.
};

// Reads records from files, one partition after another. For one thread at a time.
class FilesReader {
 public:
  FilesReader(FilesReader&& other) noexcept;
  FilesReader& operator=(FilesReader&& other) noexcept;
  ~FilesReader();

  // Goes to an offset of a partition, or to the oldest one that is there. Errors as for next().
  //   invalid_argument   no such partition
  Result<void> seek(std::uint32_t partition, std::uint64_t offset);
  // Reads the next record or gap of the partition that seek() chose; false at the end. Of what is published after the reader
  // was made, it reads what goes to the file that was the last one. If retention deletes files meanwhile, what they had is a
  // gap `overwritten`.
  //   not_found   the topic was deleted, or its files are deleted faster than they can be opened
  //   permission, wrong_format, io_error
  Result<bool> next(FilesEntry& entry);

 private:
  friend class TopicFiles;
  explicit FilesReader(std::unique_ptr<detail::FilesScan> scan) noexcept;
  std::unique_ptr<detail::FilesScan> scan_;  // Null once moved from.
};

// The directory with the files of a durable topic, or with a backup. Processes may have the topic open, use it, and delete
// it meanwhile: the object then still has the old files. Unless a comment says otherwise, functions change nothing, and
// return `permission` and `io_error` beside what is listed, and `wrong_format` for files of a newer version and for
// what is not a regular file.
class TopicFiles {
 public:
  // An empty object, as after a move: functions of it return `io_error`.
  TopicFiles() noexcept = default;

  // The name of the file by whose locks processes show that they have the topic open.
  static constexpr char kLock[] = "lock";

  // Opens a topic's directory in the data directory.
  //   not_found
  //   wrong_format   (ENOTDIR) the name belongs to a file or a symbolic link
  static Result<TopicFiles> open(const std::string& topic, std::string_view data_directory = {});
  // Opens any directory: a backup, or DurableInfo::directory.
  //   not_found
  static Result<TopicFiles> open_path(const std::string& path);

  // Whether this is a topic's directory, or what is left of one.
  Result<bool> is_topic() const;
  //   not_found   there is none: not a topic
  //   corrupt     both copies are damaged
  Result<ManifestInfo> manifest() const;
  //   not_found   not a topic's directory
  Result<FilesInfo> inspect() const;
  // Whether some process has the topic open.
  bool is_open() const;
  // Whether a process has the topic open with another directory of topics. False if that directory cannot be opened.
  bool is_open_elsewhere(const std::string& topic, std::string_view directory = {}) const;
  // Whether there is a group of which no file can be read. Nobody knows its name.
  //   not_found, corrupt   as for manifest()
  Result<bool> has_unreadable_group() const;
  // The name of something that is not a regular file and has the name of a topic's file; empty if there is none.
  Result<std::string> irregular_file() const;

  // Reads every byte. While others write to the topic, its last frames may look cut off.
  //   not_found, corrupt   as for manifest()
  Result<CheckReport> check() const;

  // Makes the file kLock if it is missing: some copying tools leave out empty files.
  //   exists               something else has its name: remove it once no process uses the topic
  //   not_found, corrupt   as for manifest()
  //   no_space
  Result<void> make_lock() const;

  // Takes out what was never written whole, makes damaged copies of the manifest, the checkpoint and groups anew, and deletes
  // groups of which nothing can be read. The topic is closed afterwards. What it has done up to an error is in `report`.
  //   busy                 a process has the topic open
  //   not_found, corrupt   as for manifest(), and not_found for a missing kLock
  //   no_space
  Result<void> repair(RepairReport& report) const;

  // Copies the topic to a new directory at `path`, in a directory that exists. Processes may publish meanwhile. The copy
  // has at least what was on stable storage before the call (Topic::sync()), and needs no recovery. Nothing is left of it
  // after an error.
  //   exists             something has the path
  //   invalid_argument   the path has no name, or is in the topic's own directory
  //   not_found          no directory for it; or no manifest here
  //   busy               the topic's files are deleted faster than they can be copied
  //   deleted            the topic was deleted
  //   stopped            as the stop token requested
  //   no_space, corrupt
  Result<CopyReport> back_up(const std::string& path, const BackupOptions& options = {}) const;
  // Makes a durable topic, with an id of its own, of this backup. It is closed. Damage stays. Nothing is left after an error.
  //   exists             a topic has the name
  //   invalid_argument   the name
  //   not_found          no data directory, or no manifest here
  //   stopped            as the stop token requested
  //   busy, no_space, corrupt
  Result<CopyReport> restore(const std::string& topic, const std::stop_token& stop = {},
                             std::string_view directory = {},
                             std::string_view data_directory = {}) const;

  // Makes a reader of the records that the files have now. May outlive this object.
  //   not_found, corrupt   as for manifest(), and not_found if files are deleted faster than they can be opened
  Result<FilesReader> reader() const;

 private:
  explicit TopicFiles(detail::Fd directory) noexcept;
  detail::Fd directory_;
};

}  // namespace leat::inline v0

#ifndef LEAT_COMPILED
#include "leat/admin/impl.hpp"
#endif
