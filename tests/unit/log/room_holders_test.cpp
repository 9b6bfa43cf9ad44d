// If this failed, a publisher that hangs at a full topic could not say for whom it waits, or would blame others.
#include <algorithm>
#include <cstring>

#include "testing.hpp"

namespace leat {
namespace {

using Kind = RoomHolder::Kind;

int fill_up(Publisher& publisher) {
  int count = 0;
  while (publisher.publish(kHalfText, Deadline::immediate())) ++count;
  return count;
}

// "group workers", "subscriber 12": of one partition.
std::vector<std::string> names(Result<std::vector<RoomHolder>> found) {
  constexpr const char* kKinds[] = {"", "subscriber", "group", "publisher", "archiver"};
  std::vector<std::string> all;
  const std::vector<RoomHolder> holders = must(std::move(found));
  for (const RoomHolder& one : holders) {
    std::string name = kKinds[static_cast<std::size_t>(one.kind)];
    if (!one.group.empty()) name += " " + one.group;
    for (const std::uint32_t pid : one.pids)
      name += pid == static_cast<std::uint32_t>(::getpid()) ? " me" : " other";
    all.push_back(name);
  }
  return all;
}
using Names = std::vector<std::string>;

TEST(RoomHolders, NobodyAsLongAsThereIsRoom) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  EXPECT_EQ(names(publisher.waiting_for()), Names{});
  for (int i = 0; i < 100; ++i)
    must(publisher.publish(kHalfText));  // All used, and nobody needs it.
  EXPECT_EQ(names(publisher.waiting_for()), Names{});
  EXPECT_TRUE(topic->info().room_holders.empty());
}

TEST(RoomHolders, ASubscriberUntilItHasRead) {
  for (const Policy policy : {Policy::block, Policy::fail, Policy::grow}) {
    const TestTopic topic{{.policy = policy}};
    auto publisher = must(topic->publisher());
    auto subscriber = from_beginning(*topic);
    auto other = must(topic->subscriber({.from = From::beginning, .gating = false}));
    fill_up(publisher);
    EXPECT_EQ(names(publisher.waiting_for()), (Names{"subscriber me"}));
    const TopicInfo info = topic->info();
    ASSERT_EQ(info.room_holders.size(), 1U);
    EXPECT_EQ(info.room_holders[0].partition, 0U);
    EXPECT_EQ(std::ranges::count_if(info.participants, &ParticipantInfo::blocking), 1);
    drain(subscriber);
    EXPECT_EQ(names(publisher.waiting_for()), Names{});
  }
}

TEST(RoomHolders, AGroupWithAndWithoutMembers) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = must(topic->group("wokers", {.from = From::beginning}));
  fill_up(publisher);
  EXPECT_EQ(names(publisher.waiting_for()), (Names{"group wokers"}));
  {
    auto member = must(group.join());
    EXPECT_EQ(names(publisher.waiting_for()), (Names{"group wokers me"}));
    std::vector<Delivery> taken;
    while (member.receive(taken, 100, Deadline::immediate())) {
    }
    // All are taken and none is acknowledged.
    EXPECT_EQ(names(publisher.waiting_for()), (Names{"group wokers me"}));
    for (const Delivery& one : taken) must(member.acknowledge(one));
    EXPECT_EQ(names(publisher.waiting_for()), Names{});
  }
}

TEST(RoomHolders, EverybodyWhoHoldsIt) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  auto subscriber = from_beginning(*topic);
  must(topic->group("a", {.from = From::beginning}));
  must(topic->group("b", {.from = From::beginning}));
  fill_up(publisher);
  EXPECT_EQ(names(publisher.waiting_for()), (Names{"subscriber me", "group a", "group b"}));
  must(topic->delete_group("a"));
  EXPECT_EQ(names(publisher.waiting_for()), (Names{"subscriber me", "group b"}));
}

TEST(RoomHolders, APublisherThatHasNotCommitted) {
  const TestTopic topic{{.capacity_bytes = 2 * kSegment}};  // With more, others would be reused.
  auto stuck = must(topic->publisher());
  auto claim = must(stuck.claim(100));
  auto publisher = must(topic->publisher());
  fill_up(publisher);
  EXPECT_EQ(names(publisher.waiting_for()), (Names{"publisher me"}));
  must(claim.commit());
  EXPECT_EQ(names(publisher.waiting_for()), Names{});
}

TEST(RoomHolders, NoDeadProcess) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const pid_t child = calm_fork();
  if (child == 0) {
    auto subscriber =
        must(must(Topic::open(topic->name(), Deadline::immediate(), topic->directory()))
                 .subscriber({.from = From::beginning}));
    ::raise(SIGSTOP);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
  fill_up(publisher);
  EXPECT_EQ(names(publisher.waiting_for()), (Names{"subscriber other"}));
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(names(publisher.waiting_for()), Names{});
}

TEST(RoomHolders, WhileAnotherThreadWaits) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  auto subscriber = must(topic->subscriber({.from = From::beginning}));
  fill_up(publisher);
  std::jthread waiting{[&] { must(publisher.publish(kHalfText)); }};
  for (int i = 0; i < 100; ++i) EXPECT_EQ(names(publisher.waiting_for()), (Names{"subscriber me"}));
  drain(subscriber);
}

TEST(RoomHolders, OnePartition) {
  const TestTopic topic{{.partitions = 2}};
  auto publisher = must(topic->publisher({.partition = 1}));
  auto subscriber = from_beginning(*topic);
  fill_up(publisher);
  EXPECT_EQ(names(publisher.waiting_for(0)), Names{});
  EXPECT_EQ(must(publisher.waiting_for())[0].partition, 1U);
  EXPECT_EQ(topic->info().room_holders[0].partition, 1U);
  EXPECT_EQ(code(publisher.waiting_for(2)), Errc::invalid_argument);
}

TEST(RoomHolders, NobodyWhereNobodyCanMakeRoom) {
  const TestTopic topic{{.retain_all = true}};
  auto publisher = must(topic->publisher());
  auto subscriber = from_beginning(*topic);
  fill_up(publisher);
  EXPECT_EQ(names(publisher.waiting_for()), Names{});
}

// A record of a hundred bytes fits; the publisher that was refused waits for room for a large one.
TEST(RoomHolders, InfoDoesNotCallATopicFullThatTakesAnotherRecord) {
  const TestTopic topic{{.capacity_bytes = 2 * kSegment}};
  auto publisher = must(topic->publisher());
  auto subscriber = from_beginning(*topic);
  while (must(publisher.publish(std::string(100, 'x'))) < 500) {
    const TopicInfo info = topic->info();
    if (info.partitions[0].used_bytes < kSegment + 200 ||
        info.partitions[0].used_bytes > 2 * kSegment - 200)
      continue;
    ASSERT_TRUE(info.room_holders.empty()) << info.partitions[0].used_bytes;
    ASSERT_EQ(std::ranges::count_if(info.participants, &ParticipantInfo::blocking), 0);
    if (info.partitions[0].used_bytes > 2 * kSegment - 400) break;
  }
  const std::string large(publisher.max_record_size(), 'x');
  EXPECT_EQ(code(publisher.publish(large, Deadline{1ms})), Errc::timeout);
  EXPECT_EQ(names(publisher.waiting_for()), (Names{"subscriber me"}));
  EXPECT_EQ(topic->info().room_holders.size(), 1U);
}

TEST(RoomHolders, NoGroupThatAPublisherWouldCallOff) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  must(topic->group("g", {.from = From::beginning}));
  fill_up(publisher);
  EXPECT_EQ(names(publisher.waiting_for()), (Names{"group g"}));
  // As if its creator had died.
  const auto group = must(topic.shared().group(0));
  group->header().closed = detail::kGroupMaking;
  EXPECT_EQ(names(publisher.waiting_for()), Names{});
  EXPECT_EQ(group->header().closed, detail::kGroupMaking);  // It only looks.
  must(publisher.publish(kHalfText, Deadline::immediate()));
}

// `leat group info` would not find a deleted group.
TEST(RoomHolders, AMemberOfADeletedGroup) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = must(topic->group("g", {.from = From::beginning}));
  auto member = must(group.join());
  fill_up(publisher);
  std::vector<Delivery> taken;
  while (member.receive(taken, 100, Deadline::immediate())) {
  }
  must(topic->delete_group("g", true));
  EXPECT_EQ(names(publisher.waiting_for()), (Names{"subscriber me"}));
}

// It could clear a terminal, or run a command of its own in the shell into which the advice is pasted.
TEST(RoomHolders, NoNameThatNoGroupHas) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  must(topic->group("abcdefgh", {.from = From::beginning}));
  fill_up(publisher);
  const auto group = must(topic.shared().group(0));
  std::memcpy(group->header().name, "a\x1b[2;`\n'", 8);
  EXPECT_EQ(names(publisher.waiting_for()), (Names{"group a??2????"}));
  EXPECT_EQ(must(topic->group_names()), (std::vector<std::string>{"a??2????"}));
  group->header().name_size = ~0U;
  EXPECT_EQ(must(publisher.waiting_for())[0].group, "");
}

TEST(RoomHolders, AfterAFork) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const pid_t child = calm_fork();
  if (child == 0) ::_exit(code(publisher.waiting_for()) == Errc::forked ? 0 : 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace leat
