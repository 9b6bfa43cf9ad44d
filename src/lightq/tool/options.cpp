#include "options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "lightq/client/password.hpp"
#include "lightq/client/shown.hpp"
#include "tool/program.hpp"

namespace leat::lightq_tool {
namespace {

using tool::Failure;
using tool::kExitUsage;
using tool::print_notice;

constexpr char kDocumentedPassword[] = "T0p$3cr31";

std::optional<std::uint64_t> number_in(const std::string& text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

std::uint64_t parse_number(const std::string& what, const std::string& text, std::uint64_t least,
                           std::uint64_t most) {
  const auto number = number_in(text);
  if (number && *number >= least && *number <= most) return *number;
  throw Failure{kExitUsage, fmt::format("{}: '{}' is wrong: a whole number from {} to {} is right",
                                        what, lightq::shown(text), least, most)};
}

void check_choice(const std::string& what, const std::string& word, std::string_view choices) {
  for (std::string_view rest = choices; !rest.empty();) {
    const std::string_view one = rest.substr(0, rest.find('|'));
    if (one == word) return;
    rest.remove_prefix(std::min(one.size() + 1, rest.size()));
  }
  throw Failure{kExitUsage, fmt::format("{}: '{}' is wrong: one of {} is right", what,
                                        lightq::shown(word), choices)};
}

CLI::Option* add_number(CLI::App& command, const std::string& name, std::uint64_t& target,
                        std::uint64_t least, std::uint64_t most, const std::string& description) {
  return command
      .add_option_function<std::string>(
          name,
          [&target, name, least, most](const std::string& text) {
            target = parse_number(name.substr(0, name.find(',')), text, least, most);
          },
          description)
      ->type_name("N")
      ->default_str(std::to_string(target));
}

// --- Passwords -----------------------------------------------------------------------------------

void add_password_options(CLI::App& command, PasswordOptions& options, char letter,
                          const std::string& prefix, const std::string& whose) {
  command
      .add_option(fmt::format("-{},--{}password", letter, prefix), options.given,
                  "Password of " + whose + "; the list of processes shows it")
      ->type_name("PASSWORD");
  command
      .add_option(fmt::format("--{}password-file", prefix), options.file,
                  "File whose first line is the password of " + whose)
      ->type_name("FILE");
}

std::string password_of(const PasswordOptions& options, const char* variable,
                        const std::string& user, bool is_at_127_0_0_1) {
  if (!options.given.empty()) return options.given;
  if (!options.file.empty()) return or_fail(lightq::password_from_file(options.file));
  const char* const value = std::getenv(variable);
  if (value != nullptr && *value != '\0') return value;
  if (!is_at_127_0_0_1) {
    throw Failure{kExitUsage, fmt::format("the password of {} is needed: put it into {}, or into a "
                                          "file (see --help). The one of LightQ's documentation, "
                                          "which everybody knows, is for 127.0.0.1 only",
                                          lightq::shown(user), variable)};
  }
  print_notice(
      fmt::format("note: the password of {} is the one of LightQ's documentation, which everybody "
                  "knows; {} is for another one",
                  lightq::shown(user), variable));
  return kDocumentedPassword;
}

lightq::Address broker_of(const std::string& uri) { return or_fail(lightq::parse_tcp_uri(uri)); }

// --- Options of clients --------------------------------------------------------------------------

lightq::Address ClientOptions::address(std::uint16_t default_port) const {
  return broker.empty() ? lightq::Address{"127.0.0.1", default_port} : broker_of(broker);
}

lightq::Credentials ClientOptions::credentials(const lightq::Address& address) const {
  return {user, password_of(password, "LEAT_PASSWORD", user, address.is_127_0_0_1())};
}

void add_client_options(CLI::App& command, ClientOptions& options) {
  command.add_option("-t,--topic", options.topic, "Topic; its partitions are TOPIC_1, TOPIC_2, …")
      ->type_name("NAME")
      ->capture_default_str();
  command.add_option("-u,--user", options.user, "User of the topic")
      ->type_name("NAME")
      ->capture_default_str();
  add_password_options(command, options.password, 'p', "", "the user; else $LEAT_PASSWORD");
  command.add_option("-b,--broker", options.broker, "The broker's administration")
      ->type_name("tcp://HOST:PORT")
      ->default_str("tcp://127.0.0.1:5500");
  add_number(command, "-m,--messages", options.messages, 1, 1'000'000'000'000,
             "Messages of each partition");
  add_number(command, "-n,--partitions", options.partitions, 1, kMostPartitions, "Partitions");
  add_level(command);
}

void add_level(CLI::App& command) {
  command
      .add_option_function<std::string>(
          "-l,--loglevel", [](const std::string&) {}, "For scripts of LightQ: there is no log")
      ->type_name("LEVEL");
}

void add_old_form(CLI::App& command, std::vector<std::string>& words, std::size_t most,
                  const std::string& description) {
  command.add_option_function<std::vector<std::string>>(
      "OLD",
      [&words, most](const std::vector<std::string>& given) {
        if (given.size() > most)
          throw Failure{kExitUsage,
                        fmt::format("'{}' is one argument too many", lightq::shown(given[most]))};
        words = given;
      },
      description);
}

std::string partition_name(const std::string& topic, std::uint64_t number) {
  return fmt::format("{}_{}", topic, number);
}

void for_each_partition(const std::string& topic, std::uint64_t partitions,
                        const std::function<void(const std::string&)>& work) {
  std::mutex mutex;
  std::exception_ptr failure;  // The first one. Protected by mutex.
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t number = 1; number <= partitions; ++number) {
      threads.emplace_back([&, name = partition_name(topic, number)] {
        try {
          work(name);
        } catch (...) {
          const std::lock_guard lock{mutex};
          if (!failure) failure = std::current_exception();
        }
      });
    }
  }
  if (failure) std::rethrow_exception(failure);
}

void check_no_directory(const CLI::App& command) {
  if (const CLI::Option* directory = tool::given_directory(command)) {
    throw Failure{kExitUsage, fmt::format("{}: the broker knows where its topics live; only "
                                          "`leat lightq broker` takes it",
                                          directory->get_name())};
  }
}

}  // namespace leat::lightq_tool
