// If this failed, a dead publisher's hole would stay, with the records behind it, as long as other partitions or
// other subscribers of the same thread always have records.
#include "testing.hpp"

namespace leat {
namespace {

// Two partitions. A publisher has died with an open claim in partition 1, and a record is behind it. Partition 0
// gets another record before each poll, so that there is always one.
class BusyTopic {
 public:
  BusyTopic() {
    claim_and_die(topic_, {.partition = 1});
    must(must(topic_->publisher({.partition = 1})).publish("behind"));
  }
  const Topic& operator*() const { return *topic_; }
  void keep_busy() { must(busy_.publish("x")); }

 private:
  TestTopic topic_{{.partitions = 2}};
  Publisher busy_ = must(topic_->publisher({.partition = 0}));
};

// Calls `poll` until it has delivered the record behind the hole, for a while.
template <class Poll>
bool comes(BusyTopic& topic, Poll&& poll) {
  const Deadline deadline{10s};
  for (bool has_come = false; !deadline.passed();) {
    topic.keep_busy();
    poll([&](const Record& record) { has_come |= record.partition == 1; });
    if (has_come) return true;
  }
  return false;
}

TEST(BusyHole, IsRepairedBySubscribersThatAlwaysHaveRecords) {
  {
    BusyTopic topic;
    auto subscriber = from_beginning(*topic);
    EXPECT_TRUE(comes(topic, [&](auto&& note) { must(subscriber.poll(1, note)); }));
  }
  {
    BusyTopic topic;
    auto subscriber = from_beginning(*topic);
    EXPECT_TRUE(comes(topic, [&](auto&& note) { note(must(subscriber.receive(10s))); }));
  }
  {
    BusyTopic topic;
    auto subscriber = from_beginning(*topic);
    EXPECT_TRUE(comes(
        topic, [&](auto&& note) { must(subscriber.poll_batch(1, note, [](const Event&) {})); }));
  }
}

TEST(BusyHole, IsRepairedByMembersThatAlwaysHaveRecords) {
  for (const bool by_key : {false, true}) {
    for (int way = 0; way < 3; ++way) {
      BusyTopic topic;
      auto member =
          must(must((*topic).group("g", {.from = From::beginning, .by_key = by_key})).join());
      EXPECT_TRUE(comes(topic, [&](auto&& note) {
        std::vector<Delivery> taken;
        if (way == 0) {
          must(member.poll(1, [&](const Delivery& delivery) { note(delivery.record); }));
        } else if (way == 1) {
          taken.push_back(must(member.receive(10s)));
        } else {
          must(member.receive(taken, 1, 10s));
        }
        for (const Delivery& delivery : taken) {
          note(delivery.record);
          must(member.acknowledge(delivery));
        }
      })) << way;
    }
  }
}

// The only partition has a hole where the group is, and a record in front of it that is requeued each time.
TEST(BusyHole, IsRepairedByAMemberThatIsBusyWithReturnedRecords) {
  for (const bool polls : {false, true}) {
    const TestTopic topic;
    must(must(topic->publisher()).publish("poison"));
    claim_and_die(topic);
    must(must(topic->publisher()).publish("behind"));
    auto member = must(must(topic->group("g", {.from = From::beginning})).join());
    bool has_come = false;
    for (const Deadline deadline{10s}; !has_come && !deadline.passed();) {
      const auto use = [&](const Delivery& delivery) {
        has_come |= delivery.record.text() == "behind";
        must(member.requeue(delivery));
      };
      if (polls) {
        must(member.poll(1, use));
      } else {
        use(must(member.receive(10s)));
      }
    }
    EXPECT_TRUE(has_come) << polls;
  }
}

TEST(BusyHole, IsRepairedBehindOneOfManySubscribersThatIsAlwaysReady) {
  BusyTopic topic;
  auto waits = must((*topic).subscriber({.from = From::beginning, .partition = 1}));
  auto busy = must((*topic).subscriber({.from = From::beginning, .partition = 0}));
  std::size_t first = 1;
  for (const Deadline deadline{10s}; first != 0 && !deadline.passed();) {
    topic.keep_busy();
    first = must(wait_any({&waits, &busy}, 10s));
    if (first == 1) must(busy.poll(1, kIgnore));
  }
  EXPECT_EQ(first, 0u);
}

}  // namespace
}  // namespace leat
