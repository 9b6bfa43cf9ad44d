// If this failed, a handle that was assigned over would live on in the one that was moved from, and keep room, a topic or a
// group to itself; or what belongs to a handle would break when that is moved.
#include <type_traits>
#include <vector>

#include "unit/testing.hpp"

namespace leat {
namespace {

std::size_t participants(const Topic& topic) { return topic.info().participants.size(); }

TEST(AssignedHandle, SubscriberLeavesAtOnceAndHoldsNoRoom) {
  const TestTopic topic;
  Subscriber reader = from_beginning(*topic);
  Subscriber other = must(topic->subscriber());
  auto publisher = must(topic->publisher());
  must(publisher.publish("0"));
  reader = std::move(other);
  EXPECT_EQ(participants(*topic), 2u);
  for (int i = 0; i < 100; ++i) {
    must(publisher.publish(kHalfText, Deadline::immediate()));
    must(reader.poll(10, kIgnore));
  }
  EXPECT_EQ(reader.offset(), 101u);
}

TEST(AssignedHandle, ExclusivePublisherLeavesItsTopicToOthers) {
  const TestTopic topic;
  const TestTopic another;
  Publisher publisher = must(topic->publisher({.exclusive = true}));
  Publisher other = must(another->publisher({.exclusive = true}));
  must(other.publish("0"));
  publisher = std::move(other);
  EXPECT_EQ(code(topic->publisher({.exclusive = true})), Errc::ok);
  EXPECT_EQ(code(another->publisher()), Errc::busy);
  EXPECT_EQ(must(publisher.publish("1")), 1u);
}

TEST(AssignedHandle, MemberLeavesItsGroupToOthers) {
  const TestTopic topic;
  const Group group = must(topic->group("g", {.from = From::beginning}));
  auto publisher = must(topic->publisher());
  must(publisher.publish("x"));
  Member member = must(group.join());
  Member other = must(group.join());
  EXPECT_EQ(must(member.receive(0s)).record.text(), "x");
  member = std::move(other);
  EXPECT_EQ(group.info().members.size(), 1u);
  EXPECT_EQ(must(member.receive(30s)).record.text(), "x");
}

TEST(AssignedHandle, TopicIsClosedAtOnce) {
  const TestDirectory directory;
  const TopicOptions options{.capacity_bytes = 4 * kSegment,
                             .segment_bytes = kSegment,
                             .delete_when_unused = true,
                             .directory = directory.path()};
  Topic topic = must(Topic::create("a", options));
  (void)must(topic.publisher());
  Topic other = must(Topic::create("b", options));
  topic = std::move(other);
  EXPECT_EQ(must(Topic::list(directory.path())), std::vector<std::string>{"b"});
}

TEST(AssignedHandle, IsItselfIfItIsAssignedToItself) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  auto subscriber = from_beginning(*topic);
  Publisher& same_publisher = publisher;
  Subscriber& same_subscriber = subscriber;
  publisher = std::move(same_publisher);
  subscriber = std::move(same_subscriber);
  must(publisher.publish("x"));
  EXPECT_EQ(drain(subscriber), Log{"0 x"});
}

TEST(AssignedHandle, ResourcesOfTheProcessGoAtOnce) {
  const TestDirectory directory;
  detail::Fd file = directory.open_file("a");
  const int number = file.get();
  detail::Fd other = directory.open_file("b");
  file = std::move(other);
  EXPECT_EQ(::fcntl(number, F_GETFD), -1);

  ASSERT_TRUE(detail::allocate_file(file.get(), 1));
  auto lock = must(detail::LockFile::open(file.get(), (directory / "a").c_str(), O_RDWR));
  ASSERT_TRUE(must(lock.try_lock(0)));
  const detail::Fd probe = directory.open_file("a");
  EXPECT_TRUE(detail::byte_is_locked(probe.get(), 0));
  auto another = must(detail::LockFile::open(file.get(), (directory / "b").c_str(), O_RDWR));
  lock = std::move(another);
  EXPECT_FALSE(detail::byte_is_locked(probe.get(), 0));
}

// A claim and a batch belong to one publisher until they end.
static_assert(!std::is_move_assignable_v<Claim> && !std::is_move_assignable_v<Batch>);

// The argument: whether the publisher is exclusive.
class MovedPublisher : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(SharedAndExclusive, MovedPublisher, ::testing::Bool());

TEST_P(MovedPublisher, TakesItsBatchesAlong) {
  const TestTopic topic;
  auto subscriber = from_beginning(*topic);
  std::vector<Publisher> all;
  all.push_back(must(topic->publisher({.exclusive = GetParam()})));
  std::optional<Publisher> moved;
  std::optional<Publisher> last;
  auto batch = must(all[0].batch());
  must(batch.add("a"));
  moved.emplace(std::move(all[0]));
  all.clear();  // The object that made the batch is gone.
  must(batch.add(std::string(kThird, 'b')));
  EXPECT_EQ(code(batch.add(kHalfText)), Errc::too_large);
  EXPECT_EQ(must(batch.commit()), 0u);
  must(batch.add("c"));
  last.emplace(std::move(*moved));
  moved.reset();
  EXPECT_EQ(must(batch.commit()), 2u);
  EXPECT_EQ(must(last->publish("d")), 3u);
  EXPECT_EQ(drain(subscriber), (Log{"0 a", "1 " + std::string(kThird, 'b'), "2 c", "3 d"}));
}

TEST_P(MovedPublisher, MayBeGoneWhenABatchIsDropped) {
  const TestTopic topic;
  auto publisher = must(topic->publisher({.exclusive = GetParam()}));
  must(publisher.publish("0"));
  auto batch = must(publisher.batch());
  must(batch.add("a"));
  { const Publisher moved = std::move(publisher); }
  const Batch dropped = std::move(batch);
  auto subscriber = from_beginning(*topic);
  EXPECT_EQ(drain(subscriber), Log{"0 0"});
}

TEST_P(MovedPublisher, TakesItsClaimsAlong) {
  const TestTopic topic;
  auto subscriber = from_beginning(*topic);
  std::vector<Publisher> all;
  all.push_back(must(topic->publisher({.exclusive = GetParam()})));
  auto claim = must(all[0].try_claim(1));
  Publisher moved = std::move(all[0]);
  all.clear();
  EXPECT_EQ(code(moved.publish("x")), Errc::busy);
  claim.payload()[0] = std::byte{'a'};
  EXPECT_EQ(must(claim.commit()), 0u);
  EXPECT_EQ(must(moved.publish("b")), 1u);
  EXPECT_EQ(drain(subscriber), (Log{"0 a", "1 b"}));
}

}  // namespace
}  // namespace leat
