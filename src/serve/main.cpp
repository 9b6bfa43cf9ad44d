// The executable `leat-serve`, or `leat serve`: the broker.
#include <fmt/ranges.h>
#include <spdlog/sinks/rotating_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "broker/auth/admin_password.hpp"
#include "broker/broker.hpp"
#include "broker/config/config_file.hpp"
#include "serve/log_pipe.hpp"
#include "serve/protocols.hpp"
#include "tool/failure.hpp"
#include "tool/program.hpp"

namespace leat::broker {
namespace {

[[noreturn]] void fail(const Problem& problem) {
  throw tool::Failure{
      problem.code == Errc::invalid_argument ? tool::kExitUsage : tool::exit_code_for(problem.code),
      problem.sentence};
}

void start_log(const Config& config) {
  constexpr std::size_t kFileBytes = 100u << 20;
  constexpr std::size_t kFiles = 10;
  auto log = !config.log_file.empty()
                 ? spdlog::rotating_logger_mt("leat-serve", config.log_file, kFileBytes, kFiles)
             : LogPipe::is_stderr() ? spdlog::create<LogPipe>("leat-serve")
                                    : spdlog::stderr_color_mt("leat-serve");
  log->set_level(spdlog::level::from_str(config.log_level));
  log->flush_on(spdlog::level::info);
  spdlog::set_default_logger(log);
}

// On a terminal it is shown; elsewhere it would end up in some log.
Outcome<void> show_password(std::string_view password, const std::string& directory) {
  if (::isatty(STDOUT_FILENO) != 0) {
    std::printf("administrator: %s\npassword: %.*s\nIt is not shown again.\n", lightq::kAdminUser,
                static_cast<int>(password.size()), password.data());
    std::fflush(stdout);
    return {};
  }
  auto written = write_admin_password(directory, password);
  if (written)
    spdlog::info("the password of the administrator, {}, is in {}/{}", lightq::kAdminUser,
                 directory, kAdminPasswordFile);
  return written;
}

struct Options {
  std::string file;
  bool is_check = false;
  int ready_fd = -1;
  std::vector<std::pair<std::string, std::string>> flags;
};

Outcome<Config> read(const Options& options) {
  std::map<std::string, std::string> variables;
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string text = *one;
    const std::size_t end = text.find('=');
    if (end != text.npos) variables.emplace(text.substr(0, end), text.substr(end + 1));
  }
  return read_config(
      {.file = options.file, .variables = std::move(variables), .flags = options.flags},
      keys_of(all_protocols()));
}

// What is wrong changes nothing.
void read_again(const Options& options, Broker& broker) {
  auto config = read(options);
  if (!config)
    return spdlog::error("the configuration stays as it was: {}", config.problem().sentence);
  spdlog::default_logger()->set_level(spdlog::level::from_str(config->log_level));
  if (const auto later = broker.reconfigure(*config); !later.empty())
    spdlog::warn("counts from the next start: {}", fmt::join(later, ", "));
}

// Each connection is a descriptor.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

void serve(const Options& options) {
  auto config = read(options);
  if (!config) fail(config.problem());
  if (options.is_check) return;
  try {
    start_log(*config);
  } catch (const spdlog::spdlog_ex& error) {
    throw tool::Failure{std::string{"cannot open the log: "} + error.what()};
  }
  raise_descriptor_limit();
  std::signal(SIGPIPE, SIG_IGN);  // Whoever read the log may be gone.
  std::signal(SIGXFSZ, SIG_IGN);  // SQLite and the log report the limit of file sizes as an error.
  Broker* running = nullptr;
  auto broker = Broker::start(*config, all_protocols(), show_password,
                              [&] { read_again(options, *running); });
  if (!broker) fail(broker.problem());
  running = broker->get();
  if (options.ready_fd >= 0) {
    (void)::dprintf(options.ready_fd, "%u\n", unsigned{(*broker)->port_of(lightq::kProtocol)});
    ::close(options.ready_fd);
  }
  if (auto ended = (*broker)->run(); !ended) fail(ended.problem());
}

void add_options(CLI::App& app, Options& options) {
  app.add_option("--config", options.file, "File with the configuration, in TOML")
      ->type_name("FILE");
  app.add_option("--ready-fd", options.ready_fd,
                 "Write the port to this descriptor, as a line, when clients can connect")
      ->type_name("FD")
      ->check(CLI::Range(3, 1 << 20).description(""));  // Not "INT in [3 - 1048576]" in the help.
  app.add_flag("--check", options.is_check, "Only check the configuration");
  const ConfigKeys keys = keys_of(all_protocols());
  for (const ConfigKey& key : keys.all()) {
    if (key.name == "dir" || key.name == "data_dir")
      continue;  // Common options; they set the variables.
    app.add_option_function<std::string>(
           key.flag(),
           [&options, name = key.name](const std::string& value) {
             options.flags.emplace_back(name, value);
           },
           key.help)
        ->type_name(key.placeholder)
        ->default_str(key.default_text());
  }
}

tool::Manual manual() {
  tool::Manual manual;
  const ConfigKeys keys = keys_of(all_protocols());
  for (const ConfigKey& key : keys.all()) {
    if (key.name != "dir" && key.name != "data_dir")
      manual.variables.push_back({key.variable(), fmt::format("As {}.", key.flag())});
  }
  manual.files = {
      {"DATA_DIRECTORY/+broker",
       "The default state directory: users, rights, and which topics there are."},
      {fmt::format("STATE_DIRECTORY/{}", kAdminPasswordFile),
       "The administrator's password, if the first start was not on a terminal."},
      {"STATE_DIRECTORY/lightq.sock", "The default Unix socket of LightQ's administration."}};
  return manual;
}

}  // namespace
}  // namespace leat::broker

int main(int argc, char** argv) {
  leat::tool::open_missing_streams();
  CLI::App app{"Serve topics to clients over TCP", "leat serve"};
  leat::broker::Options options;
  leat::tool::add_common_options(app);
  app.require_subcommand(0);
  leat::broker::add_options(app, options);
  app.callback([&options] { leat::broker::serve(options); });
  app.footer("Example:\n  leat serve --lightq-port 5500");
  return leat::tool::run(app, argc, argv, leat::broker::manual());
}
