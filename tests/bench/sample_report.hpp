// Small reports in the format of `leat bench ipc`, for testing the code that reads them.
//
//     const ResultSet set = sample_set({sample_result("pipe", 7600), sample_result("leat", 150)});
#pragma once

#include <string>
#include <vector>

#include "bench/output/output.hpp"
#include "bench/report/result_set.hpp"

namespace leat::bench {

inline Json sample_figures(double p50_ns) {
  return {{"min_ns", p50_ns * 0.9},
          {"p50_ns", p50_ns},
          {"p90_ns", p50_ns * 1.1},
          {"p99_ns", p50_ns * 2},
          {"p999_ns", p50_ns * 4},
          {"p9999_ns", nullptr},
          {"max_ns", p50_ns * 50},
          {"mean_ns", p50_ns * 1.2},
          {"stddev_ns", p50_ns},
          {"messages_per_second", 1e9 / p50_ns},
          {"cpu_ns_per_message", p50_ns * 2}};
}

// A blocking round trip of 100 B in five runs. Tests change what they need to be different.
inline Json sample_result(const std::string& method, double p50_ns = 1000) {
  Json runs = Json::array();
  for (const double part : {0.98, 0.99, 1.0, 1.01, 1.02})
    runs.push_back(sample_figures(p50_ns * part));
  return {{"method", method},  {"variant", "blocking"},
          {"baseline", false}, {"pattern", "pingpong"},
          {"size", 100},       {"count", 20000},
          {"batch", 1},        {"rate", 0},
          {"verified", true},  {"median", sample_figures(p50_ns)},
          {"runs", runs},      {"note", ""}};
}

inline Json sample_report(const std::vector<Json>& results) {
  return {{"machine",
           {{"cpu", "Example CPU"},
            {"cpus_online", 2},
            {"kernel", "Linux 6.1"},
            {"hypervisor", "KVMKVMKVM"},
            {"caches", {{"L1", "32K"}}}}},
          {"version", "0.1.0"},
          {"commit", "0123456789ab"},
          {"command", "leat bench ipc"},
          {"parameters", Json::object()},
          {"results", results}};
}

inline ResultSet sample_set(const std::vector<Json>& results) {
  return parse_results(sample_report(results).dump(), "sample.json");
}

}  // namespace leat::bench
