// What a stranger said, made fit for a sentence.
//
//     return Problem{Errc::corrupt, name + " answers '" + shown(text) + "'"};
#pragma once

#include <string>
#include <string_view>

namespace leat::lightq {

// The text as UTF-8 without control characters, and not too long.
std::string shown(std::string_view text);

}  // namespace leat::lightq
