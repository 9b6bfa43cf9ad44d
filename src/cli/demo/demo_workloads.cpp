#include "demo_workloads.hpp"

#include <charconv>
#include <cstring>
#include <optional>

namespace leat::cli {
namespace {

// "hola" 32 times and "adios": 133 bytes.
const std::string& text_content() {
  static const std::string content = [] {
    std::string made;
    for (int i = 0; i < 32; ++i) made += "hola";
    return made + "adios";
  }();
  return content;
}

constexpr CheckImeiReq kRequest{"254784512658411", "214021245145781", "123456987412547896"};

std::string_view request_bytes() {
  return {reinterpret_cast<const char*>(&kRequest), sizeof(kRequest)};
}

// The serialized object. ShmFifo's program used a Boost text archive: text, strings as their length,
// a blank and the characters, fields separated by blanks. This is the same idea without Boost (and
// without its archive header), written and read field by field for every record as there.
void serialize_field(std::string_view field, std::string& to) {
  if (!to.empty()) to += ' ';
  char digits[20];
  const auto [end, error] = std::to_chars(digits, digits + sizeof(digits), field.size());
  to.append(digits, static_cast<std::size_t>(end - digits));
  to += ' ';
  to += field;
}

std::string_view serialize(std::string& buffer) {
  buffer.clear();
  serialize_field(kRequest.imei, buffer);
  serialize_field(kRequest.imsi, buffer);
  serialize_field(kRequest.msisdn, buffer);
  return buffer;
}

// Takes one field away from `text` into `field`, with zeros behind it. False if there is none.
template <std::size_t size>
bool deserialize_field(std::string_view& text, char (&field)[size]) {
  std::size_t length = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (text.empty() || text[0] != ' ' || length >= size || text.size() - 1 < length) return false;
  std::memset(field, 0, size);
  std::memcpy(field, text.data() + 1, length);
  text.remove_prefix(1 + length);
  if (!text.empty() && text[0] == ' ') text.remove_prefix(1);
  return true;
}

std::optional<CheckImeiReq> deserialize(std::string_view text) {
  CheckImeiReq request;
  const bool ok = deserialize_field(text, request.imei) && deserialize_field(text, request.imsi) &&
                  deserialize_field(text, request.msisdn) && text.empty();
  if (!ok) return std::nullopt;
  return request;
}

bool is_request(const CheckImeiReq& request) {
  return std::memcmp(&request, &kRequest, sizeof(request)) == 0;
}

std::size_t serialized_size() {
  std::string buffer;
  return serialize(buffer).size();
}

}  // namespace

std::span<const Workload> workloads() {
  static const Workload all[] = {
      {"text", "text", text_content().size(),
       [](std::string&) -> std::string_view { return text_content(); },
       [](std::string_view content) { return content == text_content(); }},
      {"structured", "structured CheckImeiReq", sizeof(CheckImeiReq),
       [](std::string&) { return request_bytes(); },
       [](std::string_view content) {
         if (content.size() != sizeof(CheckImeiReq)) return false;
         CheckImeiReq request;  // As ShmFifo's reader did, the object is copied out.
         std::memcpy(&request, content.data(), sizeof(request));
         return is_request(request);
       }},
      {"serialized", "serialized CheckImeiReq", serialized_size(), serialize,
       [](std::string_view content) {
         const auto request = deserialize(content);
         return request && is_request(*request);
       }},
  };
  return all;
}

}  // namespace leat::cli
