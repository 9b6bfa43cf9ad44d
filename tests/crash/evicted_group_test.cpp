// If this failed, a group could be made, or moved, to a place whose room nobody had kept: then no member
// and no publisher of the topic could ever go on.
//
// The subscriber that keeps the room for a process that creates or moves a group is evicted while that
// process does not run, or the process dies there.
#include <atomic>
#include <thread>

#include "group_scenarios.hpp"
#include "support/moment.hpp"

namespace leat::testing {
namespace {

class EvictedGroup : public ::testing::TestWithParam<const char*> {
 protected:
  EvictedGroup() {
    auto topic = Topic::create("topic", {.capacity_bytes = 4 * 4096,
                                         .segment_bytes = 4096,
                                         .evict_after = 2ms,
                                         .directory = directory_.path()});
    if (!topic) std::abort();
    topic_.emplace(std::move(*topic));
    publish(7);  // The last of four segments has room for one more.
  }

  // In another thread, two records a segment.
  void publish(int count) {
    std::thread{[&] {
      auto publisher = topic_->publisher();
      ASSERT_TRUE(publisher) << describe(publisher.error());
      for (int i = 0; i < count; ++i) {
        auto offset = publisher->publish(std::string(1500, 'x'), kPatience);
        ASSERT_TRUE(offset) << describe(offset.error());
        end_ = *offset + 1;
      }
    }}.join();
  }
  // Everything from the group's position on.
  void expect_reads_all(const Group& group) {
    std::uint64_t next = group.position();
    EXPECT_GT(next, 0U) << "the first record was overwritten";
    EXPECT_LT(next, end_);
    auto member = group.join();
    ASSERT_TRUE(member) << describe(member.error());
    while (next < end_) {
      auto one = member->receive(kPatience);
      ASSERT_TRUE(one) << describe(one.error());
      EXPECT_EQ(one->record.offset, next);
      next = one->record.offset + 1;
      EXPECT_TRUE(member->acknowledge(*one));
    }
    publish(4);
    EXPECT_TRUE(member->receive(kPatience));
  }
  // A group that has read everything.
  Group group_at_end() {
    auto group = topic_->group("group", {.from = From::end});
    if (!group) std::abort();
    return std::move(*group);
  }
  // Dies at the step of this case.
  void kill_at_step(const std::function<Result<void>(Topic&)>& call) {
    Child victim{[&]() -> int {
      arm({GetParam(), 1, SIGKILL});
      auto topic = Topic::open("topic", Deadline::immediate(), directory_.path());
      CHILD_CHECK_OK(topic);
      CHILD_CHECK_OK(call(*topic));
      return 0;
    }};
    victim.wait();
    EXPECT_TRUE(victim.was_killed()) << victim.describe();
  }

  TemporaryDirectory directory_;
  std::optional<Topic> topic_;
  std::uint64_t end_ = 0;
};

class EvictedCreation : public EvictedGroup {};
INSTANTIATE_TEST_SUITE_P(Each, EvictedCreation, ::testing::Values("group:filled", "group:entered"));

TEST_P(EvictedCreation, BeginsAnew) {
  bool is_first = true;
  const Moment moment{GetParam(), [&] {
                        if (std::exchange(is_first, false)) publish(20);
                      }};
  auto group = topic_->group("group", {.from = From::beginning});
  ASSERT_TRUE(group) << describe(group.error());
  EXPECT_EQ(moment.times(), 2U);
  EXPECT_TRUE(group->was_created());
  EXPECT_EQ(topic_->group_names().value(), std::vector<std::string>{"group"});
  expect_reads_all(*group);
}

TEST_P(EvictedCreation, EndsInTheEndIfItHappensAllTheTime) {
  int left = 10;
  const Moment moment{GetParam(), [&] {
                        if (left-- > 0) publish(12);
                      }};
  auto group = topic_->group("group", {.from = From::beginning});
  ASSERT_TRUE(group) << describe(group.error());
  EXPECT_EQ(moment.times(), 11U);
  expect_reads_all(*group);
}

TEST_P(EvictedCreation, LeavesNothingBehindIfTheCreatorDies) {
  kill_at_step([](Topic& topic) -> Result<void> {
    auto made = topic.group("group", {.from = From::beginning});
    if (!made) return made.error();
    return {};
  });
  publish(20);
  EXPECT_EQ(topic_->group_names().value(), std::vector<std::string>{});
  EXPECT_EQ(topic_->find_group("group").error().code, Errc::not_found);
  auto group = topic_->group("group", {.from = From::beginning});
  ASSERT_TRUE(group) << describe(group.error());
  EXPECT_TRUE(group->was_created());
  expect_reads_all(*group);
}

class EvictedMove : public EvictedGroup {};
INSTANTIATE_TEST_SUITE_P(Each, EvictedMove, ::testing::Values("seek:noted", "seek:marked"));

TEST_P(EvictedMove, BeginsAnew) {
  const Group group = group_at_end();
  bool is_first = true;
  const Moment moment{GetParam(), [&] {
                        if (std::exchange(is_first, false)) publish(4);
                      }};
  auto moved = group.seek(From::beginning);
  ASSERT_TRUE(moved) << describe(moved.error());
  EXPECT_GE(moment.times(), 2U);
  expect_reads_all(group);
}

TEST_P(EvictedMove, ChangesNothingIfTheMoverDies) {
  const Group group = group_at_end();
  const std::uint64_t position = group.position();
  kill_at_step([](Topic& topic) -> Result<void> {
    auto found = topic.find_group("group");
    if (!found) return found.error();
    return found->seek(From::beginning);
  });
  publish(4);
  EXPECT_EQ(group.position(), position);
  expect_reads_all(group);
}

}  // namespace
}  // namespace leat::testing
