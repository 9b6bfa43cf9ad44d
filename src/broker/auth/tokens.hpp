// Tokens, which open data ports to clients that cannot send a user and a password there.
//
//     const Tokens tokens{store.token_secret()};
//     std::string token = tokens.make({topic.id, "alice", Access::read, topic.verifier_version});
//     auto claim = tokens.read(token);            // on the data port
//     if (!claim || claim->topic_id != topic.id || claim->verifier_version != topic.verifier_version) refuse();
//
// A token says what it is for, and HMAC-SHA-256 proves that the broker said it. It ends when the password changes,
// because that changes the version, and when the topic is deleted, because ids are never given twice. The secret is
// stored, so that tokens survive a restart. Constant after construction: any thread may call.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "broker/crypto/hmac.hpp"
#include "broker/store/stored_topic.hpp"
#include "outcome/outcome.hpp"

namespace leat::broker {

struct TokenClaim {
  std::int64_t topic_id = 0;
  std::string user;  // Up to kMaxUser bytes.
  Access role = Access::read;
  std::int64_t verifier_version = 0;
  friend bool operator==(const TokenClaim&, const TokenClaim&) = default;
};

using TokenSecret = FixedBytes<32>;

class Tokens {
 public:
  static constexpr std::size_t kMaxUser = 255;
  static constexpr std::size_t kMaxText = 512;

  explicit Tokens(const TokenSecret& secret) : secret_{secret} {}
  ~Tokens();
  Tokens(const Tokens&) = delete;
  Tokens& operator=(const Tokens&) = delete;

  // The text of a token: letters, digits, dots, dashes and underscores.
  std::string make(const TokenClaim& claim) const;

  // What a token is for. The caller compares each field of it with what it protects.
  //   permission        this broker did not make it, or somebody changed it
  //   invalid_argument  not the form of a token
  Outcome<TokenClaim> read(std::string_view text) const;

 private:
  FixedBytes<32> code_of(std::string_view claim) const;

  TokenSecret secret_;
};

}  // namespace leat::broker
