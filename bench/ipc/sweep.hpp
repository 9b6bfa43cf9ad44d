// The parts of `leat bench ipc --sweep` that do not measure: sizes, files, progress.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "bench/output/output.hpp"

namespace leat::bench::ipc {

// "sizes=8,100,64KiB", or "sizes=1..64KiB": from the first size by factors of four up to the last,
// which is always included. Throws Failure if the text is neither.
std::vector<std::size_t> sweep_sizes(const std::string& sweep, std::size_t max_size);

// Where a sweep writes its results, one file for each step.
class SweepDirectory {
 public:
  // Creates the directory if it is missing.
  explicit SweepDirectory(std::string path);

  // Whether this build has already measured the step, with these parameters.
  bool has(const std::string& step, const Json& parameters) const;
  // Atomically, so that a sweep that is stopped leaves no incomplete file.
  void write(const std::string& step, const Json& report) const;

 private:
  std::string file_of(const std::string& step) const;
  std::string path_;
};

// The progress of a sweep.
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
