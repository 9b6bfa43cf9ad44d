#include "topic_description.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "cli/cli.hpp"
#include "leat/admin.hpp"

namespace leat::cli {

Result<TopicDescription> describe_topic_named(const std::string& name) {
  if (!has_memory(name) && has_files(name)) {
    auto closed = inspect_closed(name);
    if (closed) {
      TopicDescription description{.name = name};
      description.info = std::move(closed->info);
      description.groups = std::move(closed->groups);
      description.max_record_bytes = max_record_bytes(description.info.segment_bytes);
      description.created_ms = description.info.durable->created_ms;
      return description;
    }
    if (closed.error() != Errc::not_found) return closed.error();
  }
  auto topic = Topic::open(name);
  if (!topic) return topic.error();
  return describe_topic(*topic);
}

std::vector<TopicDescription> describe_topics() {
  const std::string directory = usable_directory(Missing::fails_if_named);
  check_named_data_directory();
  auto names = Topic::list();
  if (!names) throw system_failure("cannot list " + directory, names.error().system_error);
  std::sort(names->begin(), names->end());
  std::vector<TopicDescription> all;
  for (const std::string& name : *names) {
    auto description = describe_topic_named(name);
    if (description)
      all.push_back(std::move(*description));
    else if (description.error().code != Errc::not_found)  // Deleted since.
      all.push_back({.name = name, .error = description.error()});
  }
  return all;
}

std::vector<TopicRates> measure_rates(RateMeter& meter) {
  std::vector<TopicRates> all;
  meter.sample(std::chrono::steady_clock::now());
  for (TopicDescription& description : describe_topics()) {
    TopicRates& one = all.emplace_back(TopicRates{std::move(description)});
    const TopicDescription& topic = one.description;
    if (topic.error.code != Errc::ok) continue;
    one.records_per_second = meter.rise(topic.name, total_published(topic.info));
    for (const GroupInfo& group : topic.groups) {
      const std::uint64_t taken =
          std::accumulate(group.offsets.begin(), group.offsets.end(), std::uint64_t{0});
      // No topic's name has a slash.
      one.groups_per_second.push_back(meter.rise(topic.name + "/" + group.name, taken));
    }
  }
  return all;
}

std::string what_is_kept(const DurableInfo& durable) {
  std::string text;
  if (durable.retention_bytes != 0)
    text = fmt::format("what fits in {} a partition", size_text(durable.retention_bytes));
  if (durable.retention.count() != 0)
    text += fmt::format("{}what is not older than {}", text.empty() ? "" : " and ",
                        duration_text(durable.retention));
  return text.empty() ? "everything" : text;
}

std::string age_text(std::optional<std::int64_t> created_ms) {
  if (!created_ms) return "-";
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const std::int64_t seconds =
      std::max<std::int64_t>(
          0, std::chrono::ceil<std::chrono::milliseconds>(now).count() - *created_ms) /
      1000;
  if (seconds < 120) return fmt::format("{}s", seconds);
  if (seconds < 2 * 3600) return fmt::format("{}m", seconds / 60);
  if (seconds < 48 * 3600) return fmt::format("{}h", seconds / 3600);
  return fmt::format("{}d", seconds / 86'400);
}

std::string rate_text(std::optional<double> per_second) {
  constexpr double kExact = 10;  // Below, tenths matter.
  if (!per_second) return "-";
  if (*per_second > 0 && *per_second < kExact) return fmt::format("{:.1f}/s", *per_second);
  return number_text(static_cast<std::uint64_t>(std::llround(*per_second))) + "/s";
}

}  // namespace leat::cli
