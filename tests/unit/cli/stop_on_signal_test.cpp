// If these failed, a command would end without a word when a signal comes twice, or could not be ended at all, or
// would leave the terminal without echo.
#include "cli/stop_on_signal.hpp"

#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

namespace leat::cli {
namespace {

using namespace std::chrono_literals;

bool is_echoing(int terminal) {
  termios settings{};
  return ::tcgetattr(terminal, &settings) == 0 && (settings.c_lflag & ECHO) != 0;
}

// A command that looks at no token, on a terminal whose echo it has turned off.
[[noreturn]] void run_command(int terminal, int ready) {
  for (const int number : {SIGINT, SIGTERM})
    ::signal(number, SIG_DFL);  // A shell may have ignored them.
  ::dup2(terminal, STDIN_FILENO);
  termios before{};
  ::tcgetattr(STDIN_FILENO, &before);
  StopOnSignal signals;
  signals.set_terminal_at_end(before);
  termios silent = before;
  silent.c_lflag &= ~static_cast<tcflag_t>(ECHO);
  ::tcsetattr(STDIN_FILENO, TCSANOW, &silent);
  (void)!::write(ready, "", 1);
  while (true) std::this_thread::sleep_for(1h);
}

class StopOnSignalTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int ready[2];
    ASSERT_EQ(::openpty(&ours_, &theirs_, nullptr, nullptr, nullptr), 0);
    ASSERT_EQ(::pipe(ready), 0);
    child_ = ::fork();
    ASSERT_GE(child_, 0);
    if (child_ == 0) run_command(theirs_, ready[1]);
    ::close(ready[1]);
    char byte = 0;
    ASSERT_EQ(::read(ready[0], &byte, 1), 1);
    ASSERT_FALSE(is_echoing(theirs_));
    ::close(ready[0]);
  }
  void TearDown() override {
    if (child_ > 0) {
      ::kill(child_, SIGKILL);
      ::waitpid(child_, nullptr, 0);
    }
    ::close(ours_);
    ::close(theirs_);
  }

  void signal(int number) { ASSERT_EQ(::kill(child_, number), 0); }
  // 0 if it goes on.
  int exit_code_within(std::chrono::milliseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    do {
      int status = 0;
      if (::waitpid(child_, &status, WNOHANG) == child_) {
        child_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
      }
      std::this_thread::sleep_for(1ms);
    } while (std::chrono::steady_clock::now() < end);
    return 0;
  }

  int ours_ = -1, theirs_ = -1;
  ::pid_t child_ = -1;
};

TEST_F(StopOnSignalTest, TakesSignalsThatComeTogetherForOne) {
  signal(SIGINT);
  signal(SIGINT);
  signal(SIGTERM);
  EXPECT_EQ(exit_code_within(100ms), 0);
}

TEST_F(StopOnSignalTest, ALaterOneEndsTheProcessAndRestoresTheTerminal) {
  signal(SIGTERM);
  EXPECT_EQ(exit_code_within(600ms), 0);
  int code = 0;
  for (int tries = 0; code == 0 && tries < 30;
       ++tries) {  // A busy machine may take the first one late.
    signal(SIGINT);
    code = exit_code_within(600ms);
  }
  EXPECT_EQ(code, 128 + SIGINT);
  EXPECT_TRUE(is_echoing(theirs_));
}

}  // namespace
}  // namespace leat::cli
