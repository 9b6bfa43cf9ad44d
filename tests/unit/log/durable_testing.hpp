// A durable topic on a disk that fails or waits when a test wants it to.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "leat/leat.hpp"
#include "support/process.hpp"
#include "support/switch_disk.hpp"

namespace leat::testing {

class DurableSync : public ::testing::Test {
 protected:
  DurableSync() {
    std::filesystem::create_directories(temp_.path() + "/topics");
    std::filesystem::create_directories(temp_.path() + "/data");
  }
  // A window of 64 KiB in segments of 8 KiB.
  TopicOptions options(Durability durable) const {
    return {.capacity_bytes = 64 << 10,
            .segment_bytes = 8 << 10,
            .directory = temp_.path() + "/topics",
            .durable = durable,
            .sync_interval = durable == Durability::interval ? 20ms : 0ms,
            .file_bytes = 256 << 10,
            .data_directory = temp_.path() + "/data"};
  }
  Topic create(Durability durable) const { return create(options(durable)); }
  Topic create(const TopicOptions& wanted) const {
    auto topic = Topic::create("d", wanted);
    EXPECT_TRUE(topic) << describe(topic.error());
    return std::move(*topic);
  }
  Result<Topic> open() const {
    return Topic::open("d", Deadline::immediate(), temp_.path() + "/topics", {},
                       temp_.path() + "/data");
  }
  void delete_topic() const {
    EXPECT_TRUE(Topic::delete_topic("d", {.force = true,
                                          .directory = temp_.path() + "/topics",
                                          .data_directory = temp_.path() + "/data"}));
  }
  static Publisher publisher_of(const Topic& topic, const PublisherOptions& wanted = {}) {
    auto publisher = topic.publisher(wanted);
    EXPECT_TRUE(publisher) << describe(publisher.error());
    return std::move(*publisher);
  }
  static std::uint64_t durable_of(const Topic& topic) { return topic.info().partitions[0].durable; }
  static bool wait_until(const std::function<bool()>& condition) {
    for (const Deadline deadline{kPatience}; !condition();) {
      if (deadline.passed()) return false;
      std::this_thread::sleep_for(1ms);
    }
    return true;
  }
  // Texts of all records; "gap" for a gap.
  static std::vector<std::string> read(const Topic& topic, std::uint64_t until,
                                       std::optional<Stage> stage = {}) {
    std::vector<std::string> lines;
    auto subscriber = topic.subscriber({.from = From::beginning, .read = stage});
    EXPECT_TRUE(subscriber) << describe(subscriber.error());
    if (!subscriber) return lines;
    subscriber->on_event(
        [&](const Event& event) { lines.push_back(std::string{"gap "} + name_of(event.reason)); });
    while (subscriber->offset() < until) {
      auto record = subscriber->receive(kPatience);
      EXPECT_TRUE(record) << describe(record.error());
      if (!record) break;
      lines.emplace_back(record->text());
    }
    return lines;
  }

  TemporaryDirectory temp_;
  SwitchDisk disk_;
};

}  // namespace leat::testing
