// If this failed, the interleaving tests could pass although the library has
// a bug, or a failure could not be repeated by its seed. The scheduler must
// find lost wake-ups, deadlocks and what dead threads leave.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "leat/base/atomic.hpp"
#include "leat/os/file.hpp"
#include "leat/os/futex.hpp"
#include "leat/os/lock.hpp"
#include "model.hpp"

namespace leat::detail {
namespace {

using namespace std::chrono_literals;

// A sleeper announces that it sleeps, looks again, and sleeps. The other thread sets the data and
// wakes the sleeper if one is announced. Correct only if both store-then-load pairs are fenced.
void naive_sleep(model::Execution& run, bool fenced) {
  std::uint64_t data = 0;
  std::uint32_t sleeping = 0;
  run.thread("sleeper", [&] {
    while (load_acquire<Edge::record_ready>(data) == 0) {
      if (fenced) {
        exchange<Edge::sleeping>(sleeping, 1);
      } else {
        store_relaxed(sleeping, 1);
      }
      if (load_acquire<Edge::record_ready>(data) == 0) futex_wait(sleeping, 1, Deadline::never());
    }
  });
  run.thread("writer", [&] {
    if (fenced) {
      exchange<Edge::record_ready>(data, 1);
    } else {
      store_release<Edge::record_ready>(data, 1);
    }
    if (load_relaxed(sleeping) != 0) {
      store_relaxed(sleeping, 0);
      futex_wake_all(sleeping);
    }
  });
  run.run();
}

TEST(Scheduler, FindsALostWakeUp) {
  const auto result =
      model::explore({.name = "no fences"}, [](model::Execution& run) { naive_sleep(run, false); });
  EXPECT_TRUE(model::breaks(result));
  EXPECT_NE(result.message.find("nobody will wake sleeper"), std::string::npos) << result.message;
}

TEST(Scheduler, FindsNoneWithFences) {
  EXPECT_TRUE(model::holds(model::explore({.name = "fences", .executions = 10'000},
                                          [](model::Execution& run) { naive_sleep(run, true); })));
}

// Two threads take two spin locks in opposite order, so some executions do not end.
TEST(Scheduler, CountsExecutionsThatDoNotEnd) {
  const auto result =
      model::explore({.name = "livelock", .max_steps = 500}, [](model::Execution& run) {
        std::uint32_t locks[2] = {0, 0};
        for (const std::size_t first : {std::size_t{0}, std::size_t{1}}) {
          run.thread("t" + std::to_string(first), [&locks, first] {
            for (const std::size_t which : {first, 1 - first}) {
              while (exchange<Edge::claim>(locks[which], 1) != 0) spin_pause();
            }
            for (std::uint32_t& lock : locks) store_release<Edge::claim>(lock, 0);
          });
        }
        run.run();
      });
  EXPECT_TRUE(model::breaks(result));
  EXPECT_GT(result.abandoned, 0);
}

TEST(Scheduler, FindsADeadlock) {
  const auto result = model::explore({.name = "deadlock"}, [](model::Execution& run) {
    std::uint32_t locks[2] = {0, 0};
    for (const std::size_t first : {std::size_t{0}, std::size_t{1}}) {
      run.thread("t" + std::to_string(first), [&locks, first] {
        for (const std::size_t which : {first, 1 - first}) {
          while (exchange<Edge::claim>(locks[which], 1) != 0)
            futex_wait(locks[which], 1, Deadline::never());
        }
        for (std::uint32_t& lock : locks) {
          store_release<Edge::claim>(lock, 0);
          futex_wake_all(lock);
        }
      });
    }
    run.run();
  });
  EXPECT_TRUE(model::breaks(result));
}

// The bug shows only if one thread is preempted at one particular point for very long.
TEST(Scheduler, FindsOneBadPointInALongRun) {
  const auto result =
      model::explore({.name = "long", .executions = 20'000}, [](model::Execution& run) {
        std::uint64_t turn = 0, guarded = 0;
        run.thread("slow", [&] {
          for (std::uint64_t i = 1; i <= 50; ++i) store_relaxed(turn, i);
          const auto before = load_relaxed(guarded);
          const auto after = load_relaxed(guarded);
          model::check(after < before + 40, "forty updates in between");
        });
        run.thread("fast", [&] {
          for (int i = 0; i < 50; ++i) fetch_add<Edge::claim>(guarded, 1);
        });
        run.run();
      });
  EXPECT_TRUE(model::breaks(result));
}

TEST(Scheduler, OneSeedIsOneExecution) {
  const auto observe = [](std::uint64_t seed) {
    std::vector<std::uint64_t> seen;
    (void)model::explore({.name = "same", .executions = 1, .seed = seed},
                         [&](model::Execution& run) {
                           std::uint64_t word = 0;
                           for (int t = 0; t < 3; ++t) {
                             run.thread("t", [&] {
                               for (int i = 0; i < 10; ++i) {
                                 fetch_add<Edge::claim>(word, 1);
                                 seen.push_back(load_relaxed(word));
                               }
                             });
                           }
                           run.run();
                         });
    return seen;
  };
  for (std::uint64_t seed = 1; seed < 50; ++seed) EXPECT_EQ(observe(seed), observe(seed));
  EXPECT_NE(observe(1), observe(2));
}

TEST(Scheduler, TimersRunOutOnlyInVirtualTime) {
  EXPECT_TRUE(
      model::holds(model::explore({.name = "timer", .executions = 100}, [](model::Execution& run) {
        std::uint32_t word = 0;
        run.thread("sleeper", [&] {
          const Deadline deadline{1h};
          while (!deadline.passed()) futex_wait(word, 0, deadline);
        });
        run.run();
      })));
}

TEST(Scheduler, ATimerCanCountAsALostWakeUp) {
  EXPECT_TRUE(model::breaks(
      model::explore({.name = "timer", .needless_timeouts_fail = true}, [](model::Execution& run) {
        std::uint32_t word = 0;
        run.thread("sleeper", [&] { futex_wait(word, 0, Deadline{1ms}); });
        run.run();
      })));
}

// A file with a lock byte, opened twice, as by two participants.
struct TestLockFile {
  Fd first = open();
  Fd second = open();
  static Fd open() {
    static const std::string path = "/dev/shm/leat-lock-" + std::to_string(::getpid());
    Fd fd{::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
    return fd;
  }
  ~TestLockFile() { ::unlink(("/dev/shm/leat-lock-" + std::to_string(::getpid())).c_str()); }
};

// The victim is killed at any of its operations. A thread that then finds its lock free sees
// everything that it did before.
TEST(Scheduler, KillReleasesLocksAndShowsTheVictimsStores) {
  int killed = 0, survived = 0;
  const auto result = model::explore({.name = "kill"}, [&](model::Execution& run) {
    TestLockFile file;
    std::uint64_t progress = 0, locked = 0;
    bool released = false;
    const auto victim = run.thread("victim", [&] {
      model::check(*try_lock_byte(file.first.get(), 7), "free at first");
      store_release<Edge::slot>(locked, 1);
      for (std::uint64_t i = 1; i <= 4; ++i) store_relaxed(progress, i);
      futex_wait(*reinterpret_cast<std::uint32_t*>(&progress), 4, Deadline{1s});
      released = true;
    });
    run.kill_at(victim, model::random(10));
    run.thread("survivor", [&] {
      if (load_acquire<Edge::slot>(locked) == 0) return;
      const bool alive = byte_is_locked(file.second.get(), 7);
      model::check(alive || released || run.killed(victim), "a living owner holds its lock");
      if (alive) return;
      model::check(*try_lock_byte(file.second.get(), 7), "free, so it can be locked");
      const auto seen = load_relaxed(progress);
      model::check(seen == *static_cast<volatile std::uint64_t*>(&progress), "stale after death");
    });
    if (!run.run()) return;
    (run.killed(victim) ? killed : survived) += 1;
  });
  EXPECT_TRUE(model::holds(result));
  EXPECT_GT(killed, 100);
  EXPECT_GT(survived, 100);
}

TEST(Scheduler, SuspendedThreadsKeepTheirLocksAndGoOn) {
  EXPECT_TRUE(model::holds(
      model::explore({.name = "suspend", .executions = 300}, [](model::Execution& run) {
        TestLockFile file;
        const auto stopped = run.thread("stopped", [&] {
          model::check(*try_lock_byte(file.first.get(), 7), "free at first");
          model::yield();
          model::yield();
        });
        run.suspend_at(stopped, 2);
        if (!run.run()) return;
        model::check(!run.finished(stopped) && byte_is_locked(file.second.get(), 7),
                     "stopped, not dead");
        model::resume(stopped);
        if (!run.run()) return;
        model::check(run.finished(stopped), "went on");
      })));
}

// Two threads may die, each at any of its operations. All combinations of two places must occur.
TEST(Scheduler, TwoMayDieInOneExecution) {
  std::set<std::pair<std::uint64_t, std::uint64_t>> places;
  EXPECT_TRUE(model::holds(model::explore({.name = "two"}, [&](model::Execution& run) {
    std::uint64_t progress[2] = {};
    for (std::uint64_t& mine : progress) {
      const auto thread = run.thread("mortal", [&mine] {
        for (std::uint64_t i = 1; i <= 4; ++i) store_relaxed(mine, i);
      });
      run.may_die(thread, 5);
    }
    if (!run.run()) return;
    for (const model::Thread one : {0, 1})
      model::check(run.killed(one) == (progress[one] < 4), "dead and done, or neither");
    places.insert({progress[0], progress[1]});
  })));
  EXPECT_EQ(places.size(), 25U);
}

// A group dies at one moment: after one of them is dead, the others do
// nothing more. Stopped ones die, too.
TEST(Scheduler, AGroupDiesAtOneMoment) {
  int together = 0, stopped = 0;
  EXPECT_TRUE(model::holds(model::explore({.name = "group"}, [&](model::Execution& run) {
    std::vector<model::Thread> group;
    std::uint64_t words[3] = {};
    for (std::uint64_t& word : words) {
      group.push_back(run.thread("one of them", [&] {
        for (std::uint64_t i = 1; i <= 6; ++i) {
          store_relaxed(word, i);
          for (const model::Thread other : group) model::check(!run.killed(other), "it died alone");
        }
      }));
    }
    run.suspend_at(group[0], 3);
    run.may_die_together(group, 20);
    if (!run.run()) return;
    together += run.killed(group[1]) && run.killed(group[2]) ? 1 : 0;
    stopped += run.killed(group[0]) && words[0] == 3 ? 1 : 0;
  })));
  EXPECT_GT(together, 300);
  EXPECT_GT(stopped, 100);
}

// A stopped thread continues when the others have nothing left to do, or
// after they have waited for a while.
TEST(Scheduler, WhoStopsGoesOnAfterTheOthers) {
  int last = 0;
  EXPECT_TRUE(model::holds(model::explore({.name = "stop"}, [&](model::Execution& run) {
    std::uint32_t word = 0, done = 0;
    const auto slow = run.thread("stops", [&] {
      store_relaxed(word, 1U);
      if (load_relaxed(done) == 1) ++last;
    });
    run.may_stop(slow, 2);
    run.thread("waits", [&] {
      while (load_relaxed(word) == 0) futex_wait(word, 0, Deadline{2ms});
    });
    run.thread("goes on", [&] { store_relaxed(done, 1U); });
    if (!run.run()) return;
    model::check(run.finished(slow), "it went on");
  })));
  EXPECT_GT(last, 100);
}

// A file that is mapped at two addresses is one memory with one history.
TEST(Scheduler, MappingsOfOneFileAreOneMemory) {
  int stale = 0;
  const auto result = model::explore({.name = "mappings"}, [&](model::Execution& run) {
    TestLockFile file;
    model::check(allocate_file(file.first.get(), 4096).has_value(), "allocate");
    auto writer = Mapping::map(file.first.get(), 4096, true);
    auto reader = Mapping::map(file.second.get(), 4096, false);
    auto* to = reinterpret_cast<std::uint64_t*>(writer->data());
    const auto* from = reinterpret_cast<const std::uint64_t*>(reader->data());
    run.thread("writer", [&] {
      copy_in(writer->data() + 64, "payload!!", 9);
      store_relaxed(to[1], 1);
      store_release<Edge::record_ready>(to[0], 1);
    });
    run.thread("reader", [&] {
      if (load_relaxed(from[1]) == 1 && model::read_checked(reader->data() + 64, 9) != "payload!!")
        ++stale;
      if (load_acquire<Edge::record_ready>(from[0]) == 0) return;
      model::check(load_relaxed(from[1]) == 1, "stale word");
      model::check(model::read_checked(reader->data() + 64, 9) == "payload!!", "stale payload");
    });
    run.run();
  });
  EXPECT_TRUE(model::holds(result));
  EXPECT_GT(stale, 0);
}

}  // namespace
}  // namespace leat::detail
