// `leat top`: who publishes and who lags behind, every second.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/cli.hpp"
#include "cli/table.hpp"
#include "cli/topic/topic_description.hpp"
#include "leat/admin.hpp"
#include "live_view.hpp"
#include "rate_meter.hpp"
#include "tool/terminal.hpp"

namespace leat::cli {
namespace {

// The busiest first.
std::vector<TopicRates> poll(RateMeter& meter) {
  std::vector<TopicRates> topics = measure_rates(meter);
  std::stable_sort(
      topics.begin(), topics.end(), [](const TopicRates& one, const TopicRates& other) {
        return one.records_per_second.value_or(0) > other.records_per_second.value_or(0);
      });
  return topics;
}

// "2 members"
std::string count_text(std::size_t count, const char* what) {
  return fmt::format("{} {}{}", number_text(count), what, count == 1 ? "" : "s");
}

std::string name_of_member(const MemberInfo& member) {
  return member.name.empty()
             ? fmt::format("    member {}", member.pid)
             : fmt::format("    member {} ({})", member.pid, tool::without_controls(member.name));
}

void add_group(Table& table, const GroupInfo& group, std::optional<double> rate) {
  table.add({"  group " + group.name, rate_text(rate), number_text(group.lag),
             number_text(group.in_flight), "", count_text(group.members.size(), "member")});
  for (const MemberInfo& member : group.members)
    table.add({name_of_member(member), "", "", number_text(member.in_flight), "", ""});
}

void add_topic(Table& table, const TopicRates& rates) {
  const TopicDescription& topic = rates.description;
  if (topic.error.code != Errc::ok) {
    table.add({topic.name, tool::styled(tool::Style::red, error_text(topic.error))});
    return;
  }
  const auto& participants = topic.info.participants;
  const auto publishers = std::count_if(participants.begin(), participants.end(), is_publisher);
  table.add({topic.name, rate_text(rates.records_per_second), "", "",
             fmt::format("{} of {}", size_text(total_used(topic.info)),
                         size_text(total_capacity(topic.info))),
             count_text(static_cast<std::size_t>(publishers), "publisher")});
  for (const ParticipantInfo& one : participants) {
    const std::string note = one.blocking ? tool::styled(tool::Style::red, "blocking") : "";
    if (has_offset(one))
      table.add(
          {fmt::format("  {} {}", one.role, one.pid), "", number_text(one.lag), "", "", note});
    else if (one.blocking)
      table.add({fmt::format("  {} {}", one.role, one.pid), "", "", "", "", note});
  }
  for (std::size_t i = 0; i < topic.groups.size(); ++i)
    add_group(table, topic.groups[i], rates.groups_per_second[i]);
}

std::string text_of(const std::vector<TopicRates>& topics) {
  double total = 0;
  Table table{{"TOPIC", Align::left},      {"RATE", Align::right}, {"LAG", Align::right},
              {"IN FLIGHT", Align::right}, {"USED", Align::right}, {"", Align::left}};
  for (const TopicRates& one : topics) {
    total += one.records_per_second.value_or(0);
    add_topic(table, one);
  }
  return fmt::format("{} in {}, {} records/s\n\n{}", count_text(topics.size(), "topic"),
                     topics_directory(), number_text(static_cast<std::uint64_t>(total)),
                     table.text());
}

void top(std::uint64_t count) {
  RateMeter meter;
  LiveView view{LiveView::Mode::with_keys};
  poll(meter);
  if (!view.wait_for(LiveView::kFirstPoll)) return;
  do {
    view.show(text_of(poll(meter)));
  } while (--count != 0 && view.wait());
}

}  // namespace

void add_top_command(CLI::App& app) {
  auto count = std::make_shared<std::uint64_t>(std::numeric_limits<std::uint64_t>::max());
  CLI::App* command =
      app.add_subcommand("top", "Rates, lags and members of all topics, again every second");
  add_number(*command, "-n,--count", *count, 1, std::numeric_limits<std::uint64_t>::max(),
             "End after so many times");
  command->footer(
      "The busiest topic comes first. The rate of a group is how many records it claims. Ends with "
      "the "
      "key q or Ctrl-C.\nExample:\n  leat top\n  leat top -n 1");
  command->callback([count] { top(*count); });
}

}  // namespace leat::cli
