// If this failed, a program that never waits in a publisher would not learn from its event loop that
// a full topic has room again.
#include <poll.h>

#include "testing.hpp"

namespace leat {
namespace {

bool has_signal(int fd, std::chrono::milliseconds patience = 30s) {
  pollfd entry{fd, POLLIN, 0};
  return ::poll(&entry, 1, static_cast<int>(patience.count())) == 1;
}

// Publishes until the topic is full; returns how many.
int publish_until_full(Publisher& publisher) {
  for (int count = 0;; ++count) {
    auto published = publisher.publish(kHalfText, Deadline::immediate());
    if (published) continue;
    EXPECT_EQ(code(published), Errc::full);
    return count;
  }
}
// Tries whenever the descriptor is readable, until it succeeds.
Result<std::uint64_t> publish_by(int fd, Publisher& publisher) {
  while (has_signal(fd)) {
    auto published = publisher.publish(kHalfText, Deadline::immediate());
    if (code(published) != Errc::full) return published;
  }
  return Errc::timeout;
}

TEST(RoomFd, IsReadableAtFirstAndAfterAReaderMadeRoom) {
  for (const Policy policy : {Policy::block, Policy::fail, Policy::grow}) {
    for (const bool exclusive : {false, true}) {
      const TestTopic topic{{.policy = policy}};
      auto publisher = must(topic->publisher({.exclusive = exclusive}));
      auto subscriber = from_beginning(*topic);
      EXPECT_GE(publish_until_full(publisher), 8);
      const int fd = must(publisher.room_fd());
      EXPECT_EQ(must(publisher.room_fd()), fd);
      EXPECT_TRUE(has_signal(fd, 0ms));  // It was full before there was a descriptor.
      EXPECT_EQ(code(publisher.publish(kHalfText, 0s)), Errc::full);
      EXPECT_EQ(code(publisher.try_claim(kHalf)), Errc::full);
      EXPECT_GE(drain(subscriber).size(), 8U);
      EXPECT_EQ(code(publish_by(fd, publisher)), Errc::ok);
    }
  }
}

TEST(RoomFd, EachReaderThatMakesRoomIsHeard) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  auto subscriber = must(topic->subscriber());
  const int fd = must(publisher.room_fd());
  std::jthread reader{[&] {
    for (int i = 0; i < 500; ++i) must(subscriber.receive(30s));
  }};
  for (int i = 0; i < 500; ++i) {
    auto published = publisher.publish(kHalfText, Deadline::immediate());
    if (code(published) == Errc::full) published = publish_by(fd, publisher);
    ASSERT_EQ(code(published), Errc::ok) << i;
  }
}

TEST(RoomFd, IsOfOnePartition) {
  const TestTopic topic{{.capacity_bytes = 8 * kSegment, .partitions = 2}};
  auto publisher = must(topic->publisher({.partition = 1}));
  EXPECT_EQ(code(publisher.room_fd(2)), Errc::invalid_argument);
  EXPECT_NE(must(publisher.room_fd(0)), must(publisher.room_fd(1)));
  EXPECT_EQ(must(publisher.room_fd()), must(publisher.room_fd(1)));
  const auto subscriber = from_beginning(*topic);
  publish_until_full(publisher);
  EXPECT_TRUE(has_signal(must(publisher.room_fd(0)), 0ms));  // Nobody has been refused there.
}

// Only a publisher's look shows that whoever keeps the room is dead.
TEST(RoomFd, IsReadableIfWhoKeptTheRoomHasDied) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  Child child{[&] {
    const auto subscriber = from_beginning(topic.open_again());
    ::raise(SIGSTOP);
    return 0;
  }};
  int status = 0;
  ASSERT_EQ(::waitpid(child.pid(), &status, WUNTRACED), child.pid());
  publish_until_full(publisher);
  const int fd = must(publisher.room_fd());
  EXPECT_EQ(code(publisher.try_claim(kHalf)), Errc::full);
  EXPECT_EQ(child.kill(SIGKILL), -SIGKILL);
  EXPECT_EQ(code(publish_by(fd, publisher)), Errc::ok);
}

TEST(RoomFd, IsReadableWhenALimitIsRaised) {
  const TestTopic topic;
  std::atomic<std::uint64_t> limit = 1;
  auto publisher = must(topic->publisher({.offset_limit = [&] { return limit.load(); }}));
  const int fd = must(publisher.room_fd());
  must(publisher.publish("x"));
  EXPECT_EQ(code(publisher.publish("y", Deadline::immediate())), Errc::full);
  limit = 2;
  topic->recheck_offset_limits();
  ASSERT_TRUE(has_signal(fd));
  EXPECT_EQ(must(publisher.publish("y", Deadline::immediate())), 1U);
}

TEST(RoomFd, TellsOfDeletion) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const auto subscriber = from_beginning(*topic);
  const int fd = must(publisher.room_fd());
  publish_until_full(publisher);
  must(Topic::delete_topic(kTopicName, {.force = true, .directory = topic.directory()}));
  ASSERT_TRUE(has_signal(fd));
  EXPECT_EQ(code(publisher.publish(kHalfText, Deadline::immediate())), Errc::deleted);
}

TEST(RoomFd, OfATopicThatRetainsAllIsNeverReadable) {
  const TestTopic topic{{.retain_all = true}};
  auto publisher = must(topic->publisher());
  const int fd = must(publisher.room_fd());
  publish_until_full(publisher);
  EXPECT_FALSE(has_signal(fd, 30ms));
}

TEST(RoomFd, OfABatchToo) {
  for (const bool exclusive : {false, true}) {
    const TestTopic topic;
    auto publisher = must(topic->publisher({.exclusive = exclusive}));
    auto subscriber = from_beginning(*topic);
    const int fd = must(publisher.room_fd());
    publish_until_full(publisher);
    auto batch = must(publisher.batch());
    must(batch.add("x"));
    EXPECT_EQ(code(batch.commit(Deadline::immediate())), Errc::full);
    EXPECT_EQ(drain(subscriber).size(), 8U);
    Errc last = Errc::full;
    while (last == Errc::full && has_signal(fd)) last = code(batch.commit(Deadline::immediate()));
    EXPECT_EQ(last, Errc::ok);
  }
}

TEST(RoomFd, OfAParentIsRefusedAndLeftAlone) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  auto subscriber = from_beginning(*topic);
  const int fd = must(publisher.room_fd());
  publish_until_full(publisher);
  Child child{[&] {
    if (code(publisher.room_fd()) != Errc::forked) return 1;
    { const auto dropped = std::move(publisher); }
    return 0;
  }};
  EXPECT_EQ(child.join(), 0);
  EXPECT_EQ(drain(subscriber).size(), 8U);
  EXPECT_EQ(code(publish_by(fd, publisher)), Errc::ok);
}

}  // namespace
}  // namespace leat
