// If this failed, a broker that stood still (SIGSTOP, `docker pause`) would close connections for a silence that was its own.
#include "broker/loop/timer.hpp"

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

// What judges nobody goes on at once, also on a machine that is so busy that each turn of the loop takes long.
TEST(Timer, CallsAtOnceAfterAStandstill) {
  boost::asio::io_context loop;
  Timer work{loop};
  PatientTimer silence{loop};
  int calls = 0;
  bool was_silent = false;
  work.start(50ms, [&] { ++calls; });
  silence.start(50ms, [&] { was_silent = true; });
  std::this_thread::sleep_for(300ms);
  loop.poll();
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(was_silent);
}

// What arrives during a standstill is handled before.
TEST(PatientTimer, LetsOthersSpeakAfterAStandstill) {
  for (const auto time : {50ms, 300ms}) {
    boost::asio::io_context loop;
    PatientTimer silence{loop};
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
TEST(PatientTimer, NoticesAStandstillInTheMiddle) {
  boost::asio::io_context loop;
  PatientTimer silence{loop};
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

TEST(PatientTimer, CallsAfterAStandstillIfNobodySpeaks) {
  boost::asio::io_context loop;
  PatientTimer silence{loop};
  int calls = 0;
  silence.start(50ms, [&] { ++calls; });
  boost::asio::post(loop, [] { std::this_thread::sleep_for(500ms); });
  loop.run();
  EXPECT_EQ(calls, 1);
}

// Each wake-up is late.
TEST(PatientTimer, CallsOnALoopThatIsAlwaysBusy) {
  boost::asio::io_context loop;
  PatientTimer silence{loop};
  int calls = 0;
  silence.start(20ms, [&] { ++calls; });
  for (int pieces = 0; pieces < 20 && calls == 0; ++pieces) {
    std::this_thread::sleep_for(130ms);
    loop.poll();
  }
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace leat::broker
