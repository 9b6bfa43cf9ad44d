// Calls a function once, some time from now.
//
//     Timer timer{loop};
//     timer.start(10ms, [this] { look(); });      // instead of what it was started for before
//     timer.stop();
//
// Most timers wait for somebody else. So if the loop itself stands still meanwhile, for more than 100 ms, what arrived in
// that time comes first: the call is made only after another 100 ms (leat/base/own_pause.hpp).
//
// Once it is stopped, started again or gone, it does not call for what was before. Belongs to the thread of its event
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

#include "leat/base/clock.hpp"
#include "leat/base/own_pause.hpp"

namespace leat::broker {

class Timer {
 public:
  explicit Timer(const boost::asio::any_io_executor& loop)
      : state_{std::make_shared<State>(loop)} {}
  explicit Timer(boost::asio::io_context& loop) : Timer{loop.get_executor()} {}
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer() { stop(); }

  void start(std::chrono::milliseconds time, std::function<void()> call) {
    State& state = *state_;
    state.call = std::move(call);
    state.time_ns = std::chrono::nanoseconds{time}.count();
    state.began_ns = detail::now_ns();
    state.pause.begin(state.began_ns);
    wait(state_, ++state.turn);
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
    std::int64_t time_ns = 0;
    std::int64_t began_ns = 0;
    detail::OwnPause pause;
  };

  // In steps, so that it notices also a standstill in the middle.
  static void wait(const std::shared_ptr<State>& state, std::uint64_t turn) {
    const std::int64_t now = detail::now_ns();
    const std::int64_t end =
        std::max(state->began_ns + state->time_ns, state->pause.judges_again_ns(state->time_ns));
    const std::int64_t step = std::max(detail::OwnPause::kLong, state->time_ns / 4);
    const std::int64_t time = std::clamp<std::int64_t>(end - now, 0, step);
    state->pause.look(now);
    state->pause.sleep_for(std::max<std::int64_t>(time, 1));
    // Ends the wait of before.
    state->clock.expires_after(std::chrono::nanoseconds{time});
    state->clock.async_wait([state, turn](const boost::system::error_code& error) {
      // It may have run out just before it was stopped.
      if (error || state->turn != turn || state->call == nullptr) return;
      const std::int64_t woke = detail::now_ns();
      state->pause.look(woke);
      if (!state->pause.is_late(woke, state->began_ns, state->time_ns)) return wait(state, turn);
      std::exchange(state->call, nullptr)();
    });
  }

  std::shared_ptr<State> state_;
};

}  // namespace leat::broker
