#include "man_page.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>
#include <string_view>

#include "failure.hpp"
#include "help_formatter.hpp"
#include "leat_version.hpp"

namespace leat::tool {
namespace {

// As text for roff: what would mean something to it, or be typeset as something else, is written as a
// name.
std::string escaped(std::string_view text) {
  std::string result;
  if (text.starts_with('.') || text.starts_with('\'')) result += "\\&";
  for (const char c : text) {
    switch (c) {
      case '\\': result += "\\e"; break;
      case '-': result += "\\-"; break;
      case '\'': result += "\\(aq"; break;
      case '`': result += "\\(ga"; break;
      case '^': result += "\\(ha"; break;
      case '~': result += "\\(ti"; break;
      default: result += c; break;
    }
  }
  return result;
}

// Line by line; those that begin with a space are examples and stay as they are.
void append_text(std::string_view text, std::string& to) {
  std::istringstream lines{std::string{text}};
  bool is_example = false;
  bool is_first = true;
  for (std::string line; std::getline(lines, line); is_first = false) {
    const bool was_example = is_example;
    is_example = line.starts_with(' ');
    if (is_example && !was_example) to += ".RS 4\n.EX\n";
    if (!is_example && was_example) to += ".EE\n.RE\n.PP\n";
    if (!is_example && !was_example && !is_first) to += ".br\n";
    line.erase(0, line.find_first_not_of(' '));
    to += escaped(line) + '\n';
  }
  if (is_example) to += ".EE\n.RE\n";
}

// "-n, --count N", and the default.
std::string option_head(const CLI::Option& option) {
  std::string head = option.get_positional() ? option.get_name(true) : option.get_name(false, true);
  for (std::size_t at = head.find(','); at != std::string::npos; at = head.find(',', at + 1))
    head.insert(at + 1, " ");
  head = "\\fB" + escaped(head) + "\\fR";
  if (!option.get_positional() && takes_value(option))
    head += " \\fI" + escaped(option.get_type_name()) + "\\fR";
  if (!option.get_default_str().empty()) head += " [" + escaped(option.get_default_str()) + "]";
  return head;
}

void append_options(const std::vector<const CLI::Option*>& options, std::string& to) {
  for (const CLI::Option* option : options) {
    to += ".TP\n" + option_head(*option) + '\n';
    to += option->get_description().empty() ? "\\&\n" : escaped(option->get_description()) + '\n';
  }
}

// Of a command, without --help, which is told once for all.
std::vector<const CLI::Option*> own_options(const CLI::App& command) {
  auto options = shown_options(command, false);
  std::erase(options, command.get_help_ptr());
  return options;
}

// "leat topic create NAME [OPTIONS]", "leat topic COMMAND"
std::string synopsis(const CLI::App& command, const std::string& name) {
  std::string text = name;
  for (const CLI::Option* option : shown_options(command, true)) {
    std::string one = option->get_name(true);
    if (option->get_expected_max() > 1) one += "...";
    text += option->get_required() ? " " + one : " [" + one + "]";
  }
  if (!shown_commands(command).empty()) text += " COMMAND";
  return own_options(command).empty() ? text : text + " [OPTIONS]";
}

void append_command(const CLI::App& command, const std::string& above, std::string& to) {
  const std::string name = above + " " + command.get_name();
  to += ".SS " + escaped(synopsis(command, name)) + '\n';
  append_text(command.get_description(), to);
  append_options(shown_options(command, true), to);
  append_options(own_options(command), to);
  if (!command.get_footer().empty()) {
    to += ".PP\n";
    append_text(command.get_footer(), to);
  }
  for (const CLI::App* one : shown_commands(command)) append_command(*one, name, to);
}

// Of every executable.
const std::vector<Manual::Entry>& common_variables() {
  static const std::vector<Manual::Entry> all{
      {"LEAT_DIR", "The directory of topics, unless --dir names one."},
      {"LEAT_DATA_DIR",
       "The data directory, where durable topics keep their files, unless --data-dir names one."},
      {"XDG_DATA_HOME, HOME",
       "Without LEAT_DATA_DIR, the data directory is $XDG_DATA_HOME/leat, else "
       "$HOME/.local/share/leat."},
      {"COLUMNS, NO_COLOR, TERM",
       "The width of what is printed where the output is not a terminal, and whether a terminal "
       "shows colours."},
      {"PATH", "Where executables of Leat are found that do not lie beside this one."}};
  return all;
}
const std::vector<Manual::Entry>& common_files() {
  static const std::vector<Manual::Entry> all{
      {"/dev/shm/leat-UID", "The default directory of topics; UID is the number of the user."},
      {"DIRECTORY/TOPIC/", "The memory of a topic, in its directory of topics."},
      {"DIRECTORY/+lock", "Locked by deletions. Who may not write to it cannot delete topics."},
      {"~/.local/share/leat", "The default data directory."},
      {"DATA_DIRECTORY/TOPIC/", "The files of a durable topic."}};
  return all;
}

void append_entries(const std::vector<Manual::Entry>& entries, std::string& to) {
  for (const Manual::Entry& one : entries)
    to += fmt::format(".TP\n\\fB{}\\fR\n{}\n", escaped(one.name), escaped(one.text));
}

void append_exit_codes(std::string& to) {
  to += ".SH EXIT STATUS\n";
  for (const ExitCode& one : kExitCodes)
    to += fmt::format(".TP\n\\fB{}\\fR\n{}\n", one.code, escaped(one.meaning));
  to += ".TP\n\\fB128+N\\fR\nEnded by signal N, before its work was done.\n";
}

}  // namespace

std::string executable_name(const CLI::App& app) {
  std::string name = app.get_name();
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

std::string man_page(const CLI::App& app, const Manual& manual) {
  const std::string name = executable_name(app);
  std::string title = name;
  std::transform(title.begin(), title.end(), title.begin(), [](char c) {
    return static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  });
  std::string page = fmt::format(".TH {} 1 \"\" \"Leat {}\" \"User Commands\"\n", title, kVersion);
  page.insert(0, ".nr HY 0\n");  // No hyphens, and no wider spaces: both would change commands.
  page += ".ad l\n";
  page += fmt::format(".SH NAME\n{} \\- {}\n", escaped(name), escaped(app.get_description()));
  const auto commands = shown_commands(app);
  page += fmt::format(".SH SYNOPSIS\n.B {}\n{}[\\fIOPTIONS\\fR]\n", escaped(name),
                      commands.empty() ? "" : "\\fICOMMAND\\fR ");
  page += commands.empty() ? ".SH OPTIONS\n" : ".SH OPTIONS\nAll commands understand these.\n";
  append_options(shown_options(app, false), page);
  if (!commands.empty()) page += ".SH COMMANDS\n";
  for (const CLI::App* command : commands) append_command(*command, app.get_name(), page);
  append_exit_codes(page);
  page += ".SH ENVIRONMENT\n";
  append_entries(common_variables(), page);
  append_entries(manual.variables, page);
  page += ".SH FILES\n";
  append_entries(common_files(), page);
  append_entries(manual.files, page);
  if (!app.get_footer().empty()) {
    page += ".SH EXAMPLES\n";
    append_text(app.get_footer(), page);
  }
  return page;
}

}  // namespace leat::tool
