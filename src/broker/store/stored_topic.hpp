// What the store keeps of a topic, in plain structs.
//
//     NewTopic topic{.name = "news", .is_durable = true, .user = "alice", .verifier = *verifier};
//     if (const auto problem = problem_of_topic_name(topic.name)) return refuse(*problem);
//     reply["data_auth"] = name_of(topic.data_auth);
//     auto auth = data_auth("joined");            // none for any other word
//     auto credential = credential_of(topic, "bob");   // with what bob's password is to be compared
//
// Names come from strangers and become names of directories, so they are checked here and nowhere trusted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "broker/crypto/verifier.hpp"

namespace leat::broker {

inline constexpr std::size_t kMaxUser = 255;  // Bytes; what a ZMTP PLAIN greeting can carry.

// Who may use a data port: those who give a password or a token; also those whose admin connection from the same
// address joined; everybody. `unset`: as the broker is configured.
enum class DataAuth { unset, password, joined, open };

// What happens to a subscriber that is too slow: it loses messages, or its connection, or producers wait for it.
// `unset`: as the broker is configured.
enum class SlowSubscriber { unset, overtaken, disconnect, wait };

// What a client does with a topic's messages. Tokens say it, so the numbers stay.
enum class Access : std::uint8_t { read = 1, write = 2 };

// Whether messages wait for consumers: for the first one, which has not come yet; for those that came; or not, because
// only subscribers came.
enum class Consumers { awaited, known, absent };

// What a protocol remembers, of a topic or of itself: a value with a name.
struct ProtocolValue {
  std::string protocol;
  std::int64_t topic_id = 0;  // 0: of the protocol itself.
  std::string name;
  std::string value;
};

struct NewTopic {
  std::string name;
  bool is_durable = false;
  std::string user = {};
  // None: for the administrator only, and for those who are granted rights.
  std::optional<Verifier> verifier = {};
  DataAuth data_auth = DataAuth::unset;
  SlowSubscriber slow_subscriber = SlowSubscriber::unset;
  std::int64_t created_at_s = 0;  // Since 1970.
  // The consumer group whose members are the clients that share the topic's messages; empty: none yet.
  std::string group = {};
  Consumers consumers = Consumers::awaited;
};

// What somebody other than the topic's user may do, with a password of their own.
struct Right {
  std::string user = {};
  bool may_read = false;
  bool may_write = false;
  std::optional<Verifier> verifier = {};
  std::int64_t verifier_version = 0;
};

struct StoredTopic : NewTopic {
  std::int64_t id = 0;  // Never given twice.
  // Another one after each change of the password; never the same again.
  std::int64_t verifier_version = 0;
  std::vector<Right> rights;  // By user.
};

// Of one user of a topic: the password, and what it opens.
struct Credential {
  std::optional<Verifier> verifier;  // None: nobody has it.
  std::int64_t version = 0;
  bool may_read = false;
  bool may_write = false;
  bool may(Access access) const { return access == Access::read ? may_read : may_write; }
};

// None if the topic does not know the user.
std::optional<Credential> credential_of(const StoredTopic& topic, std::string_view user);

// `unset` is the empty word.
std::string_view name_of(DataAuth auth) noexcept;
std::optional<DataAuth> data_auth(std::string_view name) noexcept;
std::string_view name_of(SlowSubscriber slow) noexcept;
std::optional<SlowSubscriber> slow_subscriber(std::string_view name) noexcept;
std::string_view name_of(Consumers consumers) noexcept;
std::optional<Consumers> consumers(std::string_view name) noexcept;

// What is wrong with a name, if anything: `invalid_argument`, with a sentence.
std::optional<Problem> problem_of_topic_name(std::string_view name);
std::optional<Problem> problem_of_user(std::string_view user);
// The empty one is right: there is no group yet.
std::optional<Problem> problem_of_group_name(std::string_view name);
// Less strict: what earlier versions have stored.
bool may_be_stored_user(std::string_view user);

}  // namespace leat::broker
