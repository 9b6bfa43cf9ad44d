#include "run_report.hpp"

#include <fmt/format.h>

#include <cstdio>

namespace leat::lightq_tool {
namespace {

// In one piece, so that the lines of several threads stay together.
void print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace

std::int64_t now_ms() {
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(since_1970).count();
}

void RunReport::start() {
  began_ = std::chrono::steady_clock::now();
  started_ms = now_ms();
}

void RunReport::end() {
  seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  ended_ms = now_ms();
}

double RunReport::messages_per_second() const noexcept {
  return seconds > 0 ? static_cast<double>(messages) / seconds : 0;
}

double RunReport::mib_per_second() const noexcept {
  constexpr double kMiB = 1024 * 1024;
  return seconds > 0 ? static_cast<double>(bytes) / kMiB / seconds : 0;
}

void print_old(const RunReport& run, const std::string& what) {
  print(
      fmt::format("Total Messages:{}, Time Taken:{:.6g} seconds.\n"
                  "Start Time: {}, End Time:{}\n"
                  "{:.0f} messages per seconds.\n"
                  "{} bytes {}\n"
                  "{:.4f} MB per second.\n",
                  run.messages, run.seconds, run.started_ms, run.ended_ms,
                  run.messages_per_second(), run.bytes, what, run.mib_per_second()));
}

void print_produced(const RunReport& run, const std::string& topic) {
  print(
      fmt::format("Topic[{0}], Producer: first message sent timestamp [{1}]\n"
                  "Topic[{0}], Producer: last message sent timestamp [{2}]\n"
                  "Topic[{0}], Total message sent [{3}] in [{4:.2f}] sec\n"
                  "Topic[{0}], Average messages sent per second [{5:.2f}]\n"
                  "Topic[{0}], Average bandwidth sent per second [{6:.4f}] MB\n",
                  topic, run.started_ms, run.ended_ms, run.messages, run.seconds,
                  run.messages_per_second(), run.mib_per_second()));
}

void print_consumed(const RunReport& run) {
  std::string text = fmt::format(
      "First message:  producer start time [{}], consumer start time [{}]\n"
      "Total message received [{}] in [{:.2f}]sec\n"
      "Average messages received per second [{:.2f}]\n"
      "Total bytes received [{}], average bandwidth received per second [{:.4f}]MB\n"
      "Last Message: consumer endtime [{}]\n",
      run.producer_started_ms, run.started_ms, run.messages, run.seconds, run.messages_per_second(),
      run.bytes, run.mib_per_second(), run.ended_ms);
  if (run.producer_started_ms != 0 && run.messages != 0) {
    constexpr double kNsPerMs = 1e6;
    const std::int64_t whole_ms = run.ended_ms - run.producer_started_ms;
    text += fmt::format(
        "Consumer first message latency [{}] ms\n"
        "Consumer last message received -   producer first message sent timestamp [{}]\n"
        "Average latency [{:.2f}] nano sec\n",
        run.started_ms - run.producer_started_ms, whole_ms,
        static_cast<double>(whole_ms) * kNsPerMs / static_cast<double>(run.messages));
  }
  print(text);
}

}  // namespace leat::lightq_tool
