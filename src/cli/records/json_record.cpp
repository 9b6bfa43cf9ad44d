#include "json_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "cli/cli.hpp"
#include "tool/did_you_mean.hpp"

namespace leat::cli {
namespace {

using Json = nlohmann::json;

constexpr std::array kIgnored = {"topic", "offset", "partition", "timestamp_ms"};

[[noreturn]] void refuse(const std::string& why) { throw Failure{kExitUsage, why}; }

// Nothing if it is not valid base64.
std::optional<std::string> decode_base64(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  if (text.size() % 4 != 0) return std::nullopt;
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  text.remove_suffix(padding);
  std::string bytes;
  std::uint32_t group = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t digit = kDigits.find(text[i]);
    if (digit == std::string_view::npos) return std::nullopt;
    group = (group << 6) | static_cast<std::uint32_t>(digit);
    // Each digit of four but the first completes a byte.
    if (i % 4 != 0) bytes += static_cast<char>((group >> (6 - 2 * (i % 4))) & 0xff);
  }
  return bytes;
}

std::string text_of(const Json& json, const std::string& name, bool is_base64) {
  if (!json.is_string()) refuse(fmt::format("has a \"{}\" that is no string", name));
  if (!is_base64) return json.get<std::string>();
  auto bytes = decode_base64(json.get_ref<const std::string&>());
  if (!bytes) refuse(fmt::format("has a \"{}\" that is not base64", name));
  return std::move(*bytes);
}

// The value of "name" or "name_base64".
std::optional<std::string> find_text(const Json& object, const std::string& name) {
  const std::string encoded = name + "_base64";
  const bool is_text = object.contains(name);
  const bool is_base64 = object.contains(encoded);
  if (is_text && is_base64)
    refuse(fmt::format("has both \"{}\" and \"{}\": one of them is right", name, encoded));
  if (!is_text && !is_base64) return std::nullopt;
  const std::string& found = is_text ? name : encoded;
  return text_of(object[found], found, is_base64);
}

void add_headers(const Json& object, const std::string& name, bool is_base64, JsonRecord& record) {
  const auto found = object.find(name);
  if (found == object.end()) return;
  if (!found->is_object()) refuse(fmt::format("has \"{}\" that are no object", name));
  for (const auto& [header, values] : found->items()) {
    if (header.empty()) refuse(fmt::format("has \"{}\" with an empty name", name));
    if (!values.is_array()) {
      record.headers.emplace_back(header, text_of(values, header, is_base64));
      continue;
    }
    for (const Json& value : values)
      record.headers.emplace_back(header, text_of(value, header, is_base64));
  }
}

void check_names(const Json& object) {
  std::vector<std::string> known{kIgnored.begin(), kIgnored.end()};
  for (const std::string name : {"value", "key", "headers"}) {
    known.push_back(name);
    known.push_back(name + "_base64");
  }
  for (const auto& [name, value] : object.items()) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    refuse(fmt::format("has an unknown \"{}\"{}", name, tool::did_you_mean(name, known)));
  }
}

}  // namespace

JsonRecord JsonRecord::parse(std::string_view text) {
  const Json object = Json::parse(text, nullptr, false);
  if (!object.is_object())
    refuse("is no JSON object; write for example {\"key\":\"user1\",\"value\":\"hello\"}");
  check_names(object);
  JsonRecord record;
  auto value = find_text(object, "value");
  if (!value) refuse("has no \"value\"; write for example {\"value\":\"hello\"}");
  record.value = std::move(*value);
  record.key = find_text(object, "key");
  add_headers(object, "headers", false, record);
  add_headers(object, "headers_base64", true, record);
  return record;
}

}  // namespace leat::cli
