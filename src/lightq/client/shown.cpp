#include "shown.hpp"

#include <algorithm>

namespace leat::lightq {
namespace {

// Bytes of the UTF-8 character at the front; 0 if there is none, or if terminals take it as a command.
std::size_t printable_length(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return first < 0x20 || first == 0x7F ? 0 : 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  const std::size_t length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if (text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const unsigned char second = byte(1);
  // U+0080 to U+009F; overlong; surrogates; beyond U+10FFFF.
  const bool is_wrong = (first == 0xC2 && second < 0xA0) || (first == 0xE0 && second < 0xA0) ||
                        (first == 0xED && second > 0x9F) || (first == 0xF0 && second < 0x90) ||
                        (first == 0xF4 && second > 0x8F);
  return is_wrong ? 0 : length;
}

}  // namespace

std::string shown(std::string_view text) {
  constexpr std::size_t kMost = 200;
  std::string result;
  while (!text.empty()) {
    const std::size_t length = printable_length(text);
    if (result.size() + std::max<std::size_t>(length, 1) > kMost) return result + "…";
    result.append(length == 0 ? " " : text.substr(0, length));
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return result;
}

}  // namespace leat::lightq
