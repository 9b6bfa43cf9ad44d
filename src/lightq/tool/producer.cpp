// `leat lightq producer`: lightq-producer, and with positional arguments the producer of LightQ's first program.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "options.hpp"
#include "run_report.hpp"

namespace leat::lightq_tool {
namespace {

using lightq::Producer;
using lightq::Role;

constexpr std::uint64_t kLargest = 1024 * 1024;

struct ProducerArguments {
  ClientOptions client;
  std::uint64_t size = 100;
  std::vector<std::string> words;  // Of the old form: messages, size, level, compress.
};

std::string random_text(std::size_t size) {
  constexpr char kLetters[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  std::minstd_rand random{std::random_device{}()};
  std::uniform_int_distribution<std::size_t> place{0, sizeof kLetters - 2};
  std::string text(size, '\0');
  for (char& letter : text) letter = kLetters[place(random)];
  return text;
}

// Sends messages to a partition. The first one carries the time, for the consumer's report.
void produce(const ProducerArguments& arguments, const lightq::Address& address,
             const lightq::Credentials& user, const std::string& topic) {
  auto admin = or_fail(lightq::Admin::open(address, to_connect()));
  const auto joined = or_fail(admin.join(topic, user, Role::producer, to_answer()));
  auto producer = or_fail(Producer::open(joined, {}, to_connect()));
  const std::string message = random_text(arguments.size);
  RunReport run;
  run.start();
  const auto send = [&](std::string_view text) {
    or_fail(producer.publish(text));
    run.add(text.size());
  };
  send(std::to_string(run.started_ms));
  while (run.messages < arguments.client.messages) send(message);
  or_fail(producer.wait_published(producer.sent()));
  run.end();
  print_produced(run, topic);
}

void produce_new(const ProducerArguments& arguments) {
  const lightq::Address address = arguments.client.address(lightq::kAdminPort);
  const lightq::Credentials user = arguments.client.credentials(address);
  fmt::print("Sending message [{}]\n", arguments.client.messages);
  for_each_partition(arguments.client.topic, arguments.client.partitions,
                     [&](const std::string& topic) { produce(arguments, address, user, topic); });
}

// --- The old form --------------------------------------------------------------------------------

std::string stats_text(const lightq::Stats& stats) {
  return fmt::format(
      R"({{"messages_received":{},"messages_sent":{},"publishers_count":{},"queue_size":{},"subscribers_count":{}}})",
      stats.messages_received, stats.messages_sent, stats.publishers_count, stats.queue_size,
      stats.subscribers_count);
}

// Waits for the first consumer, sends, and then tells up to three consumers to stop.
void produce_old(const ProducerArguments& arguments) {
  constexpr std::uint64_t kReportEvery = 500'000;
  const auto& words = arguments.words;
  if (words.size() > 3) check_choice("compress", words[3], "false");
  const std::uint64_t count = parse_number("num_messages", words[0], 1, 1'000'000'000'000);
  const std::uint64_t size =
      words.size() > 1 ? parse_number("msg_size", words[1], 1, kLargest) : 256;
  const lightq::Address address = arguments.client.address(5000);
  const lightq::Credentials user = arguments.client.credentials(address);
  const std::string& topic = arguments.client.topic;
  auto admin = or_fail(lightq::Admin::open(address, to_connect()));
  const auto joined = or_fail(admin.join(topic, user, Role::producer, to_answer()));
  auto producer = or_fail(Producer::open(joined, {}, to_connect()));
  while (or_fail(admin.stats(topic, user, to_answer())).subscribers_count == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds{100});
  const std::string message = random_text(size);
  RunReport run;
  run.start();
  while (run.messages < count) {
    or_fail(producer.publish(message));
    run.add(message.size());
    if (run.messages % kReportEvery == 0) {
      fmt::print("Stats : {}\n", stats_text(or_fail(admin.stats(topic, user, to_answer()))));
      std::fflush(stdout);
    }
  }
  or_fail(producer.wait_published(producer.sent()));
  run.end();
  for (int i = 0; i < 3; ++i) or_fail(producer.publish("STOP"));
  or_fail(producer.wait_published(producer.sent()));
  print_old(run, "sent");
}

}  // namespace

void add_producer(CLI::App& app) {
  auto arguments = std::make_shared<ProducerArguments>();
  CLI::App* command = app.add_subcommand("producer", "Send messages, and print how fast");
  add_client_options(*command, arguments->client);
  add_number(*command, "-s,--size", arguments->size, 1, kLargest, "Bytes of a message");
  add_old_form(*command, arguments->words, 4,
               "As LightQ's first program: num_messages [msg_size] [loglevel] [compress]; then "
               "the topic has no partitions, and the port is 5000");
  command->footer(
      "It ends when the broker has all messages.\nExample:\n  leat lightq producer -m 10000000 "
      "-s 100\n  leat lightq producer 10000000 100");
  on_either_form(*command, arguments, &produce_new, &produce_old);
}

}  // namespace leat::lightq_tool
