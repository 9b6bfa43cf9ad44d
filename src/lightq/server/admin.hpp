// LightQ's admin protocol: a JSON object asks, a JSON object answers.
//
//     Admin admin{services, settings, states, ports};
//     admin.handle(request, client, [](std::string reply) { … });
//
// LightQ's commands: create_topic, join, stats, ping. Every text is LightQ's, with these differences: create_topic checks
// the administrator first, so that nobody learns names from it, and an unknown topic takes as long as a wrong
// password. Ours, by somebody who may use the topic: leave, change_password, seek; by the administrator: list_topics,
// delete_topic, grant, revoke, change_password.
// Passwords are checked in with_administrator() and with_topic(), which ask the broker's Logins. Commands that need a topic's
// log, or files, are answered when a worker's thread is done.
// Belongs to the thread of its event loop, on which it answers, perhaps before handle() returns.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "data_ports.hpp"

namespace leat::broker::lightq {

// One admin connection.
struct AdminClient {
  Peer peer;
  bool is_open = true;
  bool was_wrong = false;               // Has sent a wrong password.
  std::function<bool()> is_there = {};  // The client waits for an answer.
  std::function<void()> on_login = {};  // The password of its command was right.
  // With the version of the password then; and whether it asked for a token, which is said in a hello.
  std::map<std::pair<std::shared_ptr<TopicState>, std::int64_t>, bool> joined;

  // Has joined: may come to the topic's data ports as long as it is open.
  void join(const std::shared_ptr<TopicState>& topic, std::int64_t version, bool greets);
  void leave(const std::shared_ptr<TopicState>& topic, std::int64_t version);
  void close();
  void note_login() const {
    if (on_login) on_login();
  }
  Logins::Asker asker() const { return {Origin{peer}, !was_wrong, is_there}; }
};

// What every refusal looks like.
std::string error_reply(const std::string& command, const std::string& description);

class Admin {
 public:
  using Reply = std::function<void(std::string)>;
  using Client = std::shared_ptr<AdminClient>;

  Admin(const Services& services, const Settings& settings, TopicStates& states, DataPorts& ports)
      : services_{services}, settings_{settings}, states_{states}, ports_{ports} {}

  // Answers once. `request` may contain passwords; it is wiped.
  void handle(std::string& request, const Client& client, const Reply& reply);

 private:
  struct Request;
  using Shared = std::shared_ptr<Request>;
  static std::string ok_reply(const Request& request);
  // The user of a topic, or the administrator.
  static Logins::Maker maker_of(const Request& request, const AdminClient& client);

  void create_topic(const Shared& request, const Client& client, const Reply& reply);
  void store_topic(const Shared& request, const Client& client, const Reply& reply);
  // `is_there`: local processes have made a topic of that name, which the broker is going to use.
  void add_topic(const Shared& request, const NewTopic& topic, bool is_there, const Reply& reply);
  void join(const Shared& request, const Client& client, const Reply& reply);
  void stats(const Shared& request, const Client& client, const Reply& reply);
  void leave(const Shared& request, const Client& client, const Reply& reply);
  void change_password(const Shared& request, const Client& client, const Reply& reply);
  // `is_still`: asked again when the password is hashed.
  void set_password(const TopicPtr& topic, const std::string& user, const Shared& request,
                    const Client& client, const Reply& reply,
                    const std::function<bool()>& is_still);
  void seek(const Shared& request, const Client& client, const Reply& reply);
  void list_topics(const Shared& request, const Client& client, const Reply& reply);
  void delete_topic(const Shared& request, const Client& client, const Reply& reply);
  void grant(const Shared& request, const Client& client, const Reply& reply);
  // Without a verifier, the user keeps the password.
  void store_right(const Shared& request, const Reply& reply,
                   const std::optional<Verifier>& verifier);
  void revoke(const Shared& request, const Client& client, const Reply& reply);
  // The connections of a topic, as JSON: a list that takes long is made once a second.
  std::string connections_of(const BrokerTopic& topic);
  // Calls `go_on` if the client is the administrator; else it answers.
  void with_administrator(const Shared& request, const Client& client, const Reply& reply,
                          std::function<void()> go_on);
  // Calls `go_on` if the client may use the topic, with what it may; else it answers.
  void with_topic(const Shared& request, const Client& client, const Reply& reply,
                  std::function<void(const TopicPtr&, const Credential&)> go_on);
  static void refuse_join(const BrokerTopic& topic, const Request& request, const Reply& reply,
                          const Problem& problem);
  // The topic is ready for one that joins.
  void answer_join(const TopicPtr& topic, const Credential& own, const Shared& request,
                   const Client& client, const Reply& reply);
  Outcome<std::string> bind_uri(const TopicPtr& topic, const Request& request,
                                const AdminClient& client);
  std::string host_for(const boost::asio::ip::address& own) const;
  Outcome<std::uint16_t> open_ports(const TopicPtr& topic, const Request& request);

  const Services services_;
  const Settings& settings_;
  TopicStates& states_;
  DataPorts& ports_;
  struct Listed {
    std::chrono::steady_clock::time_point at;
    std::string connections;
  };
  std::map<std::int64_t, Listed> listed_;  // By the topic's id.
};

}  // namespace leat::broker::lightq
