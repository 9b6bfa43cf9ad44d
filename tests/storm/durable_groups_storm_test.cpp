// A storm over the groups of a durable topic: members, publishers and archivers are killed and stopped at random;
// now and then everybody dies, and now and then what is in memory is lost, too. If this failed, a crash
// of processes or a restart of the machine could lose records of a group, deliver some twice that must come at
// most once, or let a record overtake an earlier one with its key.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "leat/leat.hpp"
#include "stormed_topic.hpp"
#include "support/process.hpp"
#include "support/random.hpp"

namespace leat::testing {
namespace {

constexpr std::size_t kPublishers = 2;
constexpr std::size_t kWorkers = 3;  // processes that have a member in each group
constexpr std::size_t kMost = 200'000;
constexpr std::size_t kKeys = 8;  // of each publisher

enum Which : std::size_t { kLeast, kOnce, kKeyed, kLeased, kGroups };
constexpr const char* kNames[] = {"least", "once", "keyed", "leased"};

struct Account {
  std::atomic<std::uint64_t> begun[kPublishers];
  std::atomic<std::uint8_t> published[kPublishers][kMost];  // It was acknowledged.
  std::atomic<std::uint8_t> handed[kGroups][kPublishers][kMost];
  std::atomic<std::uint8_t> settling[kGroups][kPublishers][kMost];
  std::atomic<std::uint32_t> complaints;
};

class GroupsStorm {
 public:
  explicit GroupsStorm(std::uint64_t seed) : random_{seed} {
    Child first{[&]() -> int {
      const Topic topic = topic_.create();
      for (std::size_t which = 0; which < kGroups; ++which) {
        const auto lease = which == kLeased ? 30ms : 0ms;
        CHILD_CHECK_OK(topic.group(
            kNames[which],
            {.from = From::beginning,
             .mode = which == kOnce ? GroupMode::at_most_once : GroupMode::at_least_once,
             .by_key = which == kKeyed,
             .lease = lease}));
      }
      return 0;
    }};
    first.wait();
    EXPECT_TRUE(first.succeeded()) << first.describe();
  }

  void run(int rounds) {
    children_.resize(kPublishers + kWorkers);
    for (std::size_t i = 0; i < children_.size(); ++i) start(i);
    for (int round = 0; round < rounds && account_->complaints == 0; ++round) {
      ::usleep(static_cast<useconds_t>(below(random_, 60'000)));
      const std::size_t victim = below(random_, children_.size());
      switch (below(random_, 10)) {
        case 0: kill_all(false); break;
        case 1:
        case 2: kill_all(true); break;
        case 3:
        case 4: {  // One stops, the archiver perhaps, and others take over.
          children_[victim]->signal(SIGSTOP);
          const std::size_t other = below(random_, children_.size());
          if (other != victim && below(random_, 2) == 0) restart(other);
          ::usleep(static_cast<useconds_t>(below(random_, 250'000)));
          children_[victim]->signal(SIGCONT);
          break;
        }
        default: restart(victim);
      }
    }
    for (auto& child : children_) child->signal(SIGKILL);
    children_.clear();
    EXPECT_EQ(account_->complaints, 0U);
  }

  // Everything that is left is delivered, and everything was.
  void expect_right() {
    Child last{[&] { return finish(); }};
    EXPECT_NE(last.wait(6 * kPatience), Child::State::late) << last.describe();
    EXPECT_TRUE(last.succeeded()) << last.describe();
    std::uint64_t count = 0;
    for (std::size_t who = 0; who < kPublishers; ++who) {
      const std::uint64_t begun = std::min<std::uint64_t>(account_->begun[who], kMost);
      for (std::uint64_t i = 0; i < begun; ++i) {
        if (account_->published[who][i] == 0) continue;
        ++count;
        for (const Which which : {kLeast, kKeyed, kLeased})
          ASSERT_NE(account_->settling[which][who][i], 0)
              << "lost in " << kNames[which] << ": " << who << ' ' << i;
      }
    }
    std::printf("%llu records\n", static_cast<unsigned long long>(count));
  }

 private:
  // ---- In children ------------------------------------------------------------------------------

  static Group group(const Topic& topic, std::size_t which) {
    for (const Deadline deadline{2 * kPatience};;) {
      auto group = topic.find_group(kNames[which]);
      if (!group && group.error() == Errc::busy && !deadline.passed()) continue;
      CHILD_CHECK_OK(group);
      return std::move(*group);
    }
  }

  int publish(std::size_t who) {
    const Topic topic = topic_.open();
    auto publisher = topic.publisher();
    CHILD_CHECK_OK(publisher);
    for (std::uint64_t i = account_->begun[who]++; i < kMost; i = account_->begun[who]++) {
      const std::string key = std::to_string(who * kKeys + i % kKeys);
      const std::string text = std::to_string(who) + ' ' + std::to_string(i);
      CHILD_CHECK_OK(publisher->publish({.key = key, .value = text}, kPatience));
      account_->published[who][i] = 1;
      ::usleep(50);
    }
    return 0;
  }

  void complain(const char* what, std::size_t which, std::size_t who, std::uint64_t i) {
    std::fprintf(stderr, "%s in %s: %zu %llu\n", what, kNames[which], who,
                 static_cast<unsigned long long>(i));
    ++account_->complaints;
    ::_exit(1);
  }
  void note(std::size_t which, const Delivery& delivery) {
    const std::string_view text = delivery.record.text();
    const std::size_t who = static_cast<std::size_t>(text[0] - '0');
    std::uint64_t i = 0;
    std::from_chars(text.data() + 2, text.data() + text.size(), i);
    CHILD_CHECK(who < kPublishers && i < kMost);
    if (account_->handed[which][who][i] < 200) ++account_->handed[which][who][i];
    if (which == kOnce && account_->handed[which][who][i] > 1) complain("twice", which, who, i);
    // All earlier ones with its key are done; the one before at least, and so on.
    if (which == kKeyed && i >= kKeys && account_->published[who][i - kKeys] != 0 &&
        account_->settling[which][who][i - kKeys] == 0)
      complain("overtakes", which, who, i);
    account_->settling[which][who][i] = 1;
  }
  // Takes some records of a group. False if there is none.
  bool take(Member& member, std::size_t which) {
    bool any = false;
    for (int i = 0; i < 20; ++i) {
      auto taken = member.receive(Deadline::immediate());
      if (!taken && taken.error() == Errc::timeout) return any;
      CHILD_CHECK_OK(taken);
      any = true;
      note(which, *taken);
      auto done = member.acknowledge(*taken);
      CHILD_CHECK(done || done.error() == Errc::lease_lost);
    }
    return any;
  }
  int work() {
    const Topic topic = topic_.open();
    std::vector<Member> members;
    for (std::size_t which = 0; which < kGroups; ++which) {
      auto member = group(topic, which).join({.spin = 0ns});
      CHILD_CHECK_OK(member);
      members.push_back(std::move(*member));
    }
    for (;;) {
      bool any = false;
      for (std::size_t which = 0; which < kGroups; ++which)
        any = take(members[which], which) || any;
      if (!any) (void)members[below(random_, kGroups)].wait(Deadline{5ms});
    }
  }
  int finish() {
    const Topic topic = topic_.open();
    for (std::size_t which = 0; which < kGroups; ++which) {
      const Group all = group(topic, which);
      auto member = all.join({.spin = 0ns});
      CHILD_CHECK_OK(member);
      const auto is_done = [&all] {
        const GroupInfo info = all.info();
        return info.lag == 0 && info.in_flight == 0;
      };
      for (const Deadline deadline{2 * kPatience}; !is_done();) {
        if (!take(*member, which)) ::usleep(1000);
        CHILD_CHECK(!deadline.passed());
      }
    }
    return 0;
  }

  // ---- In the test ------------------------------------------------------------------------------

  void start(std::size_t i) {
    children_[i].emplace([&, i]() -> int { return i < kPublishers ? publish(i) : work(); });
  }
  void restart(std::size_t i) {
    end(i);
    start(i);
  }
  void end(std::size_t i) {
    // It ends by itself only if something is wrong.
    const auto state = children_[i]->poll();
    if (state == Child::State::exited) ++account_->complaints;
    children_[i]->signal(SIGKILL);
    children_[i].reset();
  }
  void kill_all(bool restarts_machine) {
    for (auto& child : children_) child->signal(SIGKILL);
    for (std::size_t i = 0; i < children_.size(); ++i) children_[i].reset();
    if (restarts_machine) topic_.lose_window();
    for (std::size_t i = 0; i < children_.size(); ++i) start(i);
  }

  Random random_;
  const StormedTopic topic_{Durability::fsync};
  Shared<Account> account_;
  std::vector<std::optional<Child>> children_;
};

TEST(DurableGroupsStorm, LosesNothingAndDeliversNothingTwice) {
  const char* const wanted = std::getenv("LEAT_ROUNDS");
  const int rounds = wanted != nullptr ? std::atoi(wanted) : 50;
  const char* const seed_text = std::getenv("LEAT_SEED");
  const std::uint64_t seed =
      seed_text != nullptr ? std::strtoull(seed_text, nullptr, 10) : std::random_device{}();
  SCOPED_TRACE("LEAT_SEED=" + std::to_string(seed));
  GroupsStorm storm{seed};
  storm.run(rounds);
  if (!::testing::Test::HasFailure()) storm.expect_right();
}

}  // namespace
}  // namespace leat::testing
