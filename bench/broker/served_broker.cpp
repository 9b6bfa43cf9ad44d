#include "served_broker.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tool/program.hpp"

namespace leat::bench::broker {
namespace {

using Json = nlohmann::json;
constexpr char kUser[] = "producer";
constexpr char kPassword[] = "measured here";
constexpr std::chrono::seconds kPatience{60};

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

std::string admin_password(const Places& places) {
  std::ifstream file{places.state() + "/admin-password"};
  std::string password;
  std::getline(file, password);
  return password;
}

std::string last_line_of(const std::string& path) {
  std::ifstream file{path};
  std::string last;
  for (std::string line; std::getline(file, line);) last = line;
  return last;
}

}  // namespace

// --- ServedBroker --------------------------------------------------------------------------------

ServedBroker::ServedBroker(const Places& places) : port_{free_port()} {
  child_ = std::make_unique<Child>("leat-serve", kAnyCpu, [&] { run_broker(places, port_); });
  Administration administration{*this};
  for (const auto end = std::chrono::steady_clock::now() + kPatience;
       !administration.answers_soon();) {
    if (child_->has_ended()) {
      child_->check_end();
      throw Failure(fmt::format("leat-serve ended: {}", last_line_of(places.log())));
    }
    if (std::chrono::steady_clock::now() >= end) throw Failure("leat-serve does not answer");
  }
  admin_password_ = admin_password(places);
}

ServedBroker::Memory ServedBroker::memory() const {
  std::ifstream file{fmt::format("/proc/{}/status", child_->pid())};
  Memory memory;
  for (std::string name; file >> name;) {
    std::uint64_t kib = 0;
    if (name == "RssAnon:" || name == "RssFile:" || name == "RssShmem:") file >> kib;
    (name == "RssShmem:" ? memory.topics_bytes : memory.own_bytes) += kib * 1024;
  }
  return memory;
}

// --- Administration ------------------------------------------------------------------------------

Administration::Administration(const ServedBroker& broker) : broker_{broker} {
  socket_.connect({.uri = fmt::format("tcp://127.0.0.1:{}", broker.port_)});
}

void Administration::send(const std::string& text) { socket_.send(std::as_bytes(std::span{text})); }

std::string Administration::receive(std::chrono::milliseconds time) {
  const auto message = socket_.next(time);
  return message ? std::string{reinterpret_cast<const char*>(message->data()), message->size()}
                 : std::string{};
}

bool Administration::answers_soon() {
  if (!has_asked_) send(R"({"cmd": "ping"})");
  has_asked_ = true;
  return !receive(std::chrono::milliseconds{10}).empty();
}

Json Administration::ask(const Json& request) {
  send(request.dump());
  const Json answer = Json::parse(receive(kPatience), nullptr, false);
  if (!answer.is_object() || answer.value("status", "") != "ok")
    throw Failure(fmt::format("the broker answers {}", answer.dump()));
  return answer;
}

void Administration::create_topic(const std::string& topic, const std::string& type,
                                  const std::string& slow_subscribers) {
  Json request = {{"cmd", "create_topic"},
                  {"admin_user_id", "lightq_admin"},
                  {"admin_password", broker_.admin_password_},
                  {"topic", topic},
                  {"user_id", kUser},
                  {"password", kPassword},
                  {"broker_type", type}};
  if (!slow_subscribers.empty()) request["slow_subscribers"] = slow_subscribers;
  ask(request);
}

Endpoint Administration::join(const std::string& topic, const char* role, bool is_raw) {
  const Json answer = ask({{"cmd", "join"},
                           {"topic", topic},
                           {"user_id", kUser},
                           {"password", kPassword},
                           {"type", role},
                           {"connection_type", is_raw ? "socket" : "zmq"},
                           {"leat", 1}});
  const std::string uri = answer.at("bind_uri");
  if (!is_raw) return {uri, kUser, kPassword};
  return {uri, "", Json{{"type", role}, {"token", answer.at("token")}}.dump()};
}

bool Administration::lets_in(const std::string& topic, const std::string& password) {
  send(Json{{"cmd", "stats"}, {"topic", topic}, {"user_id", kUser}, {"password", password}}.dump());
  const Json answer = Json::parse(receive(kPatience), nullptr, false);
  if (!answer.is_object()) throw Failure("the broker does not answer a login");
  return answer.value("status", "") == "ok";
}

std::unique_ptr<RawSocket> raw_client(const Endpoint& endpoint, std::size_t buffer_bytes,
                                      std::size_t read_bytes) {
  const auto port = std::stoul(endpoint.uri.substr(endpoint.uri.rfind(':') + 1));
  return std::make_unique<RawSocket>(static_cast<std::uint16_t>(port), endpoint.password,
                                     buffer_bytes, read_bytes);
}

}  // namespace leat::bench::broker
