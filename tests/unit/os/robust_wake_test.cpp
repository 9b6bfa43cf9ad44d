// If this failed, a signal handler that publishes could make a program's robust mutex unusable
// after the program is killed, or let sleepers miss the death of a publisher.
#include "leat/os/robust_wake.hpp"

#include <signal.h>

#include "testing.hpp"

namespace leat::detail {
namespace {

const void* named() { return robust_list_of_thread().list_op_pending; }

// A signal handler that publishes may interrupt a commit before its wake-up, or the locking of a
// robust mutex. When it returns, the kernel's list must name the same word as before.
TEST(RobustWake, PutsBackWhatWasNamedBefore) {
  const std::uint32_t outer_wake = 0;
  static const std::uint32_t inner_wake = 0;
  static const void* in_handler;
  ASSERT_EQ(named(), nullptr);
  {
    const RobustWakeGuard outer{outer_wake};
    const void* const before = named();
    EXPECT_NE(before, nullptr);
    struct sigaction action {};
    struct sigaction old {};
    action.sa_handler = [](int) {
      const RobustWakeGuard inner{inner_wake};
      in_handler = named();
    };
    ASSERT_EQ(::sigaction(SIGUSR1, &action, &old), 0);
    EXPECT_EQ(::raise(SIGUSR1), 0);
    EXPECT_EQ(::sigaction(SIGUSR1, &old, nullptr), 0);
    EXPECT_NE(in_handler, before);
    EXPECT_EQ(named(), before);
  }
  EXPECT_EQ(named(), nullptr);
}

}  // namespace
}  // namespace leat::detail
