// Calls a function when a descriptor of the library becomes readable: a wait_fd() or room_fd(), which
// somebody else owns.
//
//     FdWatcher watcher{loop, *member.wait_fd(), [this] { deal(); }};
//     watch.arm();                       // one call for each arm()
//
// Belongs to the thread of its event loop. The descriptor must outlive it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <memory>

namespace leat::broker {

class FdWatcher {
 public:
  FdWatcher(boost::asio::io_context& loop, int fd, std::function<void()> on_readable)
      : state_{std::make_shared<State>(loop, fd, std::move(on_readable))} {}
  FdWatcher(FdWatcher&&) noexcept = default;
  FdWatcher& operator=(FdWatcher&&) = delete;
  ~FdWatcher() {
    if (state_ == nullptr) return;
    state_->on_readable = nullptr;
    state_->descriptor.release();  // Ends the wait.
  }

  void arm() {
    if (state_->is_armed) return;
    state_->is_armed = true;
    state_->descriptor.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                                  [state = state_](const auto& error) {
                                    state->is_armed = false;
                                    // A copy, because the call may end the watch.
                                    const auto call = error ? nullptr : state->on_readable;
                                    if (call) call();
                                  });
  }

 private:
  struct State {
    State(boost::asio::io_context& loop, int fd, std::function<void()> call)
        : descriptor{loop, fd}, on_readable{std::move(call)} {}
    boost::asio::posix::stream_descriptor descriptor;
    std::function<void()> on_readable;
    bool is_armed = false;
  };
  std::shared_ptr<State> state_;  // Null once moved from.
};

}  // namespace leat::broker
