// `leat lightq broker`: runs leat-serve as LightQ's users started lightq-broker.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "lightq/client/password.hpp"
#include "options.hpp"
#include "tool/program.hpp"

namespace leat::lightq_tool {
namespace {

using tool::Failure;
using tool::kExitUsage;
using tool::print_notice;

struct BrokerArguments {
  std::string user = kAdminUser;
  PasswordOptions password;
  std::string address = "*";
  std::uint64_t port = 0;  // 0: not given.
  std::string transport = "tcp";
  std::vector<std::string> words;  // Of the old form: broker type, level.
};

// Becomes leat-serve: the one beside this executable, else one in $PATH.
[[noreturn]] void become_broker(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const int error = tool::become_companion(words.front(), arguments.data());
  if (error != ENOENT) throw tool::system_failure("cannot run leat-serve", error);
  throw Failure{
      tool::kExitNotThere,
      "leat-serve is needed, and is neither beside leat-lightq nor in $PATH: `make serve` "
      "in Leat's sources builds it"};
}

Outcome<void> try_create_test(const lightq::Address& address, const std::string& admin_password,
                              const std::string& type, const Deadline& deadline) {
  auto admin = lightq::Admin::open(address, {deadline});
  if (!admin) return admin.problem();
  const std::string password = password_of({}, "LEAT_PASSWORD", kTopicUser, true);
  const auto created = admin->create_topic(
      {kAdminUser, admin_password}, {.name = "test", .type = type, .user = {kTopicUser, password}},
      {deadline});
  if (!created) return created.problem();
  return {};
}

// Waits for the broker and makes the topic that LightQ's first program made.
void create_test(const lightq::Address& address, const std::string& admin_password,
                 const std::string& type) {
  const Deadline deadline{std::chrono::seconds{20}};
  for (;;) {
    const auto created = try_create_test(address, admin_password, type, deadline);
    if (created || created.problem().code == Errc::exists) return;  // Made by an earlier run.
    if (created.problem().code != Errc::not_found || deadline.passed()) {
      print_notice(fmt::format("topic test was not made: {}", created.problem().sentence));
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds{10});
  }
}

// Does it in a process that is nobody's child: this one is about to become the broker.
void create_test_meanwhile(const lightq::Address& address, const std::string& admin_password,
                           const std::string& type) {
  const ::pid_t child = ::fork();
  if (child < 0) throw tool::system_failure("cannot start a process");
  if (child > 0) {
    ::waitpid(child, nullptr, 0);
    return;
  }
  if (::fork() == 0) create_test(address, admin_password, type);
  ::_exit(0);
}

void run_broker(const BrokerArguments& arguments) {
  const bool is_old = !arguments.words.empty();
  if (arguments.transport != "tcp") {
    check_choice("-t", arguments.transport, "tcp|ipc|inproc");
    throw Failure{kExitUsage,
                  fmt::format("-t: the broker has no {}, only tcp", arguments.transport)};
  }
  if (arguments.user != kAdminUser)
    throw Failure{kExitUsage, fmt::format("-u: the administrator is always {}", kAdminUser)};
  if (is_old) check_choice("broker_type", arguments.words[0], "queue|file|direct|queue_file");
  const std::uint64_t port = arguments.port != 0 ? arguments.port
                             : is_old            ? 5000
                                                 : lightq::kAdminPort;
  const bool is_loopback = arguments.address == "*" || arguments.address == "127.0.0.1";
  const std::string password =
      password_of(arguments.password, "LEAT_ADMIN_PASSWORD", kAdminUser, is_loopback);
  const std::string ip = arguments.address == "*" ? "127.0.0.1" : arguments.address;
  if (is_old) {
    create_test_meanwhile({ip == "0.0.0.0" ? "127.0.0.1" : ip, static_cast<std::uint16_t>(port)},
                          password, arguments.words[0]);
  }
  const os::Fd pipe = or_fail(lightq::password_pipe(password));
  ::fcntl(pipe.get(), F_SETFD, 0);
  std::vector<std::string> words{"leat-serve", "--lightq-port", std::to_string(port),
                                 "--admin-password-file", fmt::format("/dev/fd/{}", pipe.get())};
  if (arguments.address != "*") words.insert(words.end(), {"--lightq-addresses", ip});
  become_broker(std::move(words));
}

}  // namespace

void add_broker(CLI::App& app) {
  auto arguments = std::make_shared<BrokerArguments>();
  CLI::App* command = app.add_subcommand("broker", "Run the broker, as `leat serve` does");
  command->add_option("-u,--user", arguments->user, "The administrator")
      ->type_name("NAME")
      ->capture_default_str();
  add_password_options(*command, arguments->password, 'p', "",
                       "the administrator, from now on; else $LEAT_ADMIN_PASSWORD");
  command
      ->add_option(
          "-i,--ip", arguments->address,
          "Address to listen on; *: the loopback addresses. Others need LEAT_INSECURE=true")
      ->type_name("ADDRESS")
      ->capture_default_str();
  add_number(*command, "-b,--port", arguments->port, 1, 65535, "Port of the administration")
      ->default_str("5500");
  command->add_option("-t,--transport", arguments->transport, "Only tcp is there")
      ->type_name("tcp|ipc|inproc")
      ->capture_default_str();
  add_level(*command);
  add_old_form(*command, arguments->words, 2,
               "As LightQ's first program: broker_type [loglevel]; then the port is 5000, and "
               "topic test is made");
  command->footer(
      "Other settings: the variables of `leat serve`, such as LEAT_DATA_AUTH=joined for LightQ's "
      "own "
      "clients.\nExample:\n  leat lightq broker -b 5500\n  leat lightq broker queue");
  command->callback([arguments] { run_broker(*arguments); });
}

}  // namespace leat::lightq_tool
