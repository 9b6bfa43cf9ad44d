#include "stored_topic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "broker/config/control_characters.hpp"
#include "leat/admin.hpp"

namespace leat::broker {
namespace {

constexpr std::array<std::string_view, 4> kAuths{"", "password", "joined", "open"};
constexpr std::array<std::string_view, 4> kSlow{"", "overtaken", "disconnect", "wait"};
constexpr std::array<std::string_view, 3> kConsumers{"awaited", "known", "absent"};

template <class Value, std::size_t N>
std::optional<Value> value_of(const std::array<std::string_view, N>& names, std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Value>(found - names.begin());
}

}  // namespace

std::string_view name_of(DataAuth auth) noexcept { return kAuths[static_cast<std::size_t>(auth)]; }
std::string_view name_of(SlowSubscriber slow) noexcept {
  return kSlow[static_cast<std::size_t>(slow)];
}
std::string_view name_of(Consumers consumers) noexcept {
  return kConsumers[static_cast<std::size_t>(consumers)];
}
std::optional<DataAuth> data_auth(std::string_view name) noexcept {
  return value_of<DataAuth>(kAuths, name);
}
std::optional<SlowSubscriber> slow_subscriber(std::string_view name) noexcept {
  return value_of<SlowSubscriber>(kSlow, name);
}
std::optional<Consumers> consumers(std::string_view name) noexcept {
  return value_of<Consumers>(kConsumers, name);
}

std::optional<Credential> credential_of(const StoredTopic& topic, std::string_view user) {
  if (user == topic.user) return Credential{topic.verifier, topic.verifier_version, true, true};
  for (const Right& right : topic.rights) {
    if (right.user == user)
      return Credential{right.verifier, right.verifier_version, right.may_read, right.may_write};
  }
  return std::nullopt;
}

std::optional<Problem> problem_of_topic_name(std::string_view name) {
  // The name is not repeated: it may be long, and contain anything.
  if (leat::is_valid_name(name)) return std::nullopt;
  return Problem{
      Errc::invalid_argument,
      "a topic's name consists of 1 to 200 letters, digits, dots, dashes and underscores"};
}

std::optional<Problem> problem_of_group_name(std::string_view name) {
  if (name.empty() || leat::is_valid_name(name)) return std::nullopt;
  return Problem{
      Errc::invalid_argument,
      "a group's name consists of 1 to 200 letters, digits, dots, dashes and underscores"};
}

bool may_be_stored_user(std::string_view user) {
  return user.size() <= kMaxUser && std::none_of(user.begin(), user.end(), is_ascii_control);
}

std::optional<Problem> problem_of_user(std::string_view user) {
  if (user.size() <= kMaxUser && !has_control_characters(user)) return std::nullopt;
  return Problem{Errc::invalid_argument,
                 fmt::format("a user has at most {} bytes, without control characters", kMaxUser)};
}

}  // namespace leat::broker
