// What is shown anew every second, until Ctrl-C: on a terminal in place, elsewhere one after the other.
//
//     LiveView view{LiveView::Mode::in_place};
//     do view.show(text()); while (view.wait());
//
// One per process, made by the main thread before other threads (StopOnSignal).
#pragma once

#include <termios.h>

#include <chrono>
#include <optional>
#include <string>

#include "cli/stop_on_signal.hpp"

namespace leat::cli {

class LiveView {
 public:
  enum class Mode {
    lines,  // one after the other everywhere
    in_place,
    with_keys  // in place, and the key q ends it, too
  };
  // How long it takes from a first look, with which nothing is shown, to the first rates.
  static constexpr std::chrono::milliseconds kFirstPoll{100};

  explicit LiveView(Mode mode);
  ~LiveView();
  LiveView(const LiveView&) = delete;
  LiveView& operator=(const LiveView&) = delete;

  void show(const std::string& text);
  // Waits for the next second. False if it is to end.
  bool wait();
  // Waits for so long. False if it is to end.
  bool wait_for(std::chrono::milliseconds time);

 private:
  bool wait_until(std::chrono::steady_clock::time_point time);
  // Has keys come at once, and unseen; again after a shell had the terminal (fg).
  void take_keys();
  // Whether the key that was pressed ends it.
  bool is_ended_by_key();

  std::optional<termios> terminal_before_;  // Before `signals_`, which knows its address.
  StopOnSignal signals_;
  const bool is_in_place_;
  const char* const separator_;  // Between texts that are not shown in place.
  bool is_first_ = true;
  bool reads_keys_ = false;
  std::chrono::steady_clock::time_point next_;
};

}  // namespace leat::cli
