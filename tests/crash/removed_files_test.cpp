// If this failed, a program whose topic was deleted, by Leat or by hand, would be told that the topic is damaged, or that
// there is no such group.
#include <filesystem>
#include <functional>
#include <thread>

#include "scenarios.hpp"

namespace leat::testing {
namespace {

// Calls `at_step` once, at the step of this name.
std::string awaited_step;
std::function<void()> at_step;
void check_at_step(const char* name) {
  if (awaited_step != name) return;
  awaited_step.clear();
  at_step();
}

class RemovedFiles : public ::testing::Test {
 protected:
  ~RemovedFiles() override { detail::crash_point_hook = nullptr; }

  void when(const char* step, std::function<void()> act) {
    awaited_step = step;
    at_step = std::move(act);
    detail::crash_point_hook = check_at_step;
  }
  TopicOptions options() const {
    return {.capacity_bytes = 16384, .segment_bytes = 4096, .directory = directory_.path()};
  }
  Topic open() const {
    auto topic = Topic::open("topic", Deadline::immediate(), directory_.path());
    EXPECT_TRUE(topic) << describe(topic.error());
    return std::move(*topic);
  }
  // Publishes until that is refused.
  static Errc publish_on(Publisher& publisher) {
    for (int i = 0; i < 1000; ++i) {
      auto published = publisher.publish(std::string(200, 'x'), 10s);
      if (!published) return published.error().code;
    }
    return Errc::ok;
  }

  const TemporaryDirectory directory_;
  const std::string files_ = directory_.path() + "/topic";
};

// The publisher has not mapped the group before its file is gone.
TEST_F(RemovedFiles, APublisherThatMeetsANewGroupIsToldOfTheDeletion) {
  auto topic = Topic::create("topic", options());
  ASSERT_TRUE(topic);
  auto publisher = topic->publisher();
  ASSERT_TRUE(publisher);
  const Topic other = open();
  ASSERT_TRUE(other.group("group", {.from = From::beginning}));
  std::filesystem::remove_all(files_);
  EXPECT_EQ(publish_on(*publisher), Errc::deleted);
}

// Removing a directory takes its time, and the files go in any order.
TEST_F(RemovedFiles, AlsoWhileTheyAreBeingRemoved) {
  auto topic = Topic::create("topic", options());
  ASSERT_TRUE(topic);
  auto publisher = topic->publisher();
  ASSERT_TRUE(publisher);
  const Topic other = open();
  ASSERT_TRUE(other.group("group", {.from = From::beginning}));
  for (const auto& file : std::filesystem::directory_iterator{files_}) {
    if (file.path().filename().string().starts_with("group-")) std::filesystem::remove(file.path());
  }
  const std::jthread rest{[&] {
    std::this_thread::sleep_for(5ms);
    std::filesystem::remove_all(files_);
  }};
  EXPECT_EQ(publish_on(*publisher), Errc::deleted);
}

TEST_F(RemovedFiles, MakingAGroupMeanwhileIsToldOfTheDeletion) {
  for (const bool by_hand : {false, true}) {
    for (const char* step : {"join:locked", "join:active", "group:filled", "group:entered"}) {
      auto topic = Topic::create("topic", options());
      ASSERT_TRUE(topic) << describe(topic.error());
      when(step, [&] {
        if (by_hand) {
          std::filesystem::remove_all(files_);
        } else {
          const DeleteOptions force{.force = true, .directory = directory_.path()};
          EXPECT_TRUE(Topic::delete_topic("topic", force));
        }
      });
      const auto group = topic->group("group", {.from = From::beginning});
      EXPECT_TRUE(awaited_step.empty()) << step << " did not come";
      // If the file was there before, it may stay in use with the topic's other files.
      const bool was_made = std::string_view{step}.starts_with("group:");
      if (!was_made || !group) {
        EXPECT_EQ(group.error().code, Errc::deleted) << step << (by_hand ? ", by hand" : "");
      }
      EXPECT_EQ(topic->find_group("another").error().code, Errc::deleted);
    }
  }
}

}  // namespace
}  // namespace leat::testing
