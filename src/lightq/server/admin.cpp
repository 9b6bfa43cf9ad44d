#include "admin.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>
#include <sstream>

#include "broker/topic/topic_client.hpp"
#include "broker/topic/topic_login.hpp"

namespace leat::broker::lightq {
namespace {

using Json = nlohmann::json;
using Verdict = Logins::Verdict;

// Of what is no command. It is at most six times as long in JSON, and a client may read it late.
constexpr std::size_t kMostEchoed = 4096;

std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// "beginning", "end", or an offset.
std::optional<From> place(std::string_view text) {
  if (text == "beginning") return From::beginning;
  if (text == "end") return From::end;
  std::uint64_t offset = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), offset);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return From::offset(offset);
}

std::optional<Right> right_of(std::string_view name) {
  const bool both = name == "read_write";
  Right right;
  right.may_read = both || name == "read";
  right.may_write = both || name == "write";
  return right.may_read || right.may_write ? std::optional{right} : std::nullopt;
}

std::string_view name_of_right(const Right& right) {
  return right.may_read && right.may_write ? "read_write" : right.may_read ? "read" : "write";
}

std::string_view word_of(ClientRole role) {
  switch (role) {
    case ClientRole::publisher: return "pub";
    case ClientRole::consumer: return "pull";
    case ClientRole::subscriber: break;
  }
  return "sub";
}

// What is wrong with a new password; empty: nothing.
std::string problem_of_new(const Secret& password) {
  if (password.text().size() <= kMaxNewPassword) return {};
  return fmt::format("a password has at most {} bytes: ZeroMQ's clients can send no more",
                     kMaxNewPassword);
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

// As LightQ refuses, and for clients of ours the right that the user lacks.
std::string refusal_without(Access access, const std::string& command) {
  return text_of({{"cmd", command},
                  {"status", "error"},
                  {"description", "unauthorized_access"},
                  {"missing_right", access == Access::write ? "write" : "read"}});
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
  std::string data_auth;
  std::string slow_subscribers;
  std::string right;
  std::string to;
  bool is_password_text =
      true;  // Another value would count as an empty one, with which everybody gets in.
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
    data_auth = take("data_auth");
    slow_subscribers = take("slow_subscribers");
    right = take("right");
    to = take("to");
    if (const auto field = json.find("to"); field != json.end() && field->is_number_unsigned())
      to = std::to_string(field->get<std::uint64_t>());
    const auto leat = json.find("leat");
    knows_leat = leat != json.end() && *leat == 1;
    const auto given = json.find("password");
    is_password_text = given == json.end() || given->is_string();
    password = take_secret("password");
    new_password = take_secret("new_password");
    admin_password = take_secret("admin_password");
  }
};

Logins::Maker Admin::maker_of(const Request& request, const AdminClient& client) {
  const bool is_admin = !request.admin_user.empty();
  return {Origin{client.peer}, is_admin ? "" : request.topic + '\n' + request.user};
}

std::string Admin::ok_reply(const Request& request) {
  return text_of({{"cmd", request.command}, {"status", "ok"}, {"topic", request.topic}});
}

void AdminClient::join(const std::shared_ptr<TopicState>& topic, std::int64_t version,
                       bool greets) {
  std::erase_if(joined, [](const auto& one) { return one.first.first->is_deleted; });
  if (!is_open) return;
  const auto [at, is_new] = joined.try_emplace({topic, version}, greets);
  if (is_new) {
    topic->joined.insert({version, peer.address});
    (greets ? topic->greeting : topic->silent).insert(peer.address);
  } else if (std::exchange(at->second, at->second && greets) && !greets) {
    topic->greeting.extract(peer.address);
    topic->silent.insert(peer.address);
  }
}

void AdminClient::leave(const std::shared_ptr<TopicState>& topic, std::int64_t version) {
  const auto found = joined.find({topic, version});
  if (found == joined.end()) return;
  topic->joined.extract({version, peer.address});
  (found->second ? topic->greeting : topic->silent).extract(peer.address);
  joined.erase(found);
}

void AdminClient::close() {
  is_open = false;
  while (!joined.empty()) {
    const auto [topic, version] = joined.begin()->first;
    leave(topic, version);
  }
}

void Admin::handle(std::string& text, const Client& client, const Reply& reply) {
  Json json = Json::value_t::discarded;
  try {
    std::istringstream stream{text};
    stream >> json;  // Ignores what follows the object.
  } catch (const Json::exception&) {
    json = Json::value_t::discarded;  // It has what came before the error.
  }
  if (!json.is_object()) {
    // As LightQ answers; but a password is not repeated.
    const bool may_echo = text.find("password") == std::string::npos;
    const std::string echo = may_echo ? text.substr(0, kMostEchoed) : std::string{};
    wipe(text);
    return reply(error_reply(echo, "invalid_cmd"));
  }
  wipe(text);
  const auto request = std::make_shared<Request>(json);
  if (request->command == "ping") return reply("pong");
  using Command = void (Admin::*)(const Shared&, const Client&, const Reply&);
  static constexpr std::pair<std::string_view, Command> kCommands[] = {
      {"create_topic", &Admin::create_topic},
      {"join", &Admin::join},
      {"stats", &Admin::stats},
      {"leave", &Admin::leave},
      {"change_password", &Admin::change_password},
      {"seek", &Admin::seek},
      {"list_topics", &Admin::list_topics},
      {"delete_topic", &Admin::delete_topic},
      {"grant", &Admin::grant},
      {"revoke", &Admin::revoke},
  };
  for (const auto& [name, command] : kCommands) {
    if (request->command == name) return (this->*command)(request, client, reply);
  }
  reply(error_reply(request->command.substr(0, kMostEchoed), "invalid_cmd"));
}

void Admin::create_topic(const Shared& request, const Client& client, const Reply& reply) {
  with_administrator(request, client, reply, [=, this] { store_topic(request, client, reply); });
}

void Admin::with_administrator(const Shared& request, const Client& client, const Reply& reply,
                               std::function<void()> go_on) {
  auto administrator = services_.store.administrator();
  if (!administrator || !*administrator) {
    spdlog::error("{}",
                  administrator ? "there is no administrator" : administrator.problem().sentence);
    return reply(error_reply(request->command, "internal server error"));
  }
  const bool is_admin = request->admin_user == kAdminUser;
  services_.logins.check({client->asker(), request->admin_user, "admin",
                          is_admin ? std::optional{(*administrator)->verifier} : std::nullopt},
                         std::move(request->admin_password),
                         [=, go_on = std::move(go_on)](Verdict verdict) {
                           client->was_wrong |= verdict == Verdict::wrong;
                           if (const auto refusal = refusal_of(verdict))
                             return reply(error_reply(request->command, *refusal));
                           client->note_login();
                           go_on();
                         });
}

void Admin::store_topic(const Shared& request, const Client& client, const Reply& reply) {
  const auto fail = [=](const std::string& text) { reply(error_reply("create_topic", text)); };
  if (services_.topics.find(request->topic) != nullptr) return fail("topic already exists");
  if (const auto problem = problem_of_topic_name(request->topic)) return fail(problem->sentence);
  if (const auto problem = problem_of_user(request->user)) return fail(problem->sentence);
  const auto auth = data_auth(request->data_auth);
  if (!auth) return fail("data_auth is one of password, joined, open");
  const auto slow = slow_subscriber(request->slow_subscribers);
  if (!request->is_password_text) return fail("password is to be a string");
  if (!slow) return fail("slow_subscribers is one of overtaken, disconnect, wait");
  if (const auto problem = problem_of_new(request->password); !problem.empty())
    return fail(problem);
  const Logins::Maker maker = maker_of(*request, *client);
  services_.logins.make(maker, std::move(request->password), [=, this](Outcome<Verifier> verifier) {
    if (!verifier) return fail(verifier.problem().sentence);
    const NewTopic topic{.name = request->topic,
                         .user = request->user,
                         .verifier = *verifier,
                         .data_auth = *auth,
                         .slow_subscriber = *slow,
                         .created_at_s = std::time(nullptr)};
    if (!request->knows_leat) return add_topic(request, topic, false, reply);
    services_.topics.has_local(
        request->topic, [=, this](bool is_there) { add_topic(request, topic, is_there, reply); });
  });
}

void Admin::add_topic(const Shared& request, const NewTopic& topic, bool is_there,
                      const Reply& reply) {
  auto added = states_.add(topic, request->broker_type);
  if (!added && added.problem().code == Errc::exists)
    return reply(error_reply("create_topic", "topic already exists"));
  if (!added) return reply(error_reply("create_topic", added.problem().sentence));
  spdlog::info("topic {} was {}, type {}, data_auth {}", request->topic,
               is_there ? "there already" : "created", states_.type_of(**added),
               name_of(ports_.auth_of(**added)));
  Json answer{
      {"cmd", "create_topic"}, {"status", "ok"}, {"description", "topic created successfully"}};
  if (is_there) answer["opened"] = true;
  reply(text_of(answer));
}

void Admin::with_topic(const Shared& request, const Client& client, const Reply& reply,
                       std::function<void(const TopicPtr&, const Credential&)> go_on) {
  log_in(services_.topics, services_.logins, client->asker(), {request->topic, request->user},
         std::move(request->password), [=, go_on = std::move(go_on)](const TopicLogin& login) {
           if (login.verdict == Verdict::right) {
             client->note_login();
             return go_on(login.topic, login.credential);
           }
           client->was_wrong |= login.verdict == Verdict::wrong;
           const bool is_unknown = login.topic == nullptr && login.verdict == Verdict::wrong;
           reply(error_reply(request->command,
                             is_unknown ? "topic not found" : *refusal_of(login.verdict)));
         });
}

void Admin::join(const Shared& request, const Client& client, const Reply& reply) {
  with_topic(request, client, reply, [=, this](const TopicPtr& topic, const Credential& own) {
    const Access access = request->type == "pub" ? Access::write : Access::read;
    if (!own.may(access))
      return reply(request->knows_leat ? refusal_without(access, "join")
                                       : error_reply("join", "unauthorized_access"));
    const bool is_shm = request->connection_type == "shm";
    if (is_shm && !client->peer.address.is_loopback())
      return reply(error_reply("join", "shm is for clients on the broker's machine"));
    const TopicUse use = request->type == "pub"   ? TopicUse::look()
                         : request->type == "sub" ? TopicUse::expect_subscriber()
                                                  : TopicUse::consume_own(kGroup);
    topic->log().prepare(use, [=, this](const Outcome<void>& ready) {
      if (!ready) return refuse_join(*topic, *request, reply, ready.problem());
      answer_join(topic, own, request, client, reply);
    });
  });
}

void Admin::refuse_join(const BrokerTopic& topic, const Request& request, const Reply& reply,
                        const Problem& problem) {
  spdlog::error("topic {}: join: {}", topic.name(), problem.sentence);
  if (problem.code == Errc::no_space || request.knows_leat)
    return reply(error_reply("join", problem.sentence));
  reply(error_reply("join", request.type == "pub"
                                ? "Failed to initialize producer endpoint"
                                : "Failed to initialize consumer endpoint for pull stream"));
}

void Admin::answer_join(const TopicPtr& topic, const Credential& own, const Shared& request,
                        const Client& client, const Reply& reply) {
  const auto uri = bind_uri(topic, *request, *client);
  if (!uri) return refuse_join(*topic, *request, reply, uri.problem());
  Json answer{{"cmd", "join"}, {"status", "ok"}, {"topic", topic->name()}, {"bind_uri", *uri}};
  if (request->connection_type == "shm") {
    answer["directory"] = services_.topics.directory();
    answer["data_directory"] = services_.topics.data_directory();
    return reply(text_of(answer));
  }
  client->join(states_.of(*topic), own.version, request->knows_leat);
  if (request->knows_leat) {
    const Access access = request->type == "pub" ? Access::write : Access::read;
    answer["token"] =
        services_.tokens.make({topic->stored().id, request->user, access, own.version});
    answer["data_auth"] = name_of(ports_.auth_of(*topic));
  }
  reply(text_of(answer));
}

Outcome<std::string> Admin::bind_uri(const TopicPtr& topic, const Request& request,
                                     const AdminClient& client) {
  if (request.connection_type == "shm")
    return "shm:" + services_.topics.directory() + "/" + topic->name();
  auto port = open_ports(topic, request);
  if (!port) return port.problem();
  return fmt::format("tcp://{}:{}", host_for(client.peer.own_address), *port);
}

// Where a client reaches the data ports, which listen where the administration does.
std::string Admin::host_for(const boost::asio::ip::address& own) const {
  if (!settings_.advertise.empty()) return settings_.advertise;
  const auto& all = settings_.addresses;
  const auto has = [&](const std::string& one) {
    return std::find(all.begin(), all.end(), one) != all.end();
  };
  std::string host = own.to_string();
  // An IPv4 address is what clients of LightQ know; one at the Unix socket has come to no address.
  if (own.is_loopback() && (has("127.0.0.1") || has("0.0.0.0"))) return "127.0.0.1";
  if (own.is_v4() && own.is_loopback()) host = has("::") ? "::1" : all.front();
  return host.find(':') == host.npos ? host : "[" + host + "]";
}

// Returns the one that the client is to use.
Outcome<std::uint16_t> Admin::open_ports(const TopicPtr& topic, const Request& request) {
  if (request.connection_type == "socket") return ports_.open(topic, DataPort::raw);
  if (request.type == "pub") return ports_.open(topic, DataPort::producers);
  // LightQ opens both with the first consumer, in this order.
  auto subscribers = ports_.open(topic, DataPort::subscribers);
  if (!subscribers) return subscribers;
  auto pullers = ports_.open(topic, DataPort::pullers);
  return pullers && request.type == "sub" ? subscribers : pullers;
}

// Not all of many: the reply has to be read by somebody.
std::string Admin::connections_of(const BrokerTopic& topic) {
  constexpr std::size_t kMost = 1000;
  constexpr std::size_t kFew = 50;
  constexpr std::chrono::seconds kListed{1};
  const auto now = std::chrono::steady_clock::now();
  std::erase_if(listed_, [&](const auto& one) { return now - one.second.at > kListed; });
  const auto found = listed_.find(topic.stored().id);
  if (found != listed_.end()) return found->second.connections;
  Json list = Json::array();
  for (TopicClient* const client : topic.clients()) {
    if (list.size() == kMost) break;
    const ClientStats stats = client->stats();
    list.push_back({{"address", stats.address},
                    {"role", word_of(stats.role)},
                    {"user_id", client->principal().user},
                    {"messages", stats.messages},
                    {"bytes", stats.bytes},
                    {"rate", std::llround(stats.rate)},
                    {"lag", stats.lag},
                    {"slow", stats.is_slow},
                    {"lost", stats.lost}});
  }
  std::string text = text_of(list);
  if (list.size() > kFew) listed_[topic.stored().id] = {now, text};
  return text;
}

void Admin::stats(const Shared& request, const Client& client, const Reply& reply) {
  with_topic(request, client, reply, [=, this](const TopicPtr& topic, const Credential&) {
    topic->log().count([=, this](const TopicCounts& counts) {
      const Json answer{{"cmd", "stats"},
                        {"status", "ok"},
                        {"topic", topic->name()},
                        {"topic_type", states_.type_of(*topic)},
                        {"queue_size", counts.waiting},
                        {"messages_sent", counts.received - counts.waiting},
                        {"messages_received", counts.received},
                        {"publishers_count", topic->publishers},
                        {"subscribers_count", topic->subscribers},
                        {"total_bytes_written", topic->bytes_written},
                        {"total_bytes_read", topic->bytes_read}};
      std::string text = text_of(answer);
      if (request->knows_leat) {
        text.pop_back();  // The end of the object.
        text += ",\"connections\":" + connections_of(*topic) + "}";
      }
      reply(text);
    });
  });
}

void Admin::leave(const Shared& request, const Client& client, const Reply& reply) {
  with_topic(request, client, reply, [=, this](const TopicPtr& topic, const Credential& own) {
    client->leave(states_.of(*topic), own.version);
    reply(ok_reply(*request));
  });
}

void Admin::seek(const Shared& request, const Client& client, const Reply& reply) {
  with_topic(request, client, reply, [=](const TopicPtr& topic, const Credential& own) {
    if (!own.may_read) return reply(refusal_without(Access::read, "seek"));
    const auto to = place(request->to);
    if (!to) return reply(error_reply("seek", "to is one of beginning, end, or an offset"));
    topic->log().seek(kGroup, *to, [=](const Outcome<void>& moved) {
      reply(moved ? ok_reply(*request) : error_reply("seek", moved.problem().sentence));
    });
  });
}

void Admin::change_password(const Shared& request, const Client& client, const Reply& reply) {
  if (request->new_password.text().empty())
    return reply(error_reply(request->command, "new_password is missing"));
  if (const auto problem = problem_of_new(request->new_password); !problem.empty())
    return reply(error_reply(request->command, problem));
  if (request->admin_user.empty()) {
    return with_topic(
        request, client, reply, [=, this](const TopicPtr& topic, const Credential& own) {
          set_password(topic, request->user, request, client, reply, [=, version = own.version] {
            const auto now = credential_of(topic->stored(), request->user);
            return now && now->version == version;
          });
        });
  }
  with_administrator(request, client, reply, [=, this] {
    const TopicPtr topic = services_.topics.find(request->topic);
    if (topic == nullptr) return reply(error_reply(request->command, "topic not found"));
    const std::string user = request->user.empty() ? topic->stored().user : request->user;
    set_password(topic, user, request, client, reply, [] { return true; });
  });
}

void Admin::set_password(const TopicPtr& topic, const std::string& user, const Shared& request,
                         const Client& client, const Reply& reply,
                         const std::function<bool()>& is_still) {
  const Logins::Maker maker = maker_of(*request, *client);
  services_.logins.make(
      maker, std::move(request->new_password), [=, this](Outcome<Verifier> verifier) {
        if (!is_still()) return reply(error_reply("change_password", "unauthorized_access"));
        auto changed =
            verifier ? services_.topics.set_password(*topic, user, *verifier) : verifier.problem();
        if (!changed) return reply(error_reply("change_password", changed.problem().sentence));
        spdlog::info("topic {}: the password of {} was changed", topic->name(), user);
        reply(ok_reply(*request));
      });
}

// --- Of the administrator -----------------------------------------------------------------------------

void Admin::list_topics(const Shared& request, const Client& client, const Reply& reply) {
  with_administrator(request, client, reply, [=, this] {
    services_.topics.local_names([=, this](const std::vector<std::string>& names) {
      Json list = Json::array();
      services_.topics.for_each([&](const TopicPtr& topic) {
        const StoredTopic& stored = topic->stored();
        Json one{{"topic", stored.name},
                 {"topic_type", states_.type_of(*topic)},
                 {"user_id", stored.user}};
        for (const Right& right : stored.rights)
          one["rights"].push_back({{"user_id", right.user}, {"right", name_of_right(right)}});
        list.push_back(std::move(one));
      });
      for (const std::string& name : names)
        list.push_back({{"topic", name}, {"topic_type", "local"}, {"user_id", ""}});
      reply(text_of({{"cmd", "list_topics"}, {"status", "ok"}, {"topics", list}}));
    });
  });
}

void Admin::delete_topic(const Shared& request, const Client& client, const Reply& reply) {
  with_administrator(request, client, reply, [=, this] {
    const TopicPtr topic = services_.topics.find(request->topic);
    const auto answer = [=](const Outcome<void>& deleted) {
      if (!deleted) return reply(error_reply(request->command, deleted.problem().sentence));
      spdlog::info("topic {}{} was deleted", request->topic, topic ? "" : " of local processes");
      reply(ok_reply(*request));
    };
    if (topic) return services_.topics.delete_topic(topic, answer);
    services_.topics.delete_local(request->topic, answer);
  });
}

void Admin::grant(const Shared& request, const Client& client, const Reply& reply) {
  const auto fail = [=](const std::string& text) { reply(error_reply("grant", text)); };
  if (!right_of(request->right)) return fail("right is one of read, write, read_write");
  if (request->user.empty()) return fail("user_id is missing");
  if (!request->is_password_text) return fail("password is to be a string");
  if (const auto problem = problem_of_user(request->user)) return fail(problem->sentence);
  if (const auto problem = problem_of_new(request->password); !problem.empty())
    return fail(problem);
  with_administrator(request, client, reply, [=, this] {
    const TopicPtr known = services_.topics.find(request->topic);
    if (known && request->user == known->stored().user)
      return fail("the topic's user may do everything");
    const bool has_password = known && credential_of(known->stored(), request->user);
    if (request->password.text().empty()) {
      if (!has_password) return fail("password is missing: the user has none yet");
      return store_right(request, reply, std::nullopt);
    }
    const Logins::Maker maker = maker_of(*request, *client);
    services_.logins.make(maker, std::move(request->password),
                          [=, this](Outcome<Verifier> verifier) {
                            if (!verifier) return fail(verifier.problem().sentence);
                            store_right(request, reply, *verifier);
                          });
  });
}

void Admin::store_right(const Shared& request, const Reply& reply,
                        const std::optional<Verifier>& verifier) {
  services_.topics.find_or_adopt(request->topic, kGroup, [=, this](Outcome<TopicPtr> topic) {
    if (!topic) {
      const Problem& problem = topic.problem();
      return reply(error_reply(
          "grant", problem.code == Errc::not_found ? "topic not found" : problem.sentence));
    }
    Right right = *right_of(request->right);
    right.user = request->user;
    right.verifier = verifier;
    if (auto granted = services_.topics.grant(**topic, right); !granted)
      return reply(error_reply("grant", granted.problem().sentence));
    spdlog::info("topic {}: {} may {}", request->topic, request->user, request->right);
    reply(ok_reply(*request));
  });
}

void Admin::revoke(const Shared& request, const Client& client, const Reply& reply) {
  with_administrator(request, client, reply, [=, this] {
    const TopicPtr topic = services_.topics.find(request->topic);
    if (topic == nullptr) return reply(error_reply(request->command, "topic not found"));
    if (request->user == topic->stored().user)
      return reply(error_reply(request->command, "the topic's user may do everything"));
    const auto revoked = services_.topics.revoke(*topic, request->user);
    if (!revoked) {
      const Problem& problem = revoked.problem();
      const bool is_gone = problem.code != Errc::not_found;
      if (is_gone)
        spdlog::error("topic {}: {} has no right until the next start: {}", topic->name(),
                      request->user, problem.sentence);
      return reply(
          error_reply(request->command, is_gone ? "until the next start only: " + problem.sentence
                                                : problem.sentence));
    }
    spdlog::info("topic {}: {} has no right any more", topic->name(), request->user);
    reply(ok_reply(*request));
  });
}

}  // namespace leat::broker::lightq
