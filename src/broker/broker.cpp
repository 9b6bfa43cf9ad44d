#include "broker.hpp"

#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <filesystem>
#include <map>
#include <new>
#include <utility>

#include "auth/admin_password.hpp"

namespace leat::broker {
namespace {

constexpr std::chrono::seconds kDrainTime{2};
constexpr std::chrono::seconds kPoll{2};

}  // namespace

ConfigKeys keys_of(const Protocols& protocols) {
  ConfigKeys keys;
  for (const ProtocolKind& kind : protocols) {
    std::vector<ConfigKey> own = kind.keys();
    const std::string section = kind.name + std::string{'.'};
    for (const ConfigKey& key : own) LEAT_ASSERT(key.name.starts_with(section));
    keys.add(std::move(own), kind.check);
  }
  return keys;
}

struct Broker::Parts {
  Parts(const Config& from_user, const Config& chosen, const Protocols& kinds, TopicStore opened)
      : keys{keys_of(kinds)},
        given{from_user},
        config{chosen},
        store{std::move(opened)},
        logins{loop},
        topics{loop, config, store},
        connections{connection_limits(), {.messages = &unfinished, .commands = &commands}},
        tokens{store.token_secret()} {
    connections.on_many_closed([this] { topics.trim_heap_soon(); });
    const Services services{loop, config, store, topics, logins, tokens, connections};
    for (const ProtocolKind& kind : kinds) {
      LEAT_ASSERT(!protocols.contains(kind.name));
      protocols.emplace(kind.name, kind.make(services));
    }
  }

  ConfigKeys keys;
  Config given;   // As it was written.
  Config config;  // As it is.
  boost::asio::io_context loop{1};
  TopicStore store;
  Logins logins;
  Topics topics;
  LargeMessages unfinished{loop};
  LargeMessages commands{loop, Connections::kMostOfCommands};  // That are not whole.
  Connections connections;
  Tokens tokens;
  std::map<std::string, std::unique_ptr<Protocol>, std::less<>> protocols;
  boost::asio::signal_set signals{loop};
  Timer clock{loop};
  Timer poll_timer{loop};
  bool had_data = false;
  bool store_is_gone = false;
  bool data_is_gone = false;
  std::function<void()> on_hangup;

  Connections::Limits connection_limits() const {
    return {config.max_connections, config.max_connections_per_address};
  }
  void set_connection_limits() {
    connections.set_limits(connection_limits());
    const std::size_t most = Connections::most_by_descriptors();
    if (most < config.max_connections)
      spdlog::info("limits.connections is {}, but the limit of open files leaves room for {}",
                   config.max_connections, most);
  }
  void take_signals(std::function<void()> call) {
    on_hangup = std::move(call);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) signals.add(signal);
    wait_for_signal();
  }
  void wait_for_signal() {
    signals.async_wait([this](const auto& error, int signal) {
      if (error) return;
      if (signal == SIGHUP) {
        wait_for_signal();
        return on_hangup();
      }
      for (const int one : {SIGTERM, SIGINT}) std::signal(one, SIG_DFL);
      spdlog::info("signal {}: stopping; a second one ends at once", signal);
      stop();
    });
  }
  // Says it when somebody removes what the broker will need at its next start: nothing else would.
  void watch_files() {
    std::error_code ignored;
    const bool has_data = std::filesystem::is_directory(config.data_dir, ignored);
    had_data |= has_data;  // It is made with the first durable topic.
    say_if_gone(store_is_gone, !store.is_in_place(), "the broker's store in " + config.state_dir,
                "topics, rights and passwords");
    say_if_gone(data_is_gone, had_data && !has_data, config.data_dir, "durable topics");
    poll_timer.start(kPoll, [this] { watch_files(); });
  }
  static void say_if_gone(bool& was_gone, bool is_gone, const std::string& what,
                          std::string_view loss) {
    if (std::exchange(was_gone, is_gone) == is_gone) return;
    if (!is_gone) return spdlog::info("{} is there again", what);
    spdlog::error("{} was removed or replaced: {} are lost at the next start unless it is put back",
                  what, loss);
  }
  void stop() {
    poll_timer.stop();
    for (const auto& [name, protocol] : protocols) protocol->stop();
    connections.close_all("the broker stops");
    drain(std::chrono::steady_clock::now() + kDrainTime);
  }
  // What clients sent to a full topic may still find room.
  void drain(std::chrono::steady_clock::time_point end) {
    std::size_t waiting = 0;
    topics.for_each([&](const TopicPtr& topic) { waiting += topic->log().unpublished(); });
    const bool is_late = std::chrono::steady_clock::now() >= end;
    if (waiting != 0 && !is_late) {
      return clock.start(std::chrono::milliseconds{10}, [this, end] { drain(end); });
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

Outcome<std::unique_ptr<Broker>> Broker::start(const Config& config, const Protocols& protocols,
                                               const ShowPassword& show,
                                               std::function<void()> on_hangup) {
  Config chosen = config;
  fill_in_paths(chosen);
  if (config.state_dir.empty()) {
    std::error_code error;
    std::filesystem::create_directories(chosen.data_dir, error);
    if (error)
      return Problem{Errc::permission, "cannot make " + chosen.data_dir + ": " + error.message()};
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
  std::unique_ptr<Broker> broker{
      new Broker{std::make_unique<Parts>(config, chosen, protocols, std::move(*store))}};
  Parts& parts = *broker->parts_;
  if (on_hangup) parts.take_signals(std::move(on_hangup));
  if (auto loaded = parts.topics.load(); !loaded) return loaded.problem();
  std::vector<std::string> places;
  for (const auto& [name, protocol] : parts.protocols) {
    if (auto started = protocol->start(); !started) return started.problem();
    places.push_back(protocol->place());
  }
  parts.set_connection_limits();
  parts.watch_files();
  spdlog::info("leat-serve: listening on {}, data_auth {}", fmt::join(places, "; "),
               name_of(parts.config.data_auth));
  return broker;
}

std::vector<std::string> Broker::reconfigure(const Config& wanted) {
  auto later = parts_->keys.take_changes(parts_->config, parts_->given, wanted);
  parts_->given = wanted;
  spdlog::info("read the configuration again; data_auth {}", name_of(parts_->config.data_auth));
  parts_->set_connection_limits();
  parts_->topics.take_config();
  return later;
}

std::uint16_t Broker::port_of(std::string_view protocol) const {
  const auto found = parts_->protocols.find(protocol);
  return found == parts_->protocols.end() ? std::uint16_t{0} : found->second->port();
}

Outcome<void> Broker::run() {
  for (;;) {
    try {
      parts_->loop.run();
      return {};
    } catch (const std::bad_alloc&) {  // Nobody knows what was left undone: it begins anew.
      return Problem{Errc::no_memory, "no memory: the broker stops"};
    } catch (const std::exception& error) {  // No descriptor, for instance. Others go on.
      spdlog::critical("an event was lost: {}", error.what());
    }
  }
}

void Broker::stop() {
  boost::asio::post(parts_->loop, [this] { parts_->stop(); });
}

}  // namespace leat::broker
