// Every figure in the report is written in this style: at most three digits, a space, a unit.
//
//     time_text(12'345)   12.3 µs      rate_text(2.5e6)   2.5 M/s      size_text(4096)   4 KiB
#pragma once

#include <cstdint>
#include <string>

namespace leat::bench {

std::string time_text(double ns);
std::string rate_text(double per_second);
std::string bytes_rate_text(double bytes_per_second);
// 0.34 is "34 %".
std::string percent_text(double part);
// Not rounded: 1000 B stays 1000 B.
std::string size_text(std::uint64_t bytes);

}  // namespace leat::bench
