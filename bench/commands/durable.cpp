// leat bench log --durable: records per second until they are on disk, and other costs of durable
// topics.
//
// Everything is measured in turns with its floor: what write(2), or pread and CRC32C, take for the same
// bytes in the same run. Ratios are taken run by run, because a disk's speed changes from one second to
// the next.
#include "durable.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <optional>
#include <utility>

#include "bench/floors/disk.hpp"
#include "bench/floors/floors.hpp"
#include "bench/floors/kernel.hpp"
#include "bench/floors/sqlite.hpp"
#include "bench/leat/durable.hpp"
#include "bench/output/units.hpp"
#include "leat/format/store_layout.hpp"

namespace leat::bench {
namespace {

constexpr std::uint64_t kPublishRate = 1'000'000;
constexpr std::uint64_t kFiles = 1000;
constexpr std::uint64_t kSmallFile = 64 << 10;     // the least
constexpr std::uint64_t kLargeRecord = 256 << 10;  // Has a frame, and so a small file, of its own.

std::string title_of(const LogOptions& log, const DurableLevel& level) {
  std::string title =
      fmt::format("{}, {} publisher{}", log.mode == Mode::exclusive ? "exclusive" : "shared",
                  log.publishers, log.publishers == 1 ? "" : "s");
  if (log.batch > 1) title += fmt::format(", batches of {}", log.batch);
  if (log.rate != 0) title += fmt::format(", {}/s", log.rate);
  if (level.recycles) title += ", files recycled";
  if (level.in_flight != 0) title += fmt::format(", {} in flight", level.in_flight);
  if (level.in_flight != 0 && log.publishers == 1 && !level.publisher_archives)
    title += ", another archiver";
  return title;
}

const char* name_of(Durability durable) {
  if (durable == Durability::fsync) return "fsync";
  return durable == Durability::interval ? "interval" : "os";
}

// One line of the table.
struct Row {
  std::string scenario;
  std::string title;
  Json parameters;
  std::function<Json()> measure;  // One turn, its floor included.
  std::string figure;             // The number in the column of that name,
  std::function<std::string(double)> text;
  std::optional<double> target;  // of the ratio, or of the figure if there is no ratio
};

Json parameters_of(const LogOptions& log, const DurableLevel& level) {
  return {{"size", log.size},
          {"durability", name_of(level.durable)},
          {"sync_interval_ns", level.sync_interval.count()},
          {"in_flight", level.in_flight},
          {"publisher_archives", level.publisher_archives},
          {"recycles", level.recycles},
          {"records", log.records},
          {"publishers", log.publishers},
          {"mode", log.mode == Mode::exclusive ? "exclusive" : "shared"},
          {"batch", log.batch},
          {"rate", log.rate},
          {"verify", log.verify == Verify::full ? "full" : "ends"},
          {"capacity_bytes", log.capacity_bytes}};
}

std::optional<double> target_of(const LogOptions& log, const DurableLevel& level) {
  if (log.rate != 0 || level.durable == Durability::interval) return {};
  if (level.in_flight == 64 && level.publisher_archives) return 0.7;
  if (level.in_flight == 8 && log.publishers == 8) return 0.35;
  if (level.in_flight != 0 || level.durable == Durability::fsync || log.publishers != 1) return {};
  if (log.size == 100) return level.recycles ? 0.33 : 0.25;
  if (log.size == 1024) return level.recycles ? 0.7 : 0.4;
  return {};
}

// What the kernel takes for the same bytes: with an fdatasync behind what all publishers have in flight, or
// without.
DiskCost floor_of(const LogOptions& log, const DurableLevel& level, const DurablePlan& plan) {
  const std::uint64_t bytes = log.records * log.size;
  if (level.in_flight == 0) return file_write_cost(plan.data_directory, bytes, plan.cpus.back());
  return file_sync_cost(plan.data_directory, bytes,
                        std::uint64_t{level.in_flight} * log.publishers * log.size,
                        plan.cpus.back());
}

Row log_row(const DurablePlan::Case& one, const DurablePlan& plan) {
  const auto& [log, level] = one;
  Row row{"log",           title_of(log, level), parameters_of(log, level), {}, "bytes_per_second",
          bytes_rate_text, target_of(log, level)};
  row.measure = [log, level, &plan] {
    const auto payload = static_cast<double>(log.size);
    const DiskCost floor = floor_of(log, level, plan);
    const DurableCost cost = measure_durable(log, level, plan.data_directory, plan.cpus);
    const double per_second = cost.messages.per_second();
    return Json{{"records_per_second", per_second},
                {"bytes_per_second", per_second * payload},
                {"floor_bytes_per_second", floor.bytes_per_second},
                {"ratio", per_second * payload / floor.bytes_per_second},
                {"archiver_cpu_ns_per_byte", cost.archiver_cpu_ns_per_byte},
                {"floor_cpu_ns_per_byte", floor.cpu_ns_per_byte},
                {"archiver_cpu_ratio", cost.archiver_cpu_ns_per_byte / floor.cpu_ns_per_byte},
                {"publisher_cpu_ns_per_record", cost.messages.sender_cpu_ns},
                {"publisher_wait_ns_per_record", cost.messages.sender_wait_ns},
                {"archiver_changes", cost.archiver_changes}};
  };
  return row;
}

// What publishing costs while the archiver keeps up, against a topic in memory.
Row publish_row(const DurablePlan::Case& one, const DurablePlan& plan) {
  auto [log, level] = one;
  log.rate = kPublishRate;
  log.records = plan.records != 0 ? plan.records : kPublishRate / 2;
  Row row{"publish", "publisher's CPU at a rate",   parameters_of(log, level),
          {},        "publisher_cpu_ns_per_record", time_text,
          1.1};
  row.measure = [log, level, &plan] {
    const double floor = measure_log(log, plan.cpus).sender_cpu_ns;
    const double cost =
        measure_durable(log, level, plan.data_directory, plan.cpus).messages.sender_cpu_ns;
    return Json{{"publisher_cpu_ns_per_record", cost},
                {"floor_cpu_ns_per_record", floor},
                {"ratio", cost / floor}};
  };
  return row;
}

// The same records in SQLite, 1000 a transaction, at the level that promises the same.
Row sqlite_row(const DurablePlan::Case& one, const DurablePlan& plan) {
  constexpr std::uint32_t kTransaction = 1000;
  auto [log, level] = one;
  const SqliteLevel peer = level.durable == Durability::fsync      ? SqliteLevel::full
                           : level.durable == Durability::interval ? SqliteLevel::normal
                                                                   : SqliteLevel::off;
  if (level.durable == Durability::fsync) {
    level.in_flight = kTransaction;
    level.publisher_archives = true;  // SQLite writes in the caller's process, too.
    log.records = plan.records != 0 ? plan.records : 200 * kTransaction;
  }
  Row row{"sqlite",
          fmt::format("{}, against SQLite {}", title_of(log, level), name_of(peer)),
          parameters_of(log, level),
          {},
          "records_per_second",
          rate_text,
          level.durable == Durability::fsync ? 3 : 5};
  row.measure = [log, level, peer, &plan] {
    const auto place = make_data_directory(plan.data_directory);
    const double floor = sqlite_records_per_second(
        place.path(), std::min(log.records, 200 * std::uint64_t{kTransaction}), log.size,
        kTransaction, peer, plan.cpus.back());
    const double per_second =
        measure_durable(log, level, plan.data_directory, plan.cpus).messages.per_second();
    return Json{{"records_per_second", per_second},
                {"sqlite_records_per_second", floor},
                {"ratio", per_second / floor}};
  };
  return row;
}

Row replay_row(const StoredTopic& topic, const Json& parameters, const DurablePlan& plan) {
  Row row{"replay", "replay from the beginning", parameters, {}, "records_per_second", rate_text,
          0.5};
  row.measure = [&topic, &plan] {
    const int cpu = plan.cpus.back();
    std::uint64_t bytes = topic.bytes_on_disk();
    const DiskCost floor = file_read_cost(topic.files(), cpu);
    const double per_second = topic.replayed_per_second(cpu);
    const double bytes_per_second =
        per_second * static_cast<double>(bytes) / static_cast<double>(topic.records());
    return Json{{"records_per_second", per_second},
                {"bytes_per_second", bytes_per_second},
                {"floor_bytes_per_second", floor.bytes_per_second},
                {"ratio", bytes_per_second / floor.bytes_per_second}};
  };
  return row;
}

Row recovery_row(const StoredTopic& topic, const Json& parameters, const DurablePlan& plan) {
  Row row{"recovery", "search of an unclean tail", parameters,
          {},         "bytes_per_second",          bytes_rate_text,
          0.5};
  row.measure = [&topic, &plan] {
    const int cpu = plan.cpus.back();
    const DiskCost floor = file_read_cost(topic.files(), cpu);
    const double bytes_per_second = topic.searched_bytes_per_second(cpu);
    return Json{{"bytes_per_second", bytes_per_second},
                {"floor_bytes_per_second", floor.bytes_per_second},
                {"ratio", bytes_per_second / floor.bytes_per_second}};
  };
  return row;
}

Row open_row(const StoredTopic& topic, const Json& parameters, const DurablePlan& plan) {
  Row row{"open",     fmt::format("clean open of {} files", topic.files().size()),
          parameters, {},
          "open_ns",  time_text,
          {}};
  row.parameters["files"] = topic.files().size();
  row.measure = [&topic, &plan] {
    const double floor = topic.transient_ns(plan.cpus.front());
    const double cost = topic.open_ns(plan.cpus.front());
    return Json{{"open_ns", cost},
                {"transient_ns", floor},
                {"ratio", cost / floor},
                {"ratio_without_2_ms", std::max(0.0, cost - 2e6) / floor}};
  };
  return row;
}

class Table {
 public:
  Table(const DurablePlan& plan, Json parameters)
      : plan_{plan}, report_(new_report(std::move(parameters))) {
    if (plan.json.takes_stdout()) return;
    fmt::print("{}; {}\nFiles in {}, {}.\n\n", machine_line(report_), runs_line(plan.runs),
               plan.data_directory, file_system_of(plan.data_directory));
    fmt::print("{:<34} {:>5} {:>12} {:>11} {:>6} {:>7} {:>7} {:>8} {:>10}\n", "", "bytes", "",
               "records/s", "ratio", "target", "archiver", "pub CPU", "line");
  }

  // Rows of one table are measured in turns.
  void measure(const std::vector<Row>& rows) {
    std::vector<Json> runs(rows.size(), Json::array());
    std::vector<double> cache_lines_ns;
    for (int run = 0; run <= plan_.runs; ++run) {  // The first is a warm-up.
      cache_lines_ns.push_back(cache_line_round_trip_ns(kCacheLineTrips, {plan_.cpus}));
      for (std::size_t i = 0; i < rows.size(); ++i) {
        progress_.show(fmt::format("run {} of {}: {}", run, plan_.runs, rows[i].title));
        Json result = rows[i].measure();
        if (run > 0) runs[i].push_back(std::move(result));
      }
    }
    progress_.clear();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      Json results = {{"scenario", rows[i].scenario}, {"parameters", rows[i].parameters}};
      results["runs"] = std::move(runs[i]);
      results["median"] = median_of(results["runs"]);
      add_distance(results, {cache_lines_ns.begin() + 1, cache_lines_ns.end()});
      if (!plan_.json.takes_stdout()) print(rows[i], results);
      report_["cases"].push_back(std::move(results));
    }
  }

  void end() {
    if (!plan_.json.takes_stdout()) {
      fmt::print(
          "\nratio: to write(2) of the same payload; in flight: with one fdatasync(2) behind what "
          "all\n"
          "publishers have in flight; replay and recovery: to pread and CRC32C of the same files;\n"
          "SQLite: to its records/s; publishing and opening: to a topic in memory, where less is "
          "better.\n"
          "archiver: its CPU time for a byte of payload, against that of write(2).\n"
          "pub CPU: CPU time of the publishers per record, in nanoseconds.\n{}",
          kDistanceNote);
    }
    plan_.json.write(report_);
  }

 private:
  static void print(const Row& row, const Json& results) {
    const Json& middle = results["median"];
    const auto number = [&](const char* name, const char* format) {
      return middle.contains(name) ? fmt::format(fmt::runtime(format), middle[name].get<double>())
                                   : std::string{};
    };
    fmt::print("{:<34} {:>5} {:>12} {:>11} {:>6} {:>7} {:>7} {:>8} {:>10}\n", row.title,
               row.parameters["size"].get<std::uint64_t>(),
               row.text(middle[row.figure].get<double>()),
               middle.contains("records_per_second")
                   ? rate_text(middle["records_per_second"].get<double>())
                   : "",
               number("ratio", "{:.2f}"), row.target ? fmt::format("{}", *row.target) : "",
               number("archiver_cpu_ratio", "{:.2f}"),
               number("publisher_cpu_ns_per_record", "{:.1f}"), distance_text(results));
    std::fflush(stdout);
  }

  const DurablePlan& plan_;
  Json report_;
  Progress progress_;
};

// Replay, recovery and opening, each with files of its own.
void measure_stored(Table& table, const DurablePlan& plan) {
  const int cpu = plan.cpus.front();
  const std::uint64_t records = plan.records != 0 ? plan.records : usual_durable_records(100);
  const Json parameters = {{"size", 100}, {"records", records}};
  {
    const StoredTopic topic(plan.data_directory, records, 100, TopicOptions{}.file_bytes, true,
                            cpu);
    table.measure({replay_row(topic, parameters, plan)});
  }
  {
    const StoredTopic topic(plan.data_directory, records, 100, 2 * kMaxDurableRun, false, cpu);
    table.measure({recovery_row(topic, parameters, plan)});
  }
  // A file for each record.
  const std::uint64_t files = plan.records != 0 ? std::min(plan.records, kFiles) : kFiles;
  const StoredTopic topic(plan.data_directory, files, kLargeRecord, kSmallFile, true, cpu);
  table.measure({open_row(topic, {{"size", kLargeRecord}, {"records", files}}, plan)});
}

}  // namespace

std::uint64_t usual_durable_records(std::size_t size) {
  return (std::uint64_t{192} << 20) / ((size + 16 + 15) / 16 * 16);
}

DurableLevel parse_level(const std::string& text) {
  constexpr std::string_view kInterval = "interval:";
  if (text == "os") return {};
  if (text == "fsync") return {.durable = Durability::fsync};
  std::optional<std::chrono::nanoseconds> interval;
  if (text.starts_with(kInterval)) {
    std::uint32_t number = 0;
    const char* const end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data() + kInterval.size(), end, number);
    const std::string_view unit{parsed.ptr, static_cast<std::size_t>(end - parsed.ptr)};
    if (unit == "ms") interval = std::chrono::milliseconds{number};
    if (unit == "s") interval = std::chrono::seconds{number};
    if (unit == "m") interval = std::chrono::minutes{number};
  }
  if (!interval || interval->count() < detail::kMinSyncInterval ||
      interval->count() > detail::kMaxSyncInterval)
    throw Failure(
        kExitUsage,
        fmt::format("--durable: '{}' is not a level: write os, interval:20ms or fsync", text));
  return {.durable = Durability::interval, .sync_interval = *interval};
}

std::vector<DurablePlan::Case> usual_durable_cases(const LogOptions& common,
                                                   const DurableLevel& level, bool choose_records) {
  std::vector<DurablePlan::Case> cases;
  if (level.durable == Durability::fsync) {
    constexpr std::uint64_t kRecords = 20'000;
    LogOptions log = common;
    log.mode = Mode::shared;
    if (choose_records) log.records = kRecords;
    for (const std::size_t size : {std::size_t{100}, std::size_t{1024}}) {
      log.size = size;
      for (const auto& [publishers, in_flight] :
           {std::pair{1U, 1U}, {1U, 64U}, {8U, 8U}, {1U, 1000U}}) {
        DurablePlan::Case one{log, level};
        one.log.publishers = publishers;
        one.level.in_flight = in_flight;
        if (in_flight == 1) one.log.records = std::max<std::uint64_t>(log.records / 20, 1);
        // One publisher alone with its topic keeps it; seldom does another process.
        one.level.publisher_archives = publishers == 1;
        cases.push_back(one);
        if (in_flight != 64) continue;
        one.level.publisher_archives = false;
        cases.push_back(one);
      }
    }
    return cases;
  }
  for (const std::size_t size : {std::size_t{100}, std::size_t{1024}}) {
    LogOptions log = common;
    log.size = size;
    if (choose_records) log.records = usual_durable_records(size);
    cases.push_back({log, level});
    log.batch = 16;
    cases.push_back({log, level});
    log.batch = 1;
    log.mode = Mode::shared;
    cases.push_back({log, level});
    log.publishers = 2;
    cases.push_back({log, level});
    if (level.durable != Durability::os) continue;
    DurablePlan::Case recycled = cases[cases.size() - 4];  // The first of this size.
    recycled.level.recycles = true;
    cases.push_back(recycled);
  }
  return cases;
}

void run_durable(const DurablePlan& plan, Json parameters) {
  for (const auto& [log, level] : plan.cases) {
    if (log_bytes_of(log, level) > kMaxDurableRun)
      throw Failure(kExitUsage, fmt::format("{} records of {} bytes are more than {} in a run; use "
                                            "fewer --records or a smaller --capacity",
                                            log.records, log.size, size_text(kMaxDurableRun)));
  }
  const std::string kind = file_system_of(plan.data_directory);
  if (kind == "tmpfs")
    throw Failure(kExitUsage,
                  fmt::format("--data-dir {} is in memory ({})", plan.data_directory, kind));
  const SignalScope signals;
  Table table(plan, std::move(parameters));
  std::vector<Row> rows;
  for (const DurablePlan::Case& one : plan.cases) rows.push_back(log_row(one, plan));
  const Durability durable = plan.cases.front().level.durable;
  if (plan.has_more && durable != Durability::fsync)
    rows.push_back(publish_row(plan.cases.front(), plan));
  if (plan.has_peers) rows.push_back(sqlite_row(plan.cases.front(), plan));
  table.measure(rows);
  if (plan.has_more && durable == Durability::os) measure_stored(table, plan);
  table.end();
}

}  // namespace leat::bench
