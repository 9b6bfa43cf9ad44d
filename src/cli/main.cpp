// The executable `leat`: one command per file of this folder; `leat NAME` also runs leat-NAME.
#include <CLI/CLI.hpp>
#include <vector>

#include "cli.hpp"
#include "external_command.hpp"
#include "help.hpp"
#include "tool/hidden_commands.hpp"
#include "tool/program.hpp"

namespace leat::cli {
namespace {

tool::Manual manual() {
  return {.variables = {{"LEAT_PASSWORD",
                         "With --broker, the password of the user, unless --password-file names a "
                         "file."},
                        {"LEAT_TOPIC_PASSWORD",
                         "With `leat topic create --broker`, the password of the topic's user, "
                         "unless --topic-password-file names a file."}}};
}

int run(int argc, char** argv) {
  CLI::App app{"Messages between processes of one machine, through logs in shared memory", "leat"};
  tool::add_common_options(app);
  app.footer(
      "Example, in two terminals:\n  leat sub news\n  leat pub news hello\n"
      "`leat COMMAND --help` has options and an example of each.");
  add_topic_command(app);
  add_ls_command(app);
  add_top_command(app);
  add_pub_command(app);
  add_sub_command(app);
  add_group_command(app);
  add_demo_command(app);
  add_dump_command(app);
  add_fsck_command(app);
  add_backup_command(app);
  add_restore_command(app);
  add_doctor_command(app);
  add_rm_command(app);
  tool::add_completion_command(app);
  add_version_command(app);
  add_help_command(app);
  add_external_commands(app);
  if (const auto sentence = explain_help(app, argc, argv)) {
    print_notice(*sentence);
    return kExitUsage;
  }
  std::vector<char*> arguments = with_help_as_option(argc, argv);
  const int count = static_cast<int>(arguments.size());
  if (const auto exit_code = run_external_command(app, count, arguments.data())) return *exit_code;
  return tool::run(app, count, arguments.data(), manual());
}

}  // namespace
}  // namespace leat::cli

int main(int argc, char** argv) {
  leat::tool::open_missing_streams();
  leat::tool::open_blocking_output();
  return leat::cli::run(argc, argv);
}
