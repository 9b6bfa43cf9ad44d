// What the runs of a result say about noise: how far they lie apart, and which results are tied.
//
//     if (tied(pipe, fifo, &Figures::p50_ns)) …  // no telling which is faster
//
// The charts draw the range of the runs as an error bar; two results are tied if their ranges overlap.
#pragma once

#include <optional>

#include "result_set.hpp"

namespace leat::bench {

struct Range {
  double low = 0, high = 0;
};

// What results of a pattern are ranked by: messages per second one way, else p50.
Figure rank_figure(Pattern pattern);

// From the smallest to the largest of the runs. None if there are fewer than two, or one lacks the figure.
std::optional<Range> range_of_runs(const Measurement& result, Figure figure);

// Whether the ranges overlap. False without a range: nothing is known about noise then.
bool tied(const Measurement& a, const Measurement& b, Figure figure);

// The width of the range, as a part of the median of the runs.
std::optional<double> spread_of(const Measurement& result);

}  // namespace leat::bench
