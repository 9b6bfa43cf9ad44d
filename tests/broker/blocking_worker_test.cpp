// If these failed, a topic that is closed while its disk is slow would be used after its end, or hold up the loop.
#include "broker/loop/blocking_worker.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <memory>
#include <new>
#include <vector>

namespace leat::broker {
namespace {

TEST(BlockingWorker, ReadsThereAndAnswersOnTheLoopInOrder) {
  boost::asio::io_context loop;
  BlockingWorker worker{loop};
  const auto loop_thread = std::this_thread::get_id();
  std::vector<int> read;
  std::vector<int> answered;
  for (int i = 0; i < 100; ++i) {
    worker.add(
        [&, i] {
          EXPECT_NE(std::this_thread::get_id(), loop_thread);
          read.push_back(i);
        },
        [&, i] { answered.push_back(i); });
  }
  loop.run();  // Until nothing is left to do.
  EXPECT_EQ(answered.size(), 100U);
  EXPECT_EQ(answered, read);
  EXPECT_TRUE(std::is_sorted(read.begin(), read.end()));
}

TEST(BlockingWorker, DropsAtItsEndWhatHasNotBegun) {
  boost::asio::io_context loop;
  std::promise<void> begun;
  std::promise<void> goes_on;
  auto owned = std::make_shared<int>();
  const std::weak_ptr<int> watched = owned;
  int reads = 0;
  int answers = 0;
  {
    BlockingWorker worker{loop};
    worker.add(
        [&] {
          ++reads;
          begun.set_value();
          goes_on.get_future().wait();
        },
        [&] { ++answers; });
    worker.add([&, owned] { ++reads; }, [&] { ++answers; });
    owned.reset();
    begun.get_future().wait();
    EXPECT_FALSE(watched.expired());
    goes_on.set_value();
    // The destructor may stop the worker before it takes the second one, or not.
  }
  EXPECT_TRUE(watched.expired());
  loop.run();
  EXPECT_GE(reads, 1);
  EXPECT_EQ(answers, 0) << "whoever asked may be gone, too";
}

// As everywhere in the broker, which then stops.
TEST(BlockingWorker, LetsTheLoopEndIfThereIsNoMemory) {
  boost::asio::io_context loop;
  BlockingWorker worker{loop};
  bool is_answered = false;
  worker.add([] { throw std::bad_alloc{}; }, [&] { is_answered = true; });
  EXPECT_THROW(loop.run(), std::bad_alloc);
  EXPECT_FALSE(is_answered);
  worker.add([] {}, [&] { is_answered = true; });
  loop.restart();
  loop.run();
  EXPECT_TRUE(is_answered) << "the worker goes on";
}

TEST(Lendable, IsBackWhenTheLoopIsTold) {
  boost::asio::io_context loop;
  BlockingWorker worker{loop};
  Lendable<int> number{worker, 1};
  bool is_back = false;
  number.lend([](int& lent, const std::atomic<bool>& is_over) { lent += is_over ? 100 : 1; },
              [&] {
                EXPECT_FALSE(number.is_lent());
                is_back = true;
              });
  EXPECT_TRUE(number.is_lent());
  loop.run();
  EXPECT_TRUE(is_back);
  EXPECT_EQ(*number, 2);
}

// Destroyed by the worker's thread: what it ends may wait for the disk.
TEST(Lendable, WhatIsLentAtTheEndIsDestroyedThere) {
  struct Lent {
    std::promise<std::thread::id>* where;
    explicit Lent(std::promise<std::thread::id>& tells) : where{&tells} {}
    Lent(Lent&& other) noexcept : where{std::exchange(other.where, nullptr)} {}
    Lent& operator=(Lent&&) = delete;
    ~Lent() {
      if (where != nullptr) where->set_value(std::this_thread::get_id());
    }
  };
  boost::asio::io_context loop;
  BlockingWorker worker{loop};
  std::promise<std::thread::id> where;
  std::promise<void> begun;
  std::promise<void> goes_on;
  bool saw_the_end = false;
  {
    Lendable<Lent> lent{worker, Lent{where}};
    lent.lend(
        [&](Lent&, const std::atomic<bool>& is_over) {
          begun.set_value();
          goes_on.get_future().wait();
          saw_the_end = is_over;
        },
        [] { FAIL() << "nobody is there any more"; });
    begun.get_future().wait();
  }
  goes_on.set_value();
  EXPECT_NE(where.get_future().get(), std::this_thread::get_id());
  EXPECT_TRUE(saw_the_end);
  loop.run();
}

}  // namespace
}  // namespace leat::broker
