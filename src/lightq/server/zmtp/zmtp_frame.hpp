// Frames of ZMTP 3, the protocol of ZeroMQ: how messages and commands lie on the wire.
//
//     0       1                 2 or 9
//     | flags | size: 1 or 8 B | body … |       the size is in network byte order
//
// A message is one frame or several: all but the last have kMore. A command is one frame; its body begins with
// the length and the characters of its name. Specifications: rfc.zeromq.org, 23 (ZMTP 3.0), 24 (PLAIN),
// 37 (ZMTP 3.1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "leat/record.hpp"

namespace leat::broker::zmtp {

// The flags of a frame. All other bits must be zero.
inline constexpr std::uint8_t kMore = 1;
inline constexpr std::uint8_t kLong = 2;
inline constexpr std::uint8_t kCommand = 4;

inline constexpr std::size_t kMaxShortBody = 255;
inline constexpr std::size_t kShortHeaderBytes = 2;
inline constexpr std::size_t kLongHeaderBytes = 9;

// --- Writing -----------------------------------------------------------------------------------------

// Writes a header to `at`, which has room for kLongHeaderBytes; returns its length.
inline std::size_t write_header(char* at, std::size_t body_bytes, std::uint8_t flags) noexcept {
  if (body_bytes <= kMaxShortBody) {
    at[0] = static_cast<char>(flags);
    at[1] = static_cast<char>(body_bytes);
    return kShortHeaderBytes;
  }
  at[0] = static_cast<char>(flags | kLong);
  for (int i = 0; i < 8; ++i)
    at[1 + i] = static_cast<char>(std::uint64_t{body_bytes} >> (56 - 8 * i));
  return kLongHeaderBytes;
}

inline void append_frame(std::string& out, Bytes body, std::uint8_t flags) {
  char header[kLongHeaderBytes];
  out.append(header, write_header(header, body.size(), flags));
  out.append(body.text());
}

// A whole message, one part for each argument: append_message(out, topic, payload).
template <class... Rest>
void append_message(std::string& out, Bytes first, const Rest&... rest) {
  append_frame(out, first, sizeof...(rest) == 0 ? 0 : kMore);
  if constexpr (sizeof...(rest) != 0) append_message(out, rest...);
}

void append_command(std::string& out, std::string_view name, Bytes data = {});

// Appends a property of a READY command to its data. The name has at most 255 characters.
void append_property(std::string& data, std::string_view name, Bytes value);

// --- Reading; every length is checked against the bytes that are there -------------------------------

inline std::uint8_t byte_at(Bytes bytes, std::size_t at) noexcept {
  return std::to_integer<std::uint8_t>(bytes[at]);
}

template <int kBytes>
std::uint64_t big_endian(const std::byte* at) noexcept {
  std::uint64_t value = 0;
  for (int i = 0; i < kBytes; ++i) value = value << 8 | std::to_integer<std::uint64_t>(at[i]);
  return value;
}

struct FrameHeader {
  std::uint64_t body_bytes = 0;
  std::size_t header_bytes = 0;
};

// None if the header is not complete yet.
inline std::optional<FrameHeader> read_header(Bytes bytes) noexcept {
  if (bytes.size() < kShortHeaderBytes) return std::nullopt;
  if ((byte_at(bytes, 0) & kLong) == 0) return FrameHeader{byte_at(bytes, 1), kShortHeaderBytes};
  if (bytes.size() < kLongHeaderBytes) return std::nullopt;
  return FrameHeader{big_endian<8>(bytes.data() + 1), kLongHeaderBytes};
}

// Takes from the front of `rest`, or takes nothing and returns none: a text after its length of one byte, or a
// property.
std::optional<std::string_view> take_short_text(Bytes& rest) noexcept;

struct Property {
  std::string_view name;
  Bytes value;
};
std::optional<Property> take_property(Bytes& rest) noexcept;

// Names of properties may be written in any case.
bool equal_ignoring_case(std::string_view a, std::string_view b) noexcept;

// What a peer sent, for a line of a log: shortened, with ? for whatever is not printable ASCII.
std::string printable(std::string_view text);

}  // namespace leat::broker::zmtp
