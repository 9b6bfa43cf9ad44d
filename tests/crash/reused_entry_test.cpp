// If this failed, publish() could return the offset of another publisher's record. A claim that is
// marked keeps the memory of its segment, but not the segment's entry, which has the offsets.
#include <sys/wait.h>

#include <csignal>

#include "support/moment.hpp"
#include "unit/testing.hpp"

namespace leat {
namespace {

using testing::Moment;

// A publisher that has made and marked its first claim goes on when another one is just giving the
// entry of its segment to a later segment: the base is stored, the map not yet.
void expect_own_offset(Policy policy) {
  constexpr int kEntries = 8;
  const TestTopic topic{
      {.capacity_bytes = 3 * kSegment, .segment_bytes = kSegment, .policy = policy}};
  auto publisher = must(topic->publisher());
  std::optional<Child> other;
  const auto stop_other_at_the_entry = [&] {
    other.emplace([&] {
      auto another = must(topic.open_again().publisher());
      int rolls = 0;
      const Moment moment{"roll:base", [&] {
                            if (++rolls == kEntries) ::raise(SIGSTOP);
                          }};
      while (rolls < kEntries) must(another.publish(kHalfText, 10s));
      return 0;
    });
    int status = 0;
    ASSERT_EQ(::waitpid(other->pid(), &status, WUNTRACED), other->pid());
    ASSERT_TRUE(WIFSTOPPED(status));
  };
  std::uint64_t offset = 0;
  {
    const Moment moment{"claim:marked", [&] {
                          if (!other) stop_other_at_the_entry();
                        }};
    offset = must(publisher.publish("own", 10s));
  }
  ASSERT_TRUE(other);
  ::kill(other->pid(), SIGCONT);
  ASSERT_EQ(other->join(), 0);
  auto subscriber = must(topic->subscriber({.from = From::beginning, .gating = false}));
  int found = 0;
  must(subscriber.poll(100, [&](const Record& record) {
    EXPECT_EQ(record.offset == offset, record.text() == "own");
    found += record.text() == "own" ? 1 : 0;
  }));
  EXPECT_EQ(found, 1);
}
TEST(ReusedEntry, LeavesAPublisherItsOwnOffset) { expect_own_offset(Policy::overwrite); }
TEST(ReusedEntry, LeavesABlockingPublisherItsOwnOffset) { expect_own_offset(Policy::block); }

}  // namespace
}  // namespace leat
