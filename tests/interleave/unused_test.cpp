// If this failed, a topic with `delete_when_unused` could be deleted while somebody uses it, or
// stay after its last user has let go.
#include <gtest/gtest.h>

#include "leat/log/directory.hpp"
#include "small_topic.hpp"

namespace leat {
namespace {

TopicOptions passing() {
  return {.capacity_bytes = 2 * kSegment,
          .segment_bytes = kSegment,
          .delete_when_unused = true,
          .directory = SmallTopic::directory()};
}
bool is_there() {
  return detail::topic_names(
             must(detail::open_directory(SmallTopic::directory(), false), "directory"))
             ->size() != 0;
}

// A user lets go of the topic while one or more others open it to use it, and
// another one only looks.
void let_go_and_come(model::Execution& run, int users, bool with_looker) {
  SmallTopic topic{passing()};
  run.thread("first", [&, held = std::make_shared<Topic>(topic.take())]() mutable {
    { (void)must(must(held->publisher(), "publisher").publish(payload_of({}, kSmall)), "publish"); }
    held.reset();
  });
  for (int i = 0; i < users; ++i) {
    run.thread("user " + std::to_string(i), [&] {
      auto opened = Topic::open("t", Deadline::immediate(), SmallTopic::directory());
      if (!opened) {
        model::check(opened.error().code == Errc::not_found, "open: " + describe(opened.error()));
        return;
      }
      auto publisher = must(opened->publisher(), "publisher of who has it open");
      (void)must(publisher.publish(payload_of({}, kSmall)), "publish");
      model::check(is_there(), "removed while it was in use");
    });
  }
  if (with_looker) {
    run.thread("looker", [&] {
      auto opened = Topic::open("t", Deadline::immediate(), SmallTopic::directory());
      if (opened) model::check(opened->info().partitions.at(0).end <= 4, "info");
    });
  }
  if (!run.run()) return;
  model::check(!is_there(), "nobody removed it");
}

TEST(Unused, GoesWithTheLastUserAndNotBefore) {
  EXPECT_TRUE(model::holds(model::explore(
      {.name = "one comes"}, [](model::Execution& run) { let_go_and_come(run, 1, false); })));
  EXPECT_TRUE(model::holds(model::explore(
      {.name = "two come"}, [](model::Execution& run) { let_go_and_come(run, 2, false); })));
}

TEST(Unused, GoesThoughSomebodyLooks) {
  EXPECT_TRUE(model::holds(model::explore(
      {.name = "one looks"}, [](model::Execution& run) { let_go_and_come(run, 0, true); })));
  EXPECT_TRUE(
      model::holds(model::explore({.name = "one comes, one looks"},
                                  [](model::Execution& run) { let_go_and_come(run, 1, true); })));
}

}  // namespace
}  // namespace leat
