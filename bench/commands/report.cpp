// `leat bench report`: results of `leat bench ipc` as a page, as charts in files, or as a table in
// Markdown.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "bench/failure.hpp"
#include "bench/output/text_file.hpp"
#include "bench/output/units.hpp"
#include "bench/report/charts.hpp"
#include "bench/report/report_page.hpp"
#include "bench/report/result_set.hpp"
#include "commands.hpp"

namespace leat::bench {
namespace {

struct ReportArguments {
  std::vector<std::string> paths;
  std::string html;
  std::string svg_directory;
  std::string markdown;
  std::uint64_t size = 0;
  std::vector<std::string> methods;  // Empty: all.
};

void write_pictures(const ResultSet& set, const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) throw Failure(fmt::format("cannot make {}: {}", directory, error.message()));
  for (const Chart& chart : all_charts(set)) {
    write_text((std::filesystem::path(directory) / (chart.name + ".svg")).string(),
               svg_file(chart));
  }
}

void check_size(const ResultSet& set, std::uint64_t size) {
  const std::vector<std::uint64_t> sizes = sizes_of(set);
  if (size == 0 || std::find(sizes.begin(), sizes.end(), size) != sizes.end()) return;
  std::string known;
  for (const std::uint64_t one : sizes) known += (known.empty() ? "" : ", ") + size_text(one);
  throw Failure(kExitUsage, fmt::format("--size {}: not measured; there are {}", size,
                                        known.empty() ? "no figures at all" : known));
}

// Deletes the results of all other methods.
void keep_methods(ResultSet& set, const std::vector<std::string>& methods) {
  if (methods.empty()) return;
  for (const std::string& method : methods) {
    if (std::none_of(set.results.begin(), set.results.end(),
                     [&](const Measurement& result) { return result.key.method == method; })) {
      throw Failure(kExitUsage, fmt::format("--method {}: not among the results", method));
    }
  }
  std::erase_if(set.results, [&](const Measurement& result) {
    return std::find(methods.begin(), methods.end(), result.key.method) == methods.end();
  });
}

void report(const ReportArguments& options) {
  if (options.html == "-" && options.markdown == "-") {
    throw Failure(kExitUsage, "--html - and --markdown -: only one of them can have stdout");
  }
  // First: whoever names the page that is to be written is told that it holds no results.
  ResultSet set = read_results(options.paths);
  if (options.html.empty() && options.svg_directory.empty() && options.markdown.empty()) {
    throw Failure(kExitUsage, "nothing to write: say --html FILE, --svg DIR or --markdown FILE");
  }
  keep_methods(set, options.methods);
  check_size(set, options.size);
  for (const std::string& file : set.skipped) {
    fmt::print(stderr, "leat: {} is left out: it has no results of `leat bench ipc`\n", file);
  }
  if (!options.html.empty()) write_text(options.html, report_page(set, options.size));
  if (!options.markdown.empty()) write_text(options.markdown, report_markdown(set, options.size));
  if (!options.svg_directory.empty()) write_pictures(set, options.svg_directory);
}

}  // namespace

void add_report(CLI::App& bench) {
  auto options = std::make_shared<ReportArguments>();
  CLI::App* command = bench.add_subcommand("report", "Turn results of `bench ipc` into a page");
  command
      ->add_option("paths", options->paths,
                   "JSON files of `leat bench ipc`, or directories of them; if two have the same "
                   "measurement, the later name counts")
      ->required()
      ->option_text("PATH...");
  command->add_option("--html", options->html, "Write a page that needs nothing else; - is stdout")
      ->option_text("FILE");
  command->add_option("--svg", options->svg_directory, "Write the charts of all sizes as files")
      ->option_text("DIR");
  command->add_option("--markdown", options->markdown, "Write a table; - is stdout")
      ->option_text("FILE");
  command
      ->add_option(
          "--size", options->size,
          "Bytes of the messages that come first; by default 100, or what most methods did")
      ->option_text("BYTES");
  command->add_option("--method", options->methods, "Only results of these methods")
      ->delimiter(',')
      ->option_text("NAME,...");
  command->footer("Example:\n  leat bench report results/ --html report.html");
  command->callback([options] { report(*options); });
}

}  // namespace leat::bench
