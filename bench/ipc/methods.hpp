// Every way to talk that `leat bench ipc` knows.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "load.hpp"

namespace leat::bench::ipc {

struct Method {
  const char* name;
  Cost (*measure)(const Load& load, const Placement& placement);
  bool batches = false;
  bool spinning = true;  // Which variants there are.
  bool blocking = true;
  bool baseline = false;  // When spinning, it is one slot and no queue at all.
};

// In the order in which they are shown.
std::vector<Method> all_methods();
// One that there is.
Method method_named(std::string_view name);

// Of the libraries that some of them use: name and version.
std::vector<std::pair<std::string, std::string>> library_versions();

// By file.
std::vector<Method> stream_methods();
std::vector<Method> datagram_methods();
std::vector<Method> slot_methods();
std::vector<Method> library_methods();
std::vector<Method> log_methods();

}  // namespace leat::bench::ipc
