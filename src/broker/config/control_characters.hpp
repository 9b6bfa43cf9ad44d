// Characters that do not belong into a name or a sentence.
#pragma once

#include <string_view>

namespace leat::broker {

// 0 to 31, and 127.
constexpr bool is_ascii_control(unsigned char c) { return c < 0x20 || c == 0x7F; }

// In UTF-8: what a terminal may take as a command, and what turns the direction of text, so that one name looks like
// another.
bool has_control_characters(std::string_view text);

}  // namespace leat::broker
