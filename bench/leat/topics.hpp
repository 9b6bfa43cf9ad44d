// Topics for measurements, in a private directory that is removed with them, also on Ctrl-C. After a
// kill, `leat doctor --clean` removes it.
//
//     const TemporaryTopics topics;
//     topics.create("log", {.capacity_bytes = 8 << 20});          // before the processes start
//     const Topic topic = open_topic(topics.directory(), "log");  // in each of them
#pragma once

#include <string>
#include <utility>

#include "bench/failure.hpp"
#include "leat/leat.hpp"
#include "tool/private_directory.hpp"

namespace leat::bench {

// The library's error as a sentence and an exit code: "cannot publish: …".
[[nodiscard]] Failure topic_failure(const std::string& what, Error error);

// The value of a Result; throws topic_failure() if there is none.
template <class T>
T value_of(Result<T> result, const std::string& what) {
  if (!result) throw topic_failure(what, result.error());
  return std::move(*result);
}
template <>
inline void value_of(Result<void> result, const std::string& what) {
  if (!result) throw topic_failure(what, result.error());
}

// Where topics live; see tool/topic_directory.hpp. Made if it is missing. Commands call it first, so that
// they fail before they have printed anything.
std::string topic_directory();

// Below that directory, since that is where topics will live. The caller needs a SignalScope, which
// turns Ctrl-C into an exception, so that the destructor runs.
class TemporaryTopics {
 public:
  TemporaryTopics();

  const std::string& directory() const noexcept { return directory_.path(); }

  // Makes a topic and closes it: the processes that measure open it themselves.
  void create(const std::string& name, TopicOptions options) const;

 private:
  tool::PrivateDirectory directory_;
};

Topic open_topic(const std::string& directory, const std::string& name);

}  // namespace leat::bench
