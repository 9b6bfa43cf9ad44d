// If this failed, subscribers could wait forever at a dead publisher's hole, skip records of living
// ones, or see a gap of the wrong size.
//
// The states are made by hand: slots of dead publishers with the values that
// a death at some instruction leaves.
#include "leat/log/repair.hpp"

#include "testing.hpp"

namespace leat::detail {
namespace {

class Wreck {
 public:
  explicit Wreck(const TopicOptions& options = {}) : topic_{options} {}

  MappedTopic& shared() const { return topic_.shared(); }
  const std::string& directory() const { return topic_.directory(); }
  const Topic* operator->() const { return &*topic_; }
  const Topic& topic() const { return *topic_; }
  PartitionView partition() const { return shared().partition(0); }
  const ClaimLayout& layout() const { return shared().geometry().claim_layout; }
  std::uint64_t claim_word() const { return load_relaxed(partition().control->claim); }

  // A slot of a dead participant: nobody holds the lock of its identity.
  struct Dead {
    std::uint32_t index;
    std::uint64_t state;
  };
  Dead dead_publisher(ClaimPhase phase, std::uint64_t word, std::uint64_t increment,
                      std::uint64_t segment = 1,
                      ParticipantRole role = ParticipantRole::publisher) const {
    const std::uint64_t identity = 1 + fetch_add<Edge::slot>(shared().header().next_identity, 1);
    for (std::uint32_t index = 0;; ++index) {
      ParticipantSlot& slot = shared().participant(index);
      if (load_relaxed(slot.state) != 0) continue;
      PartitionSlot& line = partition().slots[index];
      store_relaxed(line.claim_word, word);
      store_relaxed(line.claim_increment, increment);
      store_relaxed(line.claim_segment, segment);
      store_relaxed(line.phase, std::uint64_t{4} | phase);
      store_relaxed(slot.state, make_state(identity, role));
      if (load_relaxed(shared().header().participant_high) <= index)
        store_relaxed(shared().header().participant_high, index + 1);
      return {index, make_state(identity, role)};
    }
  }
  // Moves the claim word, as a successful claim does.
  void claim(std::uint64_t records, std::uint64_t granules) const {
    store_relaxed(partition().control->claim, claim_word() + layout().increment(records, granules));
  }
  bool is_free(const Dead& dead) const {
    return load_relaxed(shared().participant(dead.index).state) == 0;
  }
  bool reap(const Dead& dead) const {
    auto me = must(Participant::join(TopicTesting::shared_pointer(*topic_),
                                     ParticipantRole::repairer, [](std::uint32_t) {}));
    return Repair{shared(), 0, me.index()}.reap(dead.index, dead.state);
  }
  // What a reader gets up to the current end.
  Log read() const {
    auto subscriber = from_beginning(*topic_);
    return read_until(subscriber, topic_->info().partitions[0].end);
  }

 private:
  TestTopic topic_;
};

TEST(Repair, AnnouncedAndNeverClaimedIsNoGap) {
  const Wreck wreck;
  auto publisher = must(wreck->publisher());
  must(publisher.publish("a"));
  const auto dead =
      wreck.dead_publisher(kClaiming, wreck.claim_word(), wreck.layout().increment(1, 5));
  EXPECT_TRUE(wreck.reap(dead));
  EXPECT_TRUE(wreck.is_free(dead));
  must(publisher.publish("b"));
  EXPECT_EQ(wreck.read(), (Log{"0 a", "1 b"}));
}

TEST(Repair, ClaimedAndNotYetMarkedIsAGapOfItsSize) {
  const Wreck wreck;
  auto publisher = must(wreck->publisher());
  must(publisher.publish("a"));
  (void)wreck.dead_publisher(kClaiming, wreck.claim_word(), wreck.layout().increment(1, 5));
  wreck.claim(1, 5);
  must(publisher.publish("b"));
  EXPECT_EQ(wreck.read(), (Log{"0 a", "1+1 died", "2 b"}));
}

TEST(Repair, ClaimedAtTheEndIsAGapThoughNothingFollows) {
  const Wreck wreck;
  for (const ClaimPhase phase : {kClaiming, kClaimed}) {
    const auto dead =
        wreck.dead_publisher(phase, wreck.claim_word(), wreck.layout().increment(1, 5));
    wreck.claim(1, 5);
    EXPECT_TRUE(wreck.reap(dead));
  }
  EXPECT_EQ(wreck.read(), (Log{"0+1 died", "1+1 died"}));
}

TEST(Repair, DeadBatchIsAGapOfAllItsRecords) {
  const Wreck wreck;
  auto publisher = must(wreck->publisher());
  (void)wreck.dead_publisher(kClaimed, wreck.claim_word(), wreck.layout().increment(7, 5));
  wreck.claim(7, 5);
  must(publisher.publish("b"));
  EXPECT_EQ(wreck.read(), (Log{"0+7 died", "7 b"}));
  EXPECT_EQ(wreck->info().partitions[0].count_from(0), 1U);
}

TEST(Repair, CommittedBeforeItDiedIsDelivered) {
  const Wreck wreck;
  auto publisher = must(wreck->publisher());
  const std::uint64_t word = wreck.claim_word();
  must(publisher.publish("a"));  // The record takes two granules.
  const auto dead = wreck.dead_publisher(kClaimed, word, wreck.layout().increment(1, 2));
  EXPECT_TRUE(wreck.reap(dead));
  EXPECT_EQ(wreck.read(), Log{"0 a"});
}

// Several publishers announced a claim from the same word, and one made it.
// The place of the next claim shows which.
TEST(Repair, OfSeveralThatTriedTheOneThatWonIsFound) {
  for (const std::uint64_t won : {1U, 3U, 9U}) {
    const Wreck wreck;
    auto publisher = must(wreck->publisher());
    std::vector<Wreck::Dead> dead;
    for (const std::uint64_t granules : {3U, 9U, 1U}) {
      dead.push_back(wreck.dead_publisher(kClaiming, wreck.claim_word(),
                                          wreck.layout().increment(1, granules)));
    }
    wreck.claim(1, won);
    const std::uint64_t next = wreck.layout().granules(wreck.claim_word());
    EXPECT_EQ(next, won);
    must(publisher.publish("next"));
    EXPECT_EQ(wreck.read(), (Log{"0+1 died", "1 next"})) << won;
    for (const auto& each : dead) EXPECT_TRUE(wreck.reap(each));
    EXPECT_EQ(wreck.read(), (Log{"0+1 died", "1 next"})) << won;
  }
}

TEST(Repair, MarkedWinnerIsBelievedBeforeOthers) {
  const Wreck wreck;
  auto publisher = must(wreck->publisher());
  const std::uint64_t word = wreck.claim_word();
  (void)wreck.dead_publisher(kClaiming, word, wreck.layout().increment(1, 3));
  (void)wreck.dead_publisher(kClaimed, word, wreck.layout().increment(4, 9));
  wreck.claim(4, 9);
  must(publisher.publish("next"));
  EXPECT_EQ(wreck.read(), (Log{"0+4 died", "4 next"}));
}

TEST(Repair, HolesInARowAreFilledEachAsItWas) {
  const Wreck wreck;
  auto publisher = must(wreck->publisher());
  Log expected;
  for (std::uint64_t i = 1; i <= 10; ++i) {
    (void)wreck.dead_publisher(i % 2 == 0 ? kClaimed : kClaiming, wreck.claim_word(),
                               wreck.layout().increment(1, i));
    wreck.claim(1, i);
    expected.push_back(std::to_string(i - 1) + "+1 died");
  }
  must(publisher.publish("end"));
  expected.emplace_back("10 end");
  EXPECT_EQ(wreck.read(), expected);
}

TEST(Repair, HoleAtTheEndOfASegmentIsFilled) {
  const Wreck wreck;
  auto publisher = must(wreck->publisher());
  must(publisher.publish(std::string(kHalf, 'x')));
  (void)wreck.dead_publisher(kClaiming, wreck.claim_word(), wreck.layout().increment(1, 128));
  wreck.claim(1, 128);
  must(publisher.publish("in the next segment"));
  EXPECT_EQ(wreck.read(),
            (Log{"0 " + std::string(kHalf, 'x'), "1+1 died", "2 in the next segment"}));
}

TEST(Repair, ExclusivePublishersLastClaimIsAGapOrNothing) {
  for (const bool claimed : {false, true}) {
    const Wreck wreck;
    const std::uint64_t word = wreck.claim_word();
    const auto dead = wreck.dead_publisher(kClaiming, word, wreck.layout().increment(1, 5), 1,
                                           ParticipantRole::exclusive_publisher);
    store_relaxed(wreck.shared().header().exclusive, identity_of(dead.state));
    if (claimed) wreck.claim(1, 5);
    auto publisher = must(wreck->publisher({.exclusive = true}));
    must(publisher.publish("next"));
    EXPECT_EQ(wreck.read(), claimed ? (Log{"0+1 died", "1 next"}) : Log{"0 next"});
  }
}

TEST(Repair, ClaimOfTheLivingIsLeftAlone) {
  const Wreck wreck;
  auto publisher = must(wreck->publisher());
  auto claim = must(publisher.try_claim(5));
  auto subscriber = from_beginning(wreck.topic());
  auto me = must(Participant::join(TopicTesting::shared_pointer(wreck.topic()),
                                   ParticipantRole::repairer, [](std::uint32_t) {}));
  Repair repair{wreck.shared(), 0, me.index()};
  EXPECT_EQ(must(repair.fill_hole({1, 0, 0}, false)), HoleState::owned);
  EXPECT_EQ(code(subscriber.wait(20ms)), Errc::timeout);
  must(claim.commit(0));
  EXPECT_EQ(must(repair.fill_hole({1, 0, 0}, false)), HoleState::filled);
  EXPECT_EQ(drain(subscriber), Log{"0 "});
}

TEST(Repair, RevokedClaimIsAGapAndItsOwnerLearnsIt) {
  const Wreck wreck;
  auto publisher = must(wreck->publisher());
  auto claim = must(publisher.try_claim(5));
  auto me = must(Participant::join(TopicTesting::shared_pointer(wreck.topic()),
                                   ParticipantRole::repairer, [](std::uint32_t) {}));
  EXPECT_EQ(must(Repair(wreck.shared(), 0, me.index()).fill_hole({1, 0, 0}, true)),
            HoleState::filled);
  EXPECT_EQ(code(claim.commit()), Errc::revoked);
  must(publisher.publish("next"));
  EXPECT_EQ(wreck.read(), (Log{"0+1 revoked", "1 next"}));
}

TEST(Repair, ExclusivePublisherIsNeverRevoked) {
  const Wreck wreck;
  auto publisher = must(wreck->publisher({.exclusive = true}));
  auto claim = must(publisher.try_claim(5));
  auto me = must(Participant::join(TopicTesting::shared_pointer(wreck.topic()),
                                   ParticipantRole::repairer, [](std::uint32_t) {}));
  EXPECT_EQ(must(Repair(wreck.shared(), 0, me.index()).fill_hole({1, 0, 0}, true)),
            HoleState::owned);
  must(claim.commit(0));
}

// The claim word was moved, but nobody announced a claim. A reader must
// report that instead of waiting forever.
TEST(Repair, HoleThatNobodyOwnsIsCorruptAtOnce) {
  const Wreck wreck;
  wreck.claim(1, 5);
  auto subscriber = from_beginning(wreck.topic());
  EXPECT_EQ(code(subscriber.receive(20s)), Errc::corrupt);
}

// The next segment is mapped but not open, because its opener died or is stopped. A reader that has
// entered it has nobody to wait for.
TEST(Repair, NothingIsMissingInASegmentThatIsNotOpen) {
  const Wreck wreck;
  auto publisher = must(wreck->publisher());
  must(publisher.publish(std::string(kHalf, 'x')));
  auto subscriber = from_beginning(wreck.topic());
  EXPECT_EQ(drain(subscriber).size(), 1U);
  const PartitionView view = wreck.partition();
  const std::uint64_t closed = wreck.claim_word() | ClaimLayout::kClosed;
  store_relaxed(view.control->claim, closed);
  SegmentEntry& next = view.entries[2];
  store_relaxed(next.base_offset, 1);
  store_relaxed(next.previous_end, closed);
  store_relaxed(next.map, std::uint64_t{2} << kPhysicalBits | 1);
  EXPECT_EQ(code(subscriber.receive(1500ms)), Errc::timeout);
  must(publisher.publish("in the next segment"));
  EXPECT_EQ(drain(subscriber), Log{"1 in the next segment"});
}

TEST(Repair, ClaimsThatCannotBeAreNotBelieved) {
  const Wreck wreck;
  const std::uint64_t word = wreck.claim_word();
  const ClaimLayout& layout = wreck.layout();
  for (const std::uint64_t increment :
       {layout.increment(1, 0), layout.increment(0, 5), layout.increment(11, 5),
        layout.increment(1, 257), ~std::uint64_t{0}, std::uint64_t{0}}) {
    (void)wreck.dead_publisher(kClaiming, word, increment);
    (void)wreck.dead_publisher(kClaimed, word, increment);
  }
  (void)wreck.dead_publisher(kClaimed, word, layout.increment(1, 9), 77);  // In another segment.
  (void)wreck.dead_publisher(kClaiming, word, layout.increment(1, 5));
  wreck.claim(1, 5);
  auto publisher = must(wreck->publisher());
  must(publisher.publish("next"));
  EXPECT_EQ(wreck.read(), (Log{"0+1 died", "1 next"}));
}

TEST(Repair, PlaceOutsideASegmentIsCorrupt) {
  const Wreck wreck;
  auto me = must(Participant::join(TopicTesting::shared_pointer(wreck.topic()),
                                   ParticipantRole::repairer, [](std::uint32_t) {}));
  Repair repair{wreck.shared(), 0, me.index()};
  // In a segment that is not open, nothing is claimed yet.
  EXPECT_EQ(must(repair.fill_hole({2, 0, 0}, false)), HoleState::none);
  EXPECT_EQ(must(repair.fill_hole({~0ULL >> 16, 0, 0}, false)), HoleState::none);
  EXPECT_EQ(code(repair.fill_hole({1, 0, 256}, false)), Errc::corrupt);
}

TEST(Repair, DeadSubscriberHoldsNothing) {
  const Wreck wreck{{.policy = Policy::fail}};
  Child child{[&] {
    const Topic mine = must(Topic::open(kTopicName, 0s, wreck.directory()));
    auto subscriber = from_beginning(mine);
    ::_exit(0);
    return 1;
  }};
  ASSERT_EQ(child.join(), 0);
  auto publisher = must(wreck->publisher());
  for (int i = 0; i < 30; ++i)
    ASSERT_EQ(code(publisher.publish(std::string(kHalf, 'x'))), Errc::ok) << i;
}

// A publisher without room asks the kernel about one subscriber that lives, and not about all the others that hold
// the same room: the dead one behind it keeps its slot until it alone is in the way.
TEST(Repair, LivingSubscriberThatHoldsTheRoomDecides) {
  const Wreck wreck;
  std::optional<Subscriber> living = must(wreck->subscriber({.any_thread = true}));
  Child child{[&] {
    const Topic again = must(Topic::open("topic", 0s, wreck.directory()));
    auto dead = must(again.subscriber());
    ::raise(SIGKILL);
    return 0;
  }};
  EXPECT_EQ(child.join(), -SIGKILL);
  const auto is_taken = [&] { return load_relaxed(wreck.shared().participant(1).state) != 0; };
  ASSERT_TRUE(is_taken());
  auto publisher = must(wreck->publisher());
  Errc published = Errc::ok;
  while (published == Errc::ok)
    published = code(publisher.publish(kHalfText, Deadline::immediate()));
  EXPECT_EQ(published, Errc::full);
  EXPECT_TRUE(is_taken());
  living.reset();
  must(publisher.publish(kHalfText, Deadline::immediate()));
  EXPECT_FALSE(is_taken());
}

TEST(Repair, ManyRepairAtOnce) {
  for (int round = 0; round < 20; ++round) {
    const Wreck wreck;
    for (int i = 0; i < 5; ++i) {
      (void)wreck.dead_publisher(kClaiming, wreck.claim_word(), wreck.layout().increment(1, 5));
      wreck.claim(1, 5);
    }
    std::vector<std::jthread> readers;
    for (int i = 0; i < 3; ++i) {
      readers.emplace_back([&] {
        EXPECT_EQ(wreck.read(), (Log{"0+1 died", "1+1 died", "2+1 died", "3+1 died", "4+1 died"}));
      });
    }
  }
}

}  // namespace
}  // namespace leat::detail
