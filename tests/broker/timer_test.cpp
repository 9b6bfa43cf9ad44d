// If this failed, a broker that stood still (SIGSTOP, `docker pause`) would close connections for a silence that was its own.
#include "broker/timer.hpp"

#include <gtest/gtest.h>

#include <boost/asio/post.hpp>
#include <chrono>
#include <thread>

namespace leat::broker {
namespace {

using namespace std::chrono_literals;

TEST(Timer, CallsOnceAndNotWhenStopped) {
  boost::asio::io_context loop;
  Timer timer{loop};
  int calls = 0;
  timer.start(1ms, [&] { ++calls; });
  timer.start(2ms, [&] { calls += 10; });
  loop.run();
  EXPECT_EQ(calls, 10);
  EXPECT_FALSE(timer.is_running());
  timer.start(0ms, [&] { ++calls; });
  timer.stop();
  loop.restart();
  loop.run();
  EXPECT_EQ(calls, 10);
}

// What arrives during a standstill is handled before.
TEST(Timer, LetsOthersSpeakAfterAStandstill) {
  for (const auto time : {50ms, 300ms}) {
    boost::asio::io_context loop;
    Timer silence{loop};
    bool was_silent = false;
    silence.start(time, [&] { was_silent = true; });
    boost::asio::post(loop, [&] {
      std::this_thread::sleep_for(500ms);  // The loop stands still.
      // It is heard only after the timer was due.
      boost::asio::post(loop, [&] { boost::asio::post(loop, [&] { silence.stop(); }); });
    });
    loop.run();
    EXPECT_FALSE(was_silent) << time.count();
  }
}

// Also if it ran again before the time was over.
TEST(Timer, NoticesAStandstillInTheMiddle) {
  boost::asio::io_context loop;
  Timer silence{loop};
  bool was_silent = false;
  silence.start(500ms, [&] { was_silent = true; });
  boost::asio::steady_timer stop{loop, 50ms};
  Timer heard{loop};
  stop.async_wait([&](const auto&) {
    std::this_thread::sleep_for(440ms);
    heard.start(20ms, [&] { silence.stop(); });
  });
  loop.run();
  EXPECT_FALSE(was_silent);
}

TEST(Timer, CallsAfterAStandstillIfNobodySpeaks) {
  boost::asio::io_context loop;
  Timer silence{loop};
  int calls = 0;
  silence.start(50ms, [&] { ++calls; });
  boost::asio::post(loop, [] { std::this_thread::sleep_for(500ms); });
  loop.run();
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace leat::broker
