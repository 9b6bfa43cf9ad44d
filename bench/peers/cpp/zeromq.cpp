// ZeroMQ over ipc: a PUSH socket sends to one PULL socket, or to several in turn.
#include <zmq.h>

#include "peer.hpp"

namespace leat::peers {
namespace {

constexpr int kHighWaterMark = 10'000;  // Records held on each side; the default is 1000.

std::runtime_error failure(const std::string& what) {
  return std::runtime_error(what + ": " + zmq_strerror(zmq_errno()));
}

std::string address_of(const Options& options, const std::string& channel, std::uint64_t worker) {
  return "ipc://" + options.directory + "/" + channel + "." + std::to_string(worker);
}

class Socket {
 public:
  explicit Socket(int type) : context_{zmq_ctx_new()}, socket_{zmq_socket(context_, type)} {
    if (socket_ == nullptr) throw failure("cannot make a socket");
    const int linger_ms = 0;
    set(ZMQ_LINGER, linger_ms);
    set(type == ZMQ_PUSH ? ZMQ_SNDHWM : ZMQ_RCVHWM, kHighWaterMark);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() {
    zmq_close(socket_);
    zmq_ctx_term(context_);
  }

  void set(int option, int value) {
    if (zmq_setsockopt(socket_, option, &value, sizeof value) != 0) throw failure("cannot set");
  }
  void* get() const noexcept { return socket_; }

 private:
  void* context_;
  void* socket_;
};

struct ZeroMq {
  class Receiver {
   public:
    Receiver(const Options& options, const std::string& channel)
        : socket_{ZMQ_PULL}, spins_{options.spin}, buffer_(options.size) {
      if (options.is_group()) socket_.set(ZMQ_RCVTIMEO, static_cast<int>(kIdle.count()));
      const std::string address = address_of(options, channel, options.index);
      if (zmq_bind(socket_.get(), address.c_str()) != 0) throw failure("cannot bind " + address);
    }

    template <class OnRecord>
    std::size_t poll(const OnRecord& on_record) {
      const int size =
          zmq_recv(socket_.get(), buffer_.data(), buffer_.size(), spins_ ? ZMQ_DONTWAIT : 0);
      if (size < 0) {
        if (zmq_errno() != EAGAIN && zmq_errno() != EINTR) throw failure("cannot receive");
        return 0;
      }
      on_record(std::span<const std::byte>(buffer_).first(static_cast<std::size_t>(size)));
      return 1;
    }

   private:
    Socket socket_;
    bool spins_;
    std::vector<std::byte> buffer_;
  };

  class Sender {
   public:
    Sender(const Options& options, const std::string& channel) : socket_{ZMQ_PUSH} {
      for (std::uint64_t worker = 0; worker < options.workers; ++worker) {
        const std::string address = address_of(options, channel, worker);
        if (zmq_connect(socket_.get(), address.c_str()) != 0) throw failure("cannot connect");
      }
    }

    void send(std::span<const std::byte> record) {
      while (zmq_send(socket_.get(), record.data(), record.size(), 0) < 0) {
        if (zmq_errno() != EINTR) throw failure("cannot send");
      }
    }
    void flush() {}

   private:
    Socket socket_;
  };
};

}  // namespace
}  // namespace leat::peers

int main(int argc, char** argv) { return leat::peers::run_peer<leat::peers::ZeroMq>(argc, argv); }
