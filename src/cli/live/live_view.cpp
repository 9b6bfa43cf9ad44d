#include "live_view.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <stdio_ext.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "tool/failure.hpp"
#include "tool/terminal.hpp"

namespace leat::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kInterval{1};

// Over what was there before, and no more than fits.
std::string in_place(std::string_view text) {
  const std::size_t width = tool::terminal_width();
  const std::size_t height = tool::terminal_height();
  std::size_t rows_left = height == 0 ? text.size() : height - 1;
  std::string screen = "\033[H";  // To the top.
  while (!text.empty() && rows_left != 0) {
    const std::string_view line = text.substr(0, text.find('\n'));
    screen += tool::clipped(line, width) + "\033[K\n";  // And the rest of the line empty.
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    --rows_left;
  }
  return screen + "\033[J";  // And all below.
}

}  // namespace

LiveView::LiveView(Mode mode)
    : is_in_place_{mode != Mode::lines && tool::has_cursor()},
      separator_{mode == Mode::lines ? "" : "\n"},
      next_{Clock::now() + kInterval} {
  if (!is_in_place_) return;
  fmt::print("\033[2J");  // An empty screen.
  termios terminal{};
  if (mode != Mode::with_keys || ::tcgetattr(STDIN_FILENO, &terminal) != 0) return;
  signals_.set_terminal_at_end(terminal_before_.emplace(terminal));
  reads_keys_ = true;
  take_keys();
}

LiveView::~LiveView() {
  if (terminal_before_) set_terminal(*terminal_before_);
}

void LiveView::take_keys() {
  constexpr tcflag_t kLines = ICANON | ECHO;
  termios terminal{};
  if (!reads_keys_ || ::tcgetattr(STDIN_FILENO, &terminal) != 0) return;
  if ((terminal.c_lflag & kLines) == 0) return;
  terminal.c_lflag &= ~kLines;
  set_terminal(terminal);
}

void LiveView::show(const std::string& text) {
  take_keys();
  if (is_in_place_)
    std::fputs(in_place(text).c_str(), stdout);
  else
    fmt::print("{}{}", is_first_ ? "" : separator_, text);
  is_first_ = false;
  if (std::fflush(stdout) == 0) return;
  if (!signals_.stopped()) throw tool::system_failure("cannot write to standard output");
  ::__fpurge(stdout);  // Nobody reads it: that is no reason to stay.
  std::clearerr(stdout);
}

bool LiveView::wait() {
  const bool goes_on = wait_until(next_);
  next_ = std::max(next_ + kInterval, Clock::now());
  return goes_on;
}

bool LiveView::wait_for(std::chrono::milliseconds time) { return wait_until(Clock::now() + time); }

bool LiveView::wait_until(Clock::time_point time) {
  while (!signals_.stopped()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(time - Clock::now());
    if (left.count() <= 0) return true;
    pollfd input{STDIN_FILENO, POLLIN, 0};
    // A signal interrupts it: StopOnSignal.
    const int ready = ::poll(&input, reads_keys_ ? 1 : 0, static_cast<int>(left.count()));
    if (ready > 0 && is_ended_by_key()) return false;
  }
  return false;
}

bool LiveView::is_ended_by_key() {
  char key = 0;
  if (::read(STDIN_FILENO, &key, 1) != 1) reads_keys_ = false;  // The terminal has gone.
  return key == 'q' || key == 'Q';
}

}  // namespace leat::cli
