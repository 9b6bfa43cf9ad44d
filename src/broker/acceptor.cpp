#include "broker/acceptor.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <boost/asio/ip/v6_only.hpp>

namespace leat::broker {

namespace asio = boost::asio;
using asio::ip::tcp;

struct Acceptor::Listening {
  explicit Listening(asio::io_context& loop) : acceptor{loop}, pause{loop} {}
  tcp::acceptor acceptor;
  asio::steady_timer pause;
  OnSocket on_socket;
};

Outcome<std::unique_ptr<Acceptor>> Acceptor::listen(asio::io_context& loop,
                                                    const std::vector<std::string>& addresses,
                                                    std::uint16_t port, OnSocket on_socket) {
  std::unique_ptr<Acceptor> acceptor{new Acceptor};
  Problem problem{Errc::invalid_argument, "no address to listen at"};
  for (const std::string& text : addresses) {
    boost::system::error_code error;
    const tcp::endpoint endpoint{asio::ip::make_address(text, error), port};
    const auto one = std::make_shared<Listening>(loop);
    if (!error) one->acceptor.open(endpoint.protocol(), error);
    if (!error) one->acceptor.set_option(tcp::acceptor::reuse_address{true}, error);
    if (!error && endpoint.address().is_v6())
      one->acceptor.set_option(asio::ip::v6_only{true}, error);
    if (!error) one->acceptor.bind(endpoint, error);
    if (!error) one->acceptor.listen(asio::socket_base::max_listen_connections, error);
    if (error) {
      problem = {error == asio::error::address_in_use ? Errc::busy : Errc::io_error,
                 fmt::format("cannot listen at {} port {}: {}", text, port, error.message())};
      const bool has_no_family = error == asio::error::address_family_not_supported ||
                                 error == boost::system::errc::address_not_available;
      if (has_no_family) continue;
      return problem;
    }
    acceptor->port_ = one->acceptor.local_endpoint(error).port();  // Of 0, the one that was free.
    one->on_socket = on_socket;
    acceptor->listening_.push_back(one);
  }
  if (acceptor->listening_.empty()) return problem;
  for (const auto& one : acceptor->listening_) accept(one);
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
  one->acceptor.async_accept([one](const auto& error, tcp::socket socket) {
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
