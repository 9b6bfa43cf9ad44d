#include "methods.hpp"

#include <algorithm>

namespace leat::bench::ipc {

std::vector<Method> all_methods() {
  std::vector<Method> all;
  for (const auto& some :
       {stream_methods(), datagram_methods(), slot_methods(), library_methods(), leat_methods()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

Method method_named(std::string_view name) {
  const std::vector<Method> all = all_methods();
  return *std::find_if(all.begin(), all.end(),
                       [&](const Method& method) { return method.name == name; });
}

std::optional<Facts> facts_of(std::string_view name) {
  for (const Method& method : all_methods()) {
    if (method.name == name) return method.facts;
  }
  return std::nullopt;
}

}  // namespace leat::bench::ipc
