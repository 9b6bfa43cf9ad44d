// A record for `leat pub --json`: one JSON object, with the keys that `leat sub --json` writes.
//
//     const JsonRecord record = JsonRecord::parse(R"({"value":"hello","key":"user1"})");
//     publisher.publish({.key = record.key, .value = record.value});
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat::cli {

struct JsonRecord {
  std::string value;
  std::optional<std::string> key;
  std::vector<std::pair<std::string, std::string>> headers;  // Names and values.

  // Requires "value" or "value_base64". Ignores "topic", "offset", "partition" and "timestamp_ms", which a
  // record is given when it is published. Fails on everything else with the end of a sentence, such as
  // "has no \"value\"".
  static JsonRecord parse(std::string_view text);
};

}  // namespace leat::cli
