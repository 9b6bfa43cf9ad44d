// What is stored of a password: enough to check it, never the password.
//
//     Outcome<Verifier> verifier = make_verifier(password.text());      // 30 ms, 19 MiB
//     store.change_password(topic.id, *verifier);
//     if (check_password(password.text(), *topic.verifier)) …           // 20 ms, 19 MiB
//     Outcome<Verifier> again = parse_verifier(print_verifier(*verifier));
//
// argon2id (RFC 9106) checks plain passwords: a stolen verifier can only be guessed at, at 19 MiB each. The keys of
// SCRAM-SHA-256 and -512 (RFC 5802, RFC 7677) are there for protocols in which the password is never sent. They are
// made of the bytes of the password, without SASLprep, as Kafka makes them. All calls are stateless; both that hash
// belong on the thread of password_worker.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "hmac.hpp"
#include "outcome/outcome.hpp"

namespace leat::broker {

// What ZeroMQ's clients can send (PLAIN). For new passwords of users; those that are longer count on.
inline constexpr std::size_t kMaxNewPassword = 255;
inline constexpr std::size_t kMaxPassword = 1024;  // Bytes; each costs time in the hash.

struct Argon2Key {
  std::uint32_t memory_kib = 19 * 1024;
  std::uint32_t passes = 2;
  FixedBytes<16> salt{};
  FixedBytes<32> key{};
  friend bool operator==(const Argon2Key&, const Argon2Key&) = default;
};

// What RFC 5802 lets a server keep.
template <class Hash>
struct ScramKeys {
  std::uint32_t iterations = 4096;
  FixedBytes<16> salt{};
  Digest<Hash> stored_key{};  // H(ClientKey)
  Digest<Hash> server_key{};
  friend bool operator==(const ScramKeys&, const ScramKeys&) = default;
};

struct Verifier {
  Argon2Key argon2;
  ScramKeys<Sha256> scram256;
  ScramKeys<Sha512> scram512;
  friend bool operator==(const Verifier&, const Verifier&) = default;
};

// With new salts.
//   too_large   more than kMaxPassword bytes
//   no_memory   for the hash
Outcome<Verifier> make_verifier(std::string_view password);

// Whether it is the password. Takes as long for a wrong one as for the right one. The hash uses `memory` if that is
// enough (hash_bytes), else memory of its own.
//   no_memory   for the hash
Outcome<bool> check_password(std::string_view password, const Verifier& verifier,
                             std::span<std::byte> memory = {});
// What the hash of such a key needs, in bytes.
std::size_t hash_bytes(const Argon2Key& key);

// A verifier that no password passes, made without a hash: for names that do not exist, so that nobody can tell
// them from names that do by the time that the answer takes.
Verifier decoy_verifier();

// The text that is stored: one line of less than kMaxVerifierText bytes, without spaces.
inline constexpr std::size_t kMaxVerifierText = 512;
std::string print_verifier(const Verifier& verifier);
//   corrupt     not such a text, or one whose hash would cost too much
Outcome<Verifier> parse_verifier(std::string_view text);

template <class Hash>
ScramKeys<Hash> scram_keys(std::string_view password, const FixedBytes<16>& salt,
                           std::uint32_t iterations);

}  // namespace leat::broker
