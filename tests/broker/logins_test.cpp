// If these failed, passwords could be guessed at without end, or clients that reconnect together would be shut out.
#include "broker/auth/logins.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <string>
#include <vector>

namespace leat::broker {
namespace {

using Verdict = Logins::Verdict;

class LoginsTest : public ::testing::Test {
 protected:
  ~LoginsTest() override { logins_.stop(); }

  void ask(const std::string& scope, const std::optional<Verifier>& verifier,
           const std::string& password, const char* address = "192.0.2.1") {
    logins_.check({{origin(address), is_first_, is_there_}, "user", scope, verifier},
                  Secret{password}, [this](Verdict verdict) { verdicts_.push_back(verdict); });
  }
  static Origin origin(const char* address) {
    return Origin{boost::asio::ip::make_address(address)};
  }
  // Wrong ones, until the address has no attempts left.
  void use_up(const Verifier& verifier, const char* address = "192.0.2.1") {
    for (int i = 0; i < 5; ++i) ask("topic", verifier, "used up " + std::to_string(i), address);
    run_until(5);
    verdicts_.clear();
  }
  auto count(Verdict verdict) const {
    return std::count(verdicts_.begin(), verdicts_.end(), verdict);
  }
  void run_until(std::size_t count) {
    run_until([&] { return verdicts_.size() >= count; });
  }
  void run_until(const std::function<bool()>& is_over) {
    loop_.restart();
    const auto work = boost::asio::make_work_guard(loop_);
    while (!is_over()) loop_.run_one();
  }

  boost::asio::io_context loop_;
  Logins logins_{loop_, std::chrono::milliseconds{100}};
  std::vector<Verdict> verdicts_;
  bool is_first_ = true;
  std::function<bool()> is_there_;
};

TEST_F(LoginsTest, RightOnesOfOneAddressWaitForEachOther) {
  const Verifier verifier = *make_verifier("right");
  for (int topic = 0; topic < 20; ++topic) ask("topic/" + std::to_string(topic), verifier, "right");
  run_until(20);
  EXPECT_EQ(verdicts_, std::vector(20, Verdict::right));
  ask("topic/7", verifier, "right");
  EXPECT_EQ(verdicts_.size(), 21U) << "known, so at once";
}

TEST_F(LoginsTest, WhoWasWrongIsHeldOffAfterFive) {
  const Verifier verifier = *make_verifier("right");
  is_first_ = false;
  for (int i = 0; i < 40; ++i) ask("topic", verifier, "guess " + std::to_string(i));
  ask("topic", verifier, "right", "192.0.2.2");
  run_until(41);
  EXPECT_EQ(count(Verdict::right), 1) << "of another address";
  EXPECT_EQ(count(Verdict::wrong) + count(Verdict::too_many), 40);
  verdicts_.clear();
  use_up(verifier);
  ask("topic", verifier, "one more");
  run_until(1);
  // One more attempt each 200 ms; on a slow machine the hashes take longer than that.
  EXPECT_TRUE(verdicts_[0] == Verdict::too_many || verdicts_[0] == Verdict::wrong);
}

// A guesser has six connections, and each sends the next guess once it is answered.
TEST_F(LoginsTest, GuessesOfItsAddressOnlyDelayAFirstLogin) {
  const Verifier verifier = *make_verifier("right");
  int guesses = 0;
  bool ends = false;
  std::optional<Verdict> verdict;
  std::function<void()> guess = [&] {
    if (ends) return;
    logins_.check({{origin("192.0.2.1"), true, {}}, "user", "topic", verifier},
                  Secret{"guess " + std::to_string(guesses++)}, [&](Verdict) { guess(); });
  };
  for (int i = 0; i < 6; ++i) guess();
  loop_.restart();
  const auto work = boost::asio::make_work_guard(loop_);
  while (guesses < 12) loop_.run_one();
  // For the credentials that are guessed at, and for others.
  for (const char* scope : {"topic", "admin"}) {
    const int before = guesses;
    verdict.reset();
    logins_.check({{origin("192.0.2.1"), true, {}}, "user", scope, verifier}, Secret{"right"},
                  [&](Verdict told) { verdict = told; });
    while (!verdict) loop_.run_one();
    EXPECT_EQ(verdict, Verdict::right);
    EXPECT_LE(guesses - before, 8) << "it waits for those before it, and no longer";
  }
  ask("admin", verifier, "right");
  EXPECT_EQ(verdicts_, std::vector{Verdict::right}) << "known, so at once";
  ends = true;
}

TEST_F(LoginsTest, ALineIsBounded) {
  const Verifier verifier = *make_verifier("right");
  use_up(verifier);
  for (int i = 0; i < 500; ++i) ask("topic", verifier, "guess " + std::to_string(i));
  EXPECT_EQ(count(Verdict::too_many), 0) << "who is told at once comes again at once";
  ask("admin", verifier, "right");
  while (count(Verdict::right) == 0) run_until(verdicts_.size() + 1);
  EXPECT_LE(count(Verdict::wrong), 8) << "another line has its turn soon";
  while (count(Verdict::too_many) < 440) run_until(verdicts_.size() + 1);
}

// Of those that have hung up a guesser may have any number.
TEST_F(LoginsTest, WhoHasGoneMakesRoomForOthers) {
  const Verifier verifier = *make_verifier("right");
  use_up(verifier);
  for (int i = 0; i < 10; ++i) ask("topic", verifier, "first " + std::to_string(i));
  ask("topic", verifier, "right");
  int last = 0;
  for (int i = 0; i < 500; ++i) {
    last = i;
    is_there_ = [&last, i] { return last == i; };
    ask("topic", verifier, "guess " + std::to_string(i));
  }
  last = -1;
  run_until(511);
  EXPECT_EQ(count(Verdict::right), 1);
}

TEST_F(LoginsTest, WhoHasGoneCostsNoAttempt) {
  const Verifier verifier = *make_verifier("right");
  use_up(verifier);
  is_there_ = [] { return false; };
  for (int i = 0; i < 40; ++i) ask("topic", verifier, "guess " + std::to_string(i));
  is_there_ = nullptr;
  ask("topic", verifier, "right");
  run_until(41);
  EXPECT_EQ(count(Verdict::too_many), 40);
  EXPECT_EQ(count(Verdict::right), 1);
}

TEST_F(LoginsTest, TheSameCredentialsAreHashedOnce) {
  const Verifier verifier = *make_verifier("right");
  for (int i = 0; i < 100; ++i) ask("topic", verifier, "right");
  run_until(1);
  EXPECT_EQ(verdicts_, std::vector(100, Verdict::right));
}

// While they waited, they began to be hashed for another address.
TEST_F(LoginsTest, TheSameCredentialsOfTwoAddressesThatWaitAreHashedOnce) {
  const Verifier verifier = *make_verifier("right");
  for (int topic = 0; topic < 4; ++topic) ask("topic/" + std::to_string(topic), verifier, "right");
  ask("topic/4", verifier, "right", "192.0.2.1");
  ask("topic/4", verifier, "right", "192.0.2.2");
  run_until(6);
  EXPECT_EQ(verdicts_, std::vector(6, Verdict::right));
}

TEST_F(LoginsTest, OriginsTakeTurnsAfterEachHash) {
  const Verifier verifier = *make_verifier("right");
  std::string order;
  const auto login = [&](char name, const std::string& address, int topic) {
    logins_.check({{origin(address.c_str())}, "user", std::to_string(topic), verifier},
                  Secret{"right"}, [&, name](Verdict) { order += name; });
  };
  for (int topic = 0; topic < 6; ++topic) login('a', "192.0.2.9", topic);
  login('b', "192.0.2.8", 6);
  login('c', "192.0.2.7", 7);
  login('b', "192.0.2.8", 8);
  run_until([&] { return order.size() == 9; });
  EXPECT_EQ(order, "aabcabaaa") << "in the order in which they came, not by address";
}

// A user who changes a password again and again, or an administrator who creates topics.
TEST_F(LoginsTest, ThoseWhoSetNewPasswordsTakeTurns) {
  std::string order;
  const auto make = [&](char name, const char* address) {
    logins_.make({origin(address), std::string{name}}, Secret{"new"},
                 [&, name](const Outcome<Verifier>& made) { order += made ? name : '-'; });
  };
  for (int i = 0; i < 6; ++i) make('a', "192.0.2.1");
  make('b', "192.0.2.1");
  make('c', "192.0.2.2");
  run_until([&] { return order.size() == 8; });
  EXPECT_EQ(order, "aabcaaaa");
}

TEST_F(LoginsTest, NewPasswordsOfOneMakerAreBounded) {
  int refused = 0;
  for (int i = 0; i < 200; ++i) {
    logins_.make({origin("192.0.2.1"), "user"}, Secret{"new"}, [&](const Outcome<Verifier>& made) {
      if (!made && made.problem().code == Errc::busy) ++refused;
    });
  }
  EXPECT_EQ(refused, 200 - 51) << "one is under way, and 50 wait";
}

TEST_F(LoginsTest, NewPasswordsStandBehindLogins) {
  const Verifier verifier = *make_verifier("right");
  std::string order;
  const auto login = [&](int topic) {
    logins_.check({{origin("192.0.2.1")}, "user", std::to_string(topic), verifier}, Secret{"right"},
                  [&](Verdict) { order += 'c'; });
  };
  login(0);
  for (int i = 0; i < 3; ++i) {
    logins_.make({origin("192.0.2.1"), std::to_string(i)}, Secret{"new"},
                 [&](const Outcome<Verifier>&) { order += 'm'; });
  }
  for (int topic = 1; topic < 7; ++topic) login(topic);
  run_until([&] { return order.size() == 10; });
  EXPECT_EQ(order, "cccccmccmm") << "after four in a row, one new password";
}

TEST_F(LoginsTest, WhoeverWaitsIsAnsweredAtTheEnd) {
  const Verifier verifier = *make_verifier("right");
  int refused = 0;
  for (int i = 0; i < 3; ++i) {
    ask(std::to_string(i), verifier, "right");
    logins_.make({origin("192.0.2.1"), "user"}, Secret{"new"},
                 [&](const Outcome<Verifier>& made) { refused += made ? 0 : 1; });
  }
  logins_.stop();
  run_until([&] { return verdicts_.size() == 3 && refused == 3; });
  EXPECT_GE(count(Verdict::busy), 2) << "one was under way";
}

TEST_F(LoginsTest, NothingIsRightForWhatDoesNotExist) {
  ask("nothing", std::nullopt, "");
  run_until(1);
  EXPECT_EQ(verdicts_, std::vector{Verdict::wrong});
}

}  // namespace
}  // namespace leat::broker
