// A connection to a broker's administration: JSON objects behind their length, 4 bytes in network byte order.
//
//     Outcome<Admin> admin = Admin::open(address, {Deadline{5s}});
//     if (!admin) return admin.problem();
//     Outcome<Joined> joined = admin->join("news", {"ann", "…"}, Role::producer, patience);
//     if (!joined) return joined.problem();
//     Outcome<Producer> producer = Producer::open(*joined, {}, patience);
//
// Commands: docs/guide/broker.md, "Commands". Belongs to one thread. After a Problem other than an answer of the broker
// (permission, not_found, exists, busy, unsupported, invalid_argument) the connection is of no more use.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "connection.hpp"
#include "inbox.hpp"

namespace leat::lightq {

struct Credentials {
  std::string user;
  std::string password;
};

enum class Role { producer, puller, subscriber };

struct NewTopic {
  std::string name;
  std::string type = "queue";  // Or "file", "direct", "queue_file".
  Credentials user;            // Who may use it.
};

// What a join brings: where the topic's data port is, and what opens it.
struct Joined {
  Role role = Role::puller;
  std::string topic;
  Address data;
  std::string token;
};

struct Stats {
  std::string topic;
  std::string topic_type;
  std::uint64_t queue_size = 0;  // Messages that wait for pullers.
  std::uint64_t messages_sent = 0;
  std::uint64_t messages_received = 0;
  std::uint64_t publishers_count = 0;
  std::uint64_t subscribers_count = 0;
  std::uint64_t total_bytes_written = 0;
  std::uint64_t total_bytes_read = 0;
};

class Admin {
 public:
  static constexpr std::size_t kMaxAnswer = 16 << 20;  // 10,000 topics need 5 MiB.

  // Connects: not_found, timeout, stopped, io_error.
  static Outcome<Admin> open(const Address& address, const Patience& patience);
  // Takes a connection, for tests.
  explicit Admin(Connection connection) : connection_{std::move(connection)} {}

  // Sends a command, and returns the answer: an object whose "status" is "ok".
  //   permission, not_found, exists, busy, unsupported, invalid_argument   the broker refused; the sentence says why
  //   corrupt   the answer is none
  //   closed, timeout, stopped, io_error
  Outcome<nlohmann::json> ask(const nlohmann::json& command, const Patience& patience);
  // Whether it is a broker, and alive.
  Outcome<void> ping(const Patience& patience);

  // True: programs on the broker's machine have made a topic of that name, which the broker opens.
  Outcome<bool> create_topic(const Credentials& administrator, const NewTopic& topic,
                             const Patience& patience);
  // The place of the data port comes from the broker, and is only checked to be an address.
  Outcome<Joined> join(const std::string& topic, const Credentials& user, Role role,
                       const Patience& patience);
  Outcome<Stats> stats(const std::string& topic, const Credentials& user, const Patience& patience);

 private:
  Outcome<void> send(const std::string& body, const Patience& patience);
  // The body of the answer.
  Outcome<std::string> exchange(const std::string& body, const Patience& patience);

  Connection connection_;
  Inbox inbox_;
};

// "pub", "pull" or "sub", as join and hello call it.
const char* word_for(Role role) noexcept;

// Overwrites and empties a text that contained a password.
void wipe(std::string& text) noexcept;

}  // namespace leat::lightq
