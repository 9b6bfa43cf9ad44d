#include "figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/failure.hpp"
#include "bench/statistics.hpp"

namespace leat::bench::clients {
namespace {

constexpr std::array<const char*, 4> kParts = {"publish", "batch", "read", "view"};

std::string ns_key(const char* part) { return std::string{part} + "_ns"; }

// For messages: what was printed, on one line, and not all of a long text.
std::string quoted(std::string text) {
  constexpr std::size_t kMost = 60;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c > 0x7E; }, ' ');
  if (text.size() > kMost) text = text.substr(0, kMost) + "…";
  return "'" + text + "'";
}

double nanoseconds(const Json& printed, const char* part) {
  const auto found = printed.find(ns_key(part));
  if (found == printed.end()) throw Failure(fmt::format("there is no {}", ns_key(part)));
  const double ns = found->is_number() ? found->get<double>() : 0;
  if (!std::isfinite(ns) || ns <= 0) {
    throw Failure(
        fmt::format("{} is not a time: {}", ns_key(part), quoted(found->dump(-1, ' ', true))));
  }
  return ns;
}

std::optional<double> in_place(const Json& printed) {
  if (const auto found = printed.find("view_ns"); found != printed.end() && found->is_null()) {
    return std::nullopt;
  }
  return nanoseconds(printed, "view");
}

Json json_of(const Figures& figures) {
  return {{"publish_ns", figures.publish_ns},
          {"batch_ns", figures.batch_ns},
          {"read_ns", figures.read_ns},
          {"view_ns", figures.view_ns ? Json(*figures.view_ns) : Json()}};
}

// The median of one number of each; null if one of them has none.
Json median_at(const Json& objects, const std::string& key) {
  std::vector<double> values;
  for (const Json& object : objects) {
    if (!object.at(key).is_number()) return nullptr;
    values.push_back(object.at(key).get<double>());
  }
  return median(values);
}

Json target_of(const Wanted& wanted) {
  Json target = Json::object();
  const std::array<double, 4> most = {wanted.publish, wanted.batch, wanted.read, wanted.view};
  for (std::size_t i = 0; i < kParts.size(); ++i) {
    if (most[i] != 0) target[kParts[i]] = most[i];
  }
  return target;
}

}  // namespace

const Language* language_named(const std::string& name) {
  const auto found = std::find_if(kLanguages.begin(), kLanguages.end(),
                                  [&](const Language& it) { return it.name == name; });
  return found == kLanguages.end() ? nullptr : &*found;
}

Figures figures_of(const std::string& output) {
  const Json printed = Json::parse(output, nullptr, false);
  if (!printed.is_object()) {
    throw Failure(fmt::format("it printed {} and not an object of JSON", quoted(output)));
  }
  const auto runtime = printed.find("runtime");
  if (runtime == printed.end() || !runtime->is_string()) {
    throw Failure(fmt::format("it printed no runtime: {}", quoted(output)));
  }
  try {
    return {.runtime = runtime->get<std::string>(),
            .publish_ns = nanoseconds(printed, "publish"),
            .batch_ns = nanoseconds(printed, "batch"),
            .read_ns = nanoseconds(printed, "read"),
            .view_ns = in_place(printed)};
  } catch (const Failure& failure) {
    throw Failure(fmt::format("of what it printed, {}", failure.what()));
  }
}

Json ratio_to(const Figures& own, const Figures& beside) {
  const auto times = [](std::optional<double> ns, std::optional<double> than) {
    return ns && than ? Json(*ns / *than) : Json();
  };
  return {{"publish", times(own.publish_ns, beside.publish_ns)},
          {"batch", times(own.batch_ns, beside.batch_ns)},
          {"read", times(own.read_ns, beside.view_ns)},
          {"view", times(own.view_ns, beside.view_ns)}};
}

Json result_of(const Language& language, const std::vector<Round>& rounds, std::size_t size) {
  Json runs = Json::array();
  Json ratios = Json::array();
  for (const Round& round : rounds) {
    Json run = json_of(round.own);
    if (round.beside) {
      ratios.push_back(ratio_to(round.own, *round.beside));
      run["ratio"] = ratios.back();
      run["beside"] = json_of(*round.beside);
    }
    runs.push_back(std::move(run));
  }
  Json result = {{"language", language.name}, {"runtime", rounds.front().own.runtime}};
  for (const char* part : kParts) result[ns_key(part)] = median_at(runs, ns_key(part));
  for (const char* part : kParts) {
    result["ratio"][part] = ratios.empty() ? Json() : median_at(ratios, part);
  }
  if (language.beside != nullptr) result["beside"] = language.beside;
  if (size == kWantedSize && language.beside != nullptr) {
    result["target"] = target_of(language.wanted);
  }
  result["runs"] = std::move(runs);
  return result;
}

std::string ratio_text(const Json& result, const char* key) {
  const Json& ratio = result["ratio"][key];
  if (!ratio.is_number()) return "";
  std::string text = fmt::format("{:.2f}", ratio.get<double>());
  const auto target = result.find("target");
  if (target == result.end() || !target->contains(key)) return text;
  const auto most = target->at(key).get<double>();
  return fmt::format("{} ({}){}", text, most, ratio.get<double>() > most ? "!" : "");
}

}  // namespace leat::bench::clients
