#include "broker/lightq/admin.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <ctime>
#include <nlohmann/json.hpp>
#include <sstream>

#include "broker/admin_password.hpp"

namespace leat::broker::lightq {
namespace {

using Json = nlohmann::json;
using Verdict = Logins::Verdict;

std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// What is wrong with a login; none if it is right.
std::optional<std::string> refusal_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::right: return std::nullopt;
    case Verdict::wrong: return "unauthorized_access";
    case Verdict::too_many: return "too many attempts";
    case Verdict::busy: return "too many logins at once, try again";
  }
  return "internal server error";
}

}  // namespace

std::string error_reply(const std::string& command, const std::string& description) {
  return text_of({{"cmd", command}, {"status", "error"}, {"description", description}});
}

// A field counts only if it is a string; without it, it is empty.
struct Admin::Request {
  std::string command;
  std::string topic;
  std::string user;
  std::string admin_user;
  std::string type;
  std::string broker_type;
  std::string connection_type;
  bool knows_leat = false;  // May get fields that LightQ does not have.
  Secret password;
  Secret new_password;
  Secret admin_password;

  explicit Request(Json& json) {
    const auto take = [&](const char* key) {
      const auto field = json.find(key);
      return field != json.end() && field->is_string() ? field->get<std::string>() : std::string{};
    };
    const auto take_secret = [&](const char* key) {
      const auto field = json.find(key);
      if (field == json.end() || !field->is_string()) return Secret{std::string_view{}};
      auto& text = field->get_ref<std::string&>();
      Secret secret{text};
      wipe(text);
      return secret;
    };
    command = take("cmd");
    topic = take("topic");
    user = take("user_id");
    admin_user = take("admin_user_id");
    type = take("type");
    broker_type = take("broker_type");
    connection_type = take("connection_type");
    const auto leat = json.find("leat");
    knows_leat = leat != json.end() && *leat == 1;
    password = take_secret("password");
    new_password = take_secret("new_password");
    admin_password = take_secret("admin_password");
  }
};

void AdminClient::join(BrokerTopic& topic) {
  leave(topic);  // Perhaps with an earlier password.
  if (!is_open) return;
  const std::int64_t version = topic.stored().verifier_version;
  joined[&topic] = version;
  topic.joined.insert({version, address});
}

void AdminClient::leave(BrokerTopic& topic) {
  const auto found = joined.find(&topic);
  if (found == joined.end()) return;
  topic.joined.extract({found->second, address});
  joined.erase(found);
}

void AdminClient::close() {
  is_open = false;
  while (!joined.empty()) leave(*joined.begin()->first);
}

void Admin::handle(std::string& text, const Client& client, const Reply& reply) {
  Json json = Json::value_t::discarded;
  try {
    std::istringstream stream{text};
    stream >> json;  // Ignores what follows the object.
  } catch (const Json::exception&) {
  }
  if (!json.is_object()) {
    constexpr std::size_t kMostEchoed = 4096;
    // As LightQ answers; but a password is not repeated.
    const bool may_echo = text.find("password") == std::string::npos;
    const std::string echo = may_echo ? text.substr(0, kMostEchoed) : std::string{};
    wipe(text);
    return reply(error_reply(echo, "invalid_cmd"));
  }
  wipe(text);
  const auto request = std::make_shared<Request>(json);
  if (request->command == "ping") return reply("pong");
  if (request->command == "create_topic") return create_topic(request, client, reply);
  if (request->command == "join") return join(request, client, reply);
  if (request->command == "stats") return stats(request, client, reply);
  if (request->command == "leave") return leave(request, client, reply);
  if (request->command == "change_password") return change_password(request, client, reply);
  if (request->command == "list_topics") return list_topics(request, client, reply);
  reply(error_reply(request->command, "invalid_cmd"));
}

void Admin::create_topic(const Shared& request, const Client& client, const Reply& reply) {
  with_administrator(request, client, reply, [=, this] { store_topic(request, reply); });
}

void Admin::with_administrator(const Shared& request, const Client& client, const Reply& reply,
                               std::function<void()> go_on) {
  auto administrator = store_.administrator();
  if (!administrator || !*administrator) {
    spdlog::error("{}",
                  administrator ? "there is no administrator" : administrator.problem().sentence);
    return reply(error_reply(request->command, "internal server error"));
  }
  const bool is_admin = request->admin_user == kAdminUser;
  logins_.check({client->address, request->admin_user, "admin",
                 is_admin ? std::optional{(*administrator)->verifier} : std::nullopt},
                std::move(request->admin_password), [=, go_on = std::move(go_on)](Verdict verdict) {
                  if (const auto refusal = refusal_of(verdict))
                    return reply(error_reply(request->command, *refusal));
                  go_on();
                });
}

void Admin::store_topic(const Shared& request, const Reply& reply) {
  const auto fail = [=](const std::string& text) { reply(error_reply("create_topic", text)); };
  if (topics_.find(request->topic) != nullptr) return fail("topic already exists");
  if (const auto problem = problem_of_topic_name(request->topic)) return fail(problem->sentence);
  if (const auto problem = problem_of_user(request->user)) return fail(problem->sentence);
  logins_.make(std::move(request->password), [=, this](Outcome<Verifier> verifier) {
    if (!verifier) return fail(verifier.problem().sentence);
    auto added = topics_.add({.name = request->topic,
                              .type = topic_type(request->broker_type).value_or(TopicType::queue),
                              .user = request->user,
                              .verifier = *verifier,
                              .created_at_s = std::time(nullptr)});
    if (!added) {
      const Problem& problem = added.problem();
      return fail(problem.code == Errc::exists ? "topic already exists" : problem.sentence);
    }
    spdlog::info("topic {} was created, type {}", request->topic, name_of((*added)->stored().type));
    reply(text_of({{"cmd", "create_topic"},
                   {"status", "ok"},
                   {"description", "topic created successfully"}}));
  });
}

void Admin::with_topic(const Shared& request, const Client& client, const Reply& reply,
                       std::function<void(BrokerTopic&)> go_on) {
  BrokerTopic* const topic = topics_.find(request->topic);
  const bool is_user = topic != nullptr && request->user == topic->stored().user;
  const std::int64_t version = topic != nullptr ? topic->stored().verifier_version : 0;
  logins_.check({client->address, request->user, "topic/" + request->topic,
                 is_user ? topic->stored().verifier : std::optional<Verifier>{}},
                std::move(request->password), [=, go_on = std::move(go_on)](Verdict verdict) {
                  if (verdict == Verdict::right && topic->stored().verifier_version != version)
                    verdict = Verdict::wrong;  // It was changed meanwhile.
                  const auto refusal = refusal_of(verdict);
                  if (!refusal) return go_on(*topic);
                  const bool is_unknown = topic == nullptr && verdict == Verdict::wrong;
                  reply(error_reply(request->command, is_unknown ? "topic not found" : *refusal));
                });
}

void Admin::join(const Shared& request, const Client& client, const Reply& reply) {
  with_topic(request, client, reply, [=, this](BrokerTopic& topic) {
    auto uri = bind_uri(topic, *request, *client);
    if (!uri) {
      spdlog::error("topic {}: join: {}", topic.name(), uri.problem().sentence);
      if (uri.problem().code == Errc::no_space) return reply(error_reply("join", uri.problem().sentence));
      return reply(error_reply("join", request->type == "pub"
                                     ? "Failed to initialize producer endpoint"
                                     : "Failed to initialize consumer endpoint for pull stream"));
    }
    client->join(topic);
    Json answer{{"cmd", "join"}, {"status", "ok"}, {"topic", topic.name()}, {"bind_uri", *uri}};
    if (request->knows_leat) {
      const StoredTopic& stored = topic.stored();
      const TokenRole role = request->type == "pub" ? TokenRole::write : TokenRole::read;
      answer["token"] = tokens_.make({stored.id, stored.user, role, stored.verifier_version});
      answer["data_auth"] = name_of(ports_.auth_of(topic));
    }
    reply(text_of(answer));
  });
}

// Makes the topic ready for one that joins.
Outcome<std::string> Admin::bind_uri(BrokerTopic& topic, const Request& request,
                                     AdminClient& client) {
  const bool is_producer = request.type == "pub";
  const bool is_listener = request.type == "sub";
  auto ready = is_producer   ? topic.attach()
               : is_listener ? topic.expect_listener()
                             : topic.expect_puller();
  if (!ready) return ready.problem();
  auto port = open_ports(topic, request);
  if (!port) return port.problem();
  std::string host = config_.lightq_advertise;
  if (host.empty()) {
    const auto& own = client.own_address;
    host = own.is_v4()                 ? own.to_string()
           : own.to_v6().is_loopback() ? "127.0.0.1"
                                       : "[" + own.to_string() + "]";
  }
  return fmt::format("tcp://{}:{}", host, *port);
}

// Returns the one that the client is to use.
Outcome<std::uint16_t> Admin::open_ports(BrokerTopic& topic, const Request& request) {
  if (request.connection_type == "socket") return ports_.open(topic, DataPort::raw);
  if (request.type == "pub") return ports_.open(topic, DataPort::producers);
  // LightQ opens both with the first consumer, in this order.
  auto subscribers = ports_.open(topic, DataPort::subscribers);
  if (!subscribers) return subscribers;
  auto pullers = ports_.open(topic, DataPort::pullers);
  return pullers && request.type == "sub" ? subscribers : pullers;
}

void Admin::stats(const Shared& request, const Client& client, const Reply& reply) {
  with_topic(request, client, reply, [=](BrokerTopic& topic) {
    const TopicCounts counts = topic.counts();
    reply(text_of({{"cmd", "stats"},
                   {"status", "ok"},
                   {"topic", topic.name()},
                   {"topic_type", name_of(topic.stored().type)},
                   {"queue_size", counts.waiting},
                   {"messages_sent", counts.received - counts.waiting},
                   {"messages_received", counts.received},
                   {"publishers_count", topic.publishers},
                   {"subscribers_count", topic.subscribers},
                   {"total_bytes_written", 0},
                   {"total_bytes_read", 0}}));
  });
}

void Admin::leave(const Shared& request, const Client& client, const Reply& reply) {
  with_topic(request, client, reply, [=](BrokerTopic& topic) {
    client->leave(topic);
    reply(text_of({{"cmd", "leave"}, {"status", "ok"}, {"topic", topic.name()}}));
  });
}

void Admin::change_password(const Shared& request, const Client& client, const Reply& reply) {
  if (request->new_password.text().empty())
    return reply(error_reply(request->command, "new_password is missing"));
  if (request->admin_user.empty()) {
    return with_topic(request, client, reply, [=, this](BrokerTopic& topic) {
      const std::int64_t version = topic.stored().verifier_version;
      set_password(topic, request, reply,
                   [&topic, version] { return topic.stored().verifier_version == version; });
    });
  }
  with_administrator(request, client, reply, [=, this] {
    BrokerTopic* const topic = topics_.find(request->topic);
    if (topic == nullptr) return reply(error_reply(request->command, "topic not found"));
    set_password(*topic, request, reply, [] { return true; });
  });
}

void Admin::set_password(BrokerTopic& topic, const Shared& request, const Reply& reply,
                         const std::function<bool()>& is_still) {
  logins_.make(std::move(request->new_password), [=, this, &topic](Outcome<Verifier> verifier) {
    if (!is_still()) return reply(error_reply("change_password", "unauthorized_access"));
    auto changed = verifier ? topics_.set_verifier(topic, *verifier) : verifier.problem();
    if (!changed) return reply(error_reply("change_password", changed.problem().sentence));
    spdlog::info("topic {}: the password was changed", topic.name());
    reply(text_of({{"cmd", "change_password"}, {"status", "ok"}, {"topic", topic.name()}}));
  });
}

void Admin::list_topics(const Shared& request, const Client& client, const Reply& reply) {
  with_administrator(request, client, reply, [=, this] {
    Json list = Json::array();
    topics_.for_each([&](const BrokerTopic& topic) {
      const StoredTopic& stored = topic.stored();
      list.push_back({{"topic", stored.name},
                      {"topic_type", name_of(stored.type)},
                      {"user_id", stored.user}});
    });
    reply(text_of({{"cmd", "list_topics"}, {"status", "ok"}, {"topics", list}}));
  });
}

}  // namespace leat::broker::lightq
