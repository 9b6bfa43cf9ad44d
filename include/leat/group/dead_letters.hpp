// The dead-letter topic of a group: gets the records that were delivered too often, with headers
// that say where each came from. docs/guide/groups.md, "Options of a group".
#pragma once

#include <algorithm>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "leat/log/group_view.hpp"
#include "leat/log/mapped_topic.hpp"
#include "leat/os/directory.hpp"
#include "leat/publisher.hpp"
#include "leat/topic.hpp"

namespace leat::inline v0::detail {

// TOPIC.GROUP.dead. If the group's name has dots, their number follows, to show where the topic's
// name ends: group `b.c` of topic `a` has a.b.c.dead1, group `c` of topic `a.b` has a.b.c.dead.
inline std::string dead_letter_topic_name(std::string_view topic, std::string_view group) {
  std::string name{topic};
  name.append(".").append(group).append(".dead");
  const auto dots = std::count(group.begin(), group.end(), '.');
  return dots == 0 ? name : name + std::to_string(dots);
}

// The dead-letter topic has the initial size of its source, grows if the source grows, and is as durable. The users
// who may use the source, which has this control file, may use it, too.
inline Result<TopicOptions> dead_letter_topic_options(const Topic& source, int control_fd) {
  struct stat file {};
  if (::fstat(control_fd, &file) != 0) return last_system_error();
  const TopicInfo info = source.info();
  TopicOptions options;
  // Larger segments, so that every record fits with its additional headers.
  options.segment_bytes = std::min(2 * info.segment_bytes, Geometry::kMaxSegmentSize);
  options.capacity_bytes = std::max(source.min_capacity(), 2 * options.segment_bytes);
  options.directory = source.directory();
  options.mode = 0600 | (file.st_mode & 0666);
  const bool needs_group = (options.mode & 0060) != 0 && (options.mode & 0066) != 0066;
  if (needs_group && file.st_gid != ::getegid())
    options.file_group = name_of_file_group(file.st_gid);
  if (info.durable) {
    options.durable = info.durable->durability;
    options.sync_interval = info.durable->sync_interval;
    options.file_bytes = info.durable->file_bytes;
    options.data_directory = info.durable->directory.substr(0, info.durable->directory.rfind('/'));
  } else if (source.policy() == Policy::grow) {
    options.policy = Policy::grow;
    options.max_capacity_bytes = std::max(info.max_capacity_bytes, options.capacity_bytes);
  } else {
    options.policy = Policy::overwrite;
  }
  return options;
}

// A dead letter to be published. Owns the strings that its headers point to.
class DeadLetter {
 public:
  DeadLetter(const Record& record, std::string topic, std::string group, std::uint32_t deliveries)
      : record_{record},
        topic_{std::move(topic)},
        group_{std::move(group)},
        partition_{std::to_string(record.partition)},
        offset_{std::to_string(record.offset)},
        deliveries_{std::to_string(deliveries)},
        timestamp_{std::to_string(record.timestamp_ms)} {
    headers_ = {{"leat-reason", "max-deliveries"},
                {"leat-topic", topic_},
                {"leat-group", group_},
                {"leat-partition", partition_},
                {"leat-offset", offset_},
                {"leat-deliveries", deliveries_}};
    // The original time: the dead letter's own timestamp, if any, is when it is published.
    if (record.timestamp_ms >= 0) headers_.push_back({"leat-timestamp", timestamp_});
    for (const Header header : record.headers) headers_.push_back(header);
  }
  DeadLetter(const DeadLetter&) = delete;
  DeadLetter& operator=(const DeadLetter&) = delete;

  // The result points into this object and into the record.
  NewRecord letter() const {
    NewRecord letter{.headers = headers_, .value = record_.value};
    if (record_.has_key) letter.key = record_.key;
    return letter;
  }

 private:
  const Record& record_;
  std::string topic_, group_, partition_, offset_, deliveries_, timestamp_;
  std::vector<Header> headers_;
};

// A group's dead-letter topic. Opened, and created if missing, for the first dead letter.
class DeadLetterTopic {
 public:
  DeadLetterTopic(const Topic& source, const MappedTopic& shared, const GroupView& group) noexcept
      : source_{source}, shared_{shared}, group_{group} {}

  // False if the topic cannot be opened or has no room now, or if there is no memory.
  bool publish(const Record& record, std::uint32_t deliveries) noexcept {
    try {
      if (!publisher_ && !open()) return false;
      const DeadLetter letter{record, source_.name(), group_.name(), deliveries};
      const auto published = publisher_->publish(letter.letter(), Deadline::immediate());
      if (published.error() == Errc::deleted) publisher_.reset();  // Opened anew the next time.
      // not_durable: it is published, and will be on stable storage.
      return published || published.error() == Errc::not_durable;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }

 private:
  bool open() {
    const std::string name = dead_letter_topic_name(source_.name(), group_.name());
    const auto options = dead_letter_topic_options(source_, shared_.control_fd());
    if (!options) return false;
    auto topic = Topic::open_or_create(name, *options);
    if (!topic) return false;
    auto publisher = topic->publisher();
    if (publisher) publisher_.emplace(std::move(*publisher));
    return publisher_.has_value();
  }

  const Topic& source_;
  const MappedTopic& shared_;
  const GroupView& group_;
  std::optional<Publisher> publisher_;
};

}  // namespace leat::inline v0::detail
