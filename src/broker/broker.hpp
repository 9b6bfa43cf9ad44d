// A broker: one event loop that serves clients of this machine, and of others, on topics in shared memory.
//
//     auto broker = Broker::start(config, protocols, show_password);
//     if (!broker) return fail(broker.problem());
//     (*broker)->run();                     // until stop(), which any thread may call
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "outcome/outcome.hpp"
#include "protocol.hpp"

namespace leat::broker {

class Broker {
 public:
  // Called at the first start, with the administrator's new password and the state directory.
  using ShowPassword =
      std::function<Outcome<void>(std::string_view password, const std::string& directory)>;

  // Opens the store, loads the topics and starts the protocols.
  //   busy   another broker has the state directory, or another program a port
  // With `on_hangup` it takes the process's signals, before its ports are open: at the first SIGTERM or SIGINT it stops,
  // at the second the process ends, and a SIGHUP calls `on_hangup`. All of that happens in run().
  static Outcome<std::unique_ptr<Broker>> start(const Config& config, const Protocols& protocols,
                                                const ShowPassword& show,
                                                std::function<void()> on_hangup = {});
  ~Broker();

  // Takes from another configuration what can change now, and returns the names of the keys that count from the next
  // start. Only within `on_hangup`.
  std::vector<std::string> reconfigure(const Config& wanted);
  // Serves until stop().
  //   no_memory   it has stopped, and all that it accepted is in its topics
  Outcome<void> run();
  void stop();
  // The main port of the protocol of that name; 0: it does not speak it.
  std::uint16_t port_of(std::string_view protocol) const;

 private:
  struct Parts;
  explicit Broker(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace leat::broker
