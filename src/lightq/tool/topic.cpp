// `leat lightq topic`: lightq-topic, which makes a topic's partitions.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "options.hpp"

namespace leat::lightq_tool {
namespace {

struct TopicArguments {
  std::string topic = "test";
  std::string admin = kAdminUser;
  PasswordOptions admin_password;
  std::string broker = "tcp://127.0.0.1:5500";
  std::string user = kTopicUser;
  PasswordOptions password;
  std::string type = "queue";
  std::uint64_t partitions = 1;
};

void create(const TopicArguments& arguments) {
  check_choice("-s", arguments.type, "queue|file");
  const lightq::Address address = broker_of(arguments.broker);
  const bool is_local = address.is_127_0_0_1();
  const lightq::Credentials administrator{
      arguments.admin,
      password_of(arguments.admin_password, "LEAT_ADMIN_PASSWORD", arguments.admin, is_local)};
  const lightq::Credentials user{
      arguments.user, password_of(arguments.password, "LEAT_PASSWORD", arguments.user, is_local)};
  auto admin = or_fail(lightq::Admin::open(address, to_connect()));
  for (std::uint64_t number = 1; number <= arguments.partitions; ++number) {
    const std::string name = partition_name(arguments.topic, number);
    fmt::print("creating topic {}\n", name);
    std::fflush(stdout);
    or_fail(admin.create_topic(administrator, {.name = name, .type = arguments.type, .user = user},
                               to_answer()));
  }
  fmt::print("topic {} created successfully\n", arguments.topic);
}

}  // namespace

void add_topic(CLI::App& app) {
  auto arguments = std::make_shared<TopicArguments>();
  CLI::App* command = app.add_subcommand("topic", "Make a topic");
  command
      ->add_option("-t,--topic", arguments->topic, "Topic; its partitions are TOPIC_1, TOPIC_2, …")
      ->type_name("NAME")
      ->capture_default_str();
  command->add_option("-a,--admin", arguments->admin, "The administrator")
      ->type_name("NAME")
      ->capture_default_str();
  add_password_options(*command, arguments->admin_password, 'd', "admin-",
                       "the administrator; else $LEAT_ADMIN_PASSWORD");
  command->add_option("-b,--broker", arguments->broker, "The broker's administration")
      ->type_name("tcp://HOST:PORT")
      ->capture_default_str();
  command->add_option("-u,--user", arguments->user, "Who may use the topic")
      ->type_name("NAME")
      ->capture_default_str();
  add_password_options(*command, arguments->password, 'p', "",
                       "that user, from now on; else $LEAT_PASSWORD");
  command->add_option("-s,--storage", arguments->type, "In memory, or durable")
      ->type_name("queue|file")
      ->capture_default_str();
  add_number(*command, "-n,--partitions", arguments->partitions, 1, kMostPartitions, "Partitions");
  add_level(*command);
  command->footer("Example:\n  leat lightq topic -t news -s file");
  command->callback([arguments, command] {
    check_no_directory(*command);
    create(*arguments);
  });
}

}  // namespace leat::lightq_tool
