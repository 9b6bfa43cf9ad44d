// Texts that the broker takes apart: tokens from clients, passwords' verifiers from its store, and its configuration. Any
// text is either refused with a sentence, or means what it says and is written as it was read. If this failed, a stranger
// could open a data port with a token that nobody made, a damaged store could let in anybody or stop the broker at its
// start, and a wrong line in a file could crash it.
//
// The sources are included here so that the fuzzer sees which of their lines an input reaches.
#include "broker/auth/tokens.cpp"
#include "broker/config/broker_keys.cpp"
#include "broker/config/config_file.cpp"
#include "broker/config/config_key.cpp"
#include "broker/config/control_characters.cpp"
#include "broker/crypto/base64.cpp"
#include "broker/crypto/hash_memory.cpp"
#include "broker/crypto/hmac.cpp"
#include "broker/crypto/verifier.cpp"
#include "broker/store/stored_topic.cpp"
#include "lightq/server/settings.cpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace leat;
using namespace leat::broker;

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "the broker breaks a promise: %s\n", what);
  std::abort();
}

// In memory of exactly its size, so that reading beyond its end is seen.
class Copy {
 public:
  explicit Copy(std::string_view text) : bytes_{new char[text.size()]}, size_{text.size()} {
    if (!text.empty()) std::memcpy(bytes_.get(), text.data(), text.size());
  }
  std::string_view text() const { return {bytes_.get(), size_}; }

 private:
  std::unique_ptr<char[]> bytes_;
  std::size_t size_;
};

void check_sentence(const Problem& problem) {
  require(problem.code != Errc::ok && !problem.sentence.empty(),
          "a problem has a code and a sentence");
  require(!has_control_characters(problem.sentence),
          "a sentence is one line without control characters");
}

std::span<const unsigned char> bytes_of(std::string_view text) {
  return {reinterpret_cast<const unsigned char*>(text.data()), text.size()};
}

// --- Base64 ------------------------------------------------------------------------------------------------------------

void check_base64(std::string_view text) {
  const std::string made = to_base64(bytes_of(text));
  const auto room_bytes = std::max<std::size_t>(1, text.size());  // Nobody has room for none.
  std::vector<unsigned char> bytes(room_bytes);
  require(from_base64(made, bytes) == text.size(), "as many bytes come back");
  require(as_text(bytes).starts_with(text), "the same bytes come back");
  if (text.size() > 1) {
    bytes.pop_back();
    require(!from_base64(made, bytes), "no more bytes than there is room for");
  }
  std::vector<unsigned char> room(room_bytes);
  const auto size = from_base64(text, room);
  if (!size) return;
  require(*size <= text.size(), "no more bytes than characters");
  require(to_base64({room.data(), *size}) == text, "each list of bytes has one text");
}

// --- Tokens ------------------------------------------------------------------------------------------------------------

constexpr std::string_view kTokenPrefix = "leat1.";

TokenSecret secret(unsigned char byte) {
  TokenSecret bytes;
  bytes.fill(byte);
  return bytes;
}

void check_strange_token(const Tokens& tokens, std::string_view text) {
  const auto claim = tokens.read(text);
  if (!claim) return check_sentence(claim.problem());
  // A seed is one.
  require(tokens.make(*claim) == text, "only what was made is accepted");
}

// Nobody can make the code of a token, so it is made here for whatever stands before it.
void check_signed_token(const Tokens& tokens, std::string_view claim) {
  std::string bytes{claim};
  bytes += as_text(hmac<Sha256>(as_text(secret(1)), std::string{kTokenPrefix}.append(claim)));
  const std::string text = std::string{kTokenPrefix}.append(to_base64(bytes_of(bytes)));
  const auto read = tokens.read(text);
  if (!read) return check_sentence(read.problem());
  require(tokens.make(*read) == text, "a token says all that is in it");
  require(read->role == Access::read || read->role == Access::write, "a token has a role");
  require(!Tokens{secret(2)}.read(text), "a token is of one broker");
}

void check_made_token(const Tokens& tokens, std::string_view input) {
  if (input.size() < 20) return;
  TokenClaim claim;
  std::memcpy(&claim.topic_id, input.data(), 8);
  std::memcpy(&claim.verifier_version, input.data() + 8, 8);
  claim.role = (input[16] & 1) == 0 ? Access::read : Access::write;
  claim.user = input.substr(20, kMaxUser);
  std::string text = tokens.make(claim);
  const auto read = tokens.read(text);
  require(read && *read == claim, "a token comes back");

  std::uint16_t where = 0;
  std::memcpy(&where, input.data() + 17, 2);
  const char other = input[19];
  char& changed = text[where % text.size()];
  if (changed == other) return;
  changed = other;
  require(!tokens.read(text), "a changed token is refused");
}

void check_tokens(std::string_view input) {
  static const Tokens tokens{secret(1)};
  check_strange_token(tokens, input);
  check_strange_token(tokens, Copy{std::string{kTokenPrefix}.append(input)}.text());
  check_signed_token(tokens, input);
  check_made_token(tokens, input);
}

// --- Verifiers ---------------------------------------------------------------------------------------------------------

void check_verifier(std::string_view text) {
  const auto verifier = parse_verifier(text);
  if (!verifier) {
    require(verifier.problem().code == Errc::corrupt, "a damaged verifier is corrupt");
    return check_sentence(verifier.problem());
  }
  require(hash_bytes(verifier->argon2) <= 64 << 20 && verifier->argon2.passes <= 10,
          "a stored text cannot make a login dear");
  require(print_verifier(*verifier) == text, "a verifier has one text");
}

void check_printed_verifier(std::string_view input) {
  Verifier verifier;
  const auto take = [&](auto& bytes) {
    const std::size_t size = std::min(bytes.size(), input.size());
    std::copy_n(input.begin(), size, bytes.begin());
    input.remove_prefix(size);
  };
  take(verifier.argon2.salt);
  take(verifier.scram512.server_key);
  take(verifier.argon2.key);
  take(verifier.scram256.salt);
  take(verifier.scram512.stored_key);
  const auto again = parse_verifier(print_verifier(verifier));
  require(again && *again == verifier, "a verifier comes back");
}

// --- The configuration -------------------------------------------------------------------------------------------------

// What each key has, as it would be written.
const ConfigKeys& keys() {
  static const ConfigKeys keys = [] {
    ConfigKeys all;
    all.add(lightq::settings_keys(), lightq::check_settings);
    return all;
  }();
  return keys;
}

std::vector<std::string> values_of(const Config& config) {
  std::vector<std::string> values;
  for (const ConfigKey& key : keys().all()) values.push_back(key.print(config));
  return values;
}

void check_config_text(std::string_view text) {
  Config config;
  if (const auto read = read_config_text(text, "leat.toml", keys(), config); !read) {
    check_sentence(read.problem());
    require(read.problem().sentence.starts_with("leat.toml:"), "the sentence says where");
    return;
  }
  const std::vector<std::string> values = values_of(config);
  Config again;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] == keys().all()[i].default_text()) continue;
    require(keys().all()[i].set(again, values[i]), "what a key prints is right for it");
  }
  require(values_of(again) == values, "values come back");
  Config running;
  const auto later = keys().take_changes(running, Config{}, config);
  for (const ConfigKey& key : keys().all()) {
    const bool is_later = std::find(later.begin(), later.end(), key.name) != later.end();
    require(key.print(running) == (is_later ? key.default_text() : key.print(config)),
            "a change counts now or later");
  }
  (void)config.of<lightq::Settings>().all_data_ports();
  if (const auto right = keys().check(config); !right)
    require(!right.problem().sentence.empty(), "what is wrong is told");
}

void check_flag(std::string_view input) {
  const std::size_t end = input.find('=');
  if (end == input.npos) return;
  Config config;
  if (const auto set = keys().set(config, input.substr(0, end), input.substr(end + 1)); !set)
    require(!set.problem().sentence.empty(), "what is wrong is told");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const Copy copy{{reinterpret_cast<const char*>(data) + 1, size - 1}};
  const std::string_view input = copy.text();
  switch (data[0] & 3) {
    case 0: check_base64(input); break;
    case 1: check_tokens(input); break;
    case 2:
      check_verifier(input);
      check_printed_verifier(input);
      break;
    default:
      check_config_text(input);
      check_flag(input);
      break;
  }
  return 0;
}
