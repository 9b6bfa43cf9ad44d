// Topics for measurements: in a private directory that goes away with them, also on Ctrl-C; after a
// kill, `leat doctor --clean` removes it.
//
//     const TemporaryTopics topics;
//     topics.create("log", {.capacity_bytes = 8 << 20});          // before the processes start
//     const Topic topic = open_topic(topics.directory(), "log");  // in each of them
#pragma once

#include <string>
#include <utility>

#include "failure.hpp"
#include "leat/leat.hpp"
#include "tool/private_directory.hpp"

namespace leat::bench {

// What the library's error means to a person and to the shell: "cannot publish: …".
[[nodiscard]] Failure topic_failure(const std::string& what, Error error);

// The value of a Result; without one, the failure.
template <class T>
T value_of(Result<T> result, const std::string& what) {
  if (!result) throw topic_failure(what, result.error());
  return std::move(*result);
}
template <>
inline void value_of(Result<void> result, const std::string& what) {
  if (!result) throw topic_failure(what, result.error());
}

// Where topics live ($LEAT_DIR or the default), made if it is missing. For commands to find out that
// it can't be used before they print anything.
std::string topic_directory();

// Below that directory: measured where topics will live. A SignalScope of the caller's turns Ctrl-C
// into an exception, so that the destructor runs.
class TemporaryTopics {
 public:
  TemporaryTopics();

  const std::string& directory() const noexcept { return directory_.path(); }

  // Makes a topic and lets go of it: the processes that measure open it themselves.
  void create(const std::string& name, TopicOptions options) const;
  void remove(const std::string& name) const;

 private:
  tool::PrivateDirectory directory_;
};

Topic open_topic(const std::string& directory, const std::string& name);

}  // namespace leat::bench
