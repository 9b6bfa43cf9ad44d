#include "tokens.hpp"

#include <sodium.h>

#include "broker/crypto/base64.hpp"

namespace leat::broker {
namespace {

// The text is the prefix, a dot, and in base64:
//
//   0          8                  16     17     17+n   17+n+32
//   | topic id | verifier version | role | user | HMAC of the prefix and of all before |
//
// with the numbers in network byte order. Another layout gets another prefix.
constexpr std::string_view kPrefix = "leat1.";
constexpr std::size_t kUserAt = 17;
constexpr std::size_t kCodeSize = 32;

void append(std::string& bytes, std::int64_t number) {
  const auto bits = static_cast<std::uint64_t>(number);
  for (int shift = 56; shift >= 0; shift -= 8) bytes += static_cast<char>(bits >> shift & 0xFF);
}

std::int64_t number_at(std::string_view bytes, std::size_t offset) {
  std::uint64_t bits = 0;
  for (const char c : bytes.substr(offset, 8)) bits = bits << 8 | static_cast<unsigned char>(c);
  return static_cast<std::int64_t>(bits);
}

Problem malformed() { return {Errc::invalid_argument, "this is not a token"}; }

}  // namespace

Tokens::~Tokens() { ::sodium_memzero(secret_.data(), secret_.size()); }

FixedBytes<32> Tokens::code_of(std::string_view claim) const {
  return hmac<Sha256>(as_text(secret_), std::string{kPrefix}.append(claim));
}

std::string Tokens::make(const TokenClaim& claim) const {
  LEAT_ASSERT(claim.user.size() <= kMaxUser);
  std::string bytes;
  append(bytes, claim.topic_id);
  append(bytes, claim.verifier_version);
  bytes += static_cast<char>(claim.role);
  bytes += claim.user;
  bytes += as_text(code_of(bytes));

  return std::string{kPrefix} +
         to_base64({reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()});
}

Outcome<TokenClaim> Tokens::read(std::string_view text) const {
  if (text.size() > kMaxText || !text.starts_with(kPrefix)) return malformed();
  text.remove_prefix(kPrefix.size());

  FixedBytes<kMaxText> buffer;
  const std::size_t size = from_base64(text, buffer).value_or(0);
  const std::string_view bytes = as_text(buffer).substr(0, size);
  if (size < kUserAt + kCodeSize || size > kUserAt + kMaxUser + kCodeSize) return malformed();

  const std::string_view claim = bytes.substr(0, size - kCodeSize);
  if (!equal_secrets(as_text(code_of(claim)), bytes.substr(claim.size())))
    return Problem{Errc::permission, "this token is not of this broker"};
  const auto role = static_cast<Access>(bytes[16]);
  if (role != Access::read && role != Access::write) return malformed();
  return TokenClaim{.topic_id = number_at(bytes, 0),
                    .user = std::string{claim.substr(kUserAt)},
                    .role = role,
                    .verifier_version = number_at(bytes, 8)};
}

}  // namespace leat::broker
