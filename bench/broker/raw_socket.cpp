#include "raw_socket.hpp"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "lightq/server/raw_frame.hpp"

namespace leat::bench::broker {

namespace raw = leat::broker::raw;

namespace {

constexpr std::chrono::seconds kPatience{20};

}  // namespace

RawSocket::RawSocket(std::uint16_t port, const std::string& hello, std::size_t buffer_bytes,
                     std::size_t read_bytes)
    : socket_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)},
      buffer_bytes_{buffer_bytes},
      received_(read_bytes) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    throw system_failure("cannot connect");
  const int on = 1;
  ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (hello.empty()) return;
  send(std::as_bytes(std::span{hello}));
  flush();
  const auto answer = next(kPatience);
  if (!answer) throw Failure("the broker does not answer a hello");
  const std::string_view text{reinterpret_cast<const char*>(answer->data()), answer->size()};
  if (text.find("\"ok\"") == text.npos) throw Refused("the broker answers " + std::string{text});
}

void RawSocket::send(std::span<const std::byte> message) {
  raw::append_frame(outgoing_, Bytes{message.data(), message.size()});
  if (outgoing_.size() >= buffer_bytes_) flush();
}

void RawSocket::flush() {
  for (std::size_t sent = 0; sent < outgoing_.size();) {
    const ::ssize_t count =
        ::send(socket_.get(), outgoing_.data() + sent, outgoing_.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw system_failure("cannot send");
    sent += static_cast<std::size_t>(count);
  }
  outgoing_.clear();
}

std::optional<std::span<const std::byte>> RawSocket::next(std::chrono::milliseconds time) {
  for (;;) {
    const raw::Frame frame = raw::front_frame(Bytes{received_.data() + begin_, end_ - begin_});
    if (frame.needed == 0) {
      begin_ += raw::kLengthBytes + frame.length;
      return std::span{frame.payload.data(), frame.payload.size()};
    }
    if (received_.size() < frame.needed) received_.resize(frame.needed);
    if (!receive(time)) return std::nullopt;
  }
}

bool RawSocket::receive(std::chrono::milliseconds time) {
  if (begin_ != 0) std::memmove(received_.data(), received_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  for (;;) {
    const ::ssize_t count = ::recv(socket_.get(), received_.data() + end_, received_.size() - end_,
                                   MSG_DONTWAIT);
    if (count > 0) {
      end_ += static_cast<std::size_t>(count);
      return true;
    }
    if (count == 0) throw Failure("the other side has closed");
    if (errno == EINTR) continue;
    if (errno != EAGAIN) throw system_failure("cannot receive");
    pollfd item{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    if (time.count() == 0 || ::poll(&item, 1, static_cast<int>(time.count())) == 0) return false;
  }
}

}  // namespace leat::bench::broker
