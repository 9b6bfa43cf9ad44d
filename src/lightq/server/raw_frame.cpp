#include "raw_frame.hpp"

#include <nlohmann/json.hpp>

namespace leat::broker::raw {

Outcome<Hello> parse_hello(std::string_view text) {
  const auto refuse = [](const char* sentence) {
    return Problem{Errc::invalid_argument, sentence};
  };
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return refuse("the first frame is not a JSON object");
  const auto word = [&](const char* key) {
    const auto field = json.find(key);
    return field != json.end() && field->is_string() ? field->get<std::string>() : std::string{};
  };
  Hello hello{.token = word("token")};
  const std::string type = word("type");
  if (type == "pub") {
    hello.role = Role::producer;
  } else if (type == "sub") {
    hello.role = Role::subscriber;
  } else if (type != "pull") {
    return refuse("type is none of pub, pull and sub");
  }
  const auto acknowledge = json.find("acknowledge");
  hello.acknowledges = acknowledge != json.end() && *acknowledge == true;
  if (hello.acknowledges && hello.role != Role::puller)
    return refuse("acknowledge is for type pull");
  return hello;
}

}  // namespace leat::broker::raw
