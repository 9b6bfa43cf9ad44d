// Where a broker is.
//
//     Outcome<Address> address = parse_tcp_uri("tcp://127.0.0.1:5500");
//     Outcome<BrokerUri> broker = parse_broker_uri("lightq://ann@broker.example.org");    // port 5500
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "outcome/outcome.hpp"

namespace leat::lightq {

inline constexpr std::uint16_t kAdminPort = 5500;

struct Address {
  std::string host;  // A name, an IPv4 address, or an IPv6 address without brackets.
  std::uint16_t port = 0;

  std::string text() const;  // "127.0.0.1:5500", "[::1]:5500"
  // Whether nothing that is sent there leaves the machine, and nobody else can have the address.
  bool is_127_0_0_1() const { return host == "127.0.0.1"; }
};

struct BrokerUri {
  std::string user;  // Empty: none.
  Address address;
};

// LightQ's form: tcp://HOST:PORT.
//   invalid_argument   anything else; the sentence says what would be right
Outcome<Address> parse_tcp_uri(std::string_view uri);

// lightq://USER@HOST:PORT. Without USER@ it has no user, without :PORT the port is 5500.
//   invalid_argument   anything else, also a password: it would be seen in the list of processes
Outcome<BrokerUri> parse_broker_uri(std::string_view uri);

}  // namespace leat::lightq
