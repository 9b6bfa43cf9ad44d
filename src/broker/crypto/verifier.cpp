#include "verifier.hpp"

#include <argon2.h>
#include <fmt/format.h>
#include <sodium.h>

#include <charconv>

#include "base64.hpp"
#include "hash_memory.hpp"

namespace leat::broker {
namespace {

// The format of the text. One with other fields gets another word.
constexpr std::string_view kFormat = "leat1";
constexpr char kSeparator = '$';

// What one check may cost at most, whatever a text says: 64 MiB, and a fraction of a second.
constexpr std::uint32_t kMaxMemoryKib = 64 * 1024;
constexpr std::uint32_t kMinMemoryKib = ARGON2_MIN_MEMORY;
constexpr std::uint32_t kMaxPasses = 10;
constexpr std::uint32_t kMinIterations = 4096;  // RFC 7677
constexpr std::uint32_t kMaxIterations = 1'000'000;

// What the hash on this thread is to use. Argon2's callbacks have no other way to it.
thread_local std::span<std::byte> memory_of_hash;

int take_memory(std::uint8_t** memory, std::size_t size) {
  LEAT_ASSERT(size <= memory_of_hash.size());
  *memory = reinterpret_cast<std::uint8_t*>(memory_of_hash.data());
  return 0;
}
void return_memory(std::uint8_t*, std::size_t) {}

// The key of a password, with the salt and costs of `like`. False without memory.
bool derive(std::string_view password, const Argon2Key& like, std::span<std::byte> memory,
            FixedBytes<32>& key) {
  HashMemory own;  // Not malloc(), which would keep it.
  if (memory.size() < hash_bytes(like)) {
    if (!own.reserve(hash_bytes(like))) return false;
    memory = own.bytes();
  }
  FixedBytes<16> salt = like.salt;
  // Only read: the flags do not ask for it to be cleared.
  auto* const text = reinterpret_cast<std::uint8_t*>(const_cast<char*>(password.data()));
  argon2_context context{.out = key.data(),
                         .outlen = static_cast<std::uint32_t>(key.size()),
                         .pwd = text,
                         .pwdlen = static_cast<std::uint32_t>(password.size()),
                         .salt = salt.data(),
                         .saltlen = static_cast<std::uint32_t>(salt.size()),
                         .secret = nullptr,
                         .secretlen = 0,
                         .ad = nullptr,
                         .adlen = 0,
                         .t_cost = like.passes,
                         .m_cost = like.memory_kib,
                         .lanes = 1,
                         .threads = 1,
                         .version = ARGON2_VERSION_13,
                         .allocate_cbk = take_memory,
                         .free_cbk = return_memory,
                         .flags = ARGON2_DEFAULT_FLAGS};
  memory_of_hash = memory;
  const int error = ::argon2id_ctx(&context);
  LEAT_ASSERT(error == ARGON2_OK);
  return true;
}

Problem no_memory(const Argon2Key& key) {
  return {Errc::no_memory,
          fmt::format("no memory to check a password ({} MiB)", key.memory_kib / 1024)};
}

// Takes the fields of a text, one after the other. A wrong one makes everything wrong.
class Fields {
 public:
  explicit Fields(std::string_view text) : rest_{text} {}

  std::string_view next() {
    const std::size_t end = rest_.find(kSeparator);
    if (is_at_end_) is_wrong_ = true;
    is_at_end_ = end == std::string_view::npos;
    const std::string_view field = rest_.substr(0, end);
    rest_.remove_prefix(is_at_end_ ? rest_.size() : end + 1);
    return field;
  }

  std::uint32_t number(std::uint32_t least, std::uint32_t most) {
    const std::string_view field = next();
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
    if (error != std::errc{} || end != field.data() + field.size() || value < least || value > most)
      is_wrong_ = true;
    return value;
  }

  template <std::size_t N>
  void bytes(FixedBytes<N>& bytes) {
    if (from_base64(next(), bytes) != N) is_wrong_ = true;
  }

  template <class Hash>
  void scram(ScramKeys<Hash>& keys) {
    keys.iterations = number(kMinIterations, kMaxIterations);
    bytes(keys.salt);
    bytes(keys.stored_key);
    bytes(keys.server_key);
  }

  bool are_right() const noexcept { return is_at_end_ && !is_wrong_; }

 private:
  std::string_view rest_;
  bool is_at_end_ = false;
  bool is_wrong_ = false;
};

template <class Hash>
std::string print(const ScramKeys<Hash>& keys) {
  return fmt::format("{}${}${}${}", keys.iterations, to_base64(keys.salt),
                     to_base64(keys.stored_key), to_base64(keys.server_key));
}

}  // namespace

template <class Hash>
ScramKeys<Hash> scram_keys(std::string_view password, const FixedBytes<16>& salt,
                           std::uint32_t iterations) {
  auto salted = stretched<Hash>(password, as_text(salt), static_cast<int>(iterations));
  auto client_key = hmac<Hash>(as_text(salted), "Client Key");
  ScramKeys<Hash> keys{.iterations = iterations,
                       .salt = salt,
                       .stored_key = hash_of<Hash>(as_text(client_key)),
                       .server_key = hmac<Hash>(as_text(salted), "Server Key")};
  // With either of them a client can log in.
  ::sodium_memzero(salted.data(), salted.size());
  ::sodium_memzero(client_key.data(), client_key.size());
  return keys;
}
template ScramKeys<Sha256> scram_keys<Sha256>(std::string_view, const FixedBytes<16>&,
                                              std::uint32_t);
template ScramKeys<Sha512> scram_keys<Sha512>(std::string_view, const FixedBytes<16>&,
                                              std::uint32_t);

Outcome<Verifier> make_verifier(std::string_view password) {
  if (password.size() > kMaxPassword)
    return Problem{Errc::too_large, fmt::format("a password has at most {} bytes", kMaxPassword)};
  Verifier verifier;
  verifier.argon2.salt = random_bytes<16>();
  if (!derive(password, verifier.argon2, {}, verifier.argon2.key))
    return no_memory(verifier.argon2);
  verifier.scram256 = scram_keys<Sha256>(password, random_bytes<16>(), kMinIterations);
  verifier.scram512 = scram_keys<Sha512>(password, random_bytes<16>(), kMinIterations);
  return verifier;
}

Outcome<bool> check_password(std::string_view password, const Verifier& verifier,
                             std::span<std::byte> memory) {
  const bool is_possible = password.size() <= kMaxPassword;
  FixedBytes<32> key;
  if (!derive(is_possible ? password : "", verifier.argon2, memory, key))
    return no_memory(verifier.argon2);
  const bool is_equal = equal_secrets(as_text(key), as_text(verifier.argon2.key));
  return is_equal && is_possible;
}

std::size_t hash_bytes(const Argon2Key& key) { return std::size_t{key.memory_kib} * 1024; }

Verifier decoy_verifier() {
  Verifier verifier;
  verifier.argon2.salt = random_bytes<16>();
  verifier.argon2.key = random_bytes<32>();
  verifier.scram256.salt = random_bytes<16>();
  verifier.scram256.stored_key = random_bytes<32>();
  verifier.scram512.salt = random_bytes<16>();
  verifier.scram512.stored_key = random_bytes<64>();
  return verifier;
}

std::string print_verifier(const Verifier& verifier) {
  const Argon2Key& argon2 = verifier.argon2;
  return fmt::format("{}$argon2id${}${}${}${}$scram-sha-256${}$scram-sha-512${}", kFormat,
                     argon2.memory_kib, argon2.passes, to_base64(argon2.salt),
                     to_base64(argon2.key), print(verifier.scram256), print(verifier.scram512));
}

Outcome<Verifier> parse_verifier(std::string_view text) {
  const auto wrong = [](const char* why) {
    return Problem{Errc::corrupt, fmt::format("the stored verifier of a password {}", why)};
  };
  if (text.size() >= kMaxVerifierText) return wrong("is too long");
  Fields fields{text};
  if (fields.next() != kFormat) return wrong("has an unknown format");
  Verifier verifier;
  bool are_named = fields.next() == "argon2id";
  verifier.argon2.memory_kib = fields.number(kMinMemoryKib, kMaxMemoryKib);
  verifier.argon2.passes = fields.number(1, kMaxPasses);
  fields.bytes(verifier.argon2.salt);
  fields.bytes(verifier.argon2.key);
  are_named &= fields.next() == "scram-sha-256";
  fields.scram(verifier.scram256);
  are_named &= fields.next() == "scram-sha-512";
  fields.scram(verifier.scram512);
  if (!are_named || !fields.are_right() || print_verifier(verifier) != text)
    return wrong("is damaged");
  return verifier;
}

}  // namespace leat::broker
