// What `leat topic list`, `leat topic info` and `leat top` know of a topic, and how they write it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/live/rate_meter.hpp"
#include "description/topic_description.hpp"
#include "leat/leat.hpp"

namespace leat::cli {

using description::describe_topic;
using description::error_text;
using description::has_offset;
using description::is_publisher;
using description::name_of;
using description::to_json;
using description::TopicDescription;
using description::total_capacity;
using description::total_published;
using description::total_records;
using description::total_used;

// Of a topic by name, which need not be open in any process.
Result<TopicDescription> describe_topic_named(const std::string& name);
// All topics of the directory, by name; also those that can't be opened.
std::vector<TopicDescription> describe_topics();

struct TopicRates {
  TopicDescription description;
  std::optional<double> records_per_second = {};
  std::vector<std::optional<double>> groups_per_second = {};  // Of its groups: records claimed.
};
// The same, and how fast each was since the meter's last look. Nothing is known at its first one.
std::vector<TopicRates> measure_rates(RateMeter& meter);

// "everything", "what fits in 1 GiB a partition", "what is not older than 7d"
std::string what_is_kept(const DurableInfo& durable);
// "5s", "12m", "3h", "4d"; "-" if it is not known.
std::string age_text(std::optional<std::int64_t> created_ms);
// "12,345/s", "0.5/s"; "-" if it is not known.
std::string rate_text(std::optional<double> per_second);

}  // namespace leat::cli
