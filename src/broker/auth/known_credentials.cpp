#include "known_credentials.hpp"

#include <sodium.h>

#include <algorithm>

namespace leat::broker {

KnownCredentials::KnownCredentials(std::size_t capacity)
    : capacity_{std::max<std::size_t>(capacity, 1)}, key_{random_bytes<32>()} {}

KnownCredentials::~KnownCredentials() { ::sodium_memzero(key_.data(), key_.size()); }

KnownCredentials::CredentialDigest KnownCredentials::digest(std::string_view user,
                                                            std::string_view scope,
                                                            std::string_view verifier,
                                                            std::string_view password) const {
  crypto_generichash_state state;
  CredentialDigest digest;
  ::crypto_generichash_init(&state, key_.data(), key_.size(), digest.size());
  for (const std::string_view part : {user, scope, verifier, password}) {
    // Each with its size in front, so that no two lists of parts are the same bytes.
    const std::uint64_t size = part.size();
    ::crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(&size), sizeof size);
    ::crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(part.data()), size);
  }
  ::crypto_generichash_final(&state, digest.data(), digest.size());
  ::sodium_memzero(&state, sizeof state);  // It holds up to 128 bytes of what went in.
  return digest;
}

bool KnownCredentials::contains(const CredentialDigest& digest) {
  const std::lock_guard lock{mutex_};
  const auto found = by_digest_.find(digest);
  if (found == by_digest_.end()) return false;
  entries_.splice(entries_.begin(), entries_, found->second);
  return true;
}

void KnownCredentials::add(std::string_view user, const CredentialDigest& digest) {
  const std::lock_guard lock{mutex_};
  if (by_digest_.contains(digest)) return;
  if (entries_.size() >= capacity_) {
    by_digest_.erase(entries_.back().digest);
    entries_.pop_back();
  }
  entries_.push_front({digest, std::string{user}});
  by_digest_.emplace(digest, entries_.begin());
}

void KnownCredentials::forget(std::string_view user) {
  const std::lock_guard lock{mutex_};
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    if (entry->user != user) {
      ++entry;
      continue;
    }
    by_digest_.erase(entry->digest);
    entry = entries_.erase(entry);
  }
}

std::size_t KnownCredentials::size() const {
  const std::lock_guard lock{mutex_};
  return entries_.size();
}

}  // namespace leat::broker
