#include "admin.hpp"

#include <strings.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "lightq/wire/admin_frame.hpp"
#include "shown.hpp"

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

// Which right is missing. Without one, what else may be wrong: a broker does not say whether user or password.
std::string why_unauthorized(const Json& command, const Json& answer) {
  const std::string right = text_at(answer, "missing_right");
  if (right == "read" || right == "write")
    return ": user '" + shown(text_at(command, "user_id")) + "' has no right to " + right +
           " topic '" + shown(text_at(command, "topic")) + "'; the administrator can grant it";
  const std::string wrong = ": user or password is wrong";
  return command.contains("admin_user_id") ? wrong + "; only the administrator may do this" : wrong;
}

// What to do about it; continues the sentence.
std::string advice_for(Errc code, const Json& command, const Json& answer) {
  switch (code) {
    case Errc::permission: return why_unauthorized(command, answer);
    case Errc::busy: return ": try again in a second";
    case Errc::unsupported: return ": it does not know this command";
    default: return "";
  }
}

// Fails with `invalid_argument` where JSON cannot say it.
Outcome<std::string> dump(const Json& command) {
  try {
    return command.dump();
  } catch (const Json::exception&) {
    return Problem{Errc::invalid_argument, "names and passwords must be UTF-8"};
  }
}

// Wipes a text at the end of its block.
class Wiping {
 public:
  explicit Wiping(std::string& text) noexcept : text_{text} {}
  ~Wiping() { wipe(text_); }
  Wiping(const Wiping&) = delete;
  Wiping& operator=(const Wiping&) = delete;

 private:
  std::string& text_;
};

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

Outcome<Admin> Admin::open(const Address& address, const Patience& patience) {
  auto connection = Connection::open(address, Connection::Sends::at_once, patience);
  if (!connection) return connection.problem();
  return Admin{std::move(*connection)};
}

Outcome<void> Admin::send(const std::string& body, const Patience& patience) {
  std::string request;
  const Wiping wiping{request};
  // So that it is not moved about: it may hold a password.
  request.reserve(kAdminLengthBytes + body.size());
  append_admin_frame(request, body);
  return connection_.send(request, patience);
}

Outcome<std::string> Admin::exchange(const std::string& body, const Patience& patience) {
  if (auto sent = send(body, patience); !sent) return sent.problem();
  for (;;) {
    const Bytes there = inbox_.bytes();
    if (there.size() >= kAdminLengthBytes) {
      const std::size_t length = admin_length(there.data());
      if (length > kMaxAnswer) {
        return Problem{Errc::corrupt, connection_.name() +
                                          " answers with no JSON behind its length: is it "
                                          "`leat serve`, and is this its admin port?"};
      }
      if (there.size() >= kAdminLengthBytes + length) {
        std::string answer{Bytes{there.subspan(kAdminLengthBytes, length)}.text()};
        inbox_.drop(kAdminLengthBytes + length);
        return answer;
      }
    }
    if (auto came = inbox_.wait(connection_, patience, "no answer"); !came) return came.problem();
  }
}

Outcome<Json> Admin::ask(const Json& command, const Patience& patience) {
  auto body = dump(command);
  if (!body) return body.problem();
  const Wiping wiping{*body};
  const auto text = exchange(*body, patience);
  if (!text) return text.problem();
  bool is_too_deep = false;
  const auto check = [&](int depth, Json::parse_event_t, const Json&) {
    is_too_deep = is_too_deep || depth > kMaxDepth;
    return !is_too_deep;  // What is not kept takes no memory.
  };
  Json answer = Json::parse(*text, check, false);
  if (is_too_deep)
    return Problem{Errc::corrupt, connection_.name() + " answers with JSON in JSON, too deep"};
  if (!answer.is_object() || text_at(answer, "status").empty())
    return Problem{Errc::corrupt, connection_.name() + " answers '" + shown(*text) + "'"};
  if (text_at(answer, "status") == "ok") return answer;
  const std::string why = text_at(answer, "description");
  const Errc code = code_of(why);
  return Problem{
      code, connection_.name() + " refuses: " + shown(why) + advice_for(code, command, answer)};
}

Outcome<void> Admin::ping(const Patience& patience) {
  const auto answer = exchange(R"({"cmd":"ping"})", patience);
  if (!answer) return answer.problem();
  if (*answer != "pong")
    return Problem{Errc::corrupt, connection_.name() + " answers '" + shown(*answer) + "'"};
  return {};
}

Outcome<bool> Admin::create_topic(const Credentials& administrator, const NewTopic& topic,
                                  const Patience& patience) {
  const auto answer = ask({{"cmd", "create_topic"},
                           {"admin_user_id", administrator.user},
                           {"admin_password", administrator.password},
                           {"topic", topic.name},
                           {"user_id", topic.user.user},
                           {"password", topic.user.password},
                           {"broker_type", topic.type},
                           {"leat", 1}},
                          patience);
  if (!answer) return answer.problem();
  const auto opened = answer->find("opened");
  return opened != answer->end() && *opened == true;
}

Outcome<Joined> Admin::join(const std::string& topic, const Credentials& user, Role role,
                            const Patience& patience) {
  const auto answer = ask({{"cmd", "join"},
                           {"topic", topic},
                           {"user_id", user.user},
                           {"password", user.password},
                           {"type", word_for(role)},
                           {"connection_type", "socket"},
                           {"leat", 1}},
                          patience);
  if (!answer) return answer.problem();
  const std::string token = text_at(*answer, "token");
  if (token.empty()) {
    return Problem{Errc::unsupported,
                   connection_.name() + " gives no token: it is none of `leat serve`"};
  }
  auto address = parse_tcp_uri(text_at(*answer, "bind_uri"));
  if (!address) return address.problem();
  return Joined{role, topic, *address, token};
}

Outcome<Stats> Admin::stats(const std::string& topic, const Credentials& user,
                            const Patience& patience) {
  const auto answer =
      ask({{"cmd", "stats"}, {"topic", topic}, {"user_id", user.user}, {"password", user.password}},
          patience);
  if (!answer) return answer.problem();
  return Stats{.topic = text_at(*answer, "topic"),
               .topic_type = text_at(*answer, "topic_type"),
               .queue_size = number_at(*answer, "queue_size"),
               .messages_sent = number_at(*answer, "messages_sent"),
               .messages_received = number_at(*answer, "messages_received"),
               .publishers_count = number_at(*answer, "publishers_count"),
               .subscribers_count = number_at(*answer, "subscribers_count"),
               .total_bytes_written = number_at(*answer, "total_bytes_written"),
               .total_bytes_read = number_at(*answer, "total_bytes_read")};
}

}  // namespace leat::lightq
