// Listens at one port, on one or several addresses, or at a Unix socket.
//
//     auto acceptor = Acceptor::listen(loop, {"127.0.0.1", "::1"}, 5500, [&](Accepted accepted) { … });
//
// An address family that the machine does not have is left out, unless none is left. When the process has no
// descriptor for another connection, it tries again every 100 ms. A connection whose client the kernel does not name
// is closed unread. Belongs to the thread of its event loop.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "outcome/outcome.hpp"
#include "peer.hpp"

namespace leat::broker {

class Acceptor {
 public:
  using OnSocket = std::function<void(Accepted)>;

  // The port 0 is any that is free.
  //   busy         another program has the port
  //   permission, io_error
  static Outcome<std::unique_ptr<Acceptor>> listen(boost::asio::io_context& loop,
                                                   const std::vector<std::string>& addresses,
                                                   std::uint16_t port, OnSocket on_socket);
  // At a Unix socket, which is made; one that a broker left there is replaced. The directory is
  // locked meanwhile, if that takes no longer than a second. `make_room` is asked when no descriptor is left for a
  // connection; true: it has closed one.
  //   invalid_argument   the path is longer than 107 bytes, or something else is there
  //   busy               another process listens there
  //   permission, io_error
  static Outcome<std::unique_ptr<Acceptor>> listen_at(boost::asio::io_context& loop,
                                                      const std::string& path, OnSocket on_socket,
                                                      std::function<bool()> make_room = {});
  ~Acceptor();
  std::uint16_t port() const noexcept { return port_; }

 private:
  struct Listening;
  Acceptor() = default;
  static Outcome<std::unique_ptr<Acceptor>> listen_once(boost::asio::io_context& loop,
                                                        const std::vector<std::string>& addresses,
                                                        std::uint16_t port,
                                                        const OnSocket& on_socket);
  Outcome<void> add(boost::asio::io_context& loop,
                    const boost::asio::generic::stream_protocol::endpoint& endpoint,
                    const std::string& name, const OnSocket& on_socket);
  static void accept(const std::shared_ptr<Listening>& one);
  static void hand_over(const Listening& one, boost::asio::generic::stream_protocol::socket socket);

  std::vector<std::shared_ptr<Listening>> listening_;
  std::uint16_t port_ = 0;
};

}  // namespace leat::broker
