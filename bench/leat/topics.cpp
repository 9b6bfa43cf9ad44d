#include "topics.hpp"

#include <fmt/format.h>

#include "tool/topic_directory.hpp"

namespace leat::bench {

Failure topic_failure(const std::string& what, Error error) {
  return {exit_code_for(error.code), fmt::format("cannot {}: {}", what, describe(error))};
}

std::string topic_directory() { return tool::usable_directory(tool::Missing::is_made); }

TemporaryTopics::TemporaryTopics()
    : directory_{value_of(tool::PrivateDirectory::make(topic_directory(), tool::kBenchPrefix),
                          "make a directory for measurements")} {}

void TemporaryTopics::create(const std::string& name, TopicOptions options) const {
  options.directory = directory();
  (void)value_of(Topic::create(name, options), fmt::format("make a topic of {} bytes in {}",
                                                           options.capacity_bytes, directory()));
}

Topic open_topic(const std::string& directory, const std::string& name) {
  return value_of(Topic::open(name, Deadline::immediate(), directory), "open the topic");
}

}  // namespace leat::bench
