#include "remote.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>

#include "lightq/client/password.hpp"
#include "lightq/client/shown.hpp"
#include "tool/program.hpp"

namespace leat::cli {
namespace {

constexpr char kBroker[] = "--broker";
constexpr char kPasswordFile[] = "--password-file";

lightq::BrokerUri parse_uri(const BrokerOptions& options) {
  const auto uri = lightq::parse_broker_uri(options.uri);
  if (!uri) throw Failure{kExitUsage, fmt::format("--broker: {}", uri.problem().sentence)};
  if (uri->user.empty())
    throw Failure{kExitUsage, "--broker: a user is missing: write lightq://USER@HOST:PORT"};
  return *uri;
}

}  // namespace

std::shared_ptr<BrokerOptions> add_broker_options(CLI::App& command) {
  auto options = std::make_shared<BrokerOptions>();
  CLI::Option* const broker =
      command
          .add_option_function<std::string>(
              kBroker,
              [options](const std::string& uri) {
                if (uri.empty())
                  throw Failure{kExitUsage,
                                "--broker needs the address of a broker: "
                                "lightq://USER@HOST:PORT"};
                options->uri = uri;
              },
              "Do it there; the password comes from --password-file or $LEAT_PASSWORD")
          ->type_name("lightq://USER@HOST:PORT")
          ->group(kBrokerGroup);
  command
      .add_option(kPasswordFile, options->password_file, "File whose first line is the password")
      ->type_name("FILE")
      ->needs(broker)
      ->group(kBrokerGroup);
  return options;
}

void refuse_broker(CLI::App& command, const std::string& reason) {
  command
      .add_option_function<std::string>(
          kBroker,
          [reason](const std::string&) {
            throw Failure{kExitUsage, fmt::format("--broker: {}", reason)};
          })
      ->group("");
}

void check_only(const CLI::App& command, std::initializer_list<std::string_view> allowed) {
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    if (option->count() == 0 || option->get_positional() || name == kBroker ||
        name == kPasswordFile || std::find(allowed.begin(), allowed.end(), name) != allowed.end())
      continue;
    throw Failure{kExitUsage,
                  fmt::format("{} and --broker exclude each other: the broker's protocol "
                              "has nothing for it",
                              name)};
  }
  if (const CLI::Option* directory = tool::given_directory(command)) {
    throw Failure{kExitUsage, fmt::format("{} and --broker exclude each other: the broker knows "
                                          "where its topics live",
                                          directory->get_name())};
  }
}

std::string password_from(const std::string& file, const char* file_option, const char* variable,
                          const std::string& user) {
  if (!file.empty()) return or_fail(lightq::password_from_file(file));
  const char* const value = std::getenv(variable);
  if (value != nullptr && *value != '\0') return value;
  throw Failure{kExitUsage,
                fmt::format("the password of {} is needed: put it into {}, or into a file "
                            "for {}",
                            lightq::shown(user), variable, file_option)};
}

Remote::Remote(const BrokerOptions& options, std::stop_token given)
    : uri{parse_uri(options)},
      user{uri.user,
           password_from(options.password_file, kPasswordFile, "LEAT_PASSWORD", uri.user)},
      stop{std::move(given)},
      admin{or_fail(lightq::Admin::open(uri.address, to_connect()))} {}

}  // namespace leat::cli
