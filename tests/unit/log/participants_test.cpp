// If this failed, two participants could share a slot, or a dead participant could count as alive,
// or a living one as dead.
#include "leat/log/participants.hpp"

#include <atomic>
#include <set>

#include "testing.hpp"

namespace leat::detail {
namespace {

const auto kNothing = [](std::uint32_t) {};

std::shared_ptr<MappedTopic> shared(const TestTopic& topic) {
  return TopicTesting::shared_pointer(*topic);
}
Participant join(const TestTopic& topic, ParticipantRole role = ParticipantRole::publisher) {
  return must(Participant::join(shared(topic), role, kNothing));
}

TEST(Participant, StateHoldsIdentityAndRole) {
  const std::uint64_t state = make_state(0x1234'5678'9abc, ParticipantRole::subscriber);
  EXPECT_EQ(identity_of(state), 0x1234'5678'9abcu);
  EXPECT_EQ(role_of(state), ParticipantRole::subscriber);
  EXPECT_FALSE(is_publisher(state));
  EXPECT_TRUE(is_publisher(make_state(1, ParticipantRole::publisher)));
  EXPECT_TRUE(is_publisher(make_state(1, ParticipantRole::exclusive_publisher)));
}

TEST(Participant, NoTwoHaveOneIdentityOrOneSlot) {
  const TestTopic topic;
  std::vector<Participant> all;
  std::set<std::uint64_t> identities;
  std::set<std::uint32_t> slots;
  for (int i = 0; i < 20; ++i) {
    all.push_back(join(topic));
    EXPECT_TRUE(identities.insert(identity_of(all.back().state())).second);
    EXPECT_TRUE(slots.insert(all.back().index()).second);
  }
}

TEST(Participant, ItsSlotIsUsedAgainUnderAnotherIdentity) {
  const TestTopic topic;
  std::uint64_t first_state = 0;
  std::uint32_t first_index = 0;
  {
    auto first = join(topic);
    first_state = first.state();
    first_index = first.index();
    EXPECT_FALSE(is_dead(*shared(topic), first_state));
  }
  EXPECT_TRUE(is_dead(*shared(topic), first_state));
  auto second = join(topic);
  EXPECT_EQ(second.index(), first_index);
  EXPECT_NE(second.state(), first_state);
  EXPECT_TRUE(is_dead(*shared(topic), first_state));
  EXPECT_FALSE(is_dead(*shared(topic), second.state()));
}

TEST(Participant, LeavesOnceThoughMoved) {
  const TestTopic topic;
  auto one = join(topic);
  const std::uint32_t index = one.index();
  Participant two = std::move(one);
  EXPECT_FALSE(one);
  one.leave();  // Has no effect.
  EXPECT_EQ(shared(topic)->participant(index).state, two.state());
  two.leave();
  EXPECT_EQ(shared(topic)->participant(index).state, 0u);
  auto other = join(topic);
  two.leave();
  EXPECT_EQ(shared(topic)->participant(index).state, other.state());
}

TEST(Participant, LivesUntilItsProcessDies) {
  const TestTopic topic;
  Child child{[&] {
    const Topic mine = topic.open_again();
    auto participant = must(Participant::join(TopicTesting::shared_pointer(mine),
                                              ParticipantRole::publisher, kNothing));
    ::raise(SIGSTOP);
    return 0;
  }};
  int status = 0;
  ::waitpid(child.pid(), &status, WUNTRACED);
  const std::uint64_t state = shared(topic)->participant(0).state;
  ASSERT_NE(state, 0u);
  EXPECT_FALSE(is_dead(*shared(topic), state));  // A stopped process is alive.
  EXPECT_EQ(child.kill(SIGKILL), -SIGKILL);
  EXPECT_TRUE(is_dead(*shared(topic), state));
  EXPECT_EQ(shared(topic)->participant(0).state, state);  // Nobody has freed the slot yet.
}

TEST(Participant, LastSlotsAreKeptForRepairers) {
  const TestTopic topic{{.participants = 1}};
  auto one = join(topic);
  EXPECT_EQ(code(Participant::join(shared(topic), ParticipantRole::subscriber, kNothing)),
            Errc::too_many);
  auto repairer = join(topic, ParticipantRole::repairer);
  auto another = join(topic, ParticipantRole::repairer);
  EXPECT_EQ(code(Participant::join(shared(topic), ParticipantRole::repairer, kNothing)),
            Errc::too_many);
}

TEST(Participant, LinesAreFilledBeforeOthersLook) {
  const TestTopic topic{{.partitions = 2}};
  {
    auto before = join(topic);
    before.partition_slot(1).pin = 7;  // What one participant leaves behind…
    before.partition_slot(1).phase = kClaimed;
  }
  std::uint64_t pin = 1;
  std::uint64_t phase = 1;
  auto after =
      must(Participant::join(shared(topic), ParticipantRole::subscriber, [&](std::uint32_t index) {
        const PartitionView view = shared(topic)->partition(1);
        pin = view.slots[index].pin;  // …must be gone for the next one.
        phase = view.slots[index].phase;
        const auto state = shared(topic)->participant(index).state;
        EXPECT_EQ(role_of(state), ParticipantRole::reserved);
      }));
  EXPECT_EQ(pin, 0u);
  EXPECT_EQ(phase, 0u);
}

TEST(Participant, ManyJoinAndLeaveAtOnce) {
  const TestTopic topic{{.participants = 4}};
  std::atomic<int> joined = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 300; ++round) {
        auto participant = Participant::join(shared(topic), ParticipantRole::publisher, kNothing);
        if (!participant) {
          ASSERT_EQ(code(participant), Errc::too_many);
          continue;
        }
        ASSERT_LE(++joined, 4);
        ASSERT_EQ(load_relaxed(participant->slot().state), participant->state());
        --joined;
      }
    });
  }
  threads.clear();
  for (std::uint32_t i = 0; i < 6; ++i) EXPECT_EQ(shared(topic)->participant(i).state, 0u);
}

TEST(Participant, ScribbledHighMarkIsBounded) {
  const TestTopic topic;
  store_relaxed(shared(topic)->header().participant_high, ~0U);
  EXPECT_EQ(shared(topic)->participant_high(), shared(topic)->geometry().participant_capacity);
}

// If the counter was set back, it gives out an identity whose owner is alive.
TEST(Participant, IdentityInUseIsRefused) {
  const TestTopic topic;
  auto one = join(topic);
  store_relaxed(shared(topic)->header().next_identity, identity_of(one.state()) - 1);
  EXPECT_EQ(code(Participant::join(shared(topic), ParticipantRole::publisher, kNothing)),
            Errc::corrupt);
}

}  // namespace
}  // namespace leat::detail
