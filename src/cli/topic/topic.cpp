// `leat topic`: set and shrink; its other commands have files of their own.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>

#include "cli/cli.hpp"
#include "cli/remote/remote.hpp"
#include "leat/leat.hpp"
#include "topic_description.hpp"

namespace leat::cli {
namespace {

Topic open_growing(const std::string& name, const char* command) {
  check_topic_name(name);
  usable_directory(Missing::fails_if_named);
  auto topic = Topic::open(name);
  if (!topic) fail(topic.error(), name);
  if (topic->policy() == Policy::grow) return std::move(*topic);
  throw Failure{kExitUsage, fmt::format("{}: topic '{}' has policy {}, and only topics with policy "
                                        "grow change their size",
                                        command, name, name_of(topic->policy()))};
}

void set(const std::string& name, std::uint64_t max_capacity) {
  const Topic topic = open_growing(name, "set");
  auto done = topic.set_max_capacity(max_capacity);
  if (done.error().code == Errc::invalid_argument) {
    throw Failure{
        kExitUsage,
        fmt::format("--max-capacity: from {} (what topic '{}' began with) to {} is possible",
                    size_text(topic.min_capacity()), name, size_text(topic.max_capacity_limit()))};
  }
  if (!done) fail(done.error(), name);
  const TopicInfo info = topic.info();
  fmt::print("topic '{}' grows to {}{}; it has {} now\n", name, size_text(info.max_capacity_bytes),
             info.partitions.size() > 1 ? " per partition" : "", size_text(info.capacity_bytes));
}

void shrink(const std::string& name) {
  const Topic topic = open_growing(name, "shrink");
  auto freed = topic.shrink();
  if (freed.error().code == Errc::busy) {
    throw Failure{kExitNotThere, fmt::format("topic '{}' is just being grown or shrunk by somebody "
                                             "else: try again",
                                             name)};
  }
  if (!freed) fail(freed.error(), name);
  fmt::print("freed {}; topic '{}' has {} now{}\n", size_text(*freed), name,
             size_text(topic.info().capacity_bytes),
             topic.partitions() > 1 ? " in its largest partition" : "");
}

}  // namespace

void add_topic_command(CLI::App& app) {
  CLI::App* topic = app.add_subcommand("topic", "Create, list, look at, resize and delete topics");
  topic->require_subcommand(1);
  topic->footer("Example:\n  leat topic create orders --capacity 64MiB\n  leat topic list");
  add_topic_create(*topic);
  add_topic_list(*topic);
  add_topic_info(*topic);

  auto name = std::make_shared<std::string>();
  auto max_capacity = std::make_shared<std::uint64_t>(0);
  CLI::App* set_command =
      topic->add_subcommand("set", "Change how far a topic with policy grow may grow");
  set_command->add_option("NAME", *name, "The topic")->required();
  add_size(*set_command, "--max-capacity", *max_capacity, "How large each partition may become")
      ->required();
  set_command->footer("Example:\n  leat topic set orders --max-capacity 256MiB");
  refuse_broker(*set_command, "the broker decides how large its topics are");
  set_command->callback([name, max_capacity] { set(*name, *max_capacity); });

  CLI::App* shrink_command = topic->add_subcommand(
      "shrink", "Free memory that a topic with policy grow added and does not need now");
  shrink_command->add_option("NAME", *name, "The topic")->required();
  shrink_command->footer("Example:\n  leat topic shrink orders");
  refuse_broker(*shrink_command, "the broker decides how large its topics are");
  shrink_command->callback([name] { shrink(*name); });

  add_topic_delete(*topic);
}

}  // namespace leat::cli
