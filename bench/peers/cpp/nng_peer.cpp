// nng over ipc: PAIR sockets between two processes, since only these buffer on both sides; with more
// processes, a PUSH socket sends each record to whichever PULL socket takes it.
#include <nng/nng.h>
#include <nng/protocol/pair0/pair.h>
#include <nng/protocol/pipeline0/pull.h>
#include <nng/protocol/pipeline0/push.h>

#include "peer.hpp"

namespace leat::peers {
namespace {

constexpr int kBuffer = 1024;  // Records; without a buffer each send waits for the socket.

void check(int result, const char* what) {
  if (result != 0) throw std::runtime_error(std::string(what) + ": " + nng_strerror(result));
}

std::string address_of(const Options& options, const std::string& channel, std::uint64_t worker) {
  return "ipc://" + options.directory + "/" + channel + "." + std::to_string(worker);
}

// A PAIR socket has only one peer.
bool is_between_two(const Options& options) {
  return options.role == "writer" || options.role == "reader" || options.role == "caller" ||
         options.role == "answerer";
}

struct Nng {
  class Receiver {
   public:
    Receiver(const Options& options, const std::string& channel)
        : flags_{static_cast<int>(options.spin ? NNG_FLAG_ALLOC | NNG_FLAG_NONBLOCK
                                               : NNG_FLAG_ALLOC)} {
      check(is_between_two(options) ? nng_pair0_open(&socket_) : nng_pull0_open(&socket_),
            "cannot make a socket");
      (void)nng_socket_set_int(socket_, NNG_OPT_RECVBUF, kBuffer);  // A PULL socket has none.
      if (options.is_group()) {
        check(nng_socket_set_ms(socket_, NNG_OPT_RECVTIMEO, static_cast<int>(kIdle.count())),
              "cannot set the timeout");
      }
      check(nng_listen(socket_, address_of(options, channel, options.index).c_str(), nullptr, 0),
            "cannot listen");
    }
    Receiver(const Receiver&) = delete;
    Receiver& operator=(const Receiver&) = delete;
    ~Receiver() { nng_close(socket_); }

    template <class OnRecord>
    std::size_t poll(const OnRecord& on_record) {
      void* bytes = nullptr;  // Becomes the message's own memory, which saves a copy.
      std::size_t size = 0;
      const int result = nng_recv(socket_, &bytes, &size, flags_);
      if (result == NNG_EAGAIN || result == NNG_ETIMEDOUT) return 0;
      check(result, "cannot receive");
      on_record(std::span<const std::byte>(static_cast<const std::byte*>(bytes), size));
      nng_free(bytes, size);
      return 1;
    }

   private:
    nng_socket socket_{};
    int flags_;
  };

  class Sender {
   public:
    Sender(const Options& options, const std::string& channel) {
      check(is_between_two(options) ? nng_pair0_open(&socket_) : nng_push0_open(&socket_),
            "cannot make a socket");
      check(nng_socket_set_int(socket_, NNG_OPT_SENDBUF, kBuffer), "cannot set the buffer");
      for (std::uint64_t worker = 0; worker < options.workers; ++worker) {
        check(nng_dial(socket_, address_of(options, channel, worker).c_str(), nullptr, 0),
              "cannot dial");
      }
    }
    Sender(const Sender&) = delete;
    Sender& operator=(const Sender&) = delete;
    ~Sender() { nng_close(socket_); }

    void send(std::span<const std::byte> record) {
      // The call takes what it only reads as not const.
      check(nng_send(socket_, const_cast<std::byte*>(record.data()), record.size(), 0),
            "cannot send");
    }
    void flush() {}

   private:
    nng_socket socket_{};
  };
};

}  // namespace
}  // namespace leat::peers

int main(int argc, char** argv) { return leat::peers::run_peer<leat::peers::Nng>(argc, argv); }
