// If this failed, a child that a callback forks could move its parent's place in the topic, or claim with its parent's
// slot: the parent would then lose records that it has not read, or find its topic corrupt.
#include <functional>

#include "durable_testing.hpp"
#include "unit/testing.hpp"

namespace leat {
namespace {

// Forks where it is called first, and lets the child go on there until it ends.
class Fork {
 public:
  void operator()(const std::function<void()>& in_parent = [] {}) {
    if (pid_ != -1) return;
    pid_ = calm_fork();
    if (pid_ == 0) return;
    ::waitpid(pid_, &status_, 0);
    in_parent();
  }
  // To be called with the result of what has called the callback. The child ends here.
  template <class T>
  void check(const Result<T>& result) const {
    if (pid_ == 0) ::_exit(code(result) == Errc::forked ? 0 : 1);
    EXPECT_GT(pid_, 0) << "no callback was called";
    EXPECT_EQ(status_, 0) << "the child got something else than `forked`";
  }

 private:
  pid_t pid_ = -1;
  int status_ = -1;
};

int publish_and_count(Publisher& publisher) {
  int count = 0;
  while (publisher.publish(std::string(kThird, 'x'), Deadline::immediate())) ++count;
  return count;
}

TEST(ForkedInPoll, AChildLeavesWhatItsParentHasToRead) {
  const TestTopic topic;
  auto subscriber = from_beginning(*topic);
  auto publisher = must(topic->publisher());
  const int filled = publish_and_count(publisher);
  Fork fork;
  int more = -1;
  auto polled =
      subscriber.poll(1000, [&](const Record&) { fork([&] { more = publish_and_count(publisher); }); });
  fork.check(polled);
  EXPECT_EQ(more, 0) << "the child has given up room that its parent reads";
  EXPECT_EQ(must(std::move(polled)), static_cast<std::size_t>(filled));
}

TEST(ForkedInPoll, AChildThatReachesTheLimitLeavesTheParentsOffset) {
  const TestTopic topic;
  auto subscriber = from_beginning(*topic);
  auto publisher = must(topic->publisher());
  for (int i = 0; i < 5; ++i) must(publisher.publish("x"));
  Fork fork;
  auto polled = subscriber.poll(3, [&](const Record&) { fork(); });
  fork.check(polled);
  EXPECT_EQ(must(std::move(polled)), 3U);
}

TEST(ForkedInPoll, AChildGetsTheErrorAfterRecordsOfOtherPartitions) {
  const TestTopic topic{{.partitions = 2}};
  auto subscriber = from_beginning(*topic);
  auto publisher = must(topic->publisher());
  for (const std::uint32_t partition : {0U, 1U})
    must(publisher.publish({.value = "x", .partition = partition}));
  Fork fork;
  int calls = 0;
  auto polled = subscriber.poll(10, [&](const Record&) {
    if (++calls == 2) fork();
  });
  fork.check(polled);
  EXPECT_EQ(must(std::move(polled)), 2U);
}

TEST(ForkedInPoll, AChildLeavesThePinOfARecordInPlace) {
  const TestTopic topic{{.policy = Policy::overwrite}};
  auto publisher = must(topic->publisher());
  auto subscriber =
      must(topic->subscriber({.from = From::beginning, .gating = false, .in_place = true}));
  for (int i = 0; i < 9; ++i) must(publisher.publish(std::string(kThird, 'a')));
  Fork fork;
  auto polled = subscriber.poll(1000, [&](const Record& record) {
    fork([&] {
      for (int i = 0; i < 50; ++i) must(publisher.publish(std::string(kThird, 'b')));
      EXPECT_EQ(record.text().front(), 'a') << "overwritten while it is delivered";
    });
  });
  fork.check(polled);
}

// --- Gaps ----------------------------------------------------------------------------------------

class ForkedAtGap : public ::testing::Test {
 protected:
  ForkedAtGap() {
    { const auto claim = must(publisher_.try_claim(1)); }
    filled_ = publish_and_count(publisher_);
  }
  void at_gap() {
    fork_([&] { EXPECT_EQ(publish_and_count(publisher_), 0); });
  }

  const TestTopic topic_;
  Subscriber subscriber_ = from_beginning(*topic_);
  Publisher publisher_ = must(topic_->publisher());
  int filled_ = 0;
  Fork fork_;
};

TEST_F(ForkedAtGap, PollTellsTheChild) {
  subscriber_.on_event([&](const Event&) { at_gap(); });
  auto polled = subscriber_.poll(1000, kIgnore);
  fork_.check(polled);
  EXPECT_EQ(must(std::move(polled)), static_cast<std::size_t>(filled_));
}

TEST_F(ForkedAtGap, ReceiveTellsTheChild) {
  subscriber_.on_event([&](const Event&) { at_gap(); });
  auto received = subscriber_.receive(0s);
  fork_.check(received);
  EXPECT_EQ(must(std::move(received)).offset, 1U);
}

TEST_F(ForkedAtGap, PollBatchTellsTheChild) {
  auto polled = subscriber_.poll_batch(1000, kIgnore, [&](const Event&) { at_gap(); });
  fork_.check(polled);
  EXPECT_GT(must(std::move(polled)), 1U);
}

TEST(ForkedAtFirstGap, AChildDoesNotGoOn) {
  const TestTopic topic{{.policy = Policy::overwrite}};
  auto publisher = must(topic->publisher());
  auto subscriber =
      must(topic->subscriber({.from = From::beginning, .gating = false, .in_place = true}));
  for (int i = 0; i < 50; ++i) must(publisher.publish(kHalfText));
  Fork fork;
  int records = 0;
  subscriber.on_event([&](const Event&) { fork(); });
  auto polled = subscriber.poll(1000, [&](const Record&) { ++records; });
  fork.check(polled);
  EXPECT_GT(records, 0);
}

// --- Durable topics ------------------------------------------------------------------------------

using ForkedOnDisk = testing::DurableSync;

TEST_F(ForkedOnDisk, AChildDoesNotEnterTheLog) {
  const Topic topic = create(Durability::os);
  auto publisher = must(topic.publisher());
  for (int i = 0; i < 200; ++i) must(publisher.publish(kHalfText));
  auto subscriber = must(topic.subscriber({.from = From::beginning}));
  Fork fork;
  auto polled = subscriber.poll(1000, [&](const Record&) { fork(); });
  fork.check(polled);
  EXPECT_GT(must(std::move(polled)), 0U);
}

// --- offset_limit --------------------------------------------------------------------------------

// The argument: whether the publisher is exclusive.
class ForkedInLimit : public ::testing::TestWithParam<bool> {
 protected:
  // Calls `use` with a publisher whose offset_limit forks, and checks its result.
  template <class Use>
  void check(const Use& use) {
    const TestTopic topic;
    auto subscriber = from_beginning(*topic);
    Fork fork;
    auto publisher = must(topic->publisher({.exclusive = GetParam(), .offset_limit = [&] {
                                              fork();
                                              return std::uint64_t{100};
                                            }}));
    fork.check(use(publisher));
    EXPECT_EQ(drain(subscriber), Log{"0 x"});
  }
};
INSTANTIATE_TEST_SUITE_P(SharedAndExclusive, ForkedInLimit, ::testing::Bool());

TEST_P(ForkedInLimit, AChildDoesNotPublish) {
  check([](Publisher& publisher) { return publisher.publish("x"); });
}

TEST_P(ForkedInLimit, AChildDoesNotClaim) {
  check([](Publisher& publisher) -> Result<std::uint64_t> {
    auto claim = publisher.try_claim(1);
    if (!claim) return claim.error();
    claim->payload()[0] = std::byte{'x'};
    return claim->commit();
  });
}

TEST_P(ForkedInLimit, AChildDoesNotCommitABatch) {
  check([](Publisher& publisher) {
    auto batch = must(publisher.batch());
    must(batch.add("x"));
    return batch.commit();
  });
}

// It asks once more before it sleeps, and later again.
TEST_P(ForkedInLimit, AChildDoesNotWait) {
  const TestTopic topic;
  auto subscriber = from_beginning(*topic);
  Fork fork;
  int calls = 0;
  auto publisher = must(topic->publisher({.exclusive = GetParam(), .offset_limit = [&] {
                                            if (++calls == 2) fork();
                                            return std::uint64_t{calls < 3 ? 0U : 100U};
                                          }}));
  fork.check(publisher.publish("x", 10s));
  EXPECT_EQ(drain(subscriber), Log{"0 x"});
}

}  // namespace
}  // namespace leat
