// What the commands of `leat lightq` share: their options, passwords, and how they fail.
//
//     auto client = std::make_shared<ClientOptions>();
//     add_client_options(command, *client);
//     command.callback([client] { produce(*client); });
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lightq/client/data.hpp"
#include "tool/failure.hpp"

namespace leat::lightq_tool {

using lightq::to_answer;
using lightq::to_connect;
using tool::or_fail;

inline constexpr char kAdminUser[] = "lightq_admin";
inline constexpr char kTopicUser[] = "test_admin";

// Where a password comes from: an option, a file, a variable, or LightQ's documentation.
struct PasswordOptions {
  std::string given;  // Empty: not given.
  std::string file;
};

// Adds -p (or another letter) and --password-file; both have `prefix` in their long names.
void add_password_options(CLI::App& command, PasswordOptions& options, char letter,
                          const std::string& prefix, const std::string& whose);

// The password: what was given, else the file's, else the variable's. The one of LightQ's documentation, which
// everybody knows, is used if nothing leaves the machine, and then it says so.
std::string password_of(const PasswordOptions& options, const char* variable,
                        const std::string& user, bool is_at_127_0_0_1);

// As `-b`.
lightq::Address broker_of(const std::string& uri);

// Of the producer and the consumer.
struct ClientOptions {
  std::string topic = "test";
  std::string user = kTopicUser;
  PasswordOptions password;
  std::string broker;  // Empty: LightQ's default port on this machine.
  std::uint64_t messages = 1'000'000;
  std::uint64_t partitions = 1;

  // `default_port`: 5500, or 5000 in the old form.
  lightq::Address address(std::uint16_t default_port) const;
  lightq::Credentials credentials(const lightq::Address& address) const;
};
void add_client_options(CLI::App& command, ClientOptions& options);
// The level of a log that is not there; accepted, because LightQ's scripts give it.
void add_level(CLI::App& command);

// The positional arguments of LightQ's first program, at most so many.
void add_old_form(CLI::App& command, std::vector<std::string>& words, std::size_t most,
                  const std::string& description);

CLI::Option* add_number(CLI::App& command, const std::string& name, std::uint64_t& target,
                        std::uint64_t least, std::uint64_t most, const std::string& description);
// For a positional argument. Fails with a sentence about `what`.
std::uint64_t parse_number(const std::string& what, const std::string& text, std::uint64_t least,
                           std::uint64_t most);
// Fails unless the word is one of `choices`: "zmq|socket".
void check_choice(const std::string& what, const std::string& word, std::string_view choices);

inline constexpr std::uint64_t kMostPartitions = 100;
// "test_1", as LightQ names the partitions of "test".
std::string partition_name(const std::string& topic, std::uint64_t number);
// Calls `work` with each partition's name, each in a thread of its own. If some fail, so does this.
void for_each_partition(const std::string& topic, std::uint64_t partitions,
                        const std::function<void(const std::string&)>& work);

// Fails if --dir or --data-dir was given: a broker knows where its topics live.
void check_no_directory(const CLI::App& command);

// What a command with an old form does: that, if there are positional arguments.
template <class Arguments>
void on_either_form(CLI::App& command, std::shared_ptr<Arguments> arguments,
                    void (*new_form)(const Arguments&), void (*old_form)(const Arguments&)) {
  command.callback([=, &command] {
    check_no_directory(command);
    (arguments->words.empty() ? new_form : old_form)(*arguments);
  });
}

void add_producer(CLI::App& app);
void add_consumer(CLI::App& app);
void add_topic(CLI::App& app);
void add_broker(CLI::App& app);

}  // namespace leat::lightq_tool
