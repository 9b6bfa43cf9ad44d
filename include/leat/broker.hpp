// A broker in a thread of your program, as `leat serve` is one in a process of its own.
//
//     leat::BrokerProblem problem;
//     auto broker = leat::Broker::start({.settings = {{"lightq.port", "0"}, {"data_auth", "joined"}}}, problem);
//     if (broker == nullptr) return fail(problem.sentence);
//     connect_to("127.0.0.1", broker->lightq_port());
//     broker->stop();
//
// Needs the library `leat-broker` (pkg-config) or `leat::broker` (CMake), unlike everything else here. It logs through
// spdlog's default logger. What its clients can do: docs/guide/broker.md.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "leat/result.hpp"

namespace leat::inline v0 {

struct BrokerOptions {
  // Keys of the configuration with their values, as `leat serve --help` lists them: {"lightq.port", "5600"}. They
  // override the file. Port 0 means any free port. `log.level` and `log.file` have no effect: the log is yours.
  std::vector<std::pair<std::string, std::string>> settings = {};
  // A file with the configuration, in TOML; empty: none.
  std::string file = {};
  // Called by start() if the state directory has no administrator yet, with the new user and password. Without it, the
  // password is written to the file `admin-password` in the state directory, which only its owner may read.
  std::function<void(std::string_view user, std::string_view password)> on_first_start = {};
};

// Why a broker did not start.
struct BrokerProblem {
  Errc code = Errc::ok;
  std::string sentence;  // What is wrong and what would be right, for a person.
};

// May be used by any thread, by one at a time. Not after fork().
class Broker {
 public:
  // Opens its store and its ports, and serves in a thread of its own. Null after an error:
  //   invalid_argument   a setting, or a line of the file
  //   not_found          the file, or a setting of that name
  //   busy               another broker has the state directory, or another program the port
  //   permission, corrupt, wrong_format, no_space, io_error
  static std::unique_ptr<Broker> start(const BrokerOptions& options, BrokerProblem& problem);
  // As stop().
  ~Broker();
  Broker(const Broker&) = delete;
  Broker& operator=(const Broker&) = delete;

  // The port of the administration.
  std::uint16_t lightq_port() const noexcept;
  // Closes all connections, publishes what clients sent to a full topic if room comes within 2 s, and ends the thread.
  void stop() noexcept;
  // False once it has stopped, even by itself for lack of memory.
  bool is_running() const noexcept;

 private:
  struct Parts;
  explicit Broker(std::unique_ptr<Parts> parts) noexcept;
  std::unique_ptr<Parts> parts_;
};

}  // namespace leat::inline v0
