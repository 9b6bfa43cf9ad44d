#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "bench/broker/raw_socket.hpp"
#include "bench/broker/route.hpp"
#include "tool/program.hpp"

namespace leat::bench::broker {
namespace {

using Json = nlohmann::json;
constexpr char kTopic[] = "measured";
constexpr char kUser[] = "producer";
constexpr char kPassword[] = "measured here";
constexpr std::chrono::seconds kPatience{20};

// For the administration; those of the topic's follow. Somebody may take one before the broker does.
std::uint16_t free_port() {
  boost::asio::io_context loop;
  using boost::asio::ip::tcp;
  const tcp::acceptor probe{loop, tcp::endpoint{boost::asio::ip::address_v4::loopback(), 0}};
  return probe.local_endpoint().port();
}

[[noreturn]] void run_broker(const Places& places, std::uint16_t port) {
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  const int log = ::open(places.log().c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO}) ::dup2(null, stream);
  ::dup2(log, STDERR_FILENO);
  const std::string executable = tool::directory_of_executable() + "leat-serve";
  const std::string number = std::to_string(port);
  const std::string range = fmt::format("{}-{}", port < 65'000 ? port + 1 : port - 500,
                                        port < 65'000 ? port + 500 : port - 1);
  ::execl(executable.c_str(), "leat-serve", "--dir", places.topics.c_str(), "--data-dir",
          places.data.c_str(), "--state-dir", places.state().c_str(), "--lightq-port",
          number.c_str(), "--lightq-data-ports", range.c_str(), nullptr);
  throw NotSupported(fmt::format("cannot run {}: {}; `make serve` in Leat's sources builds it",
                                 executable, std::strerror(errno)));
}

// The administration of that broker.
class Administration {
 public:
  explicit Administration(std::uint16_t port) {
    socket_.connect({.uri = fmt::format("tcp://127.0.0.1:{}", port)});
  }

  // Whether it is there.
  bool answers_soon() {
    if (!has_asked_) send(R"({"cmd": "ping"})");
    has_asked_ = true;
    return !receive(std::chrono::milliseconds{10}).empty();
  }
  Json ask(const Json& request) {
    send(request.dump());
    const Json answer = Json::parse(receive(kPatience), nullptr, false);
    if (!answer.is_object() || answer.value("status", "") != "ok")
      throw Failure(fmt::format("the broker answers {}", answer.dump()));
    return answer;
  }

 private:
  void send(const std::string& text) { socket_.send(std::as_bytes(std::span{text})); }
  std::string receive(std::chrono::milliseconds time) {
    const auto message = socket_.next(time);
    return message ? std::string{reinterpret_cast<const char*>(message->data()), message->size()}
                   : std::string{};
  }

  ZeromqSocket socket_{ZMQ_REQ};
  bool has_asked_ = false;
};

std::string admin_password(const Places& places) {
  std::ifstream file{places.state() + "/admin-password"};
  std::string password;
  std::getline(file, password);
  return password;
}

// Its "password" is the hello.
std::unique_ptr<RawSocket> raw_socket(const Endpoint& endpoint, bool at_once) {
  const auto port = std::stoul(endpoint.uri.substr(endpoint.uri.rfind(':') + 1));
  return std::make_unique<RawSocket>(static_cast<std::uint16_t>(port), endpoint.password,
                                     raw_buffer_bytes(at_once));
}

std::string last_line_of(const std::string& path) {
  std::ifstream file{path};
  std::string last;
  for (std::string line; std::getline(file, line);) last = line;
  return last;
}

}  // namespace

ServedTopic::ServedTopic(const Places& places, const std::string& type, const Framing& framing,
                         bool at_once)
    : framing_{framing}, at_once_{at_once} {
  const std::uint16_t port = free_port();
  child_ = std::make_unique<Child>("leat-serve", kAnyCpu,
                                   [&places, port] { run_broker(places, port); });
  Administration administration{port};
  for (const auto end = std::chrono::steady_clock::now() + kPatience;
       !administration.answers_soon();) {
    if (child_->has_ended()) {
      child_->check_end();
      throw Failure(fmt::format("leat-serve ended: {}", last_line_of(places.log())));
    }
    if (std::chrono::steady_clock::now() >= end) throw Failure("leat-serve does not answer");
  }
  administration.ask({{"cmd", "create_topic"},
                      {"admin_user_id", "lightq_admin"},
                      {"admin_password", admin_password(places)},
                      {"topic", kTopic},
                      {"user_id", kUser},
                      {"password", kPassword},
                      {"broker_type", type}});
  const auto join = [&](const char* role, bool is_raw) -> Endpoint {
    const Json answer = administration.ask({{"cmd", "join"},
                                            {"topic", kTopic},
                                            {"user_id", kUser},
                                            {"password", kPassword},
                                            {"type", role},
                                            {"connection_type", is_raw ? "socket" : "zmq"},
                                            {"leat", 1}});
    const std::string uri = answer.at("bind_uri");
    if (!is_raw) return {uri, kUser, kPassword};
    return {uri, "", Json{{"type", role}, {"token", answer.at("token")}}.dump()};
  };
  consumers_ = join("pull", framing.is_raw_out);
  producers_ = join("pub", framing.is_raw_in);
}

std::unique_ptr<ConsumerEnd> ServedTopic::consumer(std::uint32_t /*index*/) {
  if (framing_.is_raw_out) return raw_socket(consumers_, at_once_);
  return connected_socket(ZMQ_PULL, consumers_);
}

std::unique_ptr<ProducerEnd> ServedTopic::producer() {
  if (framing_.is_raw_in) return raw_socket(producers_, at_once_);
  return connected_socket(ZMQ_PUSH, producers_);
}

std::uint64_t ServedTopic::cpu_ns() const { return cpu_ns_of(*child_); }

}  // namespace leat::bench::broker
