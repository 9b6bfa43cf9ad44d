#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <vector>

#include "bench/output/units.hpp"
#include "bench/statistics.hpp"
#include "page_parts.hpp"
#include "runs.hpp"

namespace leat::bench {
namespace {

// The fewest and the most runs of any result with figures.
struct RunCounts {
  std::size_t fewest = 0, most = 0;
};

RunCounts run_counts(const ResultSet& set) {
  RunCounts counts;
  for (const Measurement& result : set.results) {
    if (!result.median) continue;
    const std::size_t runs = std::max<std::size_t>(result.runs.size(), 1);
    counts.fewest = counts.fewest == 0 ? runs : std::min(counts.fewest, runs);
    counts.most = std::max(counts.most, runs);
  }
  return counts;
}

std::string runs_words(const ResultSet& set) {
  const auto [fewest, most] = run_counts(set);
  if (most == 0) return "none";
  if (most == 1)
    return "one run of each: the figures are no medians, and nothing is known about noise";
  if (fewest == most) return fmt::format("{} of each; the figures are their medians", most);
  return fmt::format("{} to {} of each; the figures are their medians{}", fewest, most,
                     fewest == 1 ? ", or the one run" : "");
}

// "2026-11-23", or from the first day to the last.
std::string dates_words(const ResultSet& set) {
  std::set<std::string> days;
  for (const Source& source : set.sources) {
    if (!source.day.empty()) days.insert(source.day);
  }
  if (days.empty()) return "date not recorded";
  return days.size() == 1 ? *days.begin() : *days.begin() + " to " + *days.rbegin();
}

// "p90 needs 10, p99 100, p99.9 1000 and p99.99 10000"
std::string samples_words() {
  std::string words;
  for (const Percentile& percentile : kPercentiles) {
    if (percentile.figure == &Figures::p50_ns) continue;
    words += words.empty() ? "" : &percentile == &kPercentiles.back() ? " and " : ", ";
    words += fmt::format("{}{} {}", percentile.title, words.empty() ? " needs" : "",
                         samples_needed(percentile.part));
  }
  return words;
}

template <class Has>
bool any_result(const ResultSet& set, const Has& has) {
  return std::any_of(set.results.begin(), set.results.end(),
                     [&](const Measurement& result) { return result.median && has(result); });
}

// Hypervisors give themselves names of twelve letters.
std::string_view name_of_hypervisor(std::string_view id) {
  if (id == "KVMKVMKVM") return "KVM";
  if (id == "Microsoft Hv") return "Hyper-V";
  if (id == "VMwareVMware") return "VMware";
  if (id == "XenVMMXenVMM") return "Xen";
  return id;
}

// One sentence or two for each kind of machine among the sources.
std::set<std::string> notes_on_machines(const ResultSet& set) {
  std::set<std::string> notes;
  for (const Source& source : set.sources) {
    const std::string cpus = source.fact("cpus_online"), guest = source.fact("hypervisor");
    std::string text;
    if (guest != "unknown" && guest != "none") {
      text = fmt::format(
          "The machine is virtual (by {}): other guests on the same hardware make some runs slower "
          "than others, and can't be seen from inside. ",
          escaped(name_of_hypervisor(guest)));
    }
    if (std::atoi(cpus.c_str()) == 2) {
      text +=
          "It has 2 CPUs, one for each side: anything else that runs takes one of them away, which "
          "shows in the high percentiles.";
    }
    if (!text.empty()) notes.insert(text);
  }
  return notes;
}

// Empty if nothing is known about it.
std::string note_on_noise(const ResultSet& set) {
  std::vector<double> spreads;
  const Measurement* noisiest = nullptr;
  for (const Measurement& result : set.results) {
    const auto spread = spread_of(result);
    if (!spread) continue;
    if (noisiest == nullptr || *spread > *spread_of(*noisiest)) noisiest = &result;
    spreads.push_back(*spread);
  }
  if (noisiest == nullptr) return {};
  return fmt::format(
      "Noise: the runs of a result typically lie within {} of each other. Those of {} lie furthest "
      "apart, from {}. {} To tell a change from noise, use <code>leat bench compare</code>.",
      percent_text(median(spreads)), with_whole_words(to_string(noisiest->key)),
      range_text(*noisiest, rank_figure(noisiest->key.pattern), rank_words(*noisiest)), kTieRule);
}

}  // namespace

std::string machine_words(const Source& source) {
  return fmt::format("{}, {} CPUs, {}", source.fact("cpu"), source.fact("cpus_online"),
                     source.fact("kernel"));
}

std::string about_measurement(const ResultSet& set) {
  std::set<std::string> machines, commands;
  for (const Source& source : set.sources) {
    machines.insert(with_whole_words(fmt::format("{}; leat {}, commit {}", machine_words(source),
                                                 source.version, source.commit)));
    if (!source.command.empty()) {
      commands.insert("<code>" + with_whole_words(source.command) + "</code>");
    }
  }
  std::string out = "<dl class=\"about\">\n";
  const auto item = [&](const std::string& name, const std::string& html) {
    out += fmt::format("<dt>{}</dt><dd>{}</dd>\n", name, html);
  };
  const auto items = [&](const std::string& name, const std::set<std::string>& lines) {
    if (lines.empty()) return;
    item(lines.size() > 1 ? name + "s" : name, fmt::format("{}", fmt::join(lines, "<br>")));
  };
  item("Measured", escaped(dates_words(set)));
  item("Runs", runs_words(set));
  items("Machine", machines);
  items("Command", commands);
  out += "</dl>\n";
  if (machines.size() > 1) {
    out +=
        "<p>These results come from more than one machine or version. Compare them with "
        "care.</p>\n";
  }
  return out;
}

std::string notes_on_figures(const ResultSet& set) {
  std::string out = "<h2>What the figures mean</h2>\n<ul>\n";
  const auto item = [&](const std::string& text) { out += "<li>" + text + "</li>\n"; };
  const auto [fewest, most] = run_counts(set);
  item((fewest > 1 ? "Each figure is the median of its runs. "
        : most > 1 ? "Each figure is the median of its runs, or of one run. "
                   : "Each figure is of one run. ") +
       std::string(
           "p99 means: 99 of 100 messages were at least this fast. The slowest ones are mostly "
           "the operating system's doing and change from run to run."));
  item(fmt::format(
      "A percentile needs enough messages in a run that one of them lies beyond it: {}. "
      "Where there are fewer, the table shows {}.",
      samples_words(), kNone));
  item(
      "A round trip is there and back between two processes, with the whole payload both ways. One "
      "way at a fixed rate, latency counts from the moment at which a message was due, so that a "
      "delayed sender can't hide it.");
  item(
      "Spinning: a side that waits uses a whole CPU, whether or not messages come. Blocking: it "
      "sleeps, and pays for being woken. CPU time and context switches are of both sides "
      "together, per message or round trip.");
  if (any_result(set, [](const Measurement& result) {
        return result.key.pattern == Pattern::rate && !result.median->sender_cpu_ns_per_message;
      })) {
    item("At a fixed rate CPU is the receiver's alone: the sender spins to keep the time.");
  }
  if (any_result(set, [](const Measurement& result) { return result.baseline; })) {
    item(
        "† Baselines spin on one slot of memory and are no queue: they show the best that this "
        "machine can do, not what a program could use instead.");
  }
  if (any_result(set, [](const Measurement& result) { return result.in_process; })) {
    item("‡ Runs as threads of one process; all others are processes of their own.");
  }
  for (const std::string& note : notes_on_machines(set)) item(note);
  if (const std::string note = note_on_noise(set); !note.empty()) item(note);
  return out + "</ul>\n";
}

std::string provenance(const ResultSet& set) {
  struct Place {
    const Source* source;
    std::set<std::string> commands;
    std::vector<std::string> files;
  };
  std::vector<Place> places;
  for (const Source& source : set.sources) {
    auto place = std::find_if(places.begin(), places.end(), [&](const Place& p) {
      // Not all facts of the machine: its load, for one, differs from run to run.
      return machine_words(*p.source) == machine_words(source) &&
             p.source->commit == source.commit && p.source->version == source.version;
    });
    if (place == places.end()) place = places.insert(places.end(), Place{&source, {}, {}});
    if (!source.command.empty()) place->commands.insert(source.command);
    place->files.push_back(source.file);
  }
  std::string out = "<h2>Where and how</h2>\n";
  for (const Place& place : places) {
    out += fmt::format("<details><summary>{}, leat {}, commit {}</summary>\n",
                       with_whole_words(machine_words(*place.source)),
                       escaped(place.source->version), escaped(place.source->commit));
    for (const std::string& command : place.commands) {
      out += "<pre>" + with_whole_words(command) + "</pre>\n";
    }
    out += "<dl>\n";
    for (const Fact& fact : place.source->machine) {
      out +=
          fmt::format("<dt>{}</dt><dd>{}</dd>\n", escaped(fact.name), with_whole_words(fact.value));
    }
    out += fmt::format("<dt>files</dt><dd>{}</dd>\n</dl></details>\n",
                       with_whole_words(fmt::format("{}", fmt::join(place.files, ", "))));
  }
  return out;
}

}  // namespace leat::bench
