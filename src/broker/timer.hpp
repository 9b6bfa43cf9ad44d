// Calls a function once, some time from now.
//
//     Timer timer{loop};
//     timer.start(10ms, [this] { look(); });      // instead of what it was started for before
//     timer.stop();
//
// Once it is stopped, started again or gone, it does not call for what was before. Belongs to the thread of its event
// loop.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

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
    state_->call = std::move(call);
    state_->clock.expires_after(time);  // Ends the wait of before.
    state_->clock.async_wait(
        [state = state_, turn = ++state_->turn](const boost::system::error_code& error) {
          // It may have run out just before it was stopped.
          if (error || state->turn != turn) return;
          if (const auto due = std::exchange(state->call, nullptr)) due();
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

}  // namespace leat::broker
