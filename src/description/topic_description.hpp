// What there is to know of a topic, and its JSON: for `leat topic info` and for leat_topic_get_json().
//
//     std::string text = description::json_text(description::describe_topic(topic));
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "leat/leat.hpp"

namespace leat::description {

struct TopicDescription {
  std::string name;
  Error error = {};  // Why nothing else is known; ok if it is.
  TopicInfo info = {};
  std::vector<GroupInfo> groups = {};  // By name.
  std::uint64_t max_record_bytes = 0;
  std::optional<std::int64_t> created_ms = {};  // Since 1970. Some file systems do not tell.
};

TopicDescription describe_topic(const Topic& topic);

// Over all partitions.
std::uint64_t total_capacity(const TopicInfo& info);
std::uint64_t total_used(const TopicInfo& info);
std::uint64_t total_published(const TopicInfo& info);  // ever, or claimed for it
std::uint64_t total_records(const TopicInfo& info);    // that can be read

bool is_publisher(const ParticipantInfo& participant);
// Where a member is, is its group's matter.
bool has_offset(const ParticipantInfo& participant);

nlohmann::ordered_json to_json(const TopicDescription& description);
// In lines, without a line feed at the end.
std::string json_text(const TopicDescription& description);

const char* name_of(Policy policy) noexcept;
const char* name_of(Durability durability) noexcept;
// Why a topic can't be opened, in a table: "permission", or a sentence.
std::string error_text(Error error);

}  // namespace leat::description
