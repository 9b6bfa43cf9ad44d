// What a program that takes no part sees of topics in memory, and of closed ones. If these failed, monitoring would miss dead
// processes and memory that nobody else has, or change the topics that it looks at.
#include <algorithm>
#include <filesystem>
#include <string>

#include "unit/admin/admin_testing.hpp"

namespace leat {
namespace {

class AdminMemory : public AdminTest {
 protected:
  Result<TopicMemory> inspect(const std::string& name) const {
    return inspect_memory(name, topics_.path(), data_.path());
  }
};
class AdminClosed : public AdminTest {};

TEST_F(AdminMemory, HasTheLivingAndTheFilesOwner) {
  TopicOptions options = in_memory();
  options.mode = 0640;
  const Topic topic = create("t", options);
  EXPECT_TRUE(must(inspect("t")).living.empty());  // To have it open is not to take part.
  const auto publisher = must(topic.publisher());
  const auto subscriber = must(topic.subscriber());
  const TopicMemory memory = must(inspect("t"));
  const auto me = static_cast<std::uint32_t>(::getpid());
  EXPECT_EQ(memory.living, (std::vector<std::uint32_t>{me, me}));
  EXPECT_TRUE(memory.dead.empty());
  EXPECT_EQ(memory.owner, ::geteuid());
  EXPECT_EQ(memory.mode, 0640U);
  EXPECT_FALSE(memory.is_durable);
  EXPECT_FALSE(memory.is_deleted);
  EXPECT_FALSE(memory.is_stray);
  EXPECT_EQ(memory.files, "");
}

TEST_F(AdminMemory, HasTheDead) {
  const Topic topic = create("t", in_memory());
  testing::Child child{[&] {
    const auto subscriber = open("t").subscriber();
    CHILD_CHECK(subscriber);
    ::kill(::getpid(), SIGKILL);
    return 0;
  }};
  child.wait();
  ASSERT_TRUE(child.was_killed()) << child.describe();
  const TopicMemory memory = must(inspect("t"));
  EXPECT_EQ(memory.dead, std::vector{static_cast<std::uint32_t>(child.pid())});
  EXPECT_TRUE(memory.living.empty());
  EXPECT_EQ(must(inspect("t")).dead.size(), 1U);  // Who looks changes nothing.
}

TEST_F(AdminMemory, OfADurableTopicNamesItsFiles) {
  const Topic topic = create("d", durable());
  const TopicMemory memory = must(inspect("d"));
  EXPECT_TRUE(memory.is_durable);
  EXPECT_EQ(memory.files, topic.info().durable->directory);
  EXPECT_EQ(memory.state, Errc::ok);
  EXPECT_EQ(memory.reason, 0);
  EXPECT_FALSE(memory.is_stray);
}

TEST_F(AdminMemory, IsStrayOnceItsFilesAreGoneOrOfAnother) {
  const Topic topic = create("d", durable());
  std::filesystem::rename(path_of("d"), path_of("moved"));
  EXPECT_TRUE(must(inspect("d")).is_stray);
  const TestDirectory others;
  TopicOptions options = durable();
  options.directory = others.path();
  const Topic other = create("d", options);
  EXPECT_TRUE(must(inspect("d")).is_stray);
  EXPECT_FALSE(must(inspect_memory("d", others.path(), data_.path())).is_stray);
}

TEST_F(AdminMemory, ErrorsSayWhyThereIsNothingToSee) {
  EXPECT_EQ(code(inspect("missing")), Errc::not_found);
  EXPECT_EQ(code(inspect("a/b")), Errc::invalid_argument);
  EXPECT_EQ(code(inspect_memory("t", topics_.path() + "/missing")), Errc::not_found);
  std::ofstream{topics_ / "file"} << "x";
  EXPECT_EQ(code(inspect("file")), Errc::wrong_format);
  const Topic topic = create("t", in_memory());
  std::filesystem::resize_file(topics_ / "t" / "control", 100);
  EXPECT_EQ(code(inspect("t")), Errc::wrong_format);
  std::filesystem::remove(topics_ / "t" / "control");
  EXPECT_EQ(code(inspect("t")), Errc::not_found);
}

TEST_F(AdminMemory, OfAClosedTopicIsNotMade) {
  make_closed("d", 3);
  EXPECT_EQ(code(inspect("d")), Errc::not_found);
  EXPECT_FALSE(has_memory("d", topics_.path()));
}

TEST_F(AdminClosed, SaysWhatTheOpenTopicSays) {
  TopicId id;
  {
    TopicOptions options = durable();
    options.partitions = 2;
    options.retention_bytes = 1 << 20;
    const Topic topic = create("d", options);
    id = topic.id();
    publish_numbers(topic, 10);
    for (const char* name : {"g", "a"}) {
      const Group group = must(topic.group(name, {.from = From::beginning}));
      auto member = must(group.join());
      ASSERT_TRUE(member.receive(10s));
    }
  }
  const ClosedTopic closed = must(inspect_closed("d", data_.path()));
  EXPECT_EQ(closed.info.name, "d");
  EXPECT_EQ(closed.info.id, id);
  EXPECT_TRUE(closed.info.participants.empty());
  const Topic topic = open("d");
  const TopicInfo info = topic.info();
  EXPECT_EQ(closed.info.segment_bytes, info.segment_bytes);
  EXPECT_EQ(closed.info.capacity_bytes, info.capacity_bytes);
  EXPECT_EQ(closed.info.durable->directory, info.durable->directory);
  EXPECT_EQ(closed.info.durable->created_ms, info.durable->created_ms);
  EXPECT_EQ(closed.info.durable->retention_bytes, info.durable->retention_bytes);
  ASSERT_EQ(closed.info.partitions.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(closed.info.partitions[i].start, info.partitions[i].start);
    EXPECT_EQ(closed.info.partitions[i].end, info.partitions[i].end);
  }
  ASSERT_EQ(closed.groups.size(), 2U);
  EXPECT_EQ(closed.groups[0].name, "a");
  for (const GroupInfo& group : closed.groups) {
    const GroupInfo opened = must(topic.find_group(group.name)).info();
    EXPECT_EQ(group.lag + group.in_flight, opened.lag + opened.in_flight) << group.name;
    EXPECT_EQ(group.offsets.size(), 2U);
  }
}

TEST_F(AdminClosed, IsNotRecovered) {
  make_unclosed("d", 10);
  EXPECT_EQ(must(inspect_closed("d", data_.path())).info.partitions[0].end, 10U);
  EXPECT_TRUE(must(files_of("d").inspect()).needs_recovery);
}

TEST_F(AdminClosed, ErrorsSayWhyThereIsNothingToSee) {
  EXPECT_EQ(code(inspect_closed("missing", data_.path())), Errc::not_found);
  EXPECT_EQ(code(inspect_closed("d", data_.path() + "/missing")), Errc::not_found);
  std::filesystem::create_directory(path_of("other"));
  EXPECT_EQ(code(inspect_closed("other", data_.path())), Errc::wrong_format);
  std::ofstream{path_of("file")} << "x";
  EXPECT_EQ(code(inspect_closed("file", data_.path())), Errc::wrong_format);
}

}  // namespace
}  // namespace leat
