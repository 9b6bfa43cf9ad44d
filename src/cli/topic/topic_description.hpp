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

using facts::error_text;
using facts::facts_of;
using facts::has_offset;
using facts::is_publisher;
using facts::name_of;
using facts::to_json;
using facts::TopicFacts;
using facts::total_capacity;
using facts::total_published;
using facts::total_records;
using facts::total_used;

// Of a topic by name, which need not be open in any process.
Result<TopicFacts> look_at_topic(const std::string& name);
// All topics of the directory, by name; also those that can't be opened.
std::vector<TopicFacts> look_at_topics();

struct TopicRates {
  TopicFacts facts;
  std::optional<double> records_per_second = {};
  std::vector<std::optional<double>> groups_per_second = {};  // Of its groups: records claimed.
};
// The same, and how fast each was since the meter's last look. Nothing is known at its first one.
std::vector<TopicRates> look_at_rates(RateMeter& meter);

// "everything", "what fits in 1 GiB a partition", "what is not older than 7d"
std::string what_is_kept(const DurableInfo& durable);
// "5s", "12m", "3h", "4d"; "-" if it is not known.
std::string age_text(std::optional<std::int64_t> created_ms);
// "12,345/s", "0.5/s"; "-" if it is not known.
std::string rate_text(std::optional<double> per_second);

}  // namespace leat::cli
