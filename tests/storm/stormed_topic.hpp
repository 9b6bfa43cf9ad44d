// A small durable topic for the storms over groups, in a directory of its own.
//
//     const StormedTopic topic{Durability::os};
//     topic.create();           // In a child.
//     Topic mine = topic.open();  // In other children.
//     topic.lose_window();      // The machine fails: what is in memory is lost.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "leat/leat.hpp"
#include "support/process.hpp"

namespace leat::testing {

class StormedTopic {
 public:
  explicit StormedTopic(Durability durability) : durability_{durability} {
    std::filesystem::create_directories(directory());
  }

  std::string directory() const { return temp_.path() + "/topics"; }

  // For children, both: they end if there is an error.
  Topic create() const {
    auto topic = Topic::create("d", {.capacity_bytes = 16 * 8192,
                                     .segment_bytes = 8192,
                                     .directory = directory(),
                                     .durable = durability_,
                                     .file_bytes = 256 << 10,
                                     .data_directory = data_directory()});
    CHILD_CHECK_OK(topic);
    return std::move(*topic);
  }
  Topic open() const {
    for (const Deadline deadline{kPatience};;) {
      auto topic = Topic::open("d", kPatience, directory(), {}, data_directory());
      if (!topic && topic.error() == Errc::busy && !deadline.passed()) continue;
      CHILD_CHECK_OK(topic);
      return std::move(*topic);
    }
  }

  void lose_window() const { std::filesystem::remove_all(directory() + "/d"); }

 private:
  std::string data_directory() const { return temp_.path() + "/data"; }

  TemporaryDirectory temp_;
  Durability durability_;
};

}  // namespace leat::testing
