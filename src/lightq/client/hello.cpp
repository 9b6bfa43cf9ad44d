#include "hello.hpp"

#include <nlohmann/json.hpp>
#include <optional>

#include "lightq/wire/raw_frame.hpp"
#include "shown.hpp"

namespace leat::lightq {
namespace {

using Json = nlohmann::json;

}  // namespace

Outcome<void> introduce(Connection& connection, Inbox& inbox, const Joined& joined,
                        bool acknowledges, const Patience& patience) {
  Json hello{{"type", word_for(joined.role)}, {"token", joined.token}};
  if (acknowledges) hello["acknowledge"] = true;
  std::string out;
  append_frame(out, Bytes{hello.dump()});
  if (auto sent = connection.send(out, patience); !sent) return sent;
  auto frame = inbox.take_frame(kMaxHello, connection.name());
  while (frame && !*frame) {
    if (auto came = inbox.wait(connection, patience, "no answer to a hello"); !came) return came;
    frame = inbox.take_frame(kMaxHello, connection.name());
  }
  if (!frame) return frame.problem();
  const std::string_view text = (*frame)->text();
  const Json answer = Json::parse(text, nullptr, false);
  const bool is_object = answer.is_object();
  if (is_object && answer.value("status", Json{}) == "ok") return {};
  const Json why = is_object ? answer.value("description", Json{}) : Json{};
  if (!why.is_string()) {
    return Problem{Errc::corrupt, connection.name() + " answers '" + shown(text) + "' to a hello"};
  }
  const auto reason = why.get<std::string>();
  const char* const advice =
      reason == "unauthorized_access" ? ": the user has lost the right since it joined" : "";
  return Problem{reason.starts_with("too many") ? Errc::busy : Errc::permission,
                 connection.name() + " refuses: " + shown(reason) + advice};
}

}  // namespace leat::lightq
