// How fast counters rise: what each was at the last look, compared with what it is at this one.
//
//     RateMeter meter;
//     meter.sample(now);  meter.rise("news", 100);       // nothing yet
//     meter.sample(now + 2s);  meter.rise("news", 150);  // 25 a second
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace leat::cli {

class RateMeter {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Begins a look.
  void sample(Time now) {
    before_ = std::exchange(now_, {});
    seconds_ = std::chrono::duration<double>(now - time_).count();
    time_ = now;
  }

  // The counter is `count` now. Returns by how much it rose since the look before, per second; nothing
  // if it was not there. One that fell began anew, and counts as 0.
  std::optional<double> rise(const std::string& name, std::uint64_t count) {
    now_[name] = count;
    const auto found = before_.find(name);
    if (found == before_.end() || seconds_ <= 0) return std::nullopt;
    const std::uint64_t risen = count > found->second ? count - found->second : 0;
    return static_cast<double>(risen) / seconds_;
  }

 private:
  std::map<std::string, std::uint64_t> before_;
  std::map<std::string, std::uint64_t> now_;
  Time time_;
  double seconds_ = 0;  // between the two looks
};

}  // namespace leat::cli
