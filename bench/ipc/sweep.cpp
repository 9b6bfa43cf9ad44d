#include "sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "bench/failure.hpp"
#include "leat_version.hpp"
#include "rows.hpp"

namespace leat::bench::ipc {
namespace {

constexpr char kSizes[] = "sizes=";
constexpr std::size_t kFactor = 4;

// "64KiB" as a number; 0 if it is not a size.
std::size_t size_of(std::string text) {
  std::uint64_t size = 0;
  try {
    // CLI11 knows the units; it replaces the text by digits.
    if (!CLI::AsSizeValue(false)(text).empty()) return 0;
  } catch (const CLI::Error&) {
    return 0;
  }
  return CLI::detail::lexical_cast(text, size) ? static_cast<std::size_t>(size) : 0;
}

}  // namespace

std::vector<std::size_t> sweep_sizes(const std::string& sweep, std::size_t max_size) {
  const auto refuse = [&] {
    return Failure(
        kExitUsage,
        fmt::format("--sweep {}: say sizes=FROM..TO or sizes=N,N,... with sizes from 1 to "
                    "{} bytes, such as sizes=1..64KiB",
                    sweep, max_size));
  };
  if (sweep.rfind(kSizes, 0) != 0) throw refuse();
  const auto checked = [&](const std::string& text) {
    const std::size_t size = size_of(text);
    if (size == 0 || size > max_size) throw refuse();
    return size;
  };
  const std::string list = sweep.substr(sizeof kSizes - 1);
  std::vector<std::size_t> sizes;
  if (const std::size_t dots = list.find(".."); dots != list.npos) {
    const std::size_t last = checked(list.substr(dots + 2));
    const std::size_t first = checked(list.substr(0, dots));
    if (first > last) throw refuse();
    for (std::size_t size = first; size < last; size *= kFactor) sizes.push_back(size);
    sizes.push_back(last);
  } else {
    for (const std::string& size : CLI::detail::split(list, ',')) sizes.push_back(checked(size));
  }
  return sizes;
}

SweepDirectory::SweepDirectory(std::string path) : path_{std::move(path)} {
  std::error_code error;
  std::filesystem::create_directories(path_, error);
  if (error) throw Failure(fmt::format("cannot make --out {}: {}", path_, error.message()));
}

std::string SweepDirectory::file_of(const std::string& step) const {
  return path_ + "/" + step + ".json";
}

bool SweepDirectory::has(const std::string& step, const Json& parameters) const {
  // Builds of changed files share the name of their commit, and other builds have no name: then a result
  // counts only if it is newer than this executable.
  const bool names_one_build =
      std::strcmp(kCommit, "unknown") != 0 && std::strstr(kCommit, "-dirty") == nullptr;
  std::error_code error;
  if (!names_one_build && std::filesystem::last_write_time(file_of(step), error) <
                              std::filesystem::last_write_time("/proc/self/exe", error)) {
    return false;
  }
  std::ifstream file(file_of(step));
  const Json there = Json::parse(file, nullptr, false);
  if (!there.is_object() || there.value("commit", "") != kCommit || !there.contains("parameters") ||
      there["parameters"] != parameters || !there.contains("results")) {
    return false;
  }
  // A step with a failed row is measured again.
  return std::none_of(there["results"].begin(), there["results"].end(), [](const Json& result) {
    return result.is_object() && result.value("note", "").rfind(kFailed, 0) == 0;
  });
}

namespace {

// One line for each result, so that people can read the files.
std::string text_of(Json report) {
  std::string results;
  for (const Json& result : report["results"]) {
    results += (results.empty() ? "\n  " : ",\n  ") + result.dump();
  }
  report.erase("results");
  std::string text = report.dump(1);
  text.erase(text.rfind("\n}"));
  return text + ",\n \"results\": [" + results + "\n ]\n}\n";
}

}  // namespace

void SweepDirectory::write(const std::string& step, const Json& report) const {
  const std::string file = file_of(step);
  const std::string unfinished = file + ".part";
  std::ofstream out(unfinished, std::ios::trunc);
  out << text_of(report);
  out.close();
  std::error_code error;
  if (out) std::filesystem::rename(unfinished, file, error);
  if (!out || error) throw Failure(fmt::format("cannot write {}", file));
}

std::string SweepClock::text() const {
  std::string text = fmt::format("{} step{} left", left_, left_ == 1 ? "" : "s");
  if (done_ == 0 || left_ == 0) return text;
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - started_;
  const double seconds = elapsed.count() / static_cast<double>(done_) * static_cast<double>(left_);
  return text + (seconds < 90 ? fmt::format(", about {:.0f} s", std::ceil(seconds))
                              : fmt::format(", about {:.0f} min", std::ceil(seconds / 60)));
}

}  // namespace leat::bench::ipc
