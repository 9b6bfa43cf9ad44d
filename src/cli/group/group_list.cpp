#include "group_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/cli.hpp"
#include "cli/table.hpp"
#include "cli/topic/topic_description.hpp"
#include "group.hpp"
#include "leat/admin.hpp"
#include "leat/leat.hpp"
#include "tool/json_text.hpp"
#include "tool/terminal.hpp"

namespace leat::cli {
namespace {

using Json = nlohmann::ordered_json;

const char* name_of(OnExpired what) noexcept {
  switch (what) {
    case OnExpired::start: return "start";
    case OnExpired::end: return "end";
    case OnExpired::stop: return "stop";
  }
  return "unknown";
}

const char* name_of(GroupMode mode) noexcept {
  switch (mode) {
    case GroupMode::at_least_once: return "at least once";
    case GroupMode::at_most_once: return "at most once";
  }
  return "unknown";
}

const char* name_of_taking(Errc code) noexcept {
  return code == Errc::redelivery_full ? "redelivery_full" : "ok";
}

Json to_json(const GroupInfo& info) {
  Json members = Json::array();
  for (const MemberInfo& one : info.members)
    members.push_back({{"pid", one.pid}, {"name", one.name}, {"in_flight", one.in_flight}});
  return {{"name", info.name},
          {"lag", info.lag},
          {"members", info.members.size()},
          {"in_flight", info.in_flight},
          {"redelivered", info.redelivered},
          {"returned", info.returned},
          {"returned_limit", info.returned_limit},
          {"taking", name_of_taking(info.taking)},
          {"dead_letters", info.dead_letters},
          {"dead_letter_topic", info.dead_letter_topic},
          {"mode", name_of(info.mode)},
          {"by_key", info.by_key},
          {"max_deliveries", info.max_deliveries},
          {"lease_ns", info.lease.count()},
          {"on_expired", name_of(info.on_expired)},
          {"in_flight_limit", info.in_flight_limit},
          {"offsets", info.offsets},
          {"member_details", members}};
}

// Of a durable topic that nobody has open, only some facts are known.
bool is_closed(const GroupInfo& info) noexcept { return info.in_flight_limit == 0; }

Json to_json(const std::string& topic, const GroupInfo& info) {
  Json all;
  all["topic"] = topic;
  all.update(to_json(info));
  if (!is_closed(info)) return all;
  for (const char* unknown :
       {"redelivered", "returned", "returned_limit", "taking", "dead_letters", "dead_letter_topic",
        "mode", "by_key", "max_deliveries", "lease_ns", "on_expired", "in_flight_limit"})
    all[unknown] = nullptr;
  return all;
}

std::vector<std::string> cells(const GroupInfo& info) {
  return {info.name, number_text(info.lag), number_text(info.in_flight),
          number_text(info.members.size()), is_closed(info) ? "-" : number_text(info.redelivered)};
}

// Whether a durable topic has a group of which no file can be read. Nobody knows its name.
bool has_lost_group(const std::optional<DurableInfo>& durable) {
  if (!durable) return false;
  auto files = TopicFiles::open_path(durable->directory);
  auto is_lost = files ? files->has_unreadable_group() : files.error();
  return is_lost && *is_lost;
}

std::string lost_group_sentence(const std::string& topic) {
  return fmt::format(
      "what is saved of a group of topic '{}' is damaged: `leat fsck {}` shows it, and `leat fsck "
      "--repair {}` deletes what cannot be read",
      topic, topic, topic);
}

std::vector<GroupInfo> groups_of(const Topic& topic) {
  auto names = topic.group_names();
  if (!names) fail(names.error(), topic.name());
  std::sort(names->begin(), names->end());
  std::vector<GroupInfo> groups;
  for (const std::string& name : *names) {
    auto group = topic.find_group(name);
    if (!group && (group.error() == Errc::not_found || group.error() == Errc::closed))
      continue;  // Deleted since.
    if (!group) fail_group(group.error(), topic.name(), name);
    groups.push_back(group->info());
  }
  return groups;
}

void print_json(const Json& json) { fmt::print("{}\n", tool::json_text(json, 2)); }

// What is wrong with a topic as a whole, or with a group of it that has no name any more; empty if nothing is.
std::string trouble_of(const TopicDescription& topic) {
  if (topic.error.code != Errc::ok) return error_text(topic.error);
  return has_lost_group(topic.info.durable) ? lost_group_sentence(topic.name) : std::string{};
}

Json json_of(const std::vector<TopicDescription>& topics) {
  Json all = Json::array();
  for (const TopicDescription& topic : topics) {
    for (const GroupInfo& info : topic.groups) all.push_back(to_json(topic.name, info));
    if (const std::string trouble = trouble_of(topic); !trouble.empty())
      all.push_back({{"topic", topic.name}, {"error", trouble}});
  }
  return all;
}

std::string table_of(const std::vector<TopicDescription>& topics) {
  Table table{{"TOPIC", Align::left},    {"NAME", Align::left},
              {"LAG", Align::right},     {"IN FLIGHT", Align::right},
              {"MEMBERS", Align::right}, {"REDELIVERED", Align::right}};
  bool has_rows = false;
  for (const TopicDescription& topic : topics) {
    for (const GroupInfo& info : topic.groups) {
      std::vector<std::string> row = cells(info);
      row.insert(row.begin(), topic.name);
      table.add(std::move(row));
      has_rows = true;
    }
    if (const std::string trouble = trouble_of(topic); !trouble.empty()) {
      table.add({topic.name, tool::styled(tool::Style::red, trouble)});
      has_rows = true;
    }
  }
  return has_rows ? table.text() : std::string{};
}

void print_text(const std::string& topic, const GroupInfo& info) {
  std::string options = name_of(info.mode);
  if (info.by_key) options += ", by key";
  if (info.max_deliveries != 0)
    options += fmt::format(", at most {} deliveries", number_text(info.max_deliveries));
  if (info.lease.count() != 0) options += ", lease of " + duration_text(info.lease);
  if (info.on_expired != OnExpired::start)
    options += fmt::format(", {} if its next record was deleted",
                           info.on_expired == OnExpired::end ? "goes on at the end" : "stops");
  fmt::print(
      "group        {} of topic {}\ndelivery     {}\nlag          {}\nin flight    {}, at "
      "most {} for each member\nreturned     {}, spare room for {}\nredelivered  {}\n",
      info.name, topic, options, number_text(info.lag), number_text(info.in_flight),
      number_text(info.in_flight_limit), number_text(info.returned),
      number_text(info.returned_limit), number_text(info.redelivered));
  if (info.taking != Errc::ok)
    fmt::print("taking       stopped: {}: {}\n", name_of_taking(info.taking),
               describe(Error{info.taking, 0}));
  if (info.max_deliveries != 0) {
    fmt::print("dead letters {}, in topic {}\n", number_text(info.dead_letters),
               info.dead_letter_topic);
  }
  fmt::print("\n{:>9}  {:>15}\n", "PARTITION", "OFFSET");
  for (std::size_t i = 0; i < info.offsets.size(); ++i)
    fmt::print("{:>9}  {:>15}\n", i, number_text(info.offsets[i]));
  if (info.members.empty()) {
    fmt::print("\nnobody is a member\n");
    return;
  }
  fmt::print("\n{:>9}  {:>9}  {}\n", "PID", "IN FLIGHT", "MEMBER");
  for (const MemberInfo& one : info.members) {
    fmt::print("{:>9}  {:>9}  {}\n", one.pid, number_text(one.in_flight),
               one.name.empty() ? "-" : tool::without_controls(one.name));
  }
}

}  // namespace

void list_groups(const Topic& topic, bool json) {
  const bool is_lost = has_lost_group(topic.info().durable);
  const std::vector<GroupInfo> groups = groups_of(topic);
  Table table{{"NAME", Align::left},
              {"LAG", Align::right},
              {"IN FLIGHT", Align::right},
              {"MEMBERS", Align::right},
              {"REDELIVERED", Align::right}};
  Json all = Json::array();
  for (const GroupInfo& info : groups) {
    table.add(cells(info));
    all.push_back(to_json(info));
  }
  if (json)
    print_json(all);
  else if (!groups.empty())
    fmt::print("{}", table.text());
  else if (!is_lost)
    print_notice(fmt::format("topic '{}' has no groups", topic.name()));
  if (!is_lost) return;
  std::fflush(stdout);
  throw Failure{kExitFormat, lost_group_sentence(topic.name())};
}

void list_all_groups(bool json) {
  const std::vector<TopicDescription> topics = describe_topics();
  if (json) return print_json(json_of(topics));
  const std::string table = table_of(topics);
  if (table.empty())
    print_notice(fmt::format("no groups in {}", topics_directory()));
  else
    fmt::print("{}", table);
}

void print_group(const std::string& topic, const GroupInfo& info, bool json) {
  if (json)
    print_json(to_json(info));
  else
    print_text(topic, info);
}

}  // namespace leat::cli
