// If this failed, a wrong password would let somebody in, the right one would not, or the store would give it away.
#include "broker/crypto/verifier.hpp"

#include <gtest/gtest.h>
#include <sodium.h>

#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace leat::broker {
namespace {

FixedBytes<16> salt_from_base64(const char* text) {
  FixedBytes<16> salt{};
  std::size_t size = 0;
  EXPECT_EQ(::sodium_base642bin(salt.data(), salt.size(), text, std::strlen(text), nullptr, &size,
                                nullptr, sodium_base64_VARIANT_ORIGINAL),
            0);
  return salt;
}

template <class Hash>
std::string base64(const Digest<Hash>& digest) {
  std::string text(sodium_base64_ENCODED_LEN(Hash::kSize, sodium_base64_VARIANT_ORIGINAL), '\0');
  ::sodium_bin2base64(text.data(), text.size(), digest.data(), digest.size(),
                      sodium_base64_VARIANT_ORIGINAL);
  return text.c_str();
}

template <class Hash>
std::string hex(const Digest<Hash>& digest) {
  std::string text(2 * Hash::kSize + 1, '\0');
  ::sodium_bin2hex(text.data(), text.size(), digest.data(), digest.size());
  return text.c_str();
}

TEST(Hmac, IsThatOfRfc4231) {
  EXPECT_EQ(hex<Sha256>(hmac<Sha256>(std::string(20, '\x0b'), "Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hex<Sha256>(hmac<Sha256>("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hex<Sha256>(hmac<Sha256>(std::string(131, '\xaa'),
                                     "Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
  EXPECT_EQ(hex<Sha512>(hmac<Sha512>("Jefe", "what do ya want for nothing?")),
            "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554"
            "9758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737");
}

// The exchange of RFC 7677, section 3: user "user", password "pencil".
TEST(Scram, Sha256IsThatOfRfc7677) {
  const auto keys =
      scram_keys<Sha256>("pencil", salt_from_base64("W22ZaJ0SNY7soEsUEjb6gQ=="), 4096);
  const std::string exchange =
      "n=user,r=rOprNGfwEbeRWgbNEkqO,"
      "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,"
      "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
  EXPECT_EQ(base64<Sha256>(hmac<Sha256>(as_text(keys.server_key), exchange)),
            "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");

  // The client's proof, and what the server does with it: proof XOR HMAC(StoredKey) = ClientKey.
  Digest<Sha256> client_key;
  const std::string proof = "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
  ASSERT_EQ(::sodium_base642bin(client_key.data(), client_key.size(), proof.data(), proof.size(),
                                nullptr, nullptr, nullptr, sodium_base64_VARIANT_ORIGINAL),
            0);
  const auto signature = hmac<Sha256>(as_text(keys.stored_key), exchange);
  for (std::size_t i = 0; i < client_key.size(); ++i) client_key[i] ^= signature[i];
  EXPECT_EQ(hash_of<Sha256>(as_text(client_key)), keys.stored_key);
}

// No RFC has an example; this one was computed with Python's hashlib and hmac.
TEST(Scram, Sha512IsTheSameWithAnotherHash) {
  FixedBytes<16> salt;
  for (std::size_t i = 0; i < salt.size(); ++i) salt[i] = static_cast<unsigned char>(i);
  const auto keys = scram_keys<Sha512>("pencil", salt, 4096);
  EXPECT_EQ(hex<Sha512>(keys.stored_key),
            "0c1ace8892c956465e33f958063ca7f0793f2d0d91accdd5fd88391ddd7d41f6"
            "82155fe868f79000c264c2dbc1762e1780045e8d4dee704f5e0da80130727e57");
  EXPECT_EQ(hex<Sha512>(keys.server_key),
            "daf0dc7bc9a1c10b3546f49fbb14b86c314538dc6b00e8bfc9e78f21a8b08a0d"
            "b1882d7a95078dfb01cecce366ff5f15338f49160f57a00c90ee81c53dabc0de");
}

TEST(Verifier, PassesItsPasswordOnly) {
  const auto verifier = make_verifier("correct horse");
  ASSERT_TRUE(verifier);
  EXPECT_TRUE(*check_password("correct horse", *verifier));
  EXPECT_FALSE(*check_password("correct horsE", *verifier));
  EXPECT_FALSE(*check_password("correct horse ", *verifier));
  EXPECT_FALSE(*check_password("", *verifier));
  EXPECT_FALSE(*check_password(std::string_view{"correct horse\0", 14}, *verifier));
}

TEST(Verifier, EmptyAndLongPasswordsAndAnyBytesArePasswords) {
  const std::string bytes{"\0\xff\n\"$", 5};
  for (const std::string& password : {std::string{}, bytes, std::string(kMaxPassword, 'x')}) {
    const auto verifier = make_verifier(password);
    ASSERT_TRUE(verifier);
    EXPECT_TRUE(*check_password(password, *verifier));
    EXPECT_FALSE(*check_password(password + "x", *verifier));
  }
  EXPECT_EQ(make_verifier(std::string(kMaxPassword + 1, 'x')).problem().code, Errc::too_large);
}

// Verifiers were made with libsodium once, and another library's memory changes nothing.
TEST(Verifier, KeyIsArgon2idWhereverItsMemoryIs) {
  start_sodium();
  std::vector<std::byte> memory(64 << 20, std::byte{0xa5});
  for (const std::uint32_t kib : {8U, 1000U, 19U * 1024, 64U * 1024}) {
    Verifier verifier = decoy_verifier();
    Argon2Key& key = verifier.argon2;
    key.memory_kib = kib;
    key.passes = kib == 8 ? 10 : 1;
    ASSERT_EQ(::crypto_pwhash(key.key.data(), key.key.size(), "right", 5, key.salt.data(),
                              key.passes, hash_bytes(key), crypto_pwhash_ALG_ARGON2ID13),
              0);
    for (const std::size_t given : {std::size_t{0}, hash_bytes(key) - 1, hash_bytes(key)}) {
      const std::span<std::byte> span{memory.data(), given};
      EXPECT_TRUE(*check_password("right", verifier, span)) << kib << " KiB, given " << given;
      EXPECT_FALSE(*check_password("wrong", verifier, span));
    }
  }
}

// A password that is too long is hashed as the empty one, which must not make it right.
TEST(Verifier, OfTheEmptyPasswordDoesNotPassOneThatIsTooLong) {
  EXPECT_FALSE(*check_password(std::string(kMaxPassword + 1, 'x'), *make_verifier("")));
}

TEST(Verifier, IsAnotherEachTime) {
  const auto one = make_verifier("same");
  const auto other = make_verifier("same");
  EXPECT_NE(one->argon2.salt, other->argon2.salt);
  EXPECT_NE(one->argon2.key, other->argon2.key);
  EXPECT_NE(one->scram256.salt, other->scram256.salt);
  EXPECT_NE(one->scram256.stored_key, other->scram256.stored_key);
  EXPECT_NE(one->scram512.server_key, other->scram512.server_key);
}

TEST(Verifier, CostsWhatIsPromised) {
  const auto verifier = make_verifier("x");
  EXPECT_EQ(verifier->argon2.memory_kib, 19u * 1024);
  EXPECT_EQ(verifier->argon2.passes, 2u);
  EXPECT_GE(verifier->scram256.iterations, 4096u);
  EXPECT_GE(verifier->scram512.iterations, 4096u);
}

TEST(Verifier, DecoyPassesNothing) {
  EXPECT_FALSE(*check_password("", decoy_verifier()));
  EXPECT_FALSE(*check_password("x", decoy_verifier()));
  EXPECT_EQ(decoy_verifier().argon2.memory_kib, make_verifier("x")->argon2.memory_kib);
}

TEST(VerifierText, IsTheSameAgain) {
  const auto verifier = make_verifier("secret-word");
  const std::string text = print_verifier(*verifier);
  EXPECT_LT(text.size(), kMaxVerifierText);
  EXPECT_EQ(text.find_first_of(" \n"), std::string::npos);
  EXPECT_EQ(text.find("secret-word"), std::string::npos);
  const auto again = parse_verifier(text);
  ASSERT_TRUE(again) << again.problem().sentence;
  EXPECT_EQ(*again, *verifier);
  EXPECT_EQ(print_verifier(*parse_verifier(print_verifier(decoy_verifier()))).substr(0, 20),
            text.substr(0, 20));
}

TEST(VerifierText, ThatIsWrongIsRefused) {
  const std::string text = print_verifier(decoy_verifier());
  EXPECT_EQ(parse_verifier("").problem().code, Errc::corrupt);
  EXPECT_EQ(parse_verifier(std::string(100'000, '$')).problem().code, Errc::corrupt);
  EXPECT_EQ(parse_verifier("leat2" + text.substr(5)).problem().sentence,
            "the stored verifier of a password has an unknown format");
  EXPECT_EQ(parse_verifier(text + "$").problem().sentence,
            "the stored verifier of a password is damaged");
  for (std::size_t size = 0; size < text.size(); ++size)
    EXPECT_FALSE(parse_verifier(text.substr(0, size))) << size;
}

TEST(VerifierText, CannotMakeAHashCostMore) {
  const std::string text = print_verifier(decoy_verifier());
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    return parse_verifier(changed).has_value();
  };
  EXPECT_TRUE(with("$19456$2$", "$65536$3$"));
  EXPECT_FALSE(with("$19456$2$", "$4194304$2$"));
  EXPECT_FALSE(with("$19456$2$", "$19456$4000000000$"));
  EXPECT_FALSE(with("$19456$2$", "$1$2$"));
  EXPECT_FALSE(with("$19456$2$", "$19456$0$"));
  EXPECT_FALSE(with("$19456$2$", "$+19456$2$"));
  EXPECT_FALSE(with("scram-sha-256$4096$", "scram-sha-256$1$"));
  EXPECT_FALSE(with("scram-sha-512$4096$", "scram-sha-512$2000000000$"));
}

TEST(VerifierText, RandomChangesNeverCrash) {
  const std::string text = print_verifier(decoy_verifier());
  std::mt19937 random{20261125};
  for (int round = 0; round < 20'000; ++round) {
    std::string changed = text;
    for (unsigned i = 0; i < 1 + random() % 3; ++i)
      changed[random() % changed.size()] = static_cast<char>(random());
    const auto parsed = parse_verifier(changed);
    if (parsed) {
      EXPECT_EQ(print_verifier(*parsed), changed);
    }
  }
}

}  // namespace
}  // namespace leat::broker
