// What `leat topic list`, `leat topic info` and `leat top` know of a topic, and how they write it.
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "leat/leat.hpp"

namespace leat::cli {

struct TopicFacts {
  std::string name;
  Error error = {};  // Why nothing else is known; ok if it is.
  TopicInfo info = {};
  std::vector<GroupInfo> groups = {};  // By name.
  std::uint64_t max_record_bytes = 0;
  std::optional<std::int64_t> created_ms = {};  // Since 1970. Some file systems do not tell.
};

TopicFacts facts_of(const Topic& topic);
// Of a topic by name, which need not be open in any process.
Result<TopicFacts> look_at_topic(const std::string& name);
// All topics of the directory, by name; also those that can't be opened.
std::vector<TopicFacts> look_at_topics();

// Over all partitions.
std::uint64_t total_capacity(const TopicInfo& info);
std::uint64_t total_used(const TopicInfo& info);
std::uint64_t total_published(const TopicInfo& info);  // ever, or claimed for it
std::uint64_t total_records(const TopicInfo& info);    // that can be read

bool is_publisher(const ParticipantInfo& participant);
// Where a member is, is its group's matter.
bool has_offset(const ParticipantInfo& participant);

nlohmann::ordered_json to_json(const TopicFacts& facts);

const char* name_of(Policy policy) noexcept;
const char* name_of(Durability durability) noexcept;
// "everything", "what fits in 1 GiB a partition", "what is not older than 7d"
std::string what_is_kept(const DurableInfo& durable);
// Why a topic can't be opened, in a table: "permission", or a sentence.
std::string error_text(Error error);
// "5s", "12m", "3h", "4d"; "-" if it is not known.
std::string age_text(std::optional<std::int64_t> created_ms);
// "12,345/s", "0.5/s"; "-" if it is not known.
std::string rate_text(std::optional<double> per_second);

}  // namespace leat::cli
