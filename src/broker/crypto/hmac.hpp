// HMAC and plain hashes of the SHA-2 family, and the random bytes that go with them.
//
//     Digest<Sha256> code = hmac<Sha256>(key, "text");
//     Digest<Sha512> hash = hash_of<Sha512>("text");
//     const auto secret = random_bytes<32>();
//
// By OpenSSL, because SCRAM needs both hashes and PBKDF2. Stateless, so any thread may call.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace leat::broker {

struct Sha256 {
  static constexpr std::size_t kSize = 32;
};
struct Sha512 {
  static constexpr std::size_t kSize = 64;
};

template <std::size_t N>
using FixedBytes = std::array<unsigned char, N>;
template <class Hash>
using Digest = FixedBytes<Hash::kSize>;

inline std::string_view as_text(std::span<const unsigned char> bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A failure of one of these is lack of memory, or a broken OpenSSL: the process ends with a message.
template <class Hash>
Digest<Hash> hmac(std::string_view key, std::string_view text);
template <class Hash>
Digest<Hash> hash_of(std::string_view text);
// PBKDF2 with HMAC, which RFC 5802 calls Hi().
template <class Hash>
Digest<Hash> stretched(std::string_view password, std::string_view salt, int iterations);

// libsodium then uses the fastest code for this processor. Free when done before; any thread may call.
void start_sodium();
void fill_with_random_bytes(std::span<unsigned char> bytes);
template <std::size_t N>
FixedBytes<N> random_bytes() {
  FixedBytes<N> bytes;
  fill_with_random_bytes(bytes);
  return bytes;
}

// Compares in constant time; texts of other lengths are never equal.
bool equal_secrets(std::string_view one, std::string_view other) noexcept;

}  // namespace leat::broker
