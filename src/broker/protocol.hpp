// What a protocol is to the broker: settings, a part of the store, listeners. The broker knows none by name; src/serve hands
// it a list. tests/broker/line_protocol.hpp is a small one, to begin another one with.
//
//     auto broker = Broker::start(config, {lines::protocol_kind()}, show_password);
//
// A protocol and all it makes belong to the thread of the broker's event loop.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "auth/logins.hpp"
#include "auth/tokens.hpp"
#include "config/config_key.hpp"
#include "net/connections.hpp"
#include "store/topic_store.hpp"
#include "topic/topics.hpp"

namespace leat::broker {

// What a broker gives to its protocols. All of it lives longer than they do.
struct Services {
  boost::asio::io_context& loop;
  const Config& config;  // Changes when it is read again.
  TopicStore& store;
  Topics& topics;
  Logins& logins;
  const Tokens& tokens;
  Connections& connections;
};

class Protocol {
 public:
  virtual ~Protocol() = default;
  // Listens, and opens what is stored. The topics are loaded.
  //   busy, permission, io_error   a port or a socket
  //   corrupt                      its part of the store
  virtual Outcome<void> start() = 0;
  // Takes no more connections. The broker closes those that there are.
  virtual void stop() = 0;
  // Its main port. 0 before start(); the same after stop().
  virtual std::uint16_t port() const = 0;
  // Where it listens, for the log: "port 5500 of 127.0.0.1, ::1".
  virtual std::string place() const = 0;
};

struct ProtocolKind {
  // No other has it. The names of its settings begin with it, and its values in the store belong to it.
  const char* name;
  std::vector<ConfigKey> (*keys)();
  // What has to be right about its settings, beside each by itself; null: nothing.
  //   invalid_argument
  Outcome<void> (*check)(const Config& config);
  std::unique_ptr<Protocol> (*make)(const Services& services);
};

using Protocols = std::vector<ProtocolKind>;

// The keys of a broker that speaks these.
ConfigKeys keys_of(const Protocols& protocols);

}  // namespace leat::broker
