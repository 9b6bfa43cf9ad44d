// `leat topic create | list | info | delete --broker …`.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "cli/table.hpp"
#include "lightq/client/shown.hpp"
#include "remote.hpp"
#include "tool/json_text.hpp"

namespace leat::cli {
namespace {

// A text that came from the broker.
std::string text_at(const nlohmann::json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() && found->is_string() ? lightq::shown(found->get<std::string>())
                                                     : "";
}

}  // namespace

void remote_create(const BrokerOptions& options, const RemoteTopic& topic) {
  check_topic_name(topic.name);
  if (topic.user.empty())
    throw Failure{kExitUsage, "--user is needed with --broker: who may use the topic"};
  const lightq::Credentials user{
      topic.user, password_from(topic.password_file, "--topic-password-file", "LEAT_TOPIC_PASSWORD",
                                topic.user)};
  Remote remote{options};
  const bool was_there = or_fail(remote.admin.create_topic(
      remote.user, {.name = topic.name, .type = topic.type, .user = user}, remote.to_answer()));
  if (was_there) {
    fmt::print("opened topic '{}', which programs on the machine of {} have made, for {}\n",
               topic.name, remote.uri.address.text(), topic.user);
    return;
  }
  fmt::print("created topic '{}' of type {} at {}, for {}\n", topic.name, topic.type,
             remote.uri.address.text(), topic.user);
}

void remote_list(const BrokerOptions& options, bool json) {
  Remote remote{options};
  const auto answer = or_fail(remote.admin.ask({{"cmd", "list_topics"},
                                                {"admin_user_id", remote.user.user},
                                                {"admin_password", remote.user.password}},
                                               remote.to_answer()));
  const nlohmann::json topics = answer.value("topics", nlohmann::json::array());
  if (json) {
    // ASCII, because terminals take some other characters as commands.
    fmt::print("{}\n", topics.dump(2, ' ', true, nlohmann::json::error_handler_t::replace));
    return;
  }
  Table table{{"NAME", Align::left}, {"TYPE", Align::left}, {"USER", Align::left}};
  for (const nlohmann::json& one : topics)
    table.add({text_at(one, "topic"), text_at(one, "topic_type"), text_at(one, "user_id")});
  if (topics.empty())
    print_notice(fmt::format("no topics at {}", remote.uri.address.text()));
  else
    fmt::print("{}", table.text());
}

void remote_info(const BrokerOptions& options, const std::string& topic, bool json) {
  check_topic_name(topic);
  Remote remote{options};
  const auto stats = or_fail(remote.admin.stats(topic, remote.user, remote.to_answer()));
  if (json) {
    const nlohmann::ordered_json description{{"name", topic},
                                             {"type", lightq::shown(stats.topic_type)},
                                             {"waiting", stats.queue_size},
                                             {"received", stats.messages_received},
                                             {"sent", stats.messages_sent},
                                             {"publishers", stats.publishers_count},
                                             {"subscribers", stats.subscribers_count}};
    fmt::print("{}\n", tool::json_text(description, 2));
    return;
  }
  fmt::print(
      "topic        {}\ntype         {}\nwaiting      {}, for pullers\nreceived     {}\n"
      "sent         {}, to pullers\npublishers   {}\nsubscribers  {}, with pullers\n",
      topic, lightq::shown(stats.topic_type), number_text(stats.queue_size),
      number_text(stats.messages_received), number_text(stats.messages_sent),
      number_text(stats.publishers_count), number_text(stats.subscribers_count));
}

// Deletes as many as it can, as `leat topic delete` does.
void remote_delete(const BrokerOptions& options, const std::vector<std::string>& topics) {
  for (const std::string& topic : topics) check_topic_name(topic);
  Remote remote{options};
  std::optional<Failure> failure;
  for (const std::string& topic : topics) {
    const auto answer = remote.admin.ask({{"cmd", "delete_topic"},
                                          {"topic", topic},
                                          {"admin_user_id", remote.user.user},
                                          {"admin_password", remote.user.password}},
                                         remote.to_answer());
    if (answer) continue;
    if (failure) print_notice(failure->what());
    failure.emplace(exit_code_for(answer.problem().code),
                    fmt::format("topic '{}': {}", topic, answer.problem().sentence));
  }
  if (failure) throw Failure{*failure};
}

}  // namespace leat::cli
