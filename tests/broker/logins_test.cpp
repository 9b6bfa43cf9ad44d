// If these failed, passwords could be guessed at without end, or clients that reconnect together would be shut out.
#include "broker/logins.hpp"

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
    logins_.check({Origin{boost::asio::ip::make_address(address)}, "user", scope, verifier},
                  Secret{password}, [this](Verdict verdict) { verdicts_.push_back(verdict); });
  }
  void run_until(std::size_t count) {
    const auto work = boost::asio::make_work_guard(loop_);
    while (verdicts_.size() < count) loop_.run_one();
  }

  boost::asio::io_context loop_;
  Logins logins_{loop_};
  std::vector<Verdict> verdicts_;
};

TEST_F(LoginsTest, RightOnesOfOneAddressWaitForEachOther) {
  const Verifier verifier = *make_verifier("right");
  for (int topic = 0; topic < 20; ++topic) ask("topic/" + std::to_string(topic), verifier, "right");
  run_until(20);
  EXPECT_EQ(verdicts_, std::vector(20, Verdict::right));
  ask("topic/7", verifier, "right");
  EXPECT_EQ(verdicts_.size(), 21U) << "known, so at once";
}

TEST_F(LoginsTest, WrongOnesAreHeldOffAfterFive) {
  const Verifier verifier = *make_verifier("right");
  for (int i = 0; i < 40; ++i) ask("topic", verifier, "guess " + std::to_string(i));
  ask("topic", verifier, "right", "192.0.2.2");
  run_until(41);
  const auto count = [&](Verdict verdict) {
    return std::count(verdicts_.begin(), verdicts_.end(), verdict);
  };
  EXPECT_EQ(count(Verdict::right), 1) << "of another address";
  EXPECT_GE(count(Verdict::wrong), 5);
  // One more attempt each 200 ms; on a slow machine the hashes take longer than that.
  EXPECT_EQ(count(Verdict::wrong) + count(Verdict::too_many), 40);
}

TEST_F(LoginsTest, TheSameCredentialsAreHashedOnce) {
  const Verifier verifier = *make_verifier("right");
  for (int i = 0; i < 100; ++i) ask("topic", verifier, "right");
  run_until(1);
  EXPECT_EQ(verdicts_, std::vector(100, Verdict::right));
}

TEST_F(LoginsTest, NothingIsRightForWhatDoesNotExist) {
  ask("nothing", std::nullopt, "");
  run_until(1);
  EXPECT_EQ(verdicts_, std::vector{Verdict::wrong});
}

}  // namespace
}  // namespace leat::broker
