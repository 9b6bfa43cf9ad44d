#include "broker/acceptor.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <cstring>
#include <filesystem>

namespace leat::broker {

namespace asio = boost::asio;
using Protocol = asio::generic::stream_protocol;
using asio::ip::tcp;

struct Acceptor::Listening {
  explicit Listening(asio::io_context& loop) : acceptor{loop}, pause{loop} {}
  asio::basic_socket_acceptor<Protocol> acceptor;
  asio::steady_timer pause;
  OnSocket on_socket;
};

//   not_found   the machine does not have this address
Outcome<std::shared_ptr<Acceptor::Listening>> Acceptor::open(asio::io_context& loop,
                                                             const Protocol::endpoint& endpoint,
                                                             const std::string& name) {
  auto one = std::make_shared<Listening>(loop);
  auto& acceptor = one->acceptor;
  const int family = endpoint.protocol().family();
  boost::system::error_code error;
  acceptor.open(endpoint.protocol(), error);
  if (!error && family != AF_UNIX) acceptor.set_option(tcp::acceptor::reuse_address{true}, error);
  if (!error && family == AF_INET6) acceptor.set_option(asio::ip::v6_only{true}, error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (!error) return one;
  const bool is_missing = error == asio::error::address_family_not_supported ||
                          error == boost::system::errc::address_not_available;
  return Problem{is_missing                              ? Errc::not_found
                 : error == asio::error::address_in_use ? Errc::busy
                                                        : Errc::io_error,
                 fmt::format("cannot listen at {}: {}", name, error.message())};
}

Outcome<std::unique_ptr<Acceptor>> Acceptor::listen(asio::io_context& loop,
                                                    const std::vector<std::string>& addresses,
                                                    std::uint16_t port, OnSocket on_socket) {
  std::unique_ptr<Acceptor> acceptor{new Acceptor};
  Problem problem{Errc::invalid_argument, "no address to listen at"};
  for (const std::string& text : addresses) {
    boost::system::error_code error;
    const auto address = asio::ip::make_address(text, error);
    if (error) return Problem{Errc::invalid_argument, text + " is no address"};
    auto one = open(loop, tcp::endpoint{address, port}, fmt::format("{} port {}", text, port));
    if (!one) {
      problem = one.problem();
      if (problem.code == Errc::not_found) continue;
      return problem;
    }
    tcp::endpoint own;
    const Protocol::endpoint bound = (*one)->acceptor.local_endpoint(error);
    if (bound.size() <= own.capacity()) std::memcpy(own.data(), bound.data(), bound.size());
    acceptor->port_ = own.port();  // Of 0, the one that was free.
    (*one)->on_socket = on_socket;
    acceptor->listening_.push_back(*one);
  }
  if (acceptor->listening_.empty()) return problem;
  for (const auto& one : acceptor->listening_) accept(one);
  return acceptor;
}

Outcome<std::unique_ptr<Acceptor>> Acceptor::listen_at(asio::io_context& loop,
                                                       const std::string& path,
                                                       OnSocket on_socket) {
  constexpr std::size_t kLongest = 107;
  if (path.size() > kLongest)
    return Problem{Errc::invalid_argument,
                   fmt::format("the path of a socket has at most {} bytes: {}", kLongest, path)};
  std::error_code ignored;
  const auto there = std::filesystem::symlink_status(path, ignored).type();
  if (there == std::filesystem::file_type::socket) {
    std::filesystem::remove(path, ignored);
  } else if (there != std::filesystem::file_type::not_found) {
    return Problem{Errc::invalid_argument, path + " is there, and is no socket"};
  }
  auto one = open(loop, asio::local::stream_protocol::endpoint{path}, path);
  if (!one) return one.problem();
  std::unique_ptr<Acceptor> acceptor{new Acceptor};
  (*one)->on_socket = std::move(on_socket);
  acceptor->listening_.push_back(*one);
  accept(*one);
  return acceptor;
}

Acceptor::~Acceptor() {
  for (const auto& one : listening_) {
    one->on_socket = nullptr;
    boost::system::error_code ignored;
    one->acceptor.close(ignored);
    one->pause.cancel();
  }
}

void Acceptor::accept(const std::shared_ptr<Listening>& one) {
  one->acceptor.async_accept([one](const auto& error, Stream::Socket socket) {
    if (!one->on_socket) return;
    if (!error) {
      one->on_socket(std::move(socket));
      return accept(one);
    }
    const bool is_of_the_client =
        error == asio::error::connection_aborted || error == asio::error::interrupted;
    if (is_of_the_client) return accept(one);
    spdlog::warn("cannot accept a connection: {}", error.message());
    one->pause.expires_after(std::chrono::milliseconds{100});
    one->pause.async_wait([one](const auto&) {
      if (one->on_socket) accept(one);
    });
  });
}

}  // namespace leat::broker
