// `leat doctor`: what limits this machine and what to do about it.
#include "doctor.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "cli/cli.hpp"
#include "leat/admin.hpp"
#include "tool/json_text.hpp"
#include "tool/terminal.hpp"

namespace leat::cli {
namespace {

const char* name_of(Severity severity) noexcept {
  switch (severity) {
    case Severity::ok: return "ok";
    case Severity::note: return "note";
    case Severity::warning: return "warning";
    case Severity::problem: return "problem";
  }
  return "unknown";
}

std::string coloured(Severity severity, const std::string& text) {
  switch (severity) {
    case Severity::ok: return tool::styled(tool::Style::green, text);
    case Severity::note: return text;
    case Severity::warning: return tool::styled(tool::Style::yellow, text);
    case Severity::problem: return tool::styled(tool::Style::red, text);
  }
  return text;
}

void print_findings(const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) {
    const std::string status = fmt::format("{:<8}", name_of(finding.severity));
    fmt::print("{} {:<14} {}\n", coloured(finding.severity, status), finding.name,
               tool::without_controls(finding.found));
    if (!finding.advice.empty()) fmt::print("{:<23} -> {}\n", "", finding.advice);
  }
}

std::string to_json(const std::string& directory, const std::vector<Finding>& findings,
                    bool is_fine) {
  using Json = nlohmann::ordered_json;
  Json checks = Json::array();
  for (const Finding& finding : findings) {
    checks.push_back({{"name", finding.name},
                      {"status", name_of(finding.severity)},
                      {"found", finding.found},
                      {"advice", finding.advice},
                      {"facts", finding.facts}});
  }
  return tool::json_text(Json{{"directory", directory}, {"ok", is_fine}, {"checks", checks}}, 2);
}

// Removes what belongs to nobody. Returns how much of it could not be removed.
std::size_t clean(const std::string& directory, bool json) {
  std::size_t failed = 0;
  for (const Leftover& leftover : find_leftovers(directory)) {
    const std::string path = directory + "/" + leftover.name;
    const os::Fd lock = leftover.is_locked_by_owner ? lock_left_over(path) : os::Fd{};
    if (leftover.is_locked_by_owner && !lock) continue;  // Removed meanwhile, or just made.
    std::error_code error;
    std::filesystem::remove_all(path, error);
    if (error) {
      ++failed;
      print_notice(
          fmt::format("cannot remove {}/{}: {}", directory, leftover.name, error.message()));
    } else if (!json) {
      fmt::print("removed  {} ({}, {})\n", leftover.name, leftover.what, size_text(leftover.bytes));
    }
  }
  return failed;
}

void doctor(bool json, bool is_cleaning) {
  const std::string directory = topics_directory();
  refuse_system_directory(directory);
  std::size_t failed = is_cleaning ? clean(directory, json) : 0;
  if (is_cleaning) {
    for (const std::string& data : data_directories(directory)) failed += clean(data, json);
  }
  std::vector<Finding> findings = examine_machine(directory);
  for (Finding& finding : examine_topics(directory)) findings.push_back(std::move(finding));
  for (Finding& finding : examine_data(directory)) findings.push_back(std::move(finding));
  const auto problems = std::count_if(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.severity == Severity::problem;
  });
  if (json)
    fmt::print("{}\n", to_json(directory, findings, problems == 0));
  else
    print_findings(findings);
  std::fflush(stdout);
  if (problems != 0) {
    throw Failure{kExitFailed, fmt::format("{} problem{} found that need{} action", problems,
                                           problems == 1 ? "" : "s", problems == 1 ? "s" : "")};
  }
  if (failed != 0)
    throw Failure{kExitFailed, fmt::format("{} leftovers could not be removed", failed)};
}

}  // namespace

void add_doctor_command(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  auto is_cleaning = std::make_shared<bool>(false);
  CLI::App* command =
      app.add_subcommand("doctor", "What limits this machine, and what to do about it");
  command->add_flag("--json", *json, "For programs");
  command->add_flag("--clean", *is_cleaning, "Remove what dead processes left behind");
  command->footer(
      "Example:\n  leat doctor\n  leat doctor --clean\nExits with 1 if something needs action.");
  command->callback([json, is_cleaning] { doctor(*json, *is_cleaning); });
}

}  // namespace leat::cli
