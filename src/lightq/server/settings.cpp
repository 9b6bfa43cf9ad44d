#include "settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace leat::broker::lightq {

PortRange Settings::all_data_ports() const {
  constexpr std::uint16_t kDataPorts = 3499;
  if (data_ports != PortRange{}) return data_ports;
  const auto last = std::min<std::uint64_t>(port + kDataPorts, UINT16_MAX);
  return {static_cast<std::uint16_t>(std::min(port + 1, last)), static_cast<std::uint16_t>(last)};
}

std::string socket_path(const Config& config) {
  const std::string& path = config.of<Settings>().socket;
  if (!path.empty()) return path;
  Config chosen = config;
  fill_in_paths(chosen);
  return chosen.state_dir + "/lightq.sock";
}

std::vector<ConfigKey> settings_keys() {
  return {
      number_key("lightq.port", &Settings::port, 0, UINT16_MAX,
                 "port of LightQ's administration; 0: any free one"),
      addresses_key("lightq.addresses", &Settings::addresses, "addresses to listen on"),
      text_key(
          "lightq.socket", &Settings::socket, "FILE", "a path",
          "Unix socket of LightQ's administration; default: lightq.sock in the state directory"),
      text_key("lightq.advertise", &Settings::advertise, "HOST", "a host name or an address",
               "host that clients are told to connect to; default: the address they reached"),
      ports_key("lightq.data_ports", &Settings::data_ports,
                "ports for topics; default: the 3,499 after lightq.port"),
  };
}

Outcome<void> check_settings(const Config& config) {
  const auto wrong = [](std::string sentence) {
    return Problem{Errc::invalid_argument, std::move(sentence)};
  };
  const auto& settings = config.of<Settings>();
  const std::string& host = settings.advertise;
  const auto is_of_host = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '-' || c == ':' || c == '[' || c == ']';
  };
  if (!std::all_of(host.begin(), host.end(), is_of_host))
    return wrong(fmt::format("lightq.advertise: '{}' is no host name and no address", host));
  if (auto right = check_addresses("lightq.addresses", settings.addresses, config); !right)
    return right;
  const PortRange ports = settings.all_data_ports();
  if (settings.port >= ports.first && settings.port <= ports.last)
    return wrong(fmt::format("lightq.data_ports: {}-{} contains lightq.port, {}", ports.first,
                             ports.last, settings.port));
  return check_socket_path("lightq.socket", socket_path(config));
}

}  // namespace leat::broker::lightq
