// What a producer or a consumer has measured, in LightQ's lines.
//
//     RunReport run;
//     run.start(); … run.add(message.size()); … run.end();
//     print_old(run, "sent");
//
// LightQ cut seconds to whole ones, so that its rates were too high. Here they are not cut.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace leat::lightq_tool {

struct RunReport {
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  std::int64_t started_ms = 0;  // Since 1970, as the next two.
  std::int64_t ended_ms = 0;
  std::int64_t producer_started_ms = 0;  // Of a consumer: what the first message says; 0: nothing.
  double seconds = 0;

  void start();
  void add(std::size_t size) noexcept {
    ++messages;
    bytes += size;
  }
  void end();

  double messages_per_second() const noexcept;
  double mib_per_second() const noexcept;

 private:
  std::chrono::steady_clock::time_point began_;
};

std::int64_t now_ms();

// The lines of LightQ's first program; `what`: "sent" or "received".
void print_old(const RunReport& run, const std::string& what);
// Those of lightq-producer, for a topic, and of lightq-consumer. May be called by several threads.
void print_produced(const RunReport& run, const std::string& topic);
void print_consumed(const RunReport& run);

}  // namespace leat::lightq_tool
