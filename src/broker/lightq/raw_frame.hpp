// Raw framing, for clients without ZeroMQ: each message behind its length.
//
//     0                        4
//     | length: 4 B, little-endian | payload … |
//
// It is how LightQ sent messages to `socket` clients. The first frame of a client that is no unmodified one of LightQ
// is a hello: a JSON object, which the broker answers with another.
//
//     {"type": "pub", "token": "…"}                              a producer
//     {"type": "pull", "token": "…", "acknowledge": true}        a puller that says what it is done with
//     {"status": "ok", "topic": "news"}
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "broker/outcome.hpp"
#include "leat/record.hpp"

namespace leat::broker::raw {

inline constexpr std::size_t kLengthBytes = 4;
inline constexpr std::size_t kCountBytes = 8;
inline constexpr std::size_t kMaxHello = 4096;

enum class Role { producer, puller, listener };

struct Hello {
  Role role = Role::puller;
  std::string token = {};    // Empty: none.
  bool acknowledges = false;  // A puller.
};

//   invalid_argument   with a sentence for the client
Outcome<Hello> parse_hello(std::string_view text);

template <class Number>
Number little_endian(const std::byte* at) noexcept {
  Number value = 0;
  for (std::size_t i = 0; i < sizeof value; ++i)
    value |= static_cast<Number>(std::to_integer<Number>(at[i]) << (8 * i));
  return value;
}

template <class Number>
void append_number(std::string& out, Number value) {
  char bytes[sizeof value];
  for (std::size_t i = 0; i < sizeof value; ++i) bytes[i] = static_cast<char>(value >> (8 * i));
  out.append(bytes, sizeof bytes);
}

inline void append_frame(std::string& out, Bytes payload) {
  append_number(out, static_cast<std::uint32_t>(payload.size()));
  out.append(payload.text());
}

// The frame at the front of some bytes.
struct Frame {
  std::size_t needed = 0;  // It is not whole: how many bytes must be there. 0: it is.
  std::size_t length = 0;  // Of its payload; known if `needed` is not kLengthBytes.
  Bytes payload = {};
};

inline Frame front_frame(Bytes bytes) noexcept {
  if (bytes.size() < kLengthBytes) return {.needed = kLengthBytes};
  const std::size_t length = little_endian<std::uint32_t>(bytes.data());
  if (bytes.size() - kLengthBytes < length) return {kLengthBytes + length, length, {}};
  return {0, length, bytes.subspan(kLengthBytes, length)};
}

}  // namespace leat::broker::raw
