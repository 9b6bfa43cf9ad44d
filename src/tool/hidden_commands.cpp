#include "hidden_commands.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "completion.hpp"
#include "failure.hpp"
#include "program.hpp"

namespace leat::tool {
namespace {

int print(const std::string& text) {
  std::fputs(text.c_str(), stdout);  // finish_output() looks at what became of it.
  return finish_output();
}

int print_candidates(const CLI::App& app, const std::vector<std::string>& words) {
  std::string text;
  for (const Candidate& one : complete(app, words)) {
    text += one.word;
    if (!one.description.empty()) text += '\t' + one.description;
    text += '\n';
  }
  return print(text);
}

constexpr char kCompletion[] = "completion";

[[noreturn]] void refuse_shell(const CLI::App& app) {
  throw Failure{kExitUsage, fmt::format("`{} {}` needs the name of a shell: bash, zsh or fish",
                                        app.get_name(), kCompletion)};
}

std::string script_for(const CLI::App& app, const std::string& shell) {
  const auto script = completion_script(shell, executable_name(app));
  if (!script) refuse_shell(app);
  return *script;
}

}  // namespace

void add_completion_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand(kCompletion, "Print a script that completes commands, options and topics");
  auto shell = std::make_shared<std::string>();
  command->add_option("bash|zsh|fish", *shell, "The shell that reads the script");
  command->footer(fmt::format(
      "`make install` and the packages install the scripts. In other cases add the line for your "
      "shell to its configuration.\nExample:\n  {0} completion bash >~/.{1}.bash; . ~/.{1}.bash\n"
      "  {0} completion fish | source",
      app.get_name(), executable_name(app)));
  command->callback([&app, shell] { std::fputs(script_for(app, *shell).c_str(), stdout); });
}

std::optional<int> run_hidden_command(const CLI::App& app, int argc, char** argv,
                                      const Manual& manual) {
  const std::string_view name = argc > 1 ? argv[1] : "";
  if (name == "complete") return print_candidates(app, {argv + 2, argv + argc});
  if (name == "man" && argc == 2) return print(man_page(app, manual));
  const auto is_completion = [](const CLI::App* one) { return one->check_name(kCompletion); };
  if (name != kCompletion || !app.get_subcommands(is_completion).empty()) return std::nullopt;
  try {
    return print(script_for(app, argc == 3 ? argv[2] : ""));
  } catch (const Failure& failure) {
    print_notice(failure.what());
    return failure.exit_code();
  }
}

}  // namespace leat::tool
