#include "serve/broker.hpp"

#include <fmt/ranges.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <filesystem>

#include "broker/admin_password.hpp"
#include "broker/lightq/admin_stream.hpp"
#include "leat/store/data_directory.hpp"

namespace leat::broker {
namespace {

constexpr std::chrono::seconds kDrainTime{2};

// Each connection is a descriptor.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

struct Broker::Parts {
  Parts(const Config& chosen, TopicStore opened)
      : config{chosen},
        store{std::move(opened)},
        logins{loop},
        topics{loop, config, store},
        connections{{config.max_connections, config.max_connections_per_address}},
        tokens{store.token_secret()},
        ports{loop, config, topics, logins, tokens, connections},
        admin{config, topics, ports, logins, tokens, store} {}

  const Config config;
  boost::asio::io_context loop{1};
  TopicStore store;
  Logins logins;
  Topics topics;
  Connections connections;
  Tokens tokens;
  lightq::DataPorts ports;
  lightq::Admin admin;
  std::unique_ptr<Acceptor> admin_port;
  boost::asio::signal_set signals{loop};
  boost::asio::steady_timer clock{loop};
  std::function<void()> on_hangup;

  void wait_for_signal() {
    signals.async_wait([this](const auto& error, int signal) {
      if (error) return;
      if (signal == SIGHUP) {
        on_hangup();
        return wait_for_signal();
      }
      spdlog::info("signal {}: stopping; a second one ends at once", signal);
      for (const int one : {SIGTERM, SIGINT}) std::signal(one, SIG_DFL);
      stop();
    });
  }
  void stop() {
    admin_port.reset();
    ports.close();
    connections.close_all("the broker stops");
    drain(std::chrono::steady_clock::now() + kDrainTime);
  }
  // What clients sent to a full topic may still find room.
  void drain(std::chrono::steady_clock::time_point end) {
    std::size_t waiting = 0;
    topics.for_each([&](const BrokerTopic& topic) { waiting += topic.unpublished(); });
    const bool is_late = std::chrono::steady_clock::now() >= end;
    if (waiting != 0 && !is_late) {
      clock.expires_after(std::chrono::milliseconds{10});
      return clock.async_wait([this, end](const auto&) { drain(end); });
    }
    if (waiting != 0) spdlog::warn("{} messages are lost: their topics are full", waiting);
    loop.stop();
  }
};

Broker::Broker(std::unique_ptr<Parts> parts) : parts_{std::move(parts)} {}

Broker::~Broker() {
  parts_->logins.stop();
  parts_->connections.close_all("the broker stops");
}

Outcome<std::unique_ptr<Broker>> Broker::start(const Config& config, const ShowPassword& show) {
  raise_descriptor_limit();
  Config chosen = config;
  chosen.data_dir = detail::data_directory_path(chosen.data_dir);
  if (chosen.state_dir.empty()) {
    std::error_code error;
    std::filesystem::create_directories(chosen.data_dir, error);
    if (error)
      return Problem{Errc::permission, "cannot make " + chosen.data_dir + ": " + error.message()};
    chosen.state_dir = chosen.data_dir + "/+broker";
  }
  auto store = TopicStore::open(chosen.state_dir);
  if (!store) return store.problem();
  if (!chosen.admin_password_file.empty()) {
    if (auto taken = take_admin_password(*store, chosen.admin_password_file); !taken)
      return taken.problem();
  }
  auto made = ensure_administrator(
      *store, [&](std::string_view password) { return show(password, chosen.state_dir); });
  if (!made) return made.problem();
  std::unique_ptr<Broker> broker{new Broker{std::make_unique<Parts>(chosen, std::move(*store))}};
  Parts& parts = *broker->parts_;
  if (auto loaded = parts.topics.load(); !loaded) return loaded.problem();
  auto port = Acceptor::listen(parts.loop, chosen.lightq_addresses,
                               static_cast<std::uint16_t>(chosen.lightq_port),
                               [&parts](Stream::Socket socket) {
                                 parts.connections.start(lightq::make_admin_stream(
                                     std::move(socket), parts.admin, parts.config));
                               });
  if (!port) return port.problem();
  parts.admin_port = std::move(*port);
  parts.ports.open_stored();
  spdlog::info("leat-serve: listening on port {} of {}", chosen.lightq_port,
               fmt::join(chosen.lightq_addresses, ", "));
  return broker;
}

void Broker::run(std::function<void()> on_hangup) {
  parts_->on_hangup = std::move(on_hangup);
  std::signal(SIGPIPE, SIG_IGN);
  parts_->signals.add(SIGTERM);
  parts_->signals.add(SIGINT);
  if (parts_->on_hangup) parts_->signals.add(SIGHUP);
  parts_->wait_for_signal();
  for (;;) {
    try {
      parts_->loop.run();
      return;
    } catch (const std::exception& error) {  // No memory, or no descriptor. Others go on.
      spdlog::critical("an event was lost: {}", error.what());
    }
  }
}

void Broker::stop() {
  boost::asio::post(parts_->loop, [this] { parts_->stop(); });
}

}  // namespace leat::broker
