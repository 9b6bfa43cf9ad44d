// If this failed, records that failed too often would go to a wrong or full topic, or be counted
// wrongly. acknowledge_test.cpp tests that they are moved there at all.
#include "leat/group/dead_letters.hpp"

#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>

#include "group_testing.hpp"

namespace leat {
namespace {

using detail::dead_letter_topic_name;

// Makes the next record a dead letter. The group has max_deliveries 1.
void fail_once(Member& member) {
  must(member.requeue(take(member)));
  EXPECT_EQ(code(member.receive(kNothingFor)), Errc::timeout);
}
Topic dead_letters_of(const TestTopic& topic, const Group& group) {
  return must(Topic::open(group.info().dead_letter_topic, 0s, topic.directory()));
}
TEST(DeadLetters, TheNameIsPlainForAPlainGroup) {
  EXPECT_EQ(dead_letter_topic_name("orders", "careful"), "orders.careful.dead");
  EXPECT_EQ(dead_letter_topic_name("a.b", "c"), "a.b.c.dead");
}

TEST(DeadLetters, NoTwoGroupsShareATopic) {
  // Every way to split a name into topic and group must give another name for the dead letters.
  std::map<std::string, std::pair<std::string, std::string>> owners;
  const auto add = [&](const std::string& topic, const std::string& group) {
    const std::pair owner{topic, group};
    EXPECT_EQ(owners.emplace(dead_letter_topic_name(topic, group), owner).first->second, owner);
  };
  for (const std::string whole :
       {"a", "a.b", "a.b.c", "a..b", ".a", "a.", "a.dead", "a.dead1.b.c"}) {
    for (std::size_t at = whole.find('.'); at != std::string::npos; at = whole.find('.', at + 1))
      add(whole.substr(0, at), whole.substr(at + 1));
    add(whole, "dead");
    add(whole, "x.dead1");
  }
}

TEST(DeadLetters, OfAGroupWithDotsHaveATopicOfTheirOwn) {
  const TestTopic topic;  // "topic"
  const Topic other = must(
      Topic::create("topic.b", {.capacity_bytes = 4 * kSegment, .directory = topic.directory()}));
  const Group one = group_of(*topic, {.max_deliveries = 1}, "b.c");
  const Group two = group_of(other, {.max_deliveries = 1}, "c");
  must(must(topic->publisher()).publish("one"));
  must(must(other.publisher()).publish("two"));
  Member first = join(one);
  Member second = join(two);
  fail_once(first);
  fail_once(second);
  EXPECT_EQ(dead_values(dead_letters_of(topic, one)), (std::vector<std::string>{"one"}));
  EXPECT_EQ(dead_values(dead_letters_of(topic, two)), (std::vector<std::string>{"two"}));
}

TEST(DeadLetters, MayBeUsedByThoseWhoMayUseTheTopic) {
  const ::group* const file_group = ::getgrnam("daemon");
  ASSERT_NE(file_group, nullptr);
  const bool is_root = ::geteuid() == 0;
  for (const unsigned mode : {0600U, 0640U, 0664U, 0666U}) {
    const TestTopic topic{{.mode = mode, .file_group = is_root ? "daemon" : ""}};
    const Group group = group_of(*topic, {.max_deliveries = 1}, "g");
    must(must(topic->publisher()).publish("one"));
    Member member = join(group);
    fail_once(member);
    struct stat source {};
    struct stat letters {};
    const std::string file = '/' + std::string{detail::kControlFile};
    ASSERT_EQ(::stat((topic.directory() + "/topic" + file).c_str(), &source), 0);
    ASSERT_EQ(::stat((topic.directory() + "/topic.g.dead" + file).c_str(), &letters), 0);
    EXPECT_EQ(letters.st_mode & 0777, mode);
    if (mode == 0640 || mode == 0664) {
      EXPECT_EQ(letters.st_gid, source.st_gid);
    }
  }
}

TEST(DeadLetters, TheNameMustBeATopicsName) {
  const TestTopic topic;
  // ".dead185" makes the name too long.
  const std::string dots = "g" + std::string(185, '.') + "g";
  EXPECT_EQ(code(topic->group(dots, {.max_deliveries = 1})), Errc::invalid_argument);
  EXPECT_EQ(code(topic->group(dots, {})), Errc::ok);
}

TEST(DeadLetters, OfAGrowingTopicBeginAsSmallAndGrow) {
  const TestTopic topic{{.capacity_bytes = 8 * kSegment,
                         .policy = Policy::grow,
                         .max_capacity_bytes = 64 * kSegment}};
  const Group group = group_of(*topic, {.max_deliveries = 1});
  auto publisher = must(topic->publisher());
  must(publisher.publish("bad"));
  Member member = join(group);
  fail_once(member);
  const Topic dead = dead_letters_of(topic, group);
  EXPECT_EQ(dead.policy(), Policy::grow);
  EXPECT_EQ(dead.info().capacity_bytes, 8 * kSegment);
  EXPECT_EQ(dead.info().max_capacity_bytes, 64 * kSegment);
  // A group that holds room gets all of them, more than fit into the initial capacity.
  const Group readers = group_of(dead);
  constexpr std::size_t kLetters = 40;
  for (std::size_t i = 0; i < kLetters; ++i) {
    must(publisher.publish(kHalfText));
    fail_once(member);
  }
  Member reader = join(readers);
  EXPECT_EQ(take_all(reader).size(), 1 + kLetters);
  EXPECT_GT(dead.info().capacity_bytes, 8 * kSegment);
}

TEST(DeadLetters, OfATopicOfTwoSegmentsThatGrows) {
  const TestTopic topic{
      {.capacity_bytes = 2 * kSegment, .policy = Policy::grow, .max_capacity_bytes = 2 * kSegment}};
  const Group group = group_of(*topic, {.max_deliveries = 1});
  must(must(topic->publisher()).publish("bad"));
  Member member = join(group);
  fail_once(member);
  EXPECT_EQ(dead_values(dead_letters_of(topic, group)), (std::vector<std::string>{"bad"}));
}

TEST(DeadLetters, OfATopicThatBlocksOverwriteTheOldest) {
  const TestTopic topic{{.capacity_bytes = 8 * kSegment}};
  const Group group = group_of(*topic, {.max_deliveries = 1});
  must(must(topic->publisher()).publish("bad"));
  Member member = join(group);
  fail_once(member);
  EXPECT_EQ(dead_letters_of(topic, group).policy(), Policy::overwrite);
  EXPECT_EQ(dead_letters_of(topic, group).info().capacity_bytes, 8 * kSegment);
}

TEST(DeadLetters, KeepTheTimeOfTheFirstPublication) {
  const TestTopic topic{{.timestamps = true}};
  const Group group = group_of(*topic, {.max_deliveries = 1});
  must(must(topic->publisher()).publish("bad"));
  Member member = join(group);
  const Delivery taken = take(member);
  const std::string published = std::to_string(taken.record.timestamp_ms);
  must(member.requeue(taken));
  EXPECT_EQ(code(member.receive(kNothingFor)), Errc::timeout);
  auto reader =
      must(dead_letters_of(topic, group).subscriber({.from = From::beginning, .gating = false}));
  EXPECT_EQ(header_of(must(reader.receive(kPatience)), "leat-timestamp"), published);
}

TEST(DeadLetters, OfATopicWithoutTimesHaveNone) {
  const TestTopic topic;
  const Group group = group_of(*topic, {.max_deliveries = 1});
  must(must(topic->publisher()).publish("bad"));
  Member member = join(group);
  fail_once(member);
  auto reader =
      must(dead_letters_of(topic, group).subscriber({.from = From::beginning, .gating = false}));
  EXPECT_EQ(header_of(must(reader.receive(kPatience)), "leat-timestamp"), "(none)");
}

TEST(DeadLetters, AreCountedAndAreNoRedeliveries) {
  const TestTopic topic;
  const Group group = group_of(*topic, {.max_deliveries = 2});
  auto publisher = must(topic->publisher());
  publish_all(publisher, {"bad", "worse", "fine"});
  Member member = join(group);
  EXPECT_EQ(group.info().dead_letters, 0u);
  for (int i = 0; i < 5; ++i) {
    const Delivery taken = take(member);
    must(taken.record.text() == "fine" ? member.acknowledge(taken) : member.requeue(taken));
  }
  EXPECT_EQ(code(member.receive(kNothingFor)), Errc::timeout);
  EXPECT_EQ(group.info().dead_letters, 2u);
  EXPECT_EQ(group.info().redelivered, 2u);  // Each was redelivered once.
  EXPECT_EQ(group.info().in_flight, 0u);
}

TEST(DeadLetters, GetANewTopicIfTheirsWasDeleted) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic, {.max_deliveries = 1});
  Member member = join(group);
  for (const char* value : {"first", "second"}) {
    must(publisher.publish(value));
    must(member.requeue(take(member)));
    for (const Deadline deadline{kPatience}; group.info().in_flight != 0 && !deadline.passed();)
      (void)member.receive(kNothingFor);
    EXPECT_EQ(dead_values(dead_topic(topic)), std::vector<std::string>{value});
    must(Topic::delete_topic(group.info().dead_letter_topic,
                             {.force = true, .directory = topic.directory()}));
  }
  EXPECT_EQ(group.info().dead_letters, 2u);
}

TEST(DeadLetters, AsManyDeliveriesAsCanBeCounted) {
  const TestTopic topic;
  EXPECT_EQ(code(topic->group("most", {.max_deliveries = 65'534})), Errc::ok);
  EXPECT_EQ(code(topic->group("more", {.max_deliveries = 65'535})), Errc::invalid_argument);
  EXPECT_EQ(must(topic->find_group("most")).info().dead_letter_topic, "topic.most.dead");
}

}  // namespace
}  // namespace leat
