// leat::Broker: the broker in a thread of somebody's program.
#include <spdlog/spdlog.h>

#include <atomic>
#include <thread>

#include "broker/auth/admin_password.hpp"
#include "broker/broker.hpp"
#include "broker/config/config_file.hpp"
#include "leat/broker.hpp"
#include "leat/os/os.hpp"
#include "serve/protocols.hpp"

namespace leat::inline v0 {

struct Broker::Parts {
  std::unique_ptr<broker::Broker> broker;
  std::atomic<bool> is_running = true;
  std::jthread thread;
};

Broker::Broker(std::unique_ptr<Parts> parts) noexcept : parts_{std::move(parts)} {}

std::unique_ptr<Broker> Broker::start(const BrokerOptions& options, BrokerProblem& problem) {
  const auto fail = [&](const Problem& found) {
    problem = {found.code, found.sentence};
    return nullptr;
  };
  auto config = broker::read_config({.file = options.file, .flags = options.settings},
                                    broker::keys_of(broker::all_protocols()));
  if (!config) return fail(config.problem());
  auto started = broker::Broker::start(
      *config, broker::all_protocols(),
      [&](std::string_view password, const std::string& directory) -> Outcome<void> {
        if (!options.on_first_start) return broker::write_admin_password(directory, password);
        options.on_first_start(broker::lightq::kAdminUser, password);
        return {};
      });
  if (!started) return fail(started.problem());
  const leat::os::SignalsBlocked blocked;  // They are for the program's own threads.
  auto parts = std::make_unique<Parts>();
  parts->broker = std::move(*started);
  parts->thread = std::jthread{[raw = parts.get()] {
    if (auto ended = raw->broker->run(); !ended) spdlog::critical("{}", ended.problem().sentence);
    raw->is_running = false;
  }};
  return std::unique_ptr<Broker>{new Broker{std::move(parts)}};
}

Broker::~Broker() { stop(); }

std::uint16_t Broker::lightq_port() const noexcept {
  return parts_->broker->port_of(broker::lightq::kProtocol);
}

void Broker::stop() noexcept {
  if (!parts_->thread.joinable()) return;
  parts_->broker->stop();
  parts_->thread.join();
}

bool Broker::is_running() const noexcept { return parts_->is_running; }

}  // namespace leat::inline v0
