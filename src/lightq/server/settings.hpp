// What can be configured of LightQ's protocol: the section [lightq].
//
//     const Settings& settings = config.of<Settings>();
//     listen(settings.addresses, settings.port);
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "broker/config/config_key.hpp"

namespace leat::broker::lightq {

struct Settings {
  std::uint64_t port = 5500;
  std::vector<std::string> addresses{"127.0.0.1", "::1"};
  std::string socket;     // Empty: `lightq.sock` in the state directory.
  std::string advertise;  // Empty: the address that the client reached.
  PortRange data_ports;

  // The configured range, or the one that follows from the port.
  PortRange all_data_ports() const;
};

// The path of the Unix socket.
std::string socket_path(const Config& config);

std::vector<ConfigKey> settings_keys();
// As ProtocolKind::check.
Outcome<void> check_settings(const Config& config);

}  // namespace leat::broker::lightq
