// Which credentials were found to be right before, so that they need no hash again.
//
//     const auto digest = known.digest(user, topic, print_verifier(verifier), password);
//     if (known.contains(digest)) return let_in();
//     worker.check(…);                    // and if it is right:
//     known.add(user, digest);
//     known.forget(user);                 // when a password of the user changes
//
// Kept is a keyed hash (BLAKE2b) of everything that decides: whoever reads this memory gets no password, and cannot
// guess at them without the key, which is made anew in each process. Because the verifier is part of it, a changed
// password is unknown even before forget(). A table of digests may be searched in time that depends on them:
// without the key, nobody can choose one. Any thread may call.
#pragma once

#include <list>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "broker/crypto/hmac.hpp"

namespace leat::broker {

class KnownCredentials {
 public:
  using CredentialDigest = FixedBytes<32>;

  static constexpr std::size_t kCapacity = 4096;

  explicit KnownCredentials(std::size_t capacity = kCapacity);
  ~KnownCredentials();
  KnownCredentials(const KnownCredentials&) = delete;
  KnownCredentials& operator=(const KnownCredentials&) = delete;

  // `scope` is what the password is for: a topic, or the administration.
  CredentialDigest digest(std::string_view user, std::string_view scope, std::string_view verifier,
                          std::string_view password) const;
  bool contains(const CredentialDigest& digest);
  // When it is full, the one that was used longest ago makes room.
  void add(std::string_view user, const CredentialDigest& digest);
  void forget(std::string_view user);
  std::size_t size() const;

 private:
  struct Entry {
    CredentialDigest digest;
    std::string user;
  };

  const std::size_t capacity_;
  FixedBytes<32> key_;  // Constant until the destructor wipes it.
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // Under mutex_; the last used first.
  std::map<CredentialDigest, std::list<Entry>::iterator> by_digest_;  // Under mutex_.
};

}  // namespace leat::broker
