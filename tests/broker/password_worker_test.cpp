// If this failed, an event loop would stop for a hash, or a flood of logins would fill the memory or hang the end.
#include "broker/auth/password_worker.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>
#include <vector>

namespace leat::broker {
namespace {

// Holds the worker inside a callback, so that what is asked meanwhile has to wait in the queue.
class Held {
 public:
  explicit Held(PasswordWorker& worker) {
    std::promise<void> reached;
    EXPECT_TRUE(worker.check(Secret{"x"}, decoy_verifier(), [&](Outcome<bool>) {
      reached.set_value();
      may_go_.get_future().wait();
    }));
    reached.get_future().wait();
  }
  void let_go() { may_go_.set_value(); }

 private:
  std::promise<void> may_go_;
};

// Without patience, each check is done by both threads, and the worker's own answers.
class PatientWorker : public ::testing::TestWithParam<std::chrono::milliseconds> {};
INSTANTIATE_TEST_SUITE_P(PasswordWorker, PatientWorker,
                         ::testing::Values(std::chrono::milliseconds{0},
                                           PasswordWorker::kPatience));

TEST_P(PatientWorker, MakesAndChecks) {
  PasswordWorker worker{PasswordWorker::kQueue, GetParam()};
  std::promise<Verifier> made;
  ASSERT_TRUE(worker.make(Secret{"right"}, [&](Outcome<Verifier> verifier) {
    ASSERT_TRUE(verifier);
    made.set_value(*verifier);
  }));
  const Verifier verifier = made.get_future().get();
  for (int i = 0; i < 8; ++i) {
    const bool is_right = i % 2 == 0;
    std::promise<bool> checked;
    ASSERT_TRUE(worker.check(Secret{is_right ? "right" : "wrong"}, verifier,
                             [&](Outcome<bool> answer) { checked.set_value(*answer); }));
    EXPECT_EQ(checked.get_future().get(), is_right);
  }
}

TEST(PasswordWorker, TellsOfAPasswordThatIsTooLong) {
  PasswordWorker worker;
  std::promise<Errc> code;
  ASSERT_TRUE(worker.make(Secret{std::string(kMaxPassword + 1, 'x')},
                          [&](Outcome<Verifier> made) { code.set_value(made.problem().code); }));
  EXPECT_EQ(code.get_future().get(), Errc::too_large);
}

TEST(PasswordWorker, WorksOnOneThreadInOrder) {
  std::vector<int> order;
  std::vector<std::thread::id> threads;
  std::promise<void> last;
  PasswordWorker worker;
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(worker.check(Secret{"x"}, decoy_verifier(), [&, i](Outcome<bool>) {
      order.push_back(i);  // Without a lock: one thread.
      threads.push_back(std::this_thread::get_id());
      if (i == 4) last.set_value();
    }));
  }
  last.get_future().wait();
  EXPECT_EQ(order, (std::vector{0, 1, 2, 3, 4}));
  EXPECT_EQ(threads, std::vector(5, threads[0]));
  EXPECT_NE(threads[0], std::this_thread::get_id());
}

TEST(PasswordWorker, RefusesAtOnceWhenTheQueueIsFull) {
  PasswordWorker worker;
  Held held{worker};
  std::atomic<int> answers = 0;
  for (std::size_t i = 0; i < PasswordWorker::kQueue; ++i)
    ASSERT_TRUE(worker.check(Secret{"x"}, decoy_verifier(), [&](Outcome<bool>) { ++answers; }));
  const auto refused =
      worker.check(Secret{"x"}, decoy_verifier(), [&](Outcome<bool>) { answers += 1000; });
  EXPECT_EQ(refused.problem().code, Errc::busy);
  EXPECT_EQ(worker.make(Secret{"x"}, [&](Outcome<Verifier>) { answers += 1000; }).problem().code,
            Errc::busy);
  EXPECT_EQ(answers, 0);
  std::thread stopping{[&] { worker.stop(); }};
  held.let_go();
  stopping.join();
  EXPECT_EQ(answers, static_cast<int>(PasswordWorker::kQueue)) << "each once";
}

TEST(PasswordWorker, StopAnswersThoseThatWait) {
  PasswordWorker worker;
  Held held{worker};
  std::vector<Errc> codes;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(worker.check(Secret{"x"}, decoy_verifier(), [&](Outcome<bool> answer) {
      codes.push_back(answer ? Errc::ok : answer.problem().code);
    }));
  }
  std::thread stopping{[&] { worker.stop(); }};
  // Until stop() began; before, the queue may be full.
  while (true) {
    const auto asked = worker.check(Secret{"x"}, decoy_verifier(), [](Outcome<bool>) {});
    if (!asked && asked.problem().code == Errc::stopped) break;
    std::this_thread::yield();
  }
  held.let_go();
  stopping.join();
  EXPECT_EQ(codes, std::vector(3, Errc::stopped));
  EXPECT_EQ(worker.check(Secret{"x"}, decoy_verifier(), [](Outcome<bool>) {}).problem().code,
            Errc::stopped);
  worker.stop();  // Once more does nothing.
}

TEST(PasswordWorker, ManyThreadsMayAsk) {
  std::atomic<int> answers = 0;
  std::atomic<int> accepted = 0;
  {
    PasswordWorker worker{4};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int k = 0; k < 10; ++k) {
          if (worker.check(Secret{"x"}, decoy_verifier(), [&](Outcome<bool>) { ++answers; }))
            ++accepted;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_GE(accepted, 4);
  EXPECT_EQ(answers, accepted);
}

TEST(Secret, IsMovedNotCopied) {
  Secret one{"a password that is long enough for the heap"};
  const char* const at = one.text().data();
  Secret other{std::move(one)};
  EXPECT_EQ(other.text().data(), at);
  EXPECT_EQ(one.text(), "");
  one = std::move(other);
  EXPECT_EQ(one.text().data(), at);
  EXPECT_EQ(one.copy().text(), one.text());
  EXPECT_EQ(Secret{}.text(), "");
  std::string text = "also secret";
  wipe(text);
  EXPECT_EQ(text, "");
  EXPECT_EQ(std::string(text.data(), 11), std::string(11, '\0'));
}

}  // namespace
}  // namespace leat::broker
