#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "bench/ipc/methods.hpp"
#include "bench/output/units.hpp"
#include "charts.hpp"
#include "page_parts.hpp"

namespace leat::bench {
namespace {

std::string named(const Measurement& result, Figure figure, const InWords& in_words) {
  // Round trips are ranked by variant, one way is not.
  const bool say_variant = result.key.pattern == Pattern::oneway;
  return fmt::format("{} ({}{}{})", with_whole_words(result.key.method),
                     unbroken(in_words(*(*result.median.*figure))), say_variant ? ", " : "",
                     say_variant ? name_of(result.key.variant) : "");
}

bool is_queue(const Measurement& result) {
  const auto facts = ipc::facts_of(result.key.method);
  return !facts || facts->queue;  // Those that we do not know are of bench/peers.
}

// "leat (151 ns), tied with pipe (160 ns), then tcp (9 µs); the best baseline is shm (80 ns)". Only
// queues between processes compete, each method with its better variant.
std::string ranking(const Results& best_first, Figure figure, const InWords& in_words) {
  std::string text;
  std::size_t rank = 0;
  std::set<std::string> seen;
  bool leat_is_named = false;
  bool all_are_tied = true;  // So far, with the first.
  const Measurement* first = nullptr;
  const Measurement* baseline = nullptr;
  const Measurement* in_process = nullptr;
  for (const Measurement* result : best_first) {
    if (result->baseline || result->in_process) {
      const Measurement*& best = result->baseline ? baseline : in_process;
      if (best == nullptr) best = result;
      continue;
    }
    if (!is_queue(*result) || !seen.insert(result->key.method).second) continue;
    ++rank;
    if (first == nullptr) first = result;
    const std::string name = named(*result, figure, in_words);
    const bool is_tied = tied(*first, *result, figure);
    if (rank == 1) {
      text = "<strong>" + name + "</strong>";
    } else if (rank <= 3) {
      // A noisy third can be tied with the first although the second is not.
      const bool is_apart = is_tied && !all_are_tied;
      text += (!is_tied || is_apart ? ", then " : rank == 3 ? " and " : ", tied with ") + name;
      if (is_apart) text += ", which is tied with the first";
      all_are_tied = all_are_tied && is_tied;
    }
    if (!is_leat(result->key.method) || leat_is_named) continue;
    leat_is_named = true;
    if (rank <= 3) continue;
    text += is_tied ? "; Leat is tied with the first: " + name
                    : fmt::format("; Leat is number {}: {}", rank, name);
  }
  const auto add_apart = [&](const char* what, const Measurement* best) {
    if (best == nullptr) return;
    text += fmt::format("{}the best {} is {}", text.empty() ? "" : "; ", what,
                        named(*best, figure, in_words));
  };
  add_apart("baseline", baseline);
  add_apart("within one process", in_process);
  return text;
}

}  // namespace

std::string ranking_list(const ResultSet& set, std::uint64_t size) {
  std::string out;
  const auto item = [&](const std::string& what, const Results& results, Figure figure,
                        const InWords& in_words) {
    if (results.empty()) return;
    out += fmt::format("<li>{}: {}.</li>\n", what, ranking(results, figure, in_words));
  };
  for (const Variant variant : {Variant::spinning, Variant::blocking}) {
    auto results = ranked(set, Pattern::pingpong, size);
    std::erase_if(results, [&](const Measurement* r) { return r->key.variant != variant; });
    item(fmt::format("Fastest round trip of {}, {}", size_text(size), name_of(variant)), results,
         &Figures::p50_ns, time_text);
  }
  for (const std::uint64_t batch : batches_of(set)) {
    auto results = ranked(set, Pattern::oneway, size);
    std::erase_if(results, [&](const Measurement* r) { return r->key.batch != batch; });
    item(fmt::format("Most messages of {} one way, {}", size_text(size),
                     batch == 1 ? "one at a time" : fmt::format("in batches of {}", batch)),
         results, &Figures::messages_per_second, rate_text);
  }
  return out.empty() ? out : "<ul>\n" + out + "</ul>\n";
}

}  // namespace leat::bench
