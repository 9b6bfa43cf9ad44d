#include "zmtp_frame.hpp"

#include <algorithm>

namespace leat::broker::zmtp {
namespace {

char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

void append_command(std::string& out, std::string_view name, Bytes data) {
  char header[kLongHeaderBytes];
  out.append(header, write_header(header, 1 + name.size() + data.size(), kCommand));
  out.push_back(static_cast<char>(name.size()));
  out.append(name).append(data.text());
}

void append_property(std::string& data, std::string_view name, Bytes value) {
  data.push_back(static_cast<char>(name.size()));
  data.append(name);
  for (int shift = 24; shift >= 0; shift -= 8) {
    data.push_back(static_cast<char>(value.size() >> shift));
  }
  data.append(value.text());
}

std::optional<std::string_view> take_short_text(Bytes& rest) noexcept {
  if (rest.empty()) return std::nullopt;
  const auto size = std::to_integer<std::size_t>(rest[0]);
  if (rest.size() - 1 < size) return std::nullopt;
  const std::string_view text = rest.text().substr(1, size);
  rest = rest.subspan(1 + size);
  return text;
}

std::optional<Property> take_property(Bytes& rest) noexcept {
  Bytes left = rest;
  const auto name = take_short_text(left);
  if (!name || name->empty() || left.size() < 4) return std::nullopt;
  const std::uint64_t size = big_endian<4>(left.data());
  if (left.size() - 4 < size) return std::nullopt;
  rest = left.subspan(4 + size);
  return Property{*name, left.subspan(4, size)};
}

bool equal_ignoring_case(std::string_view a, std::string_view b) noexcept {
  return std::ranges::equal(a, b, {}, lower, lower);
}

std::string printable(std::string_view text) {
  constexpr std::size_t kMost = 32;
  std::string result{text.substr(0, kMost)};
  for (char& c : result) c = c >= ' ' && c <= '~' ? c : '?';
  return text.size() > kMost ? result + "..." : result;
}

}  // namespace leat::broker::zmtp
