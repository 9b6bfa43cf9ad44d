#include "hidden_commands.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "completion.hpp"
#include "failure.hpp"
#include "man_page.hpp"
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

}  // namespace

std::optional<int> run_hidden_command(const CLI::App& app, int argc, char** argv) {
  const std::string_view name = argc > 1 ? argv[1] : "";
  if (name == "complete") return print_candidates(app, {argv + 2, argv + argc});
  if (name == "man" && argc == 2) return print(man_page(app));
  if (name != "completion") return std::nullopt;
  const auto script = argc == 3 ? completion_script(argv[2], executable_name(app)) : std::nullopt;
  if (script) return print(*script);
  print_notice(
      fmt::format("`{} completion` needs the name of a shell: bash, zsh or fish", app.get_name()));
  return kExitUsage;
}

}  // namespace leat::tool
