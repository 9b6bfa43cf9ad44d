// Call a function once, some time from now.
//
//     Timer timer{loop};
//     timer.start(10ms, [this] { check(); });      // instead of what it was started for before
//     timer.stop();
//
//     PatientTimer silence{loop};                 // judges somebody else
//     silence.start(10s, [this] { close("no login in time"); });
//
// If the loop itself stands still for more than 100 ms, what arrived meanwhile comes first for a PatientTimer: it calls only
// after another 100 ms (leat/base/own_pause.hpp). What judges nobody is to go on at once, so a Timer knows no standstills.
//
// Once one is stopped, started again or gone, it does not call for what was before. They belong to the thread of their event
// loop.
#pragma once

#include <algorithm>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "leat/os/os.hpp"

namespace leat::broker {

class Timer {
 public:
  explicit Timer(const boost::asio::any_io_executor& loop)
      : state_{std::make_shared<State>(loop)} {}
  explicit Timer(boost::asio::io_context& loop) : Timer{loop.get_executor()} {}
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer() { stop(); }

  void start(std::chrono::nanoseconds time, std::function<void()> call) {
    State& state = *state_;
    state.call = std::move(call);
    // Ends the wait of before.
    state.clock.expires_after(time);
    state.clock.async_wait(
        [state = state_, turn = ++state.turn](const boost::system::error_code& error) {
          // It may have run out just before it was stopped.
          if (error || state->turn != turn || state->call == nullptr) return;
          std::exchange(state->call, nullptr)();
        });
  }
  void stop() {
    state_->call = nullptr;
    state_->clock.cancel();
  }
  bool is_running() const noexcept { return state_->call != nullptr; }

 private:
  struct State {
    explicit State(const boost::asio::any_io_executor& loop) : clock{loop} {}
    boost::asio::steady_timer clock;
    std::function<void()> call;
    std::uint64_t turn = 0;
  };

  std::shared_ptr<State> state_;
};

class PatientTimer {
 public:
  explicit PatientTimer(const boost::asio::any_io_executor& loop) : timer_{loop} {}
  explicit PatientTimer(boost::asio::io_context& loop) : timer_{loop} {}

  void start(std::chrono::milliseconds time, std::function<void()> call) {
    call_ = std::move(call);
    time_ns_ = std::chrono::nanoseconds{time}.count();
    began_ns_ = os::now_ns();
    pause_.begin(began_ns_);
    wait(began_ns_);
  }
  void stop() {
    timer_.stop();
    call_ = nullptr;
  }
  bool is_running() const noexcept { return timer_.is_running(); }

 private:
  // In steps, so that it notices also a standstill in the middle.
  void wait(std::int64_t now) {
    const std::int64_t end =
        std::max(began_ns_ + time_ns_, now + pause_.check_again_in_ns(time_ns_));
    const std::int64_t step = std::max(os::OwnPause::kLong, time_ns_ / 4);
    const std::int64_t time = std::clamp<std::int64_t>(end - now, 0, step);
    pause_.sleep_for(std::max<std::int64_t>(time, 1));
    timer_.start(std::chrono::nanoseconds{time}, [this] {
      const std::int64_t woke = os::now_ns();
      pause_.check(woke);
      if (!pause_.is_late(woke, began_ns_, time_ns_)) return wait(woke);
      std::exchange(call_, nullptr)();  // Perhaps the end of this timer.
    });
  }

  Timer timer_;
  std::function<void()> call_;
  std::int64_t time_ns_ = 0;
  std::int64_t began_ns_ = 0;
  os::OwnPause pause_;
};

}  // namespace leat::broker
