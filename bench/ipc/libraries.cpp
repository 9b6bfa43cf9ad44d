// Messaging libraries: ZeroMQ and nng, one pair of sockets each. Their threads and sockets do not
// survive a fork, so each process makes its own; the receiver binds to a name that only these two
// processes know.
#include <fmt/format.h>
#include <nng/nng.h>
#include <nng/protocol/pair0/pair.h>
#include <sched.h>
#include <unistd.h>
#include <zmq.h>

#include <boost/version.hpp>
#include <cerrno>
#include <memory>

#include "measure.hpp"
#include "methods.hpp"

namespace leat::bench::ipc {
namespace {

// For an abstract socket, which has no file.
std::string unused_name() {
  static int count = 0;
  return fmt::format("leat-bench-{}-{}", ::getpid(), ++count);
}

// While it lives, this thread may run on all CPUs, and so may the threads that a library starts then:
// they should not compete for the CPU of the side that they work for.
class Unpinned {
 public:
  Unpinned() {
    cpu_set_t all;
    is_on_ = ::sched_getaffinity(0, sizeof own_, &own_) == 0 &&
             ::sched_getaffinity(::getppid(), sizeof all, &all) == 0 &&
             ::sched_setaffinity(0, sizeof all, &all) == 0;
  }
  ~Unpinned() {
    if (is_on_) ::sched_setaffinity(0, sizeof own_, &own_);
  }
  Unpinned(const Unpinned&) = delete;
  Unpinned& operator=(const Unpinned&) = delete;

 private:
  cpu_set_t own_{};
  bool is_on_ = false;
};

// ---- ZeroMQ -------------------------------------------------------------------------------------

enum class Transport { ipc, tcp };

Failure zeromq_failure(const char* what) {
  return Failure(fmt::format("ZeroMQ cannot {}: {}", what, ::zmq_strerror(::zmq_errno())));
}

template <Transport transport>
class ZeromqChannel {
 public:
  explicit ZeromqChannel(const Load& load)
      : load_{load}, name_{transport == Transport::ipc ? "ipc://@" + unused_name() : ""} {}

  class Side {
   public:
    Side(const ZeromqChannel& channel, End end)
        : flags_{channel.load_.variant == Variant::spinning ? ZMQ_DONTWAIT : 0},
          context_{::zmq_ctx_new(), &::zmq_ctx_term} {
      const Unpinned unpinned;
      socket_ = {::zmq_socket(context_.get(), ZMQ_PAIR), &::zmq_close};
      if (!socket_) throw zeromq_failure("make a socket");
      // Nothing is under way when both sides end; after a failure, closing must not wait.
      const int linger_ms = 0;
      ::zmq_setsockopt(socket_.get(), ZMQ_LINGER, &linger_ms, sizeof linger_ms);
      char* const address = channel.address_->text;
      if (end == End::receiver) {
        const std::string name = transport == Transport::ipc ? channel.name_ : "tcp://127.0.0.1:*";
        if (::zmq_bind(socket_.get(), name.c_str()) != 0) throw zeromq_failure("bind");
        std::size_t size = sizeof channel.address_->text;
        if (::zmq_getsockopt(socket_.get(), ZMQ_LAST_ENDPOINT, address, &size) != 0) {
          throw zeromq_failure("tell its address");
        }
      } else if (::zmq_connect(socket_.get(), address) != 0) {
        throw zeromq_failure("connect");
      }
      ::zmq_msg_init(&incoming_);
    }
    ~Side() { ::zmq_msg_close(&incoming_); }
    Side(const Side&) = delete;
    Side& operator=(const Side&) = delete;

    void send(std::span<const std::byte> message) {
      transfer([&] { return ::zmq_send(socket_.get(), message.data(), message.size(), flags_); });
    }
    void flush() {}

    template <class Visit>
    std::size_t receive(std::size_t, const Visit& visit) {
      transfer([&] { return ::zmq_msg_recv(&incoming_, socket_.get(), flags_); });
      visit(std::span(static_cast<const std::byte*>(::zmq_msg_data(&incoming_)),
                      ::zmq_msg_size(&incoming_)));
      return 1;
    }

   private:
    template <class Call>
    void transfer(const Call& call) {
      while (call() < 0) {
        if (::zmq_errno() == EAGAIN) {
          spin_.once();
        } else if (::zmq_errno() != EINTR) {
          throw zeromq_failure("send or receive");
        }
      }
    }

    int flags_;
    std::unique_ptr<void, int (*)(void*)> context_;
    std::unique_ptr<void, int (*)(void*)> socket_{nullptr, nullptr};  // Closed before it.
    zmq_msg_t incoming_;
    Spin spin_;
  };

 private:
  struct Address {
    char text[256] = {};
  };
  const Load& load_;
  std::string name_;
  Shared<Address> address_;  // That the receiver is bound to.
};

// ---- nng ----------------------------------------------------------------------------------------

void check_nng(int error, const char* what) {
  if (error != 0) throw Failure(fmt::format("nng cannot {}: {}", what, ::nng_strerror(error)));
}

constexpr int kNngBuffer = 1024;  // Messages; by default there is no buffer.

class NngChannel {
 public:
  explicit NngChannel(const Load& load) : load_{load}, address_{"abstract://" + unused_name()} {}

  class Side {
   public:
    Side(const NngChannel& channel, End end)
        : flags_{channel.load_.variant == Variant::spinning ? static_cast<int>(NNG_FLAG_NONBLOCK)
                                                            : 0} {
      const Unpinned unpinned;
      check_nng(::nng_pair0_open(&socket_), "make a socket");
      for (const char* buffer : {NNG_OPT_SENDBUF, NNG_OPT_RECVBUF}) {
        check_nng(::nng_socket_set_int(socket_, buffer, kNngBuffer), "have a buffer");
      }
      check_nng(::nng_socket_set_size(socket_, NNG_OPT_RECVMAXSZ, 0), "take any size");
      if (end == End::receiver) {
        check_nng(::nng_listen(socket_, channel.address_.c_str(), nullptr, 0), "listen");
      } else {
        check_nng(::nng_dial(socket_, channel.address_.c_str(), nullptr, 0), "connect");
      }
    }
    ~Side() { ::nng_close(socket_); }
    Side(const Side&) = delete;
    Side& operator=(const Side&) = delete;

    void send(std::span<const std::byte> message) {
      transfer([&] {
        return ::nng_send(socket_, const_cast<std::byte*>(message.data()), message.size(), flags_);
      });
    }
    void flush() {}

    template <class Visit>
    std::size_t receive(std::size_t, const Visit& visit) {
      nng_msg* message = nullptr;
      transfer([&] { return ::nng_recvmsg(socket_, &message, flags_); });
      const std::unique_ptr<nng_msg, void (*)(nng_msg*)> owner(message, &::nng_msg_free);
      visit(std::span(static_cast<const std::byte*>(::nng_msg_body(message)),
                      ::nng_msg_len(message)));
      return 1;
    }

   private:
    template <class Call>
    void transfer(const Call& call) {
      while (true) {
        const int error = call();
        if (error == 0) return;
        if (error == NNG_EAGAIN) {
          spin_.once();
        } else {
          check_nng(error, "send or receive");
        }
      }
    }

    int flags_;
    nng_socket socket_{};
    Spin spin_;
  };

 private:
  const Load& load_;
  std::string address_;
};

}  // namespace

std::vector<std::pair<std::string, std::string>> library_versions() {
  int major = 0, minor = 0, patch = 0;
  ::zmq_version(&major, &minor, &patch);
  return {{"zeromq", fmt::format("{}.{}.{}", major, minor, patch)},
          {"nng", ::nng_version()},
          {"boost", fmt::format("{}.{}.{}", BOOST_VERSION / 100'000, BOOST_VERSION / 100 % 1000,
                                BOOST_VERSION % 100)}};
}

std::vector<Method> library_methods() {
  // Pairs of sockets have one reader, and their queues are in the memory of the two processes.
  return {
      {.name = "zeromq-ipc", .measure = &measure_channel<ZeromqChannel<Transport::ipc>>},
      {.name = "zeromq-tcp", .measure = &measure_channel<ZeromqChannel<Transport::tcp>>},
      {.name = "nng", .measure = &measure_channel<NngChannel>},
  };
}

}  // namespace leat::bench::ipc
