// How --help looks: wrapped to the width of the terminal, between words; examples are left alone.
//
//     app.formatter(std::make_shared<HelpFormatter>());   // Before subcommands: they take it over.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace leat::tool {

class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter();
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;
  std::string make_description(const CLI::App* app) const override;
  std::string make_footer(const CLI::App* app) const override;
  std::string make_subcommand(const CLI::App* command) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;

 private:
  // The left column, and beside or below it the description.
  std::string row(const std::string& left, const std::string& description) const;

  std::size_t width_;
};

// What --help shows of a command: neither hidden ones nor, of commands, options without a name.
std::vector<const CLI::App*> shown_commands(const CLI::App& app);
// Of those, either the positional ones or the others.
std::vector<const CLI::Option*> shown_options(const CLI::App& app, bool is_positional);
// Whether a value follows it. Of a flag there is none.
bool takes_value(const CLI::Option& option);

}  // namespace leat::tool
