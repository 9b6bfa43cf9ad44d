// Bytes as text, in the base64 of URLs (RFC 4648, section 5), without padding.
//
//     std::string text = to_base64(bytes);
//     FixedBytes<32> key;
//     if (from_base64(text, key) != key.size()) return malformed();
//
// Each list of bytes has one text, and every other text is refused. Stateless: any thread may call.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace leat::broker {

std::string to_base64(std::span<const unsigned char> bytes);
// How many bytes the text has; none if it is malformed, or has more than there is room for.
std::optional<std::size_t> from_base64(std::string_view text, std::span<unsigned char> bytes);

}  // namespace leat::broker
