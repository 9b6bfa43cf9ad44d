// `leat topic info`: what there is to know of one topic.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/cli.hpp"
#include "cli/remote/remote.hpp"
#include "cli/table.hpp"
#include "room.hpp"
#include "room_holders.hpp"
#include "tool/terminal.hpp"
#include "topic_description.hpp"

namespace leat::cli {
namespace {

std::string policy_text(const TopicInfo& info) {
  std::string text = name_of(info.policy);
  if (info.retain_all) text += ", retain all";
  if (info.single_writer) text += ", single writer";
  if (info.timestamps) text += ", timestamps";
  if (info.delete_when_unused) text += ", deleted when unused";
  if (info.revoke_after.count() != 0)
    text += ", claims revoked after " + duration_text(info.revoke_after);
  if (info.evict_after.count() != 0)
    text += ", subscribers evicted after " + duration_text(info.evict_after);
  return text;
}

std::string capacity_text(const TopicDescription& description) {
  const TopicInfo& info = description.info;
  std::string text = size_text(info.capacity_bytes);
  if (info.policy == Policy::grow)
    text += fmt::format(" now, at most {}", size_text(info.max_capacity_bytes));
  if (info.partitions.size() > 1)
    text += fmt::format(" per partition, {} in all", size_text(total_capacity(info)));
  return text + fmt::format(", segments of {}, records up to {} bytes",
                            size_text(info.segment_bytes),
                            number_text(description.max_record_bytes));
}

// "2024-05-01 12:00:00, 3h ago"
std::string created_text(const TopicDescription& description) {
  if (!description.created_ms) return "-";
  const std::time_t seconds = *description.created_ms / 1000;
  std::tm local{};
  char text[64] = "";
  if (::localtime_r(&seconds, &local) != nullptr)
    std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local);
  return fmt::format("{}, {} ago", text, age_text(description.created_ms));
}

std::string groups_text(const TopicDescription& description) {
  std::string text;
  for (const GroupInfo& group : description.groups) {
    text += text.empty() ? "" : ", ";
    const bool is_blocking =
        std::ranges::find(description.info.room_holders, group.name, &RoomHolder::group) !=
        description.info.room_holders.end();
    text += fmt::format("{} (lag {}, {} member{}{})", group.name, number_text(group.lag),
                        group.members.size(), group.members.size() == 1 ? "" : "s",
                        is_blocking ? tool::styled(tool::Style::red, ", blocking") : "");
  }
  return text.empty() ? "none" : text;
}

std::string durable_text(const DurableInfo& durable) {
  std::string text = name_of(durable.durability);
  if (durable.durability == Durability::interval)
    text += ' ' + duration_text(durable.sync_interval);
  text += fmt::format(": {} in {}", size_text(durable.disk_bytes),
                      tool::without_controls(durable.directory));
  if (durable.retention_bytes != 0 || durable.retention.count() != 0)
    text += "; kept is " + what_is_kept(durable);
  if (durable.state == Errc::no_space)
    text += fmt::format(
        "; {}, publishers wait or fail",
        is_full_disk(durable.reason)
            ? what_is_missing(durable.reason, durable.directory)
            : fmt::format("the archiver cannot write ({})", std::strerror(durable.reason)));
  if (durable.state != Errc::ok && durable.state != Errc::no_space)
    text += fmt::format("; read-only: {}", std::strerror(durable.reason));
  if (durable.cut_bytes != 0)
    text += fmt::format("; {} ({} records) at the end were never written whole and are in cut-…",
                        size_text(durable.cut_bytes), number_text(durable.cut_records));
  if (durable.damaged != 0)
    text += fmt::format("; {} offsets are damaged", number_text(durable.damaged));
  return text;
}

std::string partitions_text(const TopicInfo& info) {
  Table table{{"PARTITION", Align::right},
              {"START", Align::right},
              {"END", Align::right},
              {"RECORDS", Align::right},
              {"USED", Align::right}};
  for (std::size_t i = 0; i < info.partitions.size(); ++i) {
    const PartitionInfo& one = info.partitions[i];
    table.add({number_text(i), number_text(one.start), number_text(one.end),
               number_text(one.count_from(one.start)), size_text(one.used_bytes)});
  }
  return table.text();
}

std::string participants_text(const TopicInfo& info) {
  if (info.participants.empty()) return "nobody is attached\n";
  Table table{{"PID", Align::right},
              {"ROLE", Align::left},
              {"OFFSET", Align::right},
              {"LAG", Align::right},
              {"BLOCKING", Align::left}};
  for (const ParticipantInfo& one : info.participants) {
    const bool has_place = has_offset(one);
    std::string blocking = has_place || is_publisher(one) ? "no" : "-";
    if (one.blocking) blocking = tool::styled(tool::Style::red, "yes");
    table.add({fmt::format("{}", one.pid), one.role, has_place ? number_text(one.offset) : "-",
               has_place ? number_text(one.lag) : "-", blocking});
  }
  return table.text();
}

void info(const std::string& name, bool json) {
  check_topic_name(name);
  usable_directory(Missing::fails_if_named);
  auto found = describe_topic_named(name);
  if (!found) fail(found.error(), name);
  const TopicDescription& description = *found;
  if (json) {
    fmt::print("{}\n", json_text(description));
    return;
  }
  fmt::print(
      "topic     {}\nid        {}\npolicy    {}\ncapacity  {}\nused      {}\ncreated   {}\n"
      "groups    {}\n",
      name, description.info.id.is_known() ? description.info.id.text() : "-",
      policy_text(description.info), capacity_text(description),
      size_text(total_used(description.info)), created_text(description), groups_text(description));
  if (description.info.durable)
    fmt::print("durable   {}\n", durable_text(*description.info.durable));
  if (!description.info.room_holders.empty()) {
    const HoldersText text = holders_text(name, description.info.room_holders);
    fmt::print("full      waits for {}: {}\n", text.who, text.remedy);
  }
  fmt::print("\n{}\n{}", partitions_text(description.info), participants_text(description.info));
}

}  // namespace

void add_topic_info(CLI::App& topic) {
  struct Arguments {
    std::string name;
    bool json = false;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      topic.add_subcommand("info", "One topic: what is in it, who is attached, who blocks");
  command->add_option("NAME", arguments->name, "The topic")->required();
  command->add_flag("--json", arguments->json, "For programs");
  command->footer("Example:\n  leat topic info orders --json");
  auto broker = add_broker_options(*command);
  command->callback([arguments, broker, command] {
    if (!broker->is_given()) return info(arguments->name, arguments->json);
    check_only(*command, {"--json"});
    remote_info(*broker, arguments->name, arguments->json);
  });
}

}  // namespace leat::cli
