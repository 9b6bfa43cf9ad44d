// Commands and answers of the administration as bytes, for the broker and for its clients: JSON behind its length.
//
//     0                     4
//     | length: 4 B, big-endian | JSON … |
//
//     std::string out;
//     append_admin_frame(out, command.dump());
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace leat::lightq {

inline constexpr std::size_t kAdminLengthBytes = 4;

// The length that stands there.
inline std::size_t admin_length(const std::byte* at) noexcept {
  std::size_t length = 0;
  for (std::size_t i = 0; i < kAdminLengthBytes; ++i)
    length = length << 8 | std::to_integer<std::size_t>(at[i]);
  return length;
}

inline void append_admin_frame(std::string& out, std::string_view json) {
  for (const int shift : {24, 16, 8, 0}) out.push_back(static_cast<char>(json.size() >> shift));
  out.append(json);
}

}  // namespace leat::lightq
