#include "acceptor.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "leat/deadline.hpp"
#include "leat/os/os.hpp"
#include "stream.hpp"

namespace leat::broker {

namespace asio = boost::asio;
using StreamProtocol = asio::generic::stream_protocol;
using asio::ip::tcp;

struct Acceptor::Listening {
  explicit Listening(asio::io_context& loop) : acceptor{loop}, pause{loop} {}
  asio::basic_socket_acceptor<StreamProtocol> acceptor;
  asio::steady_timer pause;
  StreamProtocol::endpoint client;  // Of the connection that is accepted next.
  OnSocket on_socket;
  std::function<bool()> make_room;  // May be null.
  bool is_without = false;          // No descriptor is left for another connection.
};

namespace {

// Until the descriptor is closed. Goes on without a lock if it gets none: everybody who may read the directory can hold
// one for ever.
leat::os::Fd lock_directory_of(const std::string& path) {
  const std::string parent = std::filesystem::path{path}.parent_path().string();
  leat::os::Fd directory{
      ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  for (const Deadline deadline{std::chrono::seconds{1}}; directory && !deadline.passed();) {
    if (::flock(directory.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) break;
    leat::os::sleep_a_millisecond();
  }
  return directory;
}

}  // namespace

void Acceptor::hand_over(const Listening& one, StreamProtocol::socket socket) {
  boost::system::error_code error;
  const auto own = socket.local_endpoint(error);
  const auto peer = error ? std::nullopt : peer_of(one.client, own);
  if (!peer) return warn_of_client("a connection was closed: the kernel does not name its client");
  one.on_socket(Accepted{std::move(socket), *peer});
}

//   not_found   the machine does not have this address
Outcome<void> Acceptor::add(asio::io_context& loop, const StreamProtocol::endpoint& endpoint,
                            const std::string& name, const OnSocket& on_socket) {
  const auto one = std::make_shared<Listening>(loop);
  auto& acceptor = one->acceptor;
  const int family = endpoint.protocol().family();
  boost::system::error_code error;
  acceptor.open(endpoint.protocol(), error);
  if (!error && family != AF_UNIX) acceptor.set_option(tcp::acceptor::reuse_address{true}, error);
  if (!error && family == AF_INET6) acceptor.set_option(asio::ip::v6_only{true}, error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    const bool is_missing = error == asio::error::address_family_not_supported ||
                            error == boost::system::errc::address_not_available;
    return Problem{is_missing                             ? Errc::not_found
                   : error == asio::error::address_in_use ? Errc::busy
                                                          : Errc::io_error,
                   fmt::format("cannot listen at {}: {}", name, error.message())};
  }
  if (family != AF_UNIX) {
    const auto own = acceptor.local_endpoint(error);
    tcp::endpoint bound;
    std::memcpy(bound.data(), own.data(), std::min(own.size(), bound.capacity()));
    port_ = bound.port();
  }
  one->on_socket = on_socket;
  listening_.push_back(one);
  return {};
}

Outcome<std::unique_ptr<Acceptor>> Acceptor::listen(asio::io_context& loop,
                                                    const std::vector<std::string>& addresses,
                                                    std::uint16_t port, OnSocket on_socket) {
  constexpr int kAttempts = 20;
  for (int attempt = 1;; ++attempt) {
    auto acceptor = listen_once(loop, addresses, port, on_socket);
    // The one that is free at the first address may be taken at the next.
    const bool is_worth_another =
        !acceptor && port == 0 && acceptor.problem().code == Errc::busy && attempt < kAttempts;
    if (!is_worth_another) return acceptor;
  }
}

Outcome<std::unique_ptr<Acceptor>> Acceptor::listen_once(asio::io_context& loop,
                                                         const std::vector<std::string>& addresses,
                                                         std::uint16_t port,
                                                         const OnSocket& on_socket) {
  std::unique_ptr<Acceptor> acceptor{new Acceptor};
  Problem problem{Errc::invalid_argument, "no address to listen at"};
  for (const std::string& text : addresses) {
    boost::system::error_code error;
    const auto address = asio::ip::make_address(text, error);
    if (error) return Problem{Errc::invalid_argument, text + " is no address"};
    const std::uint16_t wanted = port != 0 ? port : acceptor->port_;
    auto added = acceptor->add(loop, tcp::endpoint{address, wanted},
                               fmt::format("{} port {}", text, wanted), on_socket);
    if (added) continue;
    problem = added.problem();
    if (problem.code != Errc::not_found) return problem;
  }
  if (acceptor->listening_.empty()) return problem;
  for (const auto& one : acceptor->listening_) accept(one);
  return acceptor;
}

Outcome<std::unique_ptr<Acceptor>> Acceptor::listen_at(asio::io_context& loop,
                                                       const std::string& path, OnSocket on_socket,
                                                       std::function<bool()> make_room) {
  constexpr std::size_t kLongest = 107;
  if (path.size() > kLongest)
    return Problem{Errc::invalid_argument,
                   fmt::format("the path of a socket has at most {} bytes: {}", kLongest, path)};
  // Of those that begin at once, the second one is to find the socket of the first, and not to delete it.
  const auto lock = lock_directory_of(path);
  std::error_code ignored;
  const auto there = std::filesystem::symlink_status(path, ignored).type();
  const asio::local::stream_protocol::endpoint place{path};
  if (there == std::filesystem::file_type::socket) {
    asio::local::stream_protocol::socket probe{loop};
    boost::system::error_code refusal;
    probe.open(place.protocol(), refusal);
    if (!refusal) probe.non_blocking(true, refusal);
    if (!refusal) probe.connect(place, refusal);
    const bool is_full = refusal == asio::error::would_block || refusal == asio::error::try_again ||
                         refusal == asio::error::no_buffer_space;
    if (!refusal || is_full) return Problem{Errc::busy, "another process listens at " + path};
    if (refusal != asio::error::connection_refused)  // So says one whose broker is gone.
      return Problem{Errc::io_error,
                     fmt::format("cannot tell whether {} is in use: {}", path, refusal.message())};
    std::filesystem::remove(path, ignored);
  } else if (there != std::filesystem::file_type::not_found) {
    return Problem{Errc::invalid_argument, path + " is there, and is no socket"};
  }
  std::unique_ptr<Acceptor> acceptor{new Acceptor};
  auto added = acceptor->add(loop, place, path, on_socket);
  if (!added) return added.problem();
  acceptor->listening_.front()->make_room = std::move(make_room);
  accept(acceptor->listening_.front());
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
  one->client = {};
  one->acceptor.async_accept(one->client, [one](const auto& error, StreamProtocol::socket socket) {
    if (!one->on_socket) return;
    if (!error) {
      if (std::exchange(one->is_without, false)) spdlog::info("connections are accepted again");
      hand_over(*one, std::move(socket));
      return accept(one);
    }
    const bool is_of_the_client =
        error == asio::error::connection_aborted || error == asio::error::interrupted;
    if (is_of_the_client) return accept(one);
    if (error == asio::error::no_descriptors && one->make_room && one->make_room())
      return accept(one);
    if (!std::exchange(one->is_without, true))
      spdlog::warn("cannot accept connections: {}", error.message());
    one->pause.expires_after(std::chrono::milliseconds{100});
    one->pause.async_wait([one](const auto&) {
      if (one->on_socket) accept(one);
    });
  });
}

}  // namespace leat::broker
