// The executable `leat-bench`, or `leat bench`: what this machine can do, what the log does, and the
// ratio of the two. One subcommand for each file of commands/.
#include <CLI/CLI.hpp>

#include "commands/commands.hpp"
#include "tool/program.hpp"

int main(int argc, char** argv) {
  leat::tool::open_missing_streams();
  CLI::App app{"Measure this machine and the log on it", "leat bench"};
  leat::tool::add_common_options(app);
  app.footer("Example:\n  leat bench limits --runs 3");
  leat::bench::add_limits(app);
  leat::bench::add_log(app);
  leat::bench::add_group(app);
  leat::bench::add_broker(app);
  leat::bench::add_latency(app);
  leat::bench::add_ipc(app);
  leat::bench::add_clients(app);
  leat::bench::add_crash(app);
  leat::bench::add_idle(app);
  leat::bench::add_report(app);
  leat::bench::add_compare(app);
  return leat::tool::run(app, argc, argv);
}
