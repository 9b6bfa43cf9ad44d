// If this failed, a program could not rely on making, finding, listing, inspecting, moving or
// deleting groups: for example, a group could begin at a wrong record, or its name stay in use.
#include "group/group_testing.hpp"

namespace leat {
namespace {

TEST(Group, FirstCallMakesItAndOthersGetItAsItIs) {
  const TestTopic topic;
  const Group made = must(topic->group("workers", {.mode = GroupMode::at_most_once,
                                                   .by_key = true,
                                                   .in_flight = 7,
                                                   .max_deliveries = 3,
                                                   .lease = 5s}));
  EXPECT_TRUE(made.was_created());
  EXPECT_EQ(made.name(), "workers");
  for (const Group& again : {must(topic->group("workers")), must(topic->find_group("workers")),
                             must(topic.open_again().group("workers"))}) {
    EXPECT_FALSE(again.was_created());
    const GroupInfo info = again.info();
    EXPECT_EQ(info.name, "workers");
    EXPECT_EQ(info.mode, GroupMode::at_most_once);
    EXPECT_TRUE(info.by_key);
    EXPECT_EQ(info.in_flight_limit, 7u);
    EXPECT_EQ(info.max_deliveries, 3u);
    EXPECT_EQ(info.lease, 5s);
  }
}

TEST(Group, NamesAreThoseOfTopics) {
  const TestTopic topic;
  for (const std::string& name : {std::string{}, std::string{"a/b"}, std::string{"a b"},
                                  std::string{"\xc3\xa4"}, std::string(201, 'x')}) {
    EXPECT_EQ(code(topic->group(name)), Errc::invalid_argument) << name;
    EXPECT_EQ(code(topic->find_group(name)), Errc::invalid_argument) << name;
    EXPECT_EQ(code(topic->delete_group(name)), Errc::invalid_argument) << name;
  }
  const std::string longest(200, 'x');
  EXPECT_EQ(code(topic->group(longest)), Errc::ok);
  EXPECT_EQ(code(topic->group("aB9._-")), Errc::ok);
  std::vector<std::string> names = must(topic->group_names());
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"aB9._-", longest}));
}

TEST(Group, OptionsThatCannotBeAreRefused) {
  const TestTopic topic;
  const GroupOptions impossible[] = {{.members = 0},
                                     {.members = 256},
                                     {.in_flight = 0},
                                     {.in_flight = 65537},
                                     {.lease = std::chrono::nanoseconds{-1}}};
  for (const GroupOptions& options : impossible)
    EXPECT_EQ(code(topic->group("g", options)), Errc::invalid_argument);
  EXPECT_TRUE(must(topic->group_names()).empty());
}

TEST(Group, IsNotFoundBeforeItIsMade) {
  const TestTopic topic;
  EXPECT_EQ(code(topic->find_group("g")), Errc::not_found);
  EXPECT_EQ(code(topic->delete_group("g")), Errc::not_found);
  EXPECT_TRUE(must(topic->group_names()).empty());
}

TEST(Group, TopicThatOverwritesHasNone) {
  const TestTopic topic{{.policy = Policy::overwrite}};
  EXPECT_EQ(code(topic->group("g")), Errc::not_with_overwrite);
}

TEST(Group, BeginningAtATimeNeedsTimestamps) {
  const TestTopic topic;
  EXPECT_EQ(code(topic->group("g", {.from = From::time_ms(0)})), Errc::needs_timestamps);
  const Group group = must(topic->group("g"));
  EXPECT_EQ(code(group.seek(From::time_ms(0))), Errc::needs_timestamps);
}

TEST(Group, SixtyFourFitAndTheNextDoesNot) {
  const TestTopic topic;
  const GroupOptions small{.members = 1, .in_flight = 1};
  for (int i = 0; i < 64; ++i)
    ASSERT_EQ(code(topic->group("group-" + std::to_string(i), small)), Errc::ok) << i;
  EXPECT_EQ(code(topic->group("one-more", small)), Errc::too_many);
  EXPECT_EQ(code(topic->group("group-7", small)), Errc::ok);
  EXPECT_EQ(must(topic->group_names()).size(), 64u);
  must(topic->delete_group("group-7"));
  EXPECT_EQ(code(topic->group("one-more", small)), Errc::ok);
}

TEST(Group, EachGetsEveryRecordBesideSubscribers) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  auto subscriber = from_beginning(*topic);
  std::vector<Member> members;
  for (const char* name : {"a", "b", "c"}) members.push_back(join(group_of(*topic, {}, name)));
  publish_numbers(publisher, 100);
  for (Member& member : members) EXPECT_EQ(drain(member), numbers(100));
  EXPECT_EQ(drain(subscriber), numbers(100));
}

// ---- Where it begins -----------------------------------------------------------------------------

TEST(GroupBegins, AtTheEndUnlessToldOtherwise) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  publish_all(publisher, {"before"});
  Member member = join(must(topic->group("g")));
  publish_all(publisher, {"after"});
  EXPECT_EQ(drain(member), (Log{"1 after"}));
}

TEST(GroupBegins, AtTheOldestThatIsStillThere) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  for (int i = 0; i < 30; ++i) must(publisher.publish(kHalfText));
  const std::uint64_t start = topic->info().partitions[0].start;
  ASSERT_GT(start, 0u);
  Member member = join(group_of(*topic));
  EXPECT_EQ(drain(member), repeated(30 - start, kHalfText, start));
}

TEST(GroupBegins, AtAnOffset) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  publish_numbers(publisher, 10);
  Member member = join(must(topic->group("g", {.from = From::offset(7)})));
  EXPECT_EQ(drain(member), numbers(3, 7));
}

TEST(GroupBegins, AtAnOffsetInsideABatch) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  auto batch = must(publisher.batch());
  for (const char* value : {"0", "1", "2", "3"}) must(batch.add(value));
  must(batch.commit());
  publish_numbers(publisher, 2, 4);
  Member member = join(must(topic->group("g", {.from = From::offset(2)})));
  EXPECT_EQ(drain(member), numbers(4, 2));
}

TEST(GroupBegins, SoManyBeforeTheEnd) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  publish_numbers(publisher, 10);
  for (const std::uint64_t count : {0UL, 3UL, 10UL, 100UL}) {
    const std::string name = "g" + std::to_string(count);
    const Group group = must(topic->group(name, {.from = From::last(count)}));
    Member member = join(group);
    const std::uint64_t expected = std::min<std::uint64_t>(count, 10);
    EXPECT_EQ(drain(member), numbers(expected, 10 - expected));
    must(group.seek(From::last(1)));
    EXPECT_EQ(drain(member), numbers(1, 9));
  }
}

TEST(GroupBegins, AtATime) {
  const TestTopic topic{{.timestamps = true}};
  auto publisher = must(topic->publisher());
  publish_all(publisher, {"old"});
  const std::int64_t old_ms =
      take(*std::make_unique<Member>(join(group_of(*topic, {}, "first")))).record.timestamp_ms;
  while (detail::wall_clock_ms() <= old_ms + 1) std::this_thread::sleep_for(1ms);
  publish_all(publisher, {"new"});
  Member member = join(must(topic->group("g", {.from = From::time_ms(old_ms + 1)})));
  EXPECT_EQ(drain(member), (Log{"1 new"}));
}

// As when the clock of a publisher was set back by an hour.
TEST(GroupBegins, AtATimeWithWhatIsPublishedLater) {
  const TestTopic topic{{.timestamps = true}};
  auto publisher = must(topic->publisher());
  publish_all(publisher, {"old"});
  const std::int64_t later = detail::wall_clock_ms() + 3'600'000;
  Member member = join(must(topic->group("g", {.from = From::time_ms(later)})));
  publish_all(publisher, {"new"});
  EXPECT_EQ(drain(member), (Log{"1 new"}));
}

// ---- Info ----------------------------------------------------------------------------------------

TEST(GroupInfo, CountsWhatIsAheadInFlightAndAgain) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  EXPECT_EQ(group.info().lag, 0u);
  publish_numbers(publisher, 10);
  EXPECT_EQ(group.info().lag, 10u);
  EXPECT_EQ(group.info().in_flight, 0u);
  EXPECT_EQ(group.info().offsets, std::vector<std::uint64_t>{0});

  Member member = must(group.join({.name = "anna"}));
  std::vector<Delivery> taken = take_all(member);
  GroupInfo info = group.info();
  EXPECT_EQ(info.lag, 0u);
  EXPECT_EQ(info.in_flight, 10u);
  EXPECT_EQ(info.redelivered, 0u);
  EXPECT_EQ(info.offsets, std::vector<std::uint64_t>{10});
  ASSERT_EQ(info.members.size(), 1u);
  EXPECT_EQ(info.members[0].name, "anna");
  EXPECT_EQ(info.members[0].pid, static_cast<std::uint32_t>(::getpid()));
  EXPECT_EQ(info.members[0].in_flight, 10u);
  EXPECT_EQ(member.in_flight(), 10u);

  must(member.requeue(taken[4]));
  EXPECT_EQ(group.info().in_flight, 10u);  // A record that was requeued is still in flight.
  const Delivery again = take(member);
  EXPECT_EQ(to_text(again), "4 4");
  EXPECT_EQ(group.info().redelivered, 1u);
  must(member.acknowledge_all());
  info = group.info();
  EXPECT_EQ(info.in_flight, 0u);
  EXPECT_EQ(info.redelivered, 1u);
  EXPECT_EQ(member.in_flight(), 0u);
}

TEST(GroupInfo, LeavesOutClaimsThatWereAborted) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  publish_numbers(publisher, 3);
  for (int i = 0; i < 4; ++i) must(must(publisher.try_claim(1)).abort());
  publish_numbers(publisher, 2, 7);
  must(must(publisher.try_claim(1)).abort());
  EXPECT_EQ(group.info().lag, 5U);
  Member last = join(must(topic->group("last", {.from = From::last(3)})));
  EXPECT_EQ(drain(last), (Log{"2 2", "7 7", "8 8"}));
  Member member = must(group.join());
  EXPECT_EQ(drain(member), numbers(3) + numbers(2, 7));
  EXPECT_EQ(group.info().lag, 0U);
}

TEST(GroupInfo, OffsetsAreByPartition) {
  const TestTopic topic{{.partitions = 3}};
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  for (const std::uint32_t partition : {0U, 2U, 2U, 2U})
    must(publisher.publish({.value = "x", .partition = partition}));
  EXPECT_EQ(group.info().lag, 4u);
  Member member = join(group);
  drain(member);
  EXPECT_EQ(group.info().offsets, (std::vector<std::uint64_t>{1, 0, 3}));
}

TEST(GroupInfo, MembersComeAndGo) {
  const TestTopic topic;
  const Group group = group_of(*topic);
  {
    const Member one = must(group.join({.name = "one"}));
    Member two = must(group.join({.name = "two"}));
    EXPECT_EQ(group.info().members.size(), 2u);
    const Member moved = std::move(two);
    EXPECT_EQ(group.info().members.size(), 2u);
  }
  EXPECT_TRUE(group.info().members.empty());
}

TEST(Group, HasAsManyMembersAsItMayHave) {
  const TestTopic topic;
  const Group group = group_of(*topic, {.members = 2});
  const Member one = join(group);
  {
    const Member two = join(group);
    EXPECT_EQ(code(group.join()), Errc::too_many);
  }
  EXPECT_EQ(code(group.join()), Errc::ok);
}

TEST(Group, MembersAreParticipantsOfTheTopic) {
  const TestTopic topic{{.participants = 2}};
  const Group group = group_of(*topic);
  const Member one = join(group);
  {
    const Member two = join(group);
    EXPECT_EQ(code(group.join()), Errc::too_many);
    EXPECT_EQ(topic->info().participants.size(), 2u);
    EXPECT_EQ(topic->info().participants[0].role, "member");
    EXPECT_EQ(code(Topic::delete_topic(kTopicName, {.directory = topic.directory()})), Errc::busy);
  }
  EXPECT_EQ(code(group.join()), Errc::ok);
}

TEST(Group, MembersWithNamesThatAreTooLongAreRefused) {
  const TestTopic topic;
  const Group group = group_of(*topic);
  EXPECT_EQ(code(group.join({.name = std::string(64, 'x')})), Errc::invalid_argument);
  const Member member = must(group.join({.name = std::string(63, 'x')}));
  EXPECT_EQ(group.info().members[0].name, std::string(63, 'x'));
}

TEST(Group, OutlivesItsMembersAndItsHandles) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  publish_numbers(publisher, 4);
  {
    Member member = join(group_of(*topic));
    EXPECT_EQ(drain(member), numbers(4));
  }
  publish_numbers(publisher, 2, 4);
  const Topic again = topic.open_again();
  Member member = join(must(again.find_group(kGroupName)));
  EXPECT_EQ(drain(member), numbers(2, 4));
}

// ---- Behind a hole --------------------------------------------------------------------------------

// Ten records, and an open claim behind the fifth.
class HoleTopic {
 public:
  template <class Claim>
  HoleTopic(const TopicOptions& options, Claim&& claim) : topic_{options} {
    auto publisher = must(topic_->publisher());
    publish_numbers(publisher, 5);
    claim(topic_);
    publish_numbers(publisher, 2, 6);
    std::this_thread::sleep_for(5ms);  // Longer than a tick of the timestamps.
    time_ms_ = wall_clock_ms();
    publish_numbers(publisher, 2, 8);
  }
  const TestTopic& topic() const { return topic_; }
  std::int64_t time_ms() const { return time_ms_; }
  // What begins at offset 8.
  std::vector<From> at_eight() const {
    return {From::offset(8), From::last(2), From::time_ms(time_ms_)};
  }

 private:
  static std::int64_t wall_clock_ms() { return detail::wall_clock_ms(); }

  TestTopic topic_;
  std::int64_t time_ms_ = 0;
};

TEST(GroupBegins, BehindADeadPublishersHole) {
  for (const std::size_t way : {0U, 1U, 2U}) {
    const HoleTopic hole{{.timestamps = true}, [](const TestTopic& topic) { claim_and_die(topic); }};
    Member member = join(must(hole.topic()->group("g", {.from = hole.at_eight()[way]})));
    EXPECT_EQ(drain(member), numbers(2, 8)) << way;
  }
}

TEST(GroupSeek, PassesADeadPublishersHole) {
  for (const std::size_t way : {0U, 1U, 2U}) {
    const HoleTopic hole{{.timestamps = true}, [](const TestTopic& topic) { claim_and_die(topic); }};
    const Group group = group_of(*hole.topic());
    must(group.seek(hole.at_eight()[way]));
    Member member = join(group);
    EXPECT_EQ(drain(member), numbers(2, 8)) << way;
  }
}

TEST(GroupBegins, BehindAClaimThatIsCommittedMeanwhile) {
  std::jthread committer;
  const HoleTopic hole{{}, [&](const TestTopic& topic) {
                         auto publisher = std::make_shared<Publisher>(must(topic->publisher()));
                         auto claim = std::make_shared<Claim>(must(publisher->try_claim(1)));
                         committer = std::jthread{[publisher, claim] {
                           std::this_thread::sleep_for(20ms);
                           must(claim->commit());
                         }};
                       }};
  Member member = join(must(hole.topic()->group("g", {.from = From::offset(8)})));
  EXPECT_EQ(drain(member), numbers(2, 8));
}

TEST(GroupBegins, AtAClaimThatStaysOpenIfNotToldAnOffset) {
  std::optional<Publisher> publisher;
  std::unique_ptr<Claim> claim;
  const HoleTopic hole{{}, [&](const TestTopic& topic) {
                         publisher = must(topic->publisher());
                         claim = std::make_unique<Claim>(must(publisher->try_claim(1)));
                       }};
  EXPECT_EQ(code(hole.topic()->group("g", {.from = From::offset(8)})), Errc::busy);
  EXPECT_EQ(code(hole.topic()->group("g", {.from = From::offset(100)})), Errc::invalid_argument);
  Member member = join(must(hole.topic()->group("g", {.from = From::last(2)})));
  claim.reset();  // Aborted.
  EXPECT_EQ(drain(member), numbers(4, 6));
}

// ---- seek ----------------------------------------------------------------------------------------

TEST(GroupSeek, MovesBackAndForward) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  Member member = join(group);
  publish_numbers(publisher, 10);
  EXPECT_EQ(drain(member), numbers(10));
  must(group.seek(From::beginning));
  EXPECT_EQ(group.info().lag, 10u);
  EXPECT_EQ(drain(member), numbers(10));
  must(group.seek(From::offset(8)));
  EXPECT_EQ(drain(member), numbers(2, 8));
  must(group.seek(From::beginning));
  must(group.seek(From::end));
  EXPECT_EQ(group.info().lag, 0u);
  publish_numbers(publisher, 1, 10);
  EXPECT_EQ(drain(member), numbers(1, 10));
}

TEST(GroupSeek, WakesWhoeverSleeps) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  publish_all(publisher, {"x"});
  Member member = join(group);
  EXPECT_EQ(drain(member), (Log{"0 x"}));
  std::jthread mover{[&] {
    std::this_thread::sleep_for(kNothingFor);
    must(group.seek(From::beginning));
  }};
  EXPECT_EQ(drain(member, 1), (Log{"0 x"}));
}

TEST(GroupSeek, LeavesWhatIsInFlight) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  Member member = join(group);
  publish_numbers(publisher, 3);
  const std::vector<Delivery> taken = take_all(member);
  must(group.seek(From::end));
  EXPECT_EQ(group.info().in_flight, 3u);
  for (const Delivery& delivery : taken) must(member.acknowledge(delivery));
  EXPECT_EQ(group.info().in_flight, 0u);
}

TEST(GroupSeek, OnePartitionAlone) {
  const TestTopic topic{{.partitions = 2}};
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  Member member = join(group);
  for (const std::uint32_t partition : {0U, 1U})
    must(publisher.publish({.value = partition == 0 ? "left" : "right", .partition = partition}));
  EXPECT_EQ(sorted(drain(member)), (Log{"0 left", "0 right"}));
  must(group.seek(From::offset(0), 1));
  EXPECT_EQ(drain(member), (Log{"0 right"}));
  must(group.seek(From::beginning, 0));
  EXPECT_EQ(drain(member), (Log{"0 left"}));
  EXPECT_EQ(code(group.seek(From::beginning, 2)), Errc::invalid_argument);
}

// ---- delete --------------------------------------------------------------------------------------

TEST(GroupDelete, IsBusyWhileAMemberLives) {
  const TestTopic topic;
  const Group group = group_of(*topic);
  {
    const Member member = join(group);
    EXPECT_EQ(code(topic->delete_group(kGroupName)), Errc::busy);
    EXPECT_EQ(code(topic->find_group(kGroupName)), Errc::ok);
  }
  EXPECT_EQ(code(topic->delete_group(kGroupName)), Errc::ok);
  EXPECT_EQ(code(topic->find_group(kGroupName)), Errc::not_found);
}

TEST(GroupDelete, ThatWasRefusedChangesNothing) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  Member member = join(group);
  EXPECT_EQ(code(topic->delete_group(kGroupName)), Errc::busy);
  publish_numbers(publisher, 3);
  EXPECT_EQ(drain(member), numbers(3));
  EXPECT_EQ(code(group.join()), Errc::ok);
}

TEST(GroupDelete, ByForceTellsItsMembers) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  const Group group = group_of(*topic);
  Member member = join(group);
  publish_numbers(publisher, 2);
  const Delivery held = take(member);
  must(topic->delete_group(kGroupName, true));
  EXPECT_EQ(code(member.acknowledge(held)), Errc::closed);
  EXPECT_EQ(code(member.receive(kPatience)), Errc::closed);
  EXPECT_EQ(code(group.join()), Errc::closed);
  EXPECT_EQ(code(topic->find_group(kGroupName)), Errc::not_found);
}

TEST(GroupDelete, ByForceWakesASleeper) {
  const TestTopic topic;
  const Group group = group_of(*topic);
  Member member = join(group);
  std::jthread deleter{[&] {
    std::this_thread::sleep_for(kNothingFor);
    must(topic->delete_group(kGroupName, true));
  }};
  EXPECT_EQ(code(member.receive(kPatience)), Errc::closed);
}

TEST(GroupDelete, LetsTheNameBeginAnew) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  publish_numbers(publisher, 3);
  {
    Member member = join(group_of(*topic));
    EXPECT_EQ(drain(member), numbers(3));
  }
  must(topic->delete_group(kGroupName));
  const Group anew = group_of(*topic);
  EXPECT_TRUE(anew.was_created());
  Member member = join(anew);
  EXPECT_EQ(drain(member), numbers(3));
}

TEST(GroupDelete, OldMembersLeaveTheNewGroupAlone) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  auto old = std::make_unique<Member>(join(group_of(*topic)));
  publish_numbers(publisher, 3);
  const Delivery held = take(*old);
  must(topic->delete_group(kGroupName, true));
  Member member = join(group_of(*topic));
  EXPECT_EQ(drain(member), numbers(3));
  EXPECT_EQ(code(old->acknowledge(held)), Errc::closed);
  old.reset();
  EXPECT_TRUE(take_all(member).empty());
}

TEST(GroupDelete, OfTheTopicEndsTheGroupToo) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  Member member = join(group_of(*topic));
  must(Topic::delete_topic(kTopicName, {.force = true, .directory = topic.directory()}));
  EXPECT_EQ(code(member.receive(kPatience)), Errc::deleted);
  EXPECT_EQ(code(topic->group("another")), Errc::deleted);
}

TEST(GroupDelete, LeavesNoFileBehind) {
  const TestTopic topic;
  const auto files = [&] {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator{topic.directory() + "/topic"})
      names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  };
  const auto before = files();
  must(topic->group("g"));
  EXPECT_NE(files(), before);
  must(topic->delete_group("g"));
  EXPECT_EQ(files(), before);
}

}  // namespace
}  // namespace leat
