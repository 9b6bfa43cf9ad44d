// If these failed, whoever attaches to a connection point while others close and create it could get the blocks of one
// creation and the settings of another, or be told that it is none.
#include <sys/wait.h>

#include <csignal>
#include <filesystem>

#include "leat/compat/simple_ipc.hpp"
#include "support/moment.hpp"
#include "support/process.hpp"
#include "unit/testing.hpp"

namespace leat {
namespace {

using testing::Moment;

class SimpleIpcNames : public ::testing::Test {
 protected:
  void SetUp() override { ::setenv("LEAT_DIR", directory_.path().c_str(), 1); }
  void TearDown() override { ::unsetenv("LEAT_DIR"); }

  const testing::TemporaryDirectory directory_;
};

// The settings of a creator that found the name taken, and the blocks of whoever has it.
TEST_F(SimpleIpcNames, BlocksAndSettingsAreOfOneCreation) {
  const compat::BlockSettings small{.block_size = 64, .block_count = 4};
  const compat::BlockSettings large{.block_size = 100'000, .block_count = 4};
  auto point = must(compat::ConnectionPoint::create(small, "point"));
  must(Topic::delete_topic("point.settings", {.force = true}));
  EXPECT_EQ(compat::ConnectionPoint::create(large, "point").error().code, Errc::exists);
  // What that creator leaves for a moment.
  const auto settings = must(Topic::create("point.settings", {.capacity_bytes = 8192}));
  const compat::SettingsRecord record{large, TopicId{{std::byte{1}}}};
  must(must(settings.publisher()).publish(Bytes{&record, sizeof(record)}));
  EXPECT_EQ(code(compat::ConnectionPoint::attach("point", Deadline::immediate())), Errc::not_found);
  const compat::SettingsRecord own{small, must(Topic::open("point")).id()};
  must(must(settings.publisher()).publish(Bytes{&own, sizeof(own)}));
  EXPECT_EQ(must(compat::ConnectionPoint::attach("point", Deadline::immediate()))->settings(),
            small);
}

// The last other instance goes while one attaches.
TEST_F(SimpleIpcNames, OneThatIsBeingClosedIsNotThereOrStays) {
  const compat::BlockSettings settings{.block_size = 64, .block_count = 4};
  for (const std::string step : {"simple_ipc:settings", "simple_ipc:blocks"}) {
    auto point = must(compat::ConnectionPoint::create(settings, "point"));
    {
      const Moment moment{step.c_str(), [&] { point.reset(); }};
      auto attached = compat::ConnectionPoint::attach("point", Deadline::immediate());
      if (step == "simple_ipc:settings") {
        EXPECT_EQ(attached.error().code, Errc::not_found);
      } else {
        EXPECT_EQ(must(std::move(attached))->settings(), settings);
      }
    }
    // Whoever was last has removed it.
    for (const std::string topic : {"point", "point.settings"})
      EXPECT_FALSE(std::filesystem::exists(directory_.path() + "/" + topic)) << step << topic;
  }
}

TEST_F(SimpleIpcNames, AnotherTopicIsNone) {
  must(Topic::create("other"));
  EXPECT_EQ(code(compat::ConnectionPoint::attach("other", Deadline::immediate())),
            Errc::wrong_format);
  EXPECT_TRUE(Topic::open("other"));
}

// The last instance closes the blocks before their settings.
TEST_F(SimpleIpcNames, ThereAreNoBlocksWithoutSettings) {
  Child closer{[] {
    for (;;) (void)compat::ConnectionPoint::create({.block_size = 64, .block_count = 4}, "point");
    return 0;
  }};
  for (int i = 0; i < 1000; ++i) {
    const auto point = compat::ConnectionPoint::attach("point", Deadline::immediate());
    if (!point) {
      EXPECT_EQ(point.error().code, Errc::not_found);
    }
  }
}

}  // namespace
}  // namespace leat
