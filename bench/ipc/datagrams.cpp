// Messages whose boundaries are kept: datagrams and message queues.
#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>

#include "leat/os/file.hpp"
#include "measure.hpp"
#include "message_queues.hpp"
#include "methods.hpp"

namespace leat::bench::ipc {
namespace {

using detail::Fd;

// A setting of the kernel; 0 if it cannot be read.
std::uint64_t setting(const char* path) {
  std::uint64_t value = 0;
  std::ifstream(path) >> value;
  return value;
}

// Repeats the call until it succeeds. EAGAIN and `not_now` mean that it has to wait.
template <class Call>
long repeat(const Call& call, int not_now, Spin& spin, const char* what) {
  while (true) {
    const long done = call();
    if (done >= 0) return done;
    if (errno == EAGAIN || errno == not_now) {
      spin.once();
    } else if (errno != EINTR) {
      throw system_failure(what);
    }
  }
}

// ---- Datagram sockets ---------------------------------------------------------------------------

struct Sockets {
  Fd sender, receiver;
};

template <int type>
Sockets unix_sockets() {
  std::array<int, 2> fds{};
  check(::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, fds.data()), "cannot make sockets");
  return {Fd{fds[0]}, Fd{fds[1]}};
}

// Each connected to the other, on ports that the kernel chooses.
Sockets udp_sockets() {
  std::array<Fd, 2> sockets;
  std::array<sockaddr_in, 2> addresses{};
  for (std::size_t i = 0; i < 2; ++i) {
    const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    check(fd, "cannot make a UDP socket");
    sockets[i] = Fd{fd};
    addresses[i].sin_family = AF_INET;
    addresses[i].sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const address = reinterpret_cast<sockaddr*>(&addresses[i]);
    socklen_t length = sizeof addresses[i];
    check(::bind(fd, address, length), "cannot bind a UDP socket");
    check(::getsockname(fd, address, &length), "cannot ask for a UDP socket's port");
  }
  for (std::size_t i = 0; i < 2; ++i) {
    check(::connect(sockets[i].get(), reinterpret_cast<sockaddr*>(&addresses[1 - i]),
                    sizeof addresses[0]),
          "cannot connect a UDP socket");
  }
  return {std::move(sockets[0]), std::move(sockets[1])};
}

// UDP drops what the receiver has no room for, so the receiver reports its progress: the sender's credit.
enum class Flow { of_the_kernel, by_credit };

template <Sockets (*make_sockets)(), Flow flow = Flow::of_the_kernel>
class DatagramChannel {
 public:
  explicit DatagramChannel(const Load& load) : load_{load}, sockets_{make_sockets()} { try_one(); }

  class Side {
   public:
    Side(const DatagramChannel& channel, End end)
        : load_{channel.load_},
          fd_{(end == End::sender ? channel.sockets_.sender : channel.sockets_.receiver).get()},
          flags_{load_.variant == Variant::spinning ? MSG_DONTWAIT : 0},
          with_credit_{flow == Flow::by_credit && load_.pattern != Pattern::pingpong},
          window_{channel.window()},
          memory_(load_.batch * load_.size),
          parts_(load_.batch),
          headers_(load_.batch) {
      for (std::size_t i = 0; i < load_.batch; ++i) {
        parts_[i] = {memory_.data() + i * load_.size, load_.size};
        headers_[i].msg_hdr.msg_iov = &parts_[i];
        headers_[i].msg_hdr.msg_iovlen = 1;
      }
    }

    void send(std::span<const std::byte> message) {
      if (load_.batch > 1) {
        std::memcpy(memory_.data() + waiting_++ * load_.size, message.data(), message.size());
        return;
      }
      wait_for_credit();
      transfer([&] { return ::send(fd_, message.data(), message.size(), flags_); });
      ++sent_;
    }

    void flush() {
      for (std::size_t done = 0; done < waiting_;) {
        const std::size_t room = wait_for_credit();
        const auto count = static_cast<unsigned>(std::min(waiting_ - done, room));
        const auto now = static_cast<std::size_t>(
            transfer([&] { return ::sendmmsg(fd_, headers_.data() + done, count, flags_); }));
        done += now;
        sent_ += now;
      }
      waiting_ = 0;
    }

    template <class Visit>
    std::size_t receive(std::size_t at_most, const Visit& visit) {
      const auto most = static_cast<unsigned>(std::min<std::size_t>(at_most, load_.batch));
      std::size_t count = 1;
      if (most == 1) {
        const auto size = transfer([&] { return ::recv(fd_, memory_.data(), load_.size, flags_); });
        visit(std::span<const std::byte>(memory_.data(), static_cast<std::size_t>(size)));
      } else {
        count = static_cast<std::size_t>(transfer([&] {
          return ::recvmmsg(fd_, headers_.data(), most, flags_ | MSG_WAITFORONE, nullptr);
        }));
        for (std::size_t i = 0; i < count; ++i) {
          visit(std::span<const std::byte>(memory_.data() + i * load_.size, headers_[i].msg_len));
        }
      }
      if (with_credit_) give_credit(count);
      return count;
    }

   private:
    template <class Call>
    long transfer(const Call& call) {
      // UDP reports a full queue by ENOBUFS.
      return repeat(call, ENOBUFS, spin_, "cannot send or receive a datagram");
    }

    // Returns how many may be sent now, at least 1. A credit message says how many have been received.
    std::size_t wait_for_credit() {
      if (!with_credit_) return load_.batch;
      while (sent_ - received_ >= window_) {
        std::uint64_t received = 0;
        transfer([&] { return ::recv(fd_, &received, sizeof received, flags_); });
        received_ = std::max(received_, received);
      }
      return static_cast<std::size_t>(window_ - (sent_ - received_));
    }

    void give_credit(std::size_t count) {
      received_ += count;
      if (received_ - acknowledged_ < (window_ + 1) / 2) return;
      acknowledged_ = received_;
      transfer([&] { return ::send(fd_, &received_, sizeof received_, flags_); });
    }

    const Load& load_;
    int fd_;
    int flags_;
    bool with_credit_;
    std::uint64_t window_;
    std::vector<std::byte> memory_;
    std::vector<iovec> parts_;
    std::vector<mmsghdr> headers_;
    std::size_t waiting_ = 0;  // Messages of the batch so far.
    std::uint64_t sent_ = 0;
    std::uint64_t received_ = 0;  // By this side, or by the other one as it reported.
    std::uint64_t acknowledged_ = 0;  // What the last credit message said.
    Spin spin_;
  };

 private:
  // The only way to find out what a socket can take is to try.
  void try_one() const {
    std::vector<std::byte> message(load_.size + 1);
    const ssize_t sent = ::send(sockets_.sender.get(), message.data(), load_.size, MSG_DONTWAIT);
    if (sent < 0 && (errno == EMSGSIZE || errno == ENOBUFS || errno == EAGAIN)) {
      throw NotSupported(flow == Flow::by_credit
                             ? "a UDP datagram has at most 65,507 bytes"
                             : fmt::format("one datagram is limited by the socket's send buffer "
                                           "(net.core.wmem_default is {} bytes)",
                                           setting("/proc/sys/net/core/wmem_default")));
    }
    check(sent, "cannot send a datagram");
    const ssize_t received =
        ::recv(sockets_.receiver.get(), message.data(), message.size(), MSG_DONTWAIT);
    if (received != static_cast<ssize_t>(load_.size)) {
      throw NotSupported("a datagram of this size does not arrive whole");
    }
  }

  // How many datagrams the receiver's queue has room for: each takes at most four times its size, and
  // about a kilobyte more.
  std::uint64_t window() const {
    int bytes = 0;
    socklen_t length = sizeof bytes;
    check(::getsockopt(sockets_.receiver.get(), SOL_SOCKET, SO_RCVBUF, &bytes, &length),
          "cannot ask for the size of a socket's queue");
    const std::uint64_t each = 4 * load_.size + 1024;
    return std::max<std::uint64_t>(static_cast<std::uint64_t>(bytes) / each, 1);
  }

  const Load& load_;
  Sockets sockets_;
};

// ---- System V message queues --------------------------------------------------------------------

// Removed by the destructor: the kernel keeps such a queue until somebody removes it.
class SystemVQueue {
 public:
  SystemVQueue() : id_{::msgget(IPC_PRIVATE, 0600)} {
    check(id_, "cannot make a System V message queue (ipcs -q lists those there are)");
  }
  ~SystemVQueue() { ::msgctl(id_, IPC_RMID, nullptr); }
  SystemVQueue(const SystemVQueue&) = delete;
  SystemVQueue& operator=(const SystemVQueue&) = delete;
  int id() const noexcept { return id_; }

 private:
  int id_;
};

class SystemVChannel {
 public:
  explicit SystemVChannel(const Load& load) : load_{load} {
    const std::uint64_t most = setting("/proc/sys/kernel/msgmax");
    if (load.size > most) {
      throw NotSupported(fmt::format("a message has at most {} bytes (kernel.msgmax)", most));
    }
  }

  class Side {
   public:
    Side(const SystemVChannel& channel, End end)
        : in_{(end == End::sender ? channel.back_ : channel.there_).id()},
          out_{(end == End::sender ? channel.there_ : channel.back_).id()},
          size_{channel.load_.size},
          flags_{channel.load_.variant == Variant::spinning ? IPC_NOWAIT : 0},
          outgoing_(sizeof(long) + size_),
          incoming_(sizeof(long) + size_) {
      const long type = 1;
      std::memcpy(outgoing_.data(), &type, sizeof type);
    }

    void send(std::span<const std::byte> message) {
      if (!message.empty()) {
        std::memcpy(outgoing_.data() + sizeof(long), message.data(), message.size());
      }
      transfer([&] { return ::msgsnd(out_, outgoing_.data(), size_, flags_); });
    }
    void flush() {}

    template <class Visit>
    std::size_t receive(std::size_t, const Visit& visit) {
      const long got = transfer([&] { return ::msgrcv(in_, incoming_.data(), size_, 0, flags_); });
      visit(std::span<const std::byte>(incoming_.data() + sizeof(long),
                                       static_cast<std::size_t>(got)));
      return 1;
    }

   private:
    template <class Call>
    long transfer(const Call& call) {
      return repeat(call, ENOMSG, spin_, "cannot use a System V message queue");
    }

    int in_;
    int out_;
    std::size_t size_;
    int flags_;
    std::vector<std::byte> outgoing_;
    std::vector<std::byte> incoming_;
    Spin spin_;
  };

 private:
  const Load& load_;
  SystemVQueue there_;
  SystemVQueue back_;
};

// ---- The message queues that `leat bench group --peers` measures, too --------------------------

template <QueueKind kind>
class QueueChannel {
 public:
  explicit QueueChannel(const Load& load) : load_{load}, there_{make(load)}, back_{make(load)} {}

  class Side {
   public:
    Side(const QueueChannel& channel, End end)
        : in_{*(end == End::sender ? channel.back_ : channel.there_)},
          out_{*(end == End::sender ? channel.there_ : channel.back_)},
          buffer_(channel.load_.size),
          spins_{channel.load_.variant == Variant::spinning} {}

    void send(std::span<const std::byte> message) {
      if (!spins_) {
        out_.send(message);
        return;
      }
      while (!out_.try_send(message)) spin_.once();
    }
    void flush() {}

    template <class Visit>
    std::size_t receive(std::size_t, const Visit& visit) {
      std::optional<std::size_t> size;
      if (!spins_) {
        size = in_.receive(buffer_);
      } else {
        while (!(size = in_.try_receive(buffer_))) spin_.once();
      }
      visit(std::span<const std::byte>(buffer_).first(*size));
      return 1;
    }

   private:
    MessageQueue& in_;
    MessageQueue& out_;
    std::vector<std::byte> buffer_;
    bool spins_;
    Spin spin_;
  };

 private:
  static std::unique_ptr<MessageQueue> make(const Load& load) {
    try {
      return make_queue(kind, load.size);
    } catch (const Failure& failure) {
      const std::uint64_t most =
          kind == QueueKind::mq_posix ? setting("/proc/sys/fs/mqueue/msgsize_max") : load.size;
      throw NotSupported(
          load.size <= most
              ? failure.what()
              : fmt::format("a message has at most {} bytes (fs.mqueue.msgsize_max)", most));
    }
  }

  const Load& load_;
  std::unique_ptr<MessageQueue> there_;
  std::unique_ptr<MessageQueue> back_;
};

}  // namespace

std::vector<Method> datagram_methods() {
  // The queue belongs to the kernel and outlives its users.
  constexpr Facts kInKernel{.shared = true, .survives_kill = true};
  // A process that is killed while it holds the queue's mutex stops all others.
  constexpr Facts kInMemory{.shared = true};
  return {
      {.name = "seqpacket",
       .measure = &measure_channel<DatagramChannel<unix_sockets<SOCK_SEQPACKET>>>,
       .batches = true},
      {.name = "dgram",
       .measure = &measure_channel<DatagramChannel<unix_sockets<SOCK_DGRAM>>>,
       .batches = true},
      {.name = "udp",
       .measure = &measure_channel<DatagramChannel<udp_sockets, Flow::by_credit>>,
       .batches = true},
      {.name = "mq-sysv", .measure = &measure_channel<SystemVChannel>, .facts = kInKernel},
      {.name = "mq-posix",
       .measure = &measure_channel<QueueChannel<QueueKind::mq_posix>>,
       .facts = kInKernel},
      {.name = "boost-mq",
       .measure = &measure_channel<QueueChannel<QueueKind::boost_mq>>,
       .facts = kInMemory},
  };
}

}  // namespace leat::bench::ipc
