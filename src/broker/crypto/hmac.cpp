#include "hmac.hpp"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sodium.h>

#include "leat/base/assert.hpp"

namespace leat::broker {
namespace {

const unsigned char* bytes_of(std::string_view text) noexcept {
  // OpenSSL takes a null pointer for "the key of before".
  return reinterpret_cast<const unsigned char*>(text.data() == nullptr ? "" : text.data());
}

template <class Hash>
const EVP_MD* algorithm() noexcept {
  return Hash::kSize == Sha256::kSize ? EVP_sha256() : EVP_sha512();
}

}  // namespace

template <class Hash>
Digest<Hash> hmac(std::string_view key, std::string_view text) {
  Digest<Hash> code;
  LEAT_ASSERT(::HMAC(algorithm<Hash>(), bytes_of(key), static_cast<int>(key.size()), bytes_of(text),
                     text.size(), code.data(), nullptr) != nullptr);
  return code;
}

template <class Hash>
Digest<Hash> hash_of(std::string_view text) {
  Digest<Hash> hash;
  LEAT_ASSERT(::EVP_Digest(bytes_of(text), text.size(), hash.data(), nullptr, algorithm<Hash>(),
                           nullptr) == 1);
  return hash;
}

template <class Hash>
Digest<Hash> stretched(std::string_view password, std::string_view salt, int iterations) {
  Digest<Hash> key;
  const int done = ::PKCS5_PBKDF2_HMAC(reinterpret_cast<const char*>(bytes_of(password)),
                                       static_cast<int>(password.size()), bytes_of(salt),
                                       static_cast<int>(salt.size()), iterations, algorithm<Hash>(),
                                       static_cast<int>(key.size()), key.data());
  LEAT_ASSERT(done == 1);
  return key;
}

template Digest<Sha256> hmac<Sha256>(std::string_view, std::string_view);
template Digest<Sha512> hmac<Sha512>(std::string_view, std::string_view);
template Digest<Sha256> hash_of<Sha256>(std::string_view);
template Digest<Sha512> hash_of<Sha512>(std::string_view);
template Digest<Sha256> stretched<Sha256>(std::string_view, std::string_view, int);
template Digest<Sha512> stretched<Sha512>(std::string_view, std::string_view, int);

void start_sodium() {
  static const int ready = ::sodium_init();
  LEAT_ASSERT(ready >= 0);
}

void fill_with_random_bytes(std::span<unsigned char> bytes) {
  start_sodium();
  ::randombytes_buf(bytes.data(), bytes.size());
}

bool equal_secrets(std::string_view one, std::string_view other) noexcept {
  return one.size() == other.size() && ::sodium_memcmp(one.data(), other.data(), one.size()) == 0;
}

}  // namespace leat::broker
