// The data directories of earlier versions, in tests/fixtures, opened as users open them. If these failed, an
// update of Leat would lock its users out of their topics, or take a topic in memory for a durable one.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "leat/leat.hpp"
#include "support/process.hpp"

namespace leat::testing {
namespace {

using Lines = std::vector<std::string>;

class OpenedFixture : public ::testing::Test {
 protected:
  OpenedFixture() {
    std::filesystem::create_directories(temp_.path() + "/topics");
    std::filesystem::create_directories(data());
    std::filesystem::copy(fixtures() / "store-1" / "orders", data());
  }
  static std::filesystem::path fixtures() { return LEAT_SOURCE_DIR "/tests/fixtures"; }
  std::string data() const { return temp_.path() + "/data/orders"; }
  Topic must_open() const {
    auto topic = Topic::open("orders", Deadline::immediate(), temp_.path() + "/topics", {},
                             temp_.path() + "/data");
    if (!topic) throw std::runtime_error{describe(topic.error())};
    return std::move(*topic);
  }
  // "0 first": the begin of each record, and gaps.
  static Lines read(const Topic& topic, std::uint32_t partition) {
    Lines lines;
    auto subscriber = topic.subscriber({.from = From::beginning, .partition = partition});
    EXPECT_TRUE(subscriber) << describe(subscriber.error());
    if (!subscriber) return lines;
    subscriber->on_event([&](const Event& event) {
      lines.push_back("gap " + std::to_string(event.first) + '+' + std::to_string(event.count) +
                      ' ' + name_of(event.reason));
    });
    while (subscriber->offset(partition) < topic.info().partitions[partition].end) {
      auto polled = subscriber->poll(100, [&](const Record& record) {
        lines.push_back(std::to_string(record.offset) + ' ' +
                        std::string{record.text().substr(0, 6)});
      });
      EXPECT_TRUE(polled) << describe(polled.error());
      if (!polled) break;
    }
    return lines;
  }
  static Lines first_partition() {
    return {"0 first",  "1 second", "2 ",       "3 fourth", "gap 4+1 aborted", "5 sixth",
            "6 aaaaaa", "7 bbbbbb", "8 cccccc", "9 dddddd", "gap 10+1 died",   "11 end"};
  }

  TemporaryDirectory temp_;
};

TEST_F(OpenedFixture, OfVersion1IsADurableTopic) {
  Lines all = first_partition();
  for (const char* const text : {"twelve", "more"}) {
    const Topic topic = must_open();
    ASSERT_TRUE(topic.info().durable);
    EXPECT_EQ(read(topic, 0), all);
    EXPECT_EQ(read(topic, 1), Lines{"0 hello"});
    auto publisher = topic.publisher({.partition = 0});
    ASSERT_TRUE(publisher);
    const auto offset = publisher->publish(text);
    ASSERT_TRUE(offset) << describe(offset.error());
    all.push_back(std::to_string(*offset) + ' ' + text);
  }
  // What was published is in the files.
  std::filesystem::remove_all(temp_.path() + "/topics/orders");
  EXPECT_EQ(read(must_open(), 0), all);
}

// The group has its name, and a record that was not acknowledged comes again.
TEST_F(OpenedFixture, GroupsOfVersion1CanBeJoined) {
  std::filesystem::copy(fixtures() / "groups-1", data());
  const Topic topic = must_open();
  auto group = topic.group("workers");
  ASSERT_TRUE(group) << describe(group.error());
  auto member = group->join();
  ASSERT_TRUE(member) << describe(member.error());
  auto delivery = member->receive(kPatience);
  ASSERT_TRUE(delivery) << describe(delivery.error());
  EXPECT_EQ(delivery->record.partition, 0U);
  EXPECT_EQ(delivery->record.offset, 3U);
  EXPECT_EQ(delivery->record.text(), "fourth");
}

}  // namespace
}  // namespace leat::testing
