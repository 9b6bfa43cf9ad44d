// If this failed, a benchmark in which a process dies would hang, or leave processes behind.
#include "bench/harness/processes.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <thread>

namespace leat::bench {
namespace {

using namespace std::chrono_literals;

// The message of the Failure that running the roles throws.
std::string failure_of(const std::vector<Role>& roles, std::chrono::seconds time_limit) {
  try {
    run_roles(roles, time_limit);
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "no failure";
}

bool has_no_children() { return ::waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD; }

TEST(WaitFor, LooksWhenAChildEnds) {
  const SignalScope signals;
  Child child{"child", kAnyCpu, [] { throw Failure("no ink"); }};
  const auto check = [&] {
    if (child.has_ended()) child.check_end();
  };
  EXPECT_THROW(wait_for(signals, 60, check), Failure);
}

TEST(WaitUntil, ComplainsWhenTheTimeIsUp) {
  const SignalScope signals;
  int polls = 0;
  wait_until(signals, 60s, "too late", [&] { return ++polls == 3; });
  EXPECT_EQ(polls, 3);
  try {
    wait_until(signals, 0s, "too late", [] { return false; });
    FAIL() << "it did not complain";
  } catch (const Failure& failure) {
    EXPECT_STREQ(failure.what(), "too late");
  }
}

TEST(RunAsThreads, MeetAndEndTogether) {
  const Shared<std::atomic<int>> met(0);
  run_roles({{"process", kAnyCpu,
              [&](Barrier&) {
                std::vector<Role> threads;
                for (int i = 0; i < 3; ++i) {
                  threads.push_back({"thread", kAnyCpu, [&](Barrier& barrier) {
                                       ++*met;
                                       barrier.meet();
                                       if (*met != 3) throw Failure("one was not there");
                                     }});
                }
                run_as_threads(threads);
              }}},
            std::chrono::seconds(60));
  EXPECT_EQ(*met, 3);
}

TEST(RunAsThreads, OneThatFailsEndsThoseThatWait) {
  const auto run = [] {
    run_roles({{"process", kAnyCpu,
                [](Barrier&) {
                  run_as_threads({{"reader", kAnyCpu, [](Barrier& barrier) { barrier.meet(); }},
                                  {"writer", kAnyCpu, [](Barrier&) { throw Failure("no ink"); }}});
                }}},
              std::chrono::seconds(60));
  };
  try {
    run();
    FAIL() << "it did not fail";
  } catch (const Failure& failure) {
    EXPECT_STREQ(failure.what(), "the process failed: the writer failed: no ink");
  }
}

TEST(RunRoles, RunsEachInAProcessOfItsOwn) {
  const Shared<std::atomic<pid_t>> first, second;
  run_roles({{"first", kAnyCpu, [&](Barrier&) { first->store(::getpid()); }},
             {"second", kAnyCpu, [&](Barrier&) { second->store(::getpid()); }}},
            60s);
  EXPECT_NE(first->load(), 0);
  EXPECT_NE(second->load(), 0);
  EXPECT_NE(first->load(), second->load());
  EXPECT_NE(first->load(), ::getpid());
}

TEST(RunRoles, PinsToTheCpu) {
  const int cpu = usable_cpus().back();
  const Shared<std::atomic<int>> seen(-1);
  run_roles({{"pinned", cpu, [&](Barrier&) { seen->store(usable_cpus().front()); }}}, 60s);
  EXPECT_EQ(seen->load(), cpu);
}

// Each role stores its round before the barrier; after the barrier no role may be a round behind.
TEST(RunRoles, BarrierHoldsBackWhoIsEarly) {
  constexpr int kRounds = 200;
  const Shared<std::array<std::atomic<int>, 3>> rounds;
  std::vector<Role> roles;
  for (std::size_t i = 0; i < 3; ++i) {
    roles.push_back({"runner", kAnyCpu, [&, i](Barrier& barrier) {
                       for (int round = 1; round <= kRounds; ++round) {
                         (*rounds)[i].store(round);
                         barrier.meet();
                         for (const auto& other : *rounds) {
                           if (other.load() < round) throw Failure("somebody was left behind");
                         }
                         barrier.meet();
                       }
                     }});
  }
  EXPECT_EQ(failure_of(roles, 60s), "no failure");
}

TEST(RunRoles, FailsWithTheSentenceOfARoleAndEndsTheOthers) {
  const std::string sentence =
      failure_of({{"reader", kAnyCpu, [](Barrier&) { throw Failure("it is the wrong one"); }},
                  {"writer", kAnyCpu, [](Barrier&) { std::this_thread::sleep_for(1h); }}},
                 60s);
  EXPECT_EQ(sentence, "the reader failed: it is the wrong one");
  EXPECT_TRUE(has_no_children());
}

TEST(RunRoles, PassesOnThatSomethingIsNotSupported) {
  const auto run = [] {
    run_roles({{"reader", kAnyCpu, [](Barrier& barrier) { barrier.meet(); }},
               {"writer", kAnyCpu, [](Barrier&) { throw NotSupported("not on this machine"); }}},
              60s);
  };
  try {
    run();
    FAIL() << "it did not fail";
  } catch (const NotSupported& reason) {
    EXPECT_STREQ(reason.what(), "not on this machine");
  }
}

TEST(RunRoles, FailsIfARoleIsKilled) {
  const std::string sentence =
      failure_of({{"reader", kAnyCpu, [](Barrier&) { ::kill(::getpid(), SIGKILL); }}}, 60s);
  EXPECT_EQ(sentence, "the reader died: Killed");
}

TEST(RunRoles, EndsAfterTheTimeLimit) {
  const std::string sentence =
      failure_of({{"sleeper", kAnyCpu, [](Barrier&) { std::this_thread::sleep_for(1h); }}}, 1s);
  EXPECT_EQ(sentence, "not finished after 1 s; the sleeper was still running");
  EXPECT_TRUE(has_no_children());
}

TEST(RunRoles, EndsWhenTheProgramIsAskedTo) {
  const pid_t parent = ::getpid();
  const std::string sentence = failure_of({{"sleeper", kAnyCpu,
                                            [&](Barrier&) {
                                              ::kill(parent, SIGTERM);
                                              std::this_thread::sleep_for(1h);
                                            }}},
                                          60s);
  EXPECT_EQ(sentence, "stopped: Terminated");
  EXPECT_TRUE(has_no_children());
}

TEST(Child, IsKilledWithItsObject) {
  {
    const Child child("sleeper", kAnyCpu, [] { std::this_thread::sleep_for(1h); });
  }
  EXPECT_TRUE(has_no_children());
}

TEST(Placement, GoesRoundTheCpus) {
  const Placement placement{{4, 6}};
  EXPECT_EQ(placement.cpu(0), 4);
  EXPECT_EQ(placement.cpu(1), 6);
  EXPECT_EQ(placement.cpu(2), 4);
  EXPECT_EQ(Placement{}.cpu(1), kAnyCpu);
}

}  // namespace
}  // namespace leat::bench
