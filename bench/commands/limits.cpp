// leat bench limits: what this machine can do at best, with which Leat is compared.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>

#include "bench/floors/floors.hpp"
#include "bench/floors/kernel.hpp"
#include "bench/ipc/methods.hpp"
#include "bench/output/output.hpp"
#include "commands.hpp"

namespace leat::bench {
namespace {

constexpr std::array<std::size_t, 3> kRoundTripSizes = {8, 100, 1024};
constexpr std::array<std::size_t, 4> kStreamSizes = {8, 32, 100, 1024};
constexpr std::uint32_t kPatientPauses = 1000;  // 10 to 40 us, depending on the CPU.

struct LimitsArguments {
  std::vector<std::size_t> extra_sizes;
  std::string sync_directory = "/var/tmp";
  int runs = 5;
  std::vector<int> cpus;
  JsonOption json;
};

// Each measurement takes about 50 to 300 ms.
constexpr std::uint64_t kRoundTrips = 300'000;
constexpr std::uint64_t kSystemCalls = 300'000;
constexpr std::uint64_t kFutexRoundTrips = 10'000;
constexpr std::uint64_t kKernelRoundTrips = 1'000;
constexpr std::uint64_t kKernelRecords = 50'000;
constexpr std::size_t kPages = 8192;
constexpr int kSyncs = 200;
// `count` is for small payloads.
std::uint64_t fewer_if_large(std::uint64_t count, std::size_t size) {
  return count / (1 + size / 2048);
}
std::uint64_t ring_records(std::size_t size) {
  return std::max<std::uint64_t>(1'000'000'000 / (size + 100), 10'000);
}

struct CopySizes {
  std::size_t in_cache;
  std::size_t outside;
};

// Two buffers of `in_cache` bytes are larger than the usual L2 and fit into the last cache; of two of
// `outside` bytes, next to nothing can stay in it.
CopySizes copy_sizes() {
  constexpr std::size_t kMiB = 1u << 20;
  const long reported = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
  const std::size_t last_cache = reported > 0 ? static_cast<std::size_t>(reported) : 8 * kMiB;
  return {std::clamp(last_cache / 8, kMiB / 4, 4 * kMiB),
          std::clamp(last_cache * 2, 64 * kMiB, 512 * kMiB)};
}

std::vector<std::size_t> with_extra(auto sizes, const std::vector<std::size_t>& extra) {
  std::vector<std::size_t> all(sizes.begin(), sizes.end());
  all.insert(all.end(), extra.begin(), extra.end());
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

using Show = std::function<void(const std::string&)>;

// "pipe" and "pipe_round_trip", or the same for another method of `leat bench ipc`.
void measure_method(Json& run, const std::string& name, const std::string& key,
                    const LimitsArguments& options, const Show& show) {
  const ipc::Method method = ipc::method_named(name);
  const Placement placement{options.cpus};
  for (const std::size_t size : with_extra(kStreamSizes, options.extra_sizes)) {
    if (size == 0) continue;  // A stream has no empty messages.
    show(fmt::format("{}, {} B", key, size));
    const ipc::Cost cost = method.measure(
        {.size = size, .count = fewer_if_large(kKernelRecords, size), .pattern = Pattern::oneway},
        placement);
    run[key][std::to_string(size)]["ns_per_record"] = 1e9 / cost.messages_per_second;
  }
  for (const std::size_t size : with_extra(kRoundTripSizes, options.extra_sizes)) {
    if (size == 0) continue;
    show(fmt::format("{}, {} B, round trip", key, size));
    const Latency latency =
        method.measure({.size = size, .count = fewer_if_large(kKernelRoundTrips, size)}, placement)
            .latency;
    run[key + "_round_trip"][std::to_string(size)] = to_json({latency.mean, latency});
  }
}

Json measure_once(const LimitsArguments& options, const Show& show) {
  const Placement placement{options.cpus};
  const int cpu = placement.cpu(0);
  Json run;

  show("cache line");
  run["cache_line_round_trip_ns"] = cache_line_round_trip_ns(kRoundTrips, placement);
  for (const std::size_t size : with_extra(kRoundTripSizes, options.extra_sizes)) {
    show(fmt::format("single slot, {} B", size));
    const Load load = round_trips(size, fewer_if_large(kRoundTrips, size));
    run["slot_round_trip"][std::to_string(size)] = to_json(slot_round_trip(load, placement));
    run["slot_round_trip_read_only"][std::to_string(size)] =
        to_json(slot_round_trip(load, placement, SlotMapping::read_only));
  }
  for (const std::size_t size : with_extra(kStreamSizes, options.extra_sizes)) {
    show(fmt::format("ring, {} B", size));
    const std::string key = std::to_string(size);
    const auto ns = [&](PayloadSource source, std::uint32_t pauses) {
      return ring_ns_per_record({.size = size,
                                 .records = ring_records(size),
                                 .source = source,
                                 .pauses_when_empty = pauses},
                                placement);
    };
    run["ring"][key]["ns_per_record"] = ns(PayloadSource::in_place, 1);
    run["ring_copied"][key]["ns_per_record"] = ns(PayloadSource::copied, 1);
    run["ring_patient_reader"][key]["ns_per_record"] = ns(PayloadSource::in_place, kPatientPauses);
  }
  measure_method(run, "pipe", "pipe", options, show);
  measure_method(run, "socketpair", "unix_socket", options, show);
  show("copying");
  const CopySizes sizes = copy_sizes();
  run["copy_in_cache_gb_per_s"] = copy_gb_per_s(sizes.in_cache, cpu);
  run["copy_outside_gb_per_s"] = copy_gb_per_s(sizes.outside, cpu);
  show("system calls");
  run["system_call_ns"] = system_call_ns(kSystemCalls, cpu);
  run["futex_round_trip_ns"] = futex_round_trip_ns(kFutexRoundTrips, placement);
  show("fresh pages");
  run["first_touch_ns_per_page"] = first_touch_ns_per_page(kPages, cpu);
  show("fdatasync");
  run["fdatasync_ns"] = fdatasync_ns(options.sync_directory, kSyncs);
  return run;
}

void print_limits_table(const Json& report) {
  const Json& median = report["median"];
  const auto line = [](const std::string& name, double value, const char* unit) {
    fmt::print("{:<38} {:>10.1f} {}\n", name, value, unit);
  };
  fmt::print("{}; {}\n\n", machine_line(report),
             runs_line(static_cast<int>(report["runs"].size())));
  line("cache line, round trip", median["cache_line_round_trip_ns"], "ns");
  const auto round_trip_lines = [&](const char* key, const char* name) {
    for (const auto& [size, trip] : median[key].items()) {
      line(fmt::format("{}, {} B, round trip", name, size), trip["round_trip_ns"], "ns");
    }
  };
  const auto stream_lines = [&](const char* key, const char* name) {
    for (const auto& [size, stream] : median[key].items()) {
      line(fmt::format("{}, {} B", name, size), stream["ns_per_record"], "ns per record");
    }
  };
  round_trip_lines("slot_round_trip", "single slot");
  round_trip_lines("slot_round_trip_read_only", "slot mapped read-only");
  stream_lines("ring", "ring");
  stream_lines("ring_copied", "ring, copied payload");
  stream_lines("ring_patient_reader", "ring, patient reader");
  stream_lines("pipe", "pipe");
  stream_lines("unix_socket", "Unix socket");
  round_trip_lines("pipe_round_trip", "pipe");
  round_trip_lines("unix_socket_round_trip", "Unix socket");
  line("copy in cache", median["copy_in_cache_gb_per_s"], "GB/s");
  line("copy outside", median["copy_outside_gb_per_s"], "GB/s");
  line("system call", median["system_call_ns"], "ns");
  line("futex round trip", median["futex_round_trip_ns"], "ns");
  line("first touch of a page", median["first_touch_ns_per_page"], "ns");
  line(fmt::format("fdatasync of 4 KiB ({})",
                   report["parameters"]["sync_file_system"].get<std::string>()),
       median["fdatasync_ns"], "ns");
}

void run_limits(LimitsArguments options) {
  options.json.check();
  options.cpus = chosen_cpus(options.cpus);
  const CopySizes sizes = copy_sizes();
  Json report = new_report({{"runs", options.runs},
                            {"pin", options.cpus},
                            {"round_trips", kRoundTrips},
                            {"kernel_round_trips", kKernelRoundTrips},
                            {"kernel_records", kKernelRecords},
                            {"patient_pauses", kPatientPauses},
                            {"copy_in_cache_bytes", sizes.in_cache},
                            {"copy_outside_bytes", sizes.outside},
                            {"sync_directory", options.sync_directory},
                            {"sync_file_system", file_system_of(options.sync_directory)}});
  report["runs"] = Json::array();
  const SignalScope signals;
  const Progress progress;
  for (int run = 1; run <= options.runs; ++run) {
    report["runs"].push_back(measure_once(options, [&](const std::string& what) {
      progress.show(fmt::format("run {} of {}: {}", run, options.runs, what));
    }));
  }
  progress.clear();
  report["median"] = median_of(report["runs"]);
  if (!options.json.takes_stdout()) print_limits_table(report);
  options.json.write(report);
}

}  // namespace

void add_limits(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand("limits", "What this machine can do at best");
  auto options = std::make_shared<LimitsArguments>();
  command
      ->add_option(
          "--size", options->extra_sizes,
          "Further payload sizes in bytes, for the round trips, the ring, the pipe and the socket")
      ->delimiter(',')
      ->check(CLI::Range(std::size_t{0}, std::size_t{1} << 19))
      ->option_text("BYTES,BYTES...");
  command->add_option("--sync-dir", options->sync_directory, "Where to measure fdatasync")
      ->option_text("DIRECTORY [" + options->sync_directory + "]");
  add_runs_option(*command, options->runs);
  add_pin_option(*command, options->cpus);
  options->json.add_to(*command);
  command->footer(
      "The ring's writer makes the payload in place, or copies it from memory of its own. The "
      "reader spins on the next record; the patient one pauses 1000 times between two looks, which "
      "suits throughput and not latency.\n\n"
      "Pipe and Unix stream socket: one write(2) for each message, and a reader that takes up to "
      "64 "
      "KiB at a time. Both sides block, in the round trips too.\n\n"
      "Example:\n  leat bench limits --pin 0,1 --json=limits.json");
  command->callback([options] { run_limits(*options); });
}

}  // namespace leat::bench
