#include "address.hpp"

#include <charconv>
#include <optional>

#include "shown.hpp"

namespace leat::lightq {
namespace {

constexpr std::size_t kMaxHost = 255;

std::optional<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, port);
  if (error != std::errc{} || stopped != end || port == 0) return std::nullopt;
  return port;
}

bool is_host(std::string_view text) {
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:%";
  return !text.empty() && text.size() <= kMaxHost && text.find_first_not_of(kLetters) == text.npos;
}

// HOST:PORT; without :PORT the port is `default_port`, if that is not 0.
std::optional<Address> parse_address(std::string_view text, std::uint16_t default_port) {
  std::string_view host;
  std::string_view rest;
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == text.npos) return std::nullopt;
    host = text.substr(1, end - 1);
    rest = text.substr(end + 1);
  } else {
    const std::size_t colon = text.find(':');
    host = text.substr(0, colon);
    rest = colon == text.npos ? std::string_view{} : text.substr(colon);
  }
  if (!is_host(host)) return std::nullopt;
  if (rest.empty() && default_port != 0) return Address{std::string{host}, default_port};
  if (!rest.starts_with(':')) return std::nullopt;
  const auto port = parse_port(rest.substr(1));
  if (!port) return std::nullopt;
  return Address{std::string{host}, *port};
}

// What can be repeated of a wrong URI: no user, and nothing that may be a password.
std::string harmless_part(std::string_view uri) {
  constexpr std::string_view kDigits = "0123456789";
  constexpr std::size_t kLongestPort = 5;
  std::string text;
  if (const std::size_t at = uri.rfind('@'); at != uri.npos) {
    text = "…";
    uri.remove_prefix(at);
  }
  const std::size_t scheme = uri.find("://");
  const std::size_t colon = uri.rfind(':');
  if (colon == uri.npos || colon == scheme) return text + shown(uri);
  std::string_view port = uri.substr(colon + 1);
  if (port.ends_with('/')) port.remove_suffix(1);
  if (port.size() <= kLongestPort && port.find_first_not_of(kDigits) == port.npos)
    return text + shown(uri);
  return text + shown(uri.substr(0, colon + 1)) + "…";
}

}  // namespace

std::string Address::text() const {
  const bool is_v6 = host.find(':') != host.npos;
  return (is_v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Outcome<Address> parse_tcp_uri(std::string_view uri) {
  constexpr std::string_view kScheme = "tcp://";
  if (uri.starts_with(kScheme)) {
    if (auto address = parse_address(uri.substr(kScheme.size()), 0)) return *address;
  }
  return Problem{Errc::invalid_argument,
                 "'" + shown(uri) +
                     "' is no address of a broker: write tcp://HOST:PORT, for example "
                     "tcp://127.0.0.1:5500"};
}

Outcome<BrokerUri> parse_broker_uri(std::string_view uri) {
  constexpr std::string_view kScheme = "lightq://";
  const auto wrong = [part = harmless_part(uri)] {
    return Problem{Errc::invalid_argument,
                   "'" + part +
                       "' is not the address of a broker: write lightq://USER@HOST:PORT, for "
                       "example lightq://ann@127.0.0.1:5500"};
  };
  if (!uri.starts_with(kScheme)) return wrong();
  uri.remove_prefix(kScheme.size());
  BrokerUri broker;
  if (const std::size_t at = uri.rfind('@'); at != uri.npos) {
    broker.user = uri.substr(0, at);
    uri.remove_prefix(at + 1);
    if (broker.user.find(':') != broker.user.npos) {
      return Problem{Errc::invalid_argument,
                     "a password does not belong there, where others can read it: put it into "
                     "LEAT_PASSWORD or a file"};
    }
    if (broker.user.empty()) return wrong();
  }
  if (uri.ends_with('/')) uri.remove_suffix(1);
  auto address = parse_address(uri, kAdminPort);
  if (!address) return wrong();
  broker.address = *address;
  return broker;
}

}  // namespace leat::lightq
