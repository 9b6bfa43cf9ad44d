// If this failed, a program could not tell whether an offset that it saved belongs to the topic of today: one
// that was deleted and made anew has the same name, and other records at the same offsets.
#include "durable_testing.hpp"

#include "leat/log/durable_topic.hpp"

namespace leat::testing {
namespace {

class TopicIdTest : public DurableSync {
 protected:
  detail::Fd files() const {
    auto directory = detail::open_directory_path(temp_.path() + "/data/d", false, false);
    EXPECT_TRUE(directory);
    return std::move(*directory);
  }
};

TEST_F(TopicIdTest, IsARandomUuid) {
  const Topic topic = create(Durability::none);
  EXPECT_TRUE(topic.id().is_known());
  EXPECT_FALSE(TopicId{}.is_known());
  const std::string text = topic.id().text();
  ASSERT_EQ(text.size(), 36U);
  EXPECT_EQ(text[14], '4') << text;
  EXPECT_NE(std::string{"89ab"}.find(text[19]), std::string::npos) << text;
  EXPECT_EQ(TopicId{}.text(), "00000000-0000-0000-0000-000000000000");
}

TEST_F(TopicIdTest, StaysAsLongAsTheTopic) {
  for (const Durability durability : {Durability::none, Durability::os}) {
    const TopicId id = create(durability).id();
    const auto again = open();
    ASSERT_TRUE(again);
    EXPECT_EQ(again->id(), id);
    EXPECT_EQ(again->info().id, id);
    delete_topic();
    EXPECT_NE(create(durability).id(), id);
    delete_topic();
  }
}

TEST_F(TopicIdTest, OfAClosedDurableTopicIsOnDisk) {
  const TopicId id = create(Durability::os).id();
  const auto closed = detail::info_of_closed(temp_.path() + "/data", "d");
  ASSERT_TRUE(closed);
  EXPECT_EQ(closed->id, id);
}

// As an earlier version made it, or a backup that is used in place.
TEST_F(TopicIdTest, IsMadeWhenATopicWithoutOneIsOpened) {
  (void)create(Durability::os);
  auto manifest = detail::load_manifest(disk_, files().get());
  ASSERT_TRUE(manifest);
  manifest->id = {};
  ASSERT_TRUE(detail::store_manifest(disk_, files().get(), *manifest));
  const auto closed = detail::info_of_closed(temp_.path() + "/data", "d");
  ASSERT_TRUE(closed);
  EXPECT_FALSE(closed->id.is_known());
  const TopicId id = open()->id();
  EXPECT_TRUE(id.is_known());
  EXPECT_EQ(open()->id(), id);
}

}  // namespace
}  // namespace leat::testing
