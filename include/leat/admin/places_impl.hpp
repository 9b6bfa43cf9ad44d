// Names, places and sizes of topics, for leat/admin.hpp.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "leat/admin.hpp"
#include "leat/format/group_layout.hpp"
#include "leat/format/store_layout.hpp"
#include "leat/format/wire.hpp"
#include "leat/group/dead_letters.hpp"
#include "leat/log/directory.hpp"
#include "leat/store/data_directory.hpp"

namespace leat::inline v0 {

static_assert(TopicLimits::kPage == detail::kPage);
static_assert(TopicLimits::kMinSegment == detail::Geometry::kMinSegmentSize);
static_assert(TopicLimits::kMaxSegment == detail::Geometry::kMaxSegmentSize);
static_assert(TopicLimits::kMaxSegments == detail::kMaxSegments);
static_assert(TopicLimits::kMaxPartitions == detail::Geometry::kMaxPartitions);
static_assert(TopicLimits::kMaxParticipants == detail::kMaxParticipants);
static_assert(TopicLimits::kMaxDeliveries == detail::InFlightState::kMaxDeliveries - 1);
static_assert(TopicLimits::kMinFile == detail::kMinFileSize);
static_assert(TopicLimits::kMaxFile == detail::kMaxFileSize);
static_assert(TopicLimits::kMinSyncInterval.count() == detail::kMinSyncInterval);
static_assert(TopicLimits::kMaxSyncInterval.count() == detail::kMaxSyncInterval);

LEAT_INLINE bool is_valid_name(std::string_view name) noexcept {
  return detail::is_valid_topic_name(name);
}
LEAT_INLINE std::string dead_letter_topic(std::string_view topic, std::string_view group) {
  return detail::dead_letter_topic_name(topic, group);
}

LEAT_INLINE std::string topics_directory(std::string_view directory) {
  return detail::directory_path(directory);
}
LEAT_INLINE std::string default_topics_directory() { return detail::default_directory_path(); }
LEAT_INLINE std::string data_directory(std::string_view directory) {
  return detail::data_directory_path(directory);
}
static_assert(std::string_view{kDeletionLock} == detail::kDirectoryLock);

LEAT_INLINE Result<void> check_topics_directory(std::string_view directory, bool make) {
  return detail::open_directory(directory, make).error();
}
LEAT_INLINE Result<void> check_data_directory(std::string_view directory, bool make) {
  return detail::open_data_directory(directory, make).error();
}

LEAT_INLINE bool has_memory(const std::string& name, std::string_view directory) {
  auto topics = detail::open_directory(directory, false);
  return topics && detail::has_name(topics->get(), name.c_str());
}
LEAT_INLINE bool has_files(const std::string& name, std::string_view data_directory) {
  auto data = detail::open_data_directory(data_directory, false);
  return data && detail::has_name(data->get(), name.c_str());
}
LEAT_INLINE bool is_foreign(const std::string& name, std::string_view directory) {
  const std::string path = topics_directory(directory) + '/' + name;
  if (detail::is_other_than_directory(AT_FDCWD, path.c_str())) return true;
  if (!detail::has_name(AT_FDCWD, path.c_str())) return false;
  const auto is_missing = [&](const char* file) {
    return detail::is_missing(AT_FDCWD, (path + '/' + file).c_str());
  };
  return is_missing(detail::kControlFile) && is_missing(detail::kRecordsFile);
}

LEAT_INLINE TopicSizes sizes_of(const TopicOptions& options) noexcept {
  constexpr std::uint64_t kSegmentsByDefault = 8;
  const std::uint64_t capacity = options.capacity_bytes != 0 ? options.capacity_bytes
                                 : options.durable != Durability::none
                                     ? TopicOptions::kDefaultWindow
                                     : TopicOptions::kDefaultCapacity;
  const std::uint64_t wanted =
      options.segment_bytes != 0 ? options.segment_bytes : capacity / kSegmentsByDefault;
  const std::uint64_t segment =
      detail::Geometry::round_up(std::max(wanted, TopicLimits::kMinSegment), TopicLimits::kPage);
  return {segment, std::max(2 * segment, detail::Geometry::round_up(capacity, segment))};
}

LEAT_INLINE std::uint64_t max_record_bytes(std::uint64_t segment_bytes) noexcept {
  return segment_bytes / 2 - detail::kRecordHeaderSize;
}
LEAT_INLINE std::uint64_t record_bytes(const NewRecord& record, bool timestamps) noexcept {
  return detail::extension_sizes(record, timestamps).with_value(record.value.size());
}
LEAT_INLINE std::uint64_t room_of_record(std::uint64_t record_bytes) noexcept {
  return detail::granules_for(record_bytes) * detail::kGranule;
}

}  // namespace leat::inline v0
