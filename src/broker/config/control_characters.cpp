#include "control_characters.hpp"

#include <algorithm>

namespace leat::broker {

bool has_control_characters(std::string_view text) {
  if (std::any_of(text.begin(), text.end(), is_ascii_control)) return true;
  struct Range {
    std::string_view begin;
    unsigned char first, last;  // Of the byte after it.
  };
  constexpr Range kRanges[] = {{"\xC2", 0x80, 0x9F},       // U+0080 to U+009F
                               {"\xD8", 0x9C, 0x9C},       // U+061C
                               {"\xE2\x80", 0x8E, 0x8F},   // U+200E, U+200F
                               {"\xE2\x80", 0xA8, 0xAE},   // U+2028 to U+202E
                               {"\xE2\x81", 0xA6, 0xA9}};  // U+2066 to U+2069
  for (const auto& [begin, first, last] : kRanges) {
    for (std::size_t at = text.find(begin); at != text.npos; at = text.find(begin, at + 1)) {
      const std::size_t next = at + begin.size();
      const auto byte = static_cast<unsigned char>(next < text.size() ? text[next] : 0);
      if (byte >= first && byte <= last) return true;
    }
  }
  return false;
}

}  // namespace leat::broker
