// For tests of leat/admin.hpp: topics in directories of their own, in memory or durable.
//
//     class AdminMemory : public AdminTest {};
//     TEST_F(AdminMemory, …) { const Topic topic = create("t", durable()); … }
#pragma once

#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "leat/admin.hpp"
#include "support/process.hpp"
#include "unit/testing.hpp"

namespace leat {

class AdminTest : public ::testing::Test {
 protected:
  TopicOptions in_memory() const {
    return {.capacity_bytes = 64 << 10, .segment_bytes = 8 << 10, .directory = topics_.path()};
  }
  // A window of 64 KiB, and files of 64 KiB.
  TopicOptions durable() const {
    TopicOptions options = in_memory();
    options.durable = Durability::os;
    options.file_bytes = 64 << 10;
    options.data_directory = data_.path();
    return options;
  }
  static Topic create(const std::string& name, const TopicOptions& options) {
    return must(Topic::create(name, options));
  }
  Topic open(const std::string& name) const {
    return must(Topic::open(name, 0s, topics_.path(), {}, data_.path()));
  }
  TopicFiles files_of(const std::string& name) const {
    return must(TopicFiles::open(name, data_.path()));
  }
  std::filesystem::path path_of(const std::string& name) const { return data_ / name; }

  static void publish(const Topic& topic, const std::vector<std::string>& texts) {
    auto publisher = must(topic.publisher());
    for (const std::string& text : texts) must(publisher.publish(text, 10s));
  }
  // A durable topic with records "0", "1", … that is closed, or whose only process was killed.
  void make_closed(const std::string& name, int records) const {
    const Topic topic = create(name, durable());
    publish_numbers(topic, records);
  }
  void make_unclosed(const std::string& name, int records) const {
    testing::Child child{[&] {
      const Topic topic = create(name, durable());
      publish_numbers(topic, records);
      must(topic.sync(10s));
      ::kill(::getpid(), SIGKILL);
      return 0;
    }};
    child.wait();
    ASSERT_TRUE(child.was_killed()) << child.describe();
    must(Topic::list(topics_.path(), data_.path()));
    std::filesystem::remove_all(topics_ / name);  // As a restart of the machine.
  }
  static void publish_numbers(const Topic& topic, int count) {
    auto publisher = must(topic.publisher());
    for (int i = 0; i < count; ++i) must(publisher.publish(std::to_string(i), 10s));
  }

  // The first file of records.
  std::filesystem::path segment_of(const std::string& name) const {
    for (const auto& entry : std::filesystem::directory_iterator{path_of(name)}) {
      if (entry.path().filename().string().starts_with("segment-")) return entry.path();
    }
    throw std::runtime_error{"no file of records"};
  }
  // Changes one byte.
  static void spoil(const std::filesystem::path& path, std::streamoff at) {
    std::fstream file{path, std::ios::in | std::ios::out | std::ios::binary};
    file.seekg(at);
    const auto byte = static_cast<char>(file.get());
    file.seekp(at);
    file.put(static_cast<char>(byte ^ 0x55));
    ASSERT_TRUE(file.flush());
  }

  // "0 a", "gap 1+2 damaged": what a reader has from an offset of a partition on.
  static Log read(FilesReader& reader, std::uint32_t partition = 0, std::uint64_t offset = 0) {
    Log log;
    must(reader.seek(partition, offset));
    FilesEntry entry;
    while (must(reader.next(entry))) log.push_back(text_of(entry));
    return log;
  }
  static std::string text_of(const FilesEntry& entry) {
    if (entry.is_record)
      return std::to_string(entry.record.offset) + ' ' + std::string{entry.record.text()};
    return "gap " + std::to_string(entry.gap.first) + '+' + std::to_string(entry.gap.count) + ' ' +
           name_of(entry.gap.reason);
  }

  TestDirectory topics_;
  TestDirectory data_;
};

}  // namespace leat
