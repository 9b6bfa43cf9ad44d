// `leat group seek … --broker …`: the one thing that the protocol can do with a group.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "leat/subscriber.hpp"
#include "remote.hpp"

namespace leat::cli {
namespace {

// As the protocol says it.
std::string place_at_broker(const std::string& place) {
  if (is_beginning(place)) return "beginning";
  if (is_end(place)) return "end";
  if (const auto offset = parse_number(place)) return std::to_string(*offset);
  throw Failure{kExitUsage,
                fmt::format("PLACE: '{}' is not possible at a broker: write beginning, end or an "
                            "offset like 42",
                            place)};
}

}  // namespace

void remote_seek(const BrokerOptions& options, const std::string& topic, const std::string& group,
                 const std::string& place) {
  check_topic_name(topic);
  check_name("group", group);
  if (group != kLightqGroup) {
    throw Failure{kExitUsage, fmt::format("there is no group '{}': a topic of a broker has one "
                                          "group, {}",
                                          group, kLightqGroup)};
  }
  const std::string to = place_at_broker(place);
  Remote remote{options};
  or_fail(remote.admin.ask({{"cmd", "seek"},
                            {"topic", topic},
                            {"user_id", remote.user.user},
                            {"password", remote.user.password},
                            {"to", to}},
                           remote.to_answer()));
}

}  // namespace leat::cli
