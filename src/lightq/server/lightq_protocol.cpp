#include "lightq_protocol.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "admin_stream.hpp"

namespace leat::broker::lightq {
namespace {

class LightqProtocol final : public Protocol {
 public:
  explicit LightqProtocol(const Services& services)
      : services_{services},
        settings_{services.config.of<Settings>()},
        states_{services.topics, services.store},
        ports_{services_, settings_, states_},
        admin_{services_, settings_, states_, ports_} {
    services.topics.add_observer(ports_);
  }

  Outcome<void> start() override {
    const auto on_admin = [this](Accepted accepted) {
      services_.connections.start(make_admin_stream(std::move(accepted), admin_, services_.config),
                                  Connections::Kind::commands);
    };
    auto port = Acceptor::listen(services_.loop, settings_.addresses,
                                 static_cast<std::uint16_t>(settings_.port), on_admin);
    if (!port) return port.problem();
    admin_port_ = std::move(*port);
    settings_.port = admin_port_->port();  // Of 0, the one that was free.
    if (auto loaded = states_.load(settings_.all_data_ports()); !loaded) return loaded;
    auto socket = Acceptor::listen_at(services_.loop, socket_path(services_.config), on_admin,
                                      [this] { return services_.connections.free_reserved(); });
    if (!socket) return socket.problem();
    admin_socket_ = std::move(*socket);
    services_.connections.reserve_for_unix();
    ports_.open_stored();
    return {};
  }
  void stop() override {
    admin_port_.reset();
    admin_socket_.reset();
    ports_.close();
  }
  std::uint16_t port() const override { return static_cast<std::uint16_t>(settings_.port); }
  std::string place() const override {
    return fmt::format("port {} of {}", port(), fmt::join(settings_.addresses, ", "));
  }

 private:
  const Services services_;
  Settings settings_;
  TopicStates states_;
  DataPorts ports_;
  Admin admin_;
  std::unique_ptr<Acceptor> admin_port_;
  std::unique_ptr<Acceptor> admin_socket_;
};

}  // namespace

ProtocolKind protocol_kind() {
  return {.name = kProtocol,
          .keys = settings_keys,
          .check = check_settings,
          .make = [](const Services& services) -> std::unique_ptr<Protocol> {
            return std::make_unique<LightqProtocol>(services);
          }};
}

}  // namespace leat::broker::lightq
