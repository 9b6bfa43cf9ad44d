// JSON as text for programs that read it.
//
//     fmt::print("{}\n", json_text(facts, 2));
#pragma once

#include <string>

namespace leat::tool {

// Bytes that are not UTF-8 become U+FFFD: other processes choose names and paths, and JSON cannot hold every one.
// `indent`: spaces for each level; -1: all in one line.
template <class Json>
std::string json_text(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace leat::tool
