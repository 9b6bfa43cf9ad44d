#include "admin.hpp"

#include <strings.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "lightq/wire/admin_frame.hpp"

namespace leat::lightq {
namespace {

using Json = nlohmann::json;

// More than any answer has. Whoever copies or prints JSON recurses as deep as it is.
constexpr int kMaxDepth = 32;

std::string text_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string{};
}

std::uint64_t number_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

// The codes of what brokers say when they refuse.
Errc code_of(std::string_view description) noexcept {
  if (description == "unauthorized_access") return Errc::permission;
  if (description == "topic not found") return Errc::not_found;
  if (description == "topic already exists") return Errc::exists;
  if (description.starts_with("too many")) return Errc::busy;
  if (description == "invalid_cmd") return Errc::unsupported;
  return Errc::invalid_argument;
}

// What to do about it; continues the sentence.
const char* advice_for(Errc code) noexcept {
  switch (code) {
    case Errc::permission: return ": user or password is wrong";
    case Errc::busy: return ": try again in a second";
    case Errc::unsupported: return ": it does not know this command";
    default: return "";
  }
}

// Fails with `invalid_argument` where JSON cannot say it.
std::string dump(const Json& command) {
  try {
    return command.dump();
  } catch (const Json::exception&) {
    throw Problem{Errc::invalid_argument, "names and passwords must be UTF-8"};
  }
}

}  // namespace

const char* word_for(Role role) noexcept {
  switch (role) {
    case Role::producer: return "pub";
    case Role::puller: return "pull";
    case Role::subscriber: return "sub";
  }
  return "";
}

void wipe(std::string& text) noexcept {
  ::explicit_bzero(text.data(), text.size());
  text.clear();
}

Admin::Admin(const Address& address, const Patience& patience)
    : connection_{address, Connection::Sends::at_once, patience} {}

std::string Admin::exchange(const std::string& body, const Patience& patience) {
  std::string request;
  request.reserve(kAdminLengthBytes + body.size());  // So that it is not moved about: it may hold a password.
  append_admin_frame(request, body);
  try {
    connection_.send(request, patience);
  } catch (...) {
    wipe(request);
    throw;
  }
  wipe(request);
  for (;;) {
    const Bytes there = inbox_.bytes();
    if (there.size() >= kAdminLengthBytes) {
      const std::size_t length = admin_length(there.data());
      if (length > kMaxAnswer) {
        throw Problem{Errc::corrupt, connection_.name() +
                                         " answers with no JSON behind its length: is it "
                                         "`leat serve`, and is this its admin port?"};
      }
      if (there.size() >= kAdminLengthBytes + length) {
        std::string answer{Bytes{there.subspan(kAdminLengthBytes, length)}.text()};
        inbox_.drop(kAdminLengthBytes + length);
        return answer;
      }
    }
    if (!inbox_.read(connection_) && !connection_.wait_readable(patience))
      throw connection_.gave_up(patience, "no answer");
  }
}

Json Admin::ask(const Json& command, const Patience& patience) {
  std::string body = dump(command);
  std::string text;
  try {
    text = exchange(body, patience);
  } catch (...) {
    wipe(body);
    throw;
  }
  wipe(body);
  const auto check = [this](int depth, Json::parse_event_t, const Json&) {
    if (depth <= kMaxDepth) return true;
    throw Problem{Errc::corrupt, connection_.name() + " answers with JSON in JSON, too deep"};
  };
  Json answer = Json::parse(text, check, false);
  if (!answer.is_object() || text_at(answer, "status").empty())
    throw Problem{Errc::corrupt, connection_.name() + " answers '" + shown(text) + "'"};
  if (text_at(answer, "status") == "ok") return answer;
  const std::string why = text_at(answer, "description");
  const Errc code = code_of(why);
  throw Problem{code, connection_.name() + " refuses: " + shown(why) + advice_for(code)};
}

void Admin::ping(const Patience& patience) {
  const std::string answer = exchange(R"({"cmd":"ping"})", patience);
  if (answer != "pong")
    throw Problem{Errc::corrupt, connection_.name() + " answers '" + shown(answer) + "'"};
}

void Admin::create_topic(const Credentials& administrator, const NewTopic& topic,
                         const Patience& patience) {
  ask({{"cmd", "create_topic"},
       {"admin_user_id", administrator.user},
       {"admin_password", administrator.password},
       {"topic", topic.name},
       {"user_id", topic.user.user},
       {"password", topic.user.password},
       {"broker_type", topic.type}},
      patience);
}

Joined Admin::join(const std::string& topic, const Credentials& user, Role role,
                   const Patience& patience) {
  const Json answer = ask({{"cmd", "join"},
                           {"topic", topic},
                           {"user_id", user.user},
                           {"password", user.password},
                           {"type", word_for(role)},
                           {"connection_type", "socket"},
                           {"leat", 1}},
                          patience);
  const std::string token = text_at(answer, "token");
  if (token.empty()) {
    throw Problem{Errc::unsupported,
                  connection_.name() + " gives no token: it is none of `leat serve`"};
  }
  return {role, topic, parse_tcp_uri(text_at(answer, "bind_uri")), token};
}

Stats Admin::stats(const std::string& topic, const Credentials& user, const Patience& patience) {
  const Json answer =
      ask({{"cmd", "stats"}, {"topic", topic}, {"user_id", user.user}, {"password", user.password}},
          patience);
  return {.topic = text_at(answer, "topic"),
          .topic_type = text_at(answer, "topic_type"),
          .queue_size = number_at(answer, "queue_size"),
          .messages_sent = number_at(answer, "messages_sent"),
          .messages_received = number_at(answer, "messages_received"),
          .publishers_count = number_at(answer, "publishers_count"),
          .subscribers_count = number_at(answer, "subscribers_count"),
          .total_bytes_written = number_at(answer, "total_bytes_written"),
          .total_bytes_read = number_at(answer, "total_bytes_read")};
}

}  // namespace leat::lightq
