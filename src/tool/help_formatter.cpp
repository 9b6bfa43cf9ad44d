#include "help_formatter.hpp"

#include <algorithm>
#include <utility>

#include "terminal.hpp"

namespace leat::tool {

HelpFormatter::HelpFormatter() {
  constexpr std::size_t kWidest = 100;  // Longer lines are hard to read.
  constexpr std::size_t kNarrow = 60;
  width_ = std::min(terminal_width(), kWidest);
  column_width(width_ < kNarrow ? 8 : 30);
  label("SUBCOMMAND", "COMMAND");
}

std::string HelpFormatter::make_help(const CLI::App* app, std::string name,
                                     CLI::AppFormatMode mode) const {
  // CLI11 leaves two empty lines behind each group of options but the last.
  return CLI::detail::find_and_replace(CLI::Formatter::make_help(app, std::move(name), mode),
                                       "\n\n\n", "\n\n");
}

std::string HelpFormatter::make_description(const CLI::App* app) const {
  return wrapped(CLI::Formatter::make_description(app), width_);
}

std::string HelpFormatter::make_footer(const CLI::App* app) const {
  return wrapped(CLI::Formatter::make_footer(app), width_);
}

std::string HelpFormatter::make_subcommand(const CLI::App* command) const {
  return row(command->get_display_name(true), command->get_description());
}

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
  std::string opts = make_option_opts(option);
  // The name of a positional argument says what it is; CLI11 adds TEXT.
  const std::string type = " " + get_label(option->get_type_name());
  if (is_positional && opts.starts_with(type)) opts.erase(0, type.size());
  return row(make_option_name(option, is_positional) + opts, make_option_desc(option));
}

std::string HelpFormatter::row(const std::string& left, const std::string& description) const {
  std::string text = "  " + left;
  if (!description.empty()) {
    const std::size_t columns = columns_of(text);
    text += columns + 1 < column_width_ ? std::string(column_width_ - columns, ' ')
                                        : '\n' + std::string(column_width_, ' ');
    text += wrapped(description, width_, column_width_);
  }
  return text + '\n';
}

std::vector<const CLI::App*> shown_commands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* command) {
    return !command->get_name().empty() && !command->get_group().empty();
  });
}

std::vector<const CLI::Option*> shown_options(const CLI::App& app, bool is_positional) {
  return app.get_options([is_positional](const CLI::Option* option) {
    return !option->get_group().empty() && option->get_positional() == is_positional;
  });
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() != 0; }

}  // namespace leat::tool
