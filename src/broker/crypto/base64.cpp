#include "base64.hpp"

#include <sodium.h>

#include <algorithm>

namespace leat::broker {
namespace {

constexpr int kVariant = sodium_base64_VARIANT_URLSAFE_NO_PADDING;

}  // namespace

std::string to_base64(std::span<const unsigned char> bytes) {
  std::string text(sodium_base64_encoded_len(bytes.size(), kVariant), '\0');
  ::sodium_bin2base64(text.data(), text.size(), bytes.data(), bytes.size(), kVariant);
  text.pop_back();  // The terminating null character.
  return text;
}

std::optional<std::size_t> from_base64(std::string_view text, std::span<unsigned char> bytes) {
  // libsodium 1.0.18 reads every character above 127 as an underscore.
  if (std::any_of(text.begin(), text.end(), [](char c) { return (c & 0x80) != 0; })) return {};
  if (bytes.empty()) return text.empty() ? std::optional<std::size_t>{0} : std::nullopt;
  std::size_t size = 0;
  const char* end = nullptr;
  const int decoded = ::sodium_base642bin(bytes.data(), bytes.size(), text.data(), text.size(),
                                          nullptr, &size, &end, kVariant);
  if (decoded != 0 || end != text.data() + text.size()) return {};
  return size;
}

}  // namespace leat::broker
