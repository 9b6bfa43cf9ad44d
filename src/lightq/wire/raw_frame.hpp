// Raw framing as bytes, for the broker and for its clients: each message behind its length.
//
//     0                        4
//     | length: 4 B, little-endian | payload … |
//
//     std::string out;
//     append_frame(out, Bytes{"hello"});
//     const Frame frame = front_frame(Bytes{out});       // frame.needed == 0: it is whole
//
// What is said in it stands in docs/guide/broker.md, "Without ZeroMQ".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "leat/record.hpp"

namespace leat::lightq {

inline constexpr std::size_t kLengthBytes = 4;
inline constexpr std::size_t kCountBytes = 8;
inline constexpr std::size_t kMaxHello = 4096;

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

}  // namespace leat::lightq
