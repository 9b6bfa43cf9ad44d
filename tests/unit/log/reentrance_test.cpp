// If this failed, a callback that uses the publisher or subscriber which calls it could break the topic, or crash.
#include <functional>

#include "durable_testing.hpp"
#include "unit/testing.hpp"

namespace leat {
namespace {

// --- offset_limit --------------------------------------------------------------------------------

// The argument: whether the publisher is exclusive.
class LimitThatPublishes : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(SharedAndExclusive, LimitThatPublishes, ::testing::Bool());

TEST_P(LimitThatPublishes, IsToldThatItsPartitionIsBusy) {
  const TestTopic topic{{.partitions = 2}};
  std::function<void()> within;
  auto publisher = must(topic->publisher(
      {.exclusive = GetParam(), .partition = 0, .offset_limit = [&]() -> std::uint64_t {
         if (within) std::exchange(within, {})();
         return 1000;
       }}));
  const auto recheck_and = [&](std::function<void()> call) {
    within = std::move(call);
    topic->recheck_offset_limits();
  };
  Errc inner = Errc::ok;
  recheck_and([&] { inner = code(publisher.publish("inner")); });
  EXPECT_EQ(must(publisher.publish("0")), 0u);
  EXPECT_EQ(inner, Errc::busy);
  recheck_and([&] { inner = code(publisher.try_claim(1)); });
  EXPECT_EQ(must(publisher.publish("1")), 1u);
  EXPECT_EQ(inner, Errc::busy);
  recheck_and([&] { inner = code(publisher.publish({.value = "other", .partition = 1})); });
  EXPECT_EQ(must(publisher.publish("2")), 2u);
  EXPECT_EQ(inner, Errc::ok);
  EXPECT_EQ(must(publisher.publish("3")), 3u);
}

TEST_P(LimitThatPublishes, LeavesTheNextClaimWholeIfItsProcessDies) {
  const TestTopic topic;
  auto subscriber = from_beginning(*topic);
  Child child{[&] {
    const Topic opened = topic.open_again();
    Publisher* self = nullptr;
    int calls = 0;
    auto publisher =
        opened.publisher({.exclusive = GetParam(), .offset_limit = [&]() -> std::uint64_t {
                            if (++calls == 1) (void)self->publish("inner");
                            return 1000;
                          }});
    CHILD_CHECK_OK(publisher);
    self = &*publisher;
    auto claim = publisher->claim(1000);
    CHILD_CHECK_OK(claim);
    ::_exit(0);
    return 0;
  }};
  EXPECT_EQ(child.join(), 0);
  auto publisher = must(topic->publisher());
  EXPECT_EQ(must(publisher.publish("after")), 1u);
  EXPECT_EQ(read_until(subscriber, 2), (Log{"0+1 died", "1 after"}));
}

TEST_P(LimitThatPublishes, AddsToABatchWithoutTakingTheRoomThatIsBeingClaimed) {
  const TestTopic topic;
  std::optional<Batch> notes;
  auto publisher =
      must(topic->publisher({.exclusive = GetParam(), .offset_limit = [&]() -> std::uint64_t {
                               if (notes) must(notes->add("the limit was asked for"));
                               return 1000;
                             }}));
  auto subscriber = from_beginning(*topic);
  must(publisher.publish("0"));
  notes.emplace(must(publisher.batch()));
  topic->recheck_offset_limits();
  EXPECT_EQ(must(publisher.publish("1")), 1u);
  EXPECT_EQ(must(notes->commit()), 2u);
  EXPECT_EQ(drain(subscriber), (Log{"0 0", "1 1", "2 the limit was asked for"}));
  notes.reset();  // No batch outlives its publisher.
}

// --- Subscribers ---------------------------------------------------------------------------------

// Reads one record in a call of poll() and all others in the callback of that.
Log read_within(Subscriber& subscriber) {
  Log log;
  const auto note = [&](const Record& record) { log.push_back(to_text(record)); };
  must(subscriber.poll(1000, [&](const Record& record) {
    note(record);
    while (must(subscriber.poll(3, note)) != 0) {
    }
  }));
  return log;
}

TEST(SubscriberThatIsPolledWithin, DeliversEachRecordOnce) {
  for (const bool is_lossy : {false, true}) {
    const TestTopic topic;
    auto subscriber = must(topic->subscriber({.from = From::beginning, .gating = !is_lossy}));
    auto publisher = must(topic->publisher());
    auto batch = must(publisher.batch());
    for (int i = 0; i < 5; ++i) must(batch.add("x"));
    must(batch.commit());
    for (int i = 0; i < 300; ++i) must(publisher.publish("x"));
    EXPECT_EQ(read_within(subscriber), repeated(305, "x"));
    must(publisher.publish("x"));
    EXPECT_EQ(drain(subscriber), repeated(1, "x", 305));
  }
}

class DurableSubscriber : public testing::DurableSync {};

TEST_F(DurableSubscriber, MayLeaveTheDiskWithinACallback) {
  const Topic topic = create(Durability::os);
  auto subscriber = must(topic.subscriber({.from = From::beginning}));
  auto publisher = publisher_of(topic);
  for (int i = 0; i < 5000; ++i) must(publisher.publish("x"));  // Several windows.
  Log log;
  const auto note = [&](const Record& record) { log.push_back(to_text(record)); };
  while (subscriber.offset() < 5000) {
    must(subscriber.wait(30s));
    must(subscriber.poll(2, [&](const Record& record) {
      note(record);
      while (must(subscriber.poll(1000, note)) != 0) {
      }
    }));
  }
  EXPECT_EQ(log, repeated(5000, "x"));
}

TEST(GapCallback, MayReplaceItself) {
  const TestTopic topic;
  auto subscriber = from_beginning(*topic);
  auto publisher = must(topic->publisher());
  for (int i = 0; i < 2; ++i) must(must(publisher.try_claim(1)).abort());
  Log log;
  // A string that is too long for its owner to contain it, so that a sanitizer sees a use of freed memory.
  subscriber.on_event([&, text = std::string(100, 'a')](const Event& event) {
    subscriber.on_event([&](const Event& second) { log.push_back(to_text(second)); });
    log.push_back(to_text(event) + " " + text.substr(0, 1));
  });
  EXPECT_EQ(must(subscriber.poll(10, kIgnore)), 0u);
  EXPECT_EQ(log, (Log{"0+1 aborted a", "1+1 aborted"}));
}

}  // namespace
}  // namespace leat
