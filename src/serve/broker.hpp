// A broker: one event loop that serves the clients of one machine, and others, on topics in shared memory.
//
//     auto broker = Broker::start(config, show_password);
//     if (!broker) return fail(broker.problem());
//     (*broker)->run();                     // until stop(), which any thread may call
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "broker/config/config.hpp"
#include "outcome/outcome.hpp"

namespace leat::broker {

class Broker {
 public:
  // Called at the first start, with the administrator's new password and the state directory.
  using ShowPassword =
      std::function<Outcome<void>(std::string_view password, const std::string& directory)>;

  // Opens the store and all ports.
  //   busy   another broker has the state directory, or another program a port
  // With `on_hangup` it takes the process's signals, before its ports are open: at the first SIGTERM or SIGINT it stops,
  // at the second the process ends, and a SIGHUP calls `on_hangup`. All of that happens in run().
  static Outcome<std::unique_ptr<Broker>> start(const Config& config, const ShowPassword& show,
                                                std::function<void()> on_hangup = {});
  ~Broker();

  // Takes from another configuration what can change now, and returns the names of the keys that count from the next
  // start. Only within `on_hangup`.
  std::vector<std::string> reconfigure(const Config& wanted);
  // Serves until stop().
  //   no_space   no memory: it has stopped, and all that it accepted is in its topics
  Outcome<void> run();
  void stop();
  std::uint16_t lightq_port() const noexcept;

 private:
  struct Parts;
  explicit Broker(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace leat::broker
