// Runs a function whenever the process reaches a labelled step. For tests
// built with LEAT_TEST_STEPS.
//
//     const Moment moment{"take:moved", [] { ::raise(SIGKILL); }};
//     (void)member.receive(kPatience);
//
// Only one may exist at a time. The function may reach the same step again.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

#include "leat/base/crash_point.hpp"

namespace leat::testing {

class Moment {
 public:
  Moment(std::string_view step, std::function<void()> at) {
    step_ = step;
    at_ = std::move(at);
    times_ = 0;
    detail::crash_point_hook = [](const char* name) {
      if (step_ != name) return;
      ++times_;
      at_();
    };
  }
  ~Moment() { detail::crash_point_hook = nullptr; }
  Moment(const Moment&) = delete;
  Moment& operator=(const Moment&) = delete;

  // How often the step was reached.
  std::uint64_t times() const noexcept { return times_; }

 private:
  inline static std::string_view step_;
  inline static std::function<void()> at_;
  inline static std::uint64_t times_ = 0;
};

}  // namespace leat::testing
