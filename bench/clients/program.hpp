// A program that somebody else wrote, run to its end: what it prints, or one sentence about what went wrong.
//
//     const std::string line = output_of(signals, {.name = "pipe", .path = "/bin/…"});
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "bench/harness/processes.hpp"

namespace leat::bench::clients {

struct Program {
  std::string name;  // In messages: "the python program failed: …".
  std::string path;
  std::vector<std::string> arguments;  // Without its name.
  std::string topic_directory;         // Its LEAT_DIR.
  int cpu = kAnyCpu;
  std::chrono::seconds time_limit{120};
};

// Runs it, and returns what it wrote to stdout, of which there is little. Throws Failure if it cannot be run,
// fails, or takes too long; then it is killed, with all that it started and that is in its process group.
std::string output_of(const SignalScope& signals, const Program& program);

}  // namespace leat::bench::clients
