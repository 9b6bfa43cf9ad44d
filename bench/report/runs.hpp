// What the runs of a result say about noise: how far they lie apart, and which results are tied.
//
//     if (tied(pipe, fifo, &Figures::p50_ns)) …  // no telling which is faster
//
// The charts draw the range of the runs as an error bar. Overlapping ranges alone do not make a tie: one
// slow run is enough for the range of a fast result to reach that of a result half as fast.
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

// The larger median of a tie, divided by the smaller one, is at most this.
inline constexpr double kTieRatio = 1.1;
// What tied() checks, for readers of the page.
inline constexpr char kTieRule[] =
    "Two results are tied if their medians differ by at most 10 % and the ranges of their runs "
    "overlap.";
static_assert(kTieRatio == 1.1);  // As the rule says.

// False without a range: nothing is known about noise then.
bool tied(const Measurement& a, const Measurement& b, Figure figure);

// The width of the range of rank_figure(), as a part of its upper end: from 0 to 1, however far away one
// run is.
std::optional<double> spread_of(const Measurement& result);

}  // namespace leat::bench
