// The executable `leat-lightq`, or `leat lightq`: LightQ's command-line tools.
#include <CLI/CLI.hpp>

#include "options.hpp"
#include "tool/hidden_commands.hpp"
#include "tool/program.hpp"

int main(int argc, char** argv) {
  leat::tool::open_missing_streams();
  CLI::App app{"LightQ's command-line tools, for `leat serve`", "leat lightq"};
  leat::tool::add_common_options(app);
  leat::lightq_tool::add_producer(app);
  leat::lightq_tool::add_consumer(app);
  leat::lightq_tool::add_topic(app);
  leat::lightq_tool::add_broker(app);
  leat::tool::add_completion_command(app);
  app.footer(
      "Example, in three terminals:\n  leat lightq broker\n  leat lightq topic && leat lightq "
      "consumer\n"
      "  leat lightq producer");
  return leat::tool::run(
      app, argc, argv,
      {.variables = {{"LEAT_PASSWORD",
                      "The password of the user, unless --password or --password-file is given."},
                     {"LEAT_ADMIN_PASSWORD",
                      "The password of the administrator, unless --admin-password or "
                      "--admin-password-file is given."}}});
}
