#include "connection.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

namespace leat::lightq {
namespace {

// Rounded up, so that a wait does not end just before its deadline, again and again.
int poll_ms(const Deadline& deadline) {
  constexpr std::int64_t kMost = 60'000;
  if (deadline.is_immediate()) return 0;
  if (deadline.is_never()) return -1;
  const std::int64_t left_ns = deadline.at_ns() - os::now_ns();
  return static_cast<int>(std::clamp<std::int64_t>((left_ns + 999'999) / 1'000'000, 0, kMost));
}

// False: the deadline has passed, or a stop was requested.
bool wait_for(int socket, short events, const Patience& patience) {
  for (;;) {
    if (patience.stop.stop_requested()) return false;
    pollfd item{.fd = socket, .events = events, .revents = 0};
    const int ready = ::poll(&item, 1, poll_ms(patience.deadline));
    if (ready > 0) return true;
    if (ready == 0 && patience.deadline.passed()) return false;
  }
}

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

Outcome<Addresses> look_up(const Address& address, const std::string& name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error =
      ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (error != 0)
    return Problem{Errc::not_found, "cannot reach " + name + ": " + ::gai_strerror(error)};
  return Addresses{found, &::freeaddrinfo};
}

void set(int socket, int level, int option, int value) noexcept {
  (void)::setsockopt(socket, level, option, &value,
                     sizeof value);  // Works without, only less well.
}

Problem give_up(const std::string& name, const Patience& patience, const std::string& what) {
  if (patience.stop.stop_requested()) return {Errc::stopped, "stopped; " + name + ": " + what};
  return {Errc::timeout, name + ": " + what + " in time"};
}

// Returns 0, or the reason.
int connect_to(int socket, const addrinfo& to, const Patience& patience) {
  if (::connect(socket, to.ai_addr, to.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  if (!wait_for(socket, POLLOUT, patience)) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

}  // namespace

Outcome<Connection> Connection::open(const Address& address, Sends sends,
                                     const Patience& patience) {
  const std::string name = "the broker at " + address.text();
  const auto found = look_up(address, name);
  if (!found) return found.problem();
  int error = ENOENT;
  for (const addrinfo* one = found->get(); one != nullptr; one = one->ai_next) {
    os::Fd socket{::socket(one->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
    error = socket ? connect_to(socket.get(), *one, patience) : errno;
    if (error != 0) continue;
    if (sends == Sends::at_once) set(socket.get(), IPPROTO_TCP, TCP_NODELAY, 1);
    // A machine that has vanished is noticed within two minutes.
    set(socket.get(), SOL_SOCKET, SO_KEEPALIVE, 1);
    set(socket.get(), IPPROTO_TCP, TCP_KEEPIDLE, 60);
    set(socket.get(), IPPROTO_TCP, TCP_KEEPINTVL, 15);
    set(socket.get(), IPPROTO_TCP, TCP_KEEPCNT, 4);
    return Connection{std::move(socket), name};
  }
  if (error == ETIMEDOUT) return give_up(name, patience, "no connection");
  const bool is_absent = error == ECONNREFUSED || error == EHOSTUNREACH || error == ENETUNREACH;
  return Problem{is_absent ? Errc::not_found : Errc::io_error,
                 "cannot reach " + name + ": " + std::strerror(error) +
                     (error == ECONNREFUSED ? "; is it running, and is the port right?" : "")};
}

Connection::Connection(os::Fd socket, std::string name)
    : name_{std::move(name)}, socket_{std::move(socket)} {
  (void)::fcntl(socket_.get(), F_SETFL, O_NONBLOCK);
}

Outcome<void> Connection::send(std::string_view bytes, const Patience& patience) {
  while (!bytes.empty()) {
    const auto sent = send_some(bytes);
    if (!sent) return sent.problem();
    bytes.remove_prefix(*sent);
    if (!bytes.empty() && !wait_for(socket_.get(), POLLOUT, patience))
      return gave_up(patience, "it takes nothing more");
  }
  return {};
}

Outcome<std::size_t> Connection::send_some(std::string_view bytes) {
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    const ::ssize_t count =
        ::send(socket_.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (count >= 0) {
      sent += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != EINTR) {
      return ended(errno);
    }
  }
  return sent;
}

Outcome<std::size_t> Connection::receive_some(std::byte* to, std::size_t size) {
  for (;;) {
    const ::ssize_t count = ::recv(socket_.get(), to, size, 0);
    if (count > 0) return static_cast<std::size_t>(count);
    if (count == 0) return ended(0);
    if (errno == EAGAIN) return std::size_t{0};
    if (errno != EINTR) return ended(errno);
  }
}

bool Connection::wait_readable(const Patience& patience, bool or_writable) {
  const int events = or_writable ? POLLIN | POLLOUT : POLLIN;
  return wait_for(socket_.get(), static_cast<short>(events), patience);
}

void Connection::end_sending() noexcept { (void)::shutdown(socket_.get(), SHUT_WR); }

Problem Connection::gave_up(const Patience& patience, const std::string& what) const {
  return give_up(name_, patience, what);
}

Problem Connection::ended(int error) const {
  const bool is_end = error == 0 || error == EPIPE || error == ECONNRESET;
  return {is_end ? Errc::closed : Errc::io_error,
          name_ + " ended the connection" +
              (is_end ? "" : std::string{" ("} + std::strerror(error) + ")")};
}

}  // namespace leat::lightq
