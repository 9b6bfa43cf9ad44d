#include "topics.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

namespace leat::bench {
namespace {

int exit_code_for(Errc code) noexcept {
  switch (code) {
    case Errc::permission: return kExitPermission;
    case Errc::not_found: return kExitNotFound;
    case Errc::invalid_argument:
    case Errc::too_large: return kExitBadUsage;
    case Errc::full:
    case Errc::no_space: return kExitFull;
    default: return kExitFailed;
  }
}

}  // namespace

Failure topic_failure(const std::string& what, Error error) {
  return {exit_code_for(error.code), fmt::format("cannot {}: {}", what, describe(error))};
}

TemporaryTopics::TemporaryTopics() {
  const char* chosen = std::getenv("LEAT_DIR");
  const std::string parent = chosen != nullptr && *chosen != '\0' ? chosen : "/dev/shm";
  // A dot, so that nobody takes it for a topic.
  directory_ = parent + "/.leat-bench-XXXXXX";
  if (::mkdtemp(directory_.data()) == nullptr) {
    throw system_failure(fmt::format("cannot make a directory in {}", parent));
  }
}

TemporaryTopics::~TemporaryTopics() {
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

void TemporaryTopics::create(const std::string& name, TopicOptions options) const {
  options.directory = directory_;
  (void)value_of(Topic::create(name, options),
                 fmt::format("make a topic of {} bytes in {}", options.capacity_bytes, directory_));
}

void TemporaryTopics::remove(const std::string& name) const {
  value_of(Topic::remove(name, {.force = true, .directory = directory_}), "delete a topic");
}

Topic open_topic(const std::string& directory, const std::string& name) {
  return value_of(Topic::open(name, Deadline::immediate(), directory), "open the topic");
}

}  // namespace leat::bench
