// `leat lightq consumer`: lightq-consumer, and with positional arguments the consumer of LightQ's first program.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <memory>
#include <vector>

#include "options.hpp"
#include "run_report.hpp"

namespace leat::lightq_tool {
namespace {

using lightq::Consumer;
using lightq::Role;

struct ConsumerArguments {
  ClientOptions client;
  std::string socket = "zmq";
  std::vector<std::string> words;  // Of the old form: broker type, socket type, mode, level.
};

// When the producer began, if its first message says so.
std::int64_t time_in(std::string_view message) {
  std::int64_t ms = 0;
  const char* const end = message.data() + message.size();
  const auto [stopped, error] = std::from_chars(message.data(), end, ms);
  // A producer that began later than now, or in the last century, is none.
  constexpr std::int64_t kLeast = 1'000'000'000'000;
  return error == std::errc{} && stopped == end && ms >= kLeast && ms <= now_ms() ? ms : 0;
}

void consume(std::uint64_t count, const lightq::Address& address, const lightq::Credentials& user,
             const std::string& topic) {
  auto admin = or_fail(lightq::Admin::open(address, to_connect()));
  const auto joined = or_fail(admin.join(topic, user, Role::puller, to_answer()));
  auto consumer = or_fail(Consumer::open(joined, {.acknowledges = true}, to_connect()));
  RunReport run;
  while (run.messages < count) {
    const auto message = or_fail(consumer.next());
    if (run.messages == 0) {
      run.start();
      run.producer_started_ms = time_in(message->text());
    }
    run.add(message->size());
    consumer.acknowledge();
  }
  run.end();
  or_fail(consumer.finish(to_answer()));
  print_consumed(run);
}

void consume_new(const ConsumerArguments& arguments) {
  check_choice("-c", arguments.socket, "zmq|socket");
  const lightq::Address address = arguments.client.address(lightq::kAdminPort);
  const lightq::Credentials user = arguments.client.credentials(address);
  for_each_partition(
      arguments.client.topic, arguments.client.partitions,
      [&](const std::string& topic) { consume(arguments.client.messages, address, user, topic); });
}

// Counts until the producer says STOP. One that comes before any other message is left from an earlier run.
void consume_old(const ConsumerArguments& arguments) {
  const auto& words = arguments.words;
  check_choice("broker_type", words[0], "queue|file|direct|queue_file");
  if (words.size() > 1) check_choice("socket_type", words[1], "zmq|socket");
  const std::string mode = words.size() > 2 ? words[2] : "pull";
  check_choice("mode", mode, "pull|sub");
  const Role role = mode == "sub" ? Role::subscriber : Role::puller;
  const lightq::Address address = arguments.client.address(5000);
  const lightq::Credentials user = arguments.client.credentials(address);
  auto admin = or_fail(lightq::Admin::open(address, to_connect()));
  const auto joined = or_fail(admin.join(arguments.client.topic, user, role, to_answer()));
  auto consumer =
      or_fail(Consumer::open(joined, {.acknowledges = role == Role::puller}, to_connect()));
  RunReport run;
  for (;;) {
    const auto message = or_fail(consumer.next());
    const bool is_stop = message->text() == "STOP";
    consumer.acknowledge();
    if (is_stop && run.messages == 0) continue;
    if (run.messages == 0) run.start();
    run.add(message->size());  // STOP counts, as in LightQ.
    if (is_stop) break;
  }
  run.end();
  or_fail(consumer.finish(to_answer()));
  print_old(run, "received");
}

}  // namespace

void add_consumer(CLI::App& app) {
  auto arguments = std::make_shared<ConsumerArguments>();
  CLI::App* command = app.add_subcommand("consumer", "Receive messages, and print how fast");
  add_client_options(*command, arguments->client);
  command->add_option("-c,--connection", arguments->socket, "Both use the same connection here")
      ->type_name("zmq|socket")
      ->capture_default_str();
  add_old_form(*command, arguments->words, 4,
               "As LightQ's first program: broker_type [zmq|socket] [pull|sub] [loglevel]; then "
               "the topic has no partitions, and the port is 5000");
  command->footer(
      "It ends after -m messages; in the old form, when the producer has ended.\nExample:\n  leat "
      "lightq consumer -m 10000000\n  leat lightq consumer queue zmq sub");
  on_either_form(*command, arguments, &consume_new, &consume_old);
}

}  // namespace leat::lightq_tool
