#include "hello.hpp"

#include <nlohmann/json.hpp>
#include <optional>

#include "lightq/wire/raw_frame.hpp"

namespace leat::lightq {
namespace {

using Json = nlohmann::json;

}  // namespace

void introduce(Connection& connection, Inbox& inbox, const Joined& joined, bool acknowledges,
               const Patience& patience) {
  Json hello{{"type", word_for(joined.role)}, {"token", joined.token}};
  if (acknowledges) hello["acknowledge"] = true;
  std::string out;
  append_frame(out, Bytes{hello.dump()});
  connection.send(out, patience);
  std::optional<Bytes> frame;
  while (!(frame = inbox.take_frame(kMaxHello, connection.name()))) {
    if (!inbox.read(connection) && !connection.wait_readable(patience))
      throw connection.gave_up(patience, "no answer to a hello");
  }
  const Json answer = Json::parse(frame->text(), nullptr, false);
  const bool is_object = answer.is_object();
  if (is_object && answer.value("status", Json{}) == "ok") return;
  const Json why = is_object ? answer.value("description", Json{}) : Json{};
  if (!why.is_string()) {
    throw Problem{Errc::corrupt,
                  connection.name() + " answers '" + shown(frame->text()) + "' to a hello"};
  }
  const auto reason = why.get<std::string>();
  throw Problem{reason.starts_with("too many") ? Errc::busy : Errc::permission,
                connection.name() + " refuses: " + shown(reason)};
}

}  // namespace leat::lightq
