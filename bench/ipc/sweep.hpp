// The parts of `leat bench ipc --sweep` that do not measure.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "bench/report.hpp"

namespace leat::bench::ipc {

// "sizes=8,100,64KiB", or "sizes=1..64KiB": from the first in steps of four times up to the last,
// which is there in any case. Throws Failure if it is neither.
std::vector<std::size_t> sweep_sizes(const std::string& sweep, std::size_t max_size);

// Where a sweep leaves its results, one file for each step.
class SweepDirectory {
 public:
  // Makes it if it is missing.
  explicit SweepDirectory(std::string path);

  // Whether this build has measured the step already, with these parameters.
  bool has(const std::string& step, const Json& parameters) const;
  // All of it or nothing, so that a sweep that is stopped leaves no half of a file.
  void write(const std::string& step, const Json& report) const;

 private:
  std::string file_of(const std::string& step) const;
  std::string path_;
};

// How far a sweep is.
class SweepClock {
 public:
  explicit SweepClock(std::size_t steps) : left_{steps} {}
  void skip() { --left_; }
  void step() {
    --left_;
    ++done_;
  }
  // "7 steps left, about 12 min"
  std::string text() const;

 private:
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  std::size_t left_;
  std::size_t done_ = 0;
};

}  // namespace leat::bench::ipc
