// Byte streams: TCP, Unix sockets, pipes and FIFOs, by read and write or by io_uring or vmsplice.
#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <liburing.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <utility>

#include "leat/os/file.hpp"
#include "measure.hpp"
#include "methods.hpp"

namespace leat::bench::ipc {
namespace {

using detail::Fd;

// The ends of both directions, made before the fork. Each process keeps all of them open, so that
// neither sees a closed stream or SIGPIPE when the other one fails: run_roles ends it then.
struct Ends {
  Fd sender_in, sender_out;  // A socket is `in` for both directions, and `out` is empty.
  Fd receiver_in, receiver_out;

  int in(End end) const noexcept { return (end == End::sender ? sender_in : receiver_in).get(); }
  int out(End end) const noexcept {
    const Fd& fd = end == End::sender ? sender_out : receiver_out;
    return fd ? fd.get() : in(end);
  }
};

Fd opened(int fd, const char* what) {
  check(fd, what);
  return Fd{fd};
}

// ---- Making the ends ----------------------------------------------------------------------------

Ends pipes() {
  const auto make = [](Fd& in, Fd& out) {
    std::array<int, 2> ends{};
    check(::pipe2(ends.data(), O_CLOEXEC), "cannot make a pipe");
    in = Fd{ends[0]};
    out = Fd{ends[1]};
  };
  Ends ends;
  make(ends.receiver_in, ends.sender_out);
  make(ends.sender_in, ends.receiver_out);
  return ends;
}

// The name is removed before anything is sent.
Ends fifos() {
  const auto make = [](Fd& in, Fd& out) {
    const std::string path =
        (std::filesystem::temp_directory_path() / fmt::format("leat-bench-{}", ::getpid()))
            .string();
    check(::mkfifo(path.c_str(), 0600), "cannot make a FIFO");
    // Without O_NONBLOCK this would wait for a writer. The next open finds a reader, so does not wait.
    const int reading = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    const int writing = reading < 0 ? -1 : ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    ::unlink(path.c_str());
    in = opened(reading, "cannot open a FIFO");
    out = opened(writing, "cannot open a FIFO");
    check(::fcntl(in.get(), F_SETFL, 0), "cannot set up a FIFO");
  };
  Ends ends;
  make(ends.receiver_in, ends.sender_out);
  make(ends.sender_in, ends.receiver_out);
  return ends;
}

Ends pair_of_sockets() {
  std::array<int, 2> fds{};
  check(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()), "cannot make sockets");
  Ends ends;
  ends.sender_in = Fd{fds[0]};
  ends.receiver_in = Fd{fds[1]};
  return ends;
}

// One connection to a listener on an address that the kernel chooses.
template <class Address>
Ends connection(Address address, socklen_t length) {
  const int family = reinterpret_cast<sockaddr*>(&address)->sa_family;
  const Fd listener =
      opened(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0), "cannot make a socket");
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  check(::bind(listener.get(), any, length), "cannot bind a socket");
  check(::listen(listener.get(), 1), "cannot listen");
  length = sizeof address;
  check(::getsockname(listener.get(), any, &length), "cannot ask for the socket's address");
  Ends ends;
  ends.sender_in = opened(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0), "cannot make a socket");
  check(::connect(ends.sender_in.get(), any, length), "cannot connect");
  ends.receiver_in =
      opened(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC), "cannot accept");
  return ends;
}

Ends tcp_connection() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  Ends ends = connection(address, sizeof address);
  const int yes = 1;
  for (const Fd* fd : {&ends.sender_in, &ends.receiver_in}) {
    check(::setsockopt(fd->get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes),
          "cannot switch off Nagle's delay");
  }
  return ends;
}

Ends domain_connection() {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  return connection(address, sizeof(sa_family_t));  // No name: the kernel chooses an abstract one.
}

// ---- Reading and writing bytes ------------------------------------------------------------------

// read(2) and write(2).
class ReadWrite {
 public:
  ReadWrite(int in, int out, const Load& load) : in_{in}, out_{out} {
    if (load.variant == Variant::blocking) return;
    for (const int fd : {in, out})
      check(::fcntl(fd, F_SETFL, O_NONBLOCK), "cannot set up a stream");
  }

  std::size_t read(std::span<std::byte> room) {
    return transfer([&] { return ::read(in_, room.data(), room.size()); });
  }
  std::size_t write(std::span<const std::byte> bytes) {
    return transfer([&] { return ::write(out_, bytes.data(), bytes.size()); });
  }

 protected:
  int out() const noexcept { return out_; }

  template <class Call>
  std::size_t transfer(const Call& call) {
    while (true) {
      const ssize_t done = call();
      if (done > 0) return static_cast<std::size_t>(done);
      if (done == 0) throw Failure("the peer closed its side too early");
      if (errno == EAGAIN) {
        spin_.once();
      } else if (errno != EINTR) {
        throw system_failure("cannot send or receive");
      }
    }
  }

 private:
  int in_;
  int out_;
  Spin spin_;
};

// Through io_uring: one request at a time, as a program without batching would.
class IoUring {
 public:
  IoUring(int in, int out, const Load& load) : in_{in}, out_{out}, variant_{load.variant} {
    const int made = ::io_uring_queue_init(8, &ring_, 0);
    if (made < 0) {
      throw NotSupported(fmt::format("the kernel gives no io_uring: {}", std::strerror(-made)));
    }
  }
  ~IoUring() { ::io_uring_queue_exit(&ring_); }
  IoUring(const IoUring&) = delete;
  IoUring& operator=(const IoUring&) = delete;

  std::size_t read(std::span<std::byte> room) {
    return transfer([&](io_uring_sqe* request) {
      ::io_uring_prep_recv(request, in_, room.data(), room.size(), 0);
    });
  }
  std::size_t write(std::span<const std::byte> bytes) {
    return transfer([&](io_uring_sqe* request) {
      ::io_uring_prep_send(request, out_, bytes.data(), bytes.size(), 0);
    });
  }

 private:
  template <class Prepare>
  std::size_t transfer(const Prepare& prepare) {
    while (true) {
      prepare(::io_uring_get_sqe(&ring_));
      io_uring_cqe* done = nullptr;
      if (variant_ == Variant::blocking) {
        check_ring(::io_uring_submit_and_wait(&ring_, 1));
        while (done == nullptr) check_ring(::io_uring_wait_cqe(&ring_, &done));
      } else {
        check_ring(::io_uring_submit(&ring_));
        while (::io_uring_peek_cqe(&ring_, &done) != 0) {
          // A pending request is completed in a system call of this process.
          ::io_uring_get_events(&ring_);
          spin_.once();
        }
      }
      const int result = done->res;
      ::io_uring_cqe_seen(&ring_, done);
      if (result > 0) return static_cast<std::size_t>(result);
      if (result == 0) throw Failure("the peer closed its side too early");
      if (result != -EINTR && result != -EAGAIN) {
        errno = -result;
        throw system_failure("cannot send or receive through io_uring");
      }
    }
  }

  // A signal in between is no error: the request stays submitted.
  static void check_ring(int result) {
    if (result >= 0 || result == -EINTR) return;
    errno = -result;
    throw system_failure("cannot use io_uring");
  }

  int in_;
  int out_;
  Variant variant_;
  io_uring ring_{};
  Spin spin_;
};

// vmsplice(2): the pipe gets the sender's pages instead of a copy. A page may be written to again only
// after it has been read, so messages rotate through more pages than a pipe holds.
class Vmsplice : public ReadWrite {
 public:
  Vmsplice(int in, int out, const Load& load)
      : ReadWrite(in, out, load),
        flags_{load.variant == Variant::spinning ? static_cast<unsigned>(SPLICE_F_NONBLOCK) : 0},
        page_{static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))},
        pages_each_{(load.size * load.batch + page_ - 1) / page_},
        count_{2 + pipe_pages() / pages_each_},
        memory_{count_ * pages_each_ * page_} {
    memory_.prefault();
  }

  std::size_t write(std::span<const std::byte> bytes) {
    std::byte* const place = memory_.data() + next_++ % count_ * pages_each_ * page_;
    std::memcpy(place, bytes.data(), bytes.size());
    for (std::size_t done = 0; done < bytes.size();) {
      const iovec part{place + done, bytes.size() - done};
      done += transfer([&] { return ::vmsplice(out(), &part, 1, flags_); });
    }
    return bytes.size();
  }

 private:
  std::size_t pipe_pages() const {
    const int capacity = ::fcntl(out(), F_GETPIPE_SZ);
    check(capacity, "cannot ask for the capacity of a pipe");
    return static_cast<std::size_t>(capacity) / page_;
  }

  unsigned flags_;
  std::size_t page_;
  std::size_t pages_each_;
  std::size_t count_;
  SharedMemory memory_;
  std::uint64_t next_ = 0;
};

// ---- Messages in a stream -----------------------------------------------------------------------

template <Ends (*make_ends)(), class Io = ReadWrite>
class StreamChannel {
 public:
  explicit StreamChannel(const Load& load) : load_{load}, ends_{make_ends()} {}

  class Side {
   public:
    Side(const StreamChannel& channel, End end)
        : load_{channel.load_},
          io_{channel.ends_.in(end), channel.ends_.out(end), load_},
          incoming_(2 * std::max(load_.size, kReadBytes)) {
      outgoing_.reserve(load_.size * load_.batch);
    }

    void send(std::span<const std::byte> message) {
      if (load_.batch == 1) {
        write_all(message);
      } else {
        outgoing_.insert(outgoing_.end(), message.begin(), message.end());
      }
    }
    void flush() {
      write_all(outgoing_);
      outgoing_.clear();
    }

    template <class Visit>
    std::size_t receive(std::size_t at_most, const Visit& visit) {
      while (filled_ - taken_ < load_.size) read_more();
      std::size_t count = 0;
      for (; count < at_most && filled_ - taken_ >= load_.size; ++count) {
        const std::span<const std::byte> message(incoming_.data() + taken_, load_.size);
        taken_ += load_.size;
        visit(message);
      }
      return count;
    }

   private:
    static constexpr std::size_t kReadBytes = 64u << 10;

    void write_all(std::span<const std::byte> bytes) {
      while (!bytes.empty()) bytes = bytes.subspan(io_.write(bytes));
    }

    void read_more() {
      if (taken_ == filled_) {
        taken_ = filled_ = 0;
      } else if (incoming_.size() - taken_ < load_.size) {
        std::memmove(incoming_.data(), incoming_.data() + taken_, filled_ - taken_);
        filled_ -= std::exchange(taken_, 0);
      }
      filled_ += io_.read(std::span(incoming_).subspan(filled_));
    }

    const Load& load_;
    Io io_;
    std::vector<std::byte> outgoing_;
    std::vector<std::byte> incoming_;
    std::size_t taken_ = 0;   // Bytes of incoming_ that have been handed over.
    std::size_t filled_ = 0;  // Bytes of incoming_ that have been read.
  };

 private:
  const Load& load_;
  Ends ends_;
};

}  // namespace

std::vector<Method> stream_methods() {
  constexpr Facts kStream{.boundaries = false};
  return {
      {.name = "tcp",
       .measure = &measure_channel<StreamChannel<tcp_connection>>,
       .batches = true,
       .facts = kStream},
      {.name = "domain",
       .measure = &measure_channel<StreamChannel<domain_connection>>,
       .batches = true,
       .facts = kStream},
      {.name = "socketpair",
       .measure = &measure_channel<StreamChannel<pair_of_sockets>>,
       .batches = true,
       .facts = kStream},
      {.name = "pipe",
       .measure = &measure_channel<StreamChannel<pipes>>,
       .batches = true,
       .facts = kStream},
      {.name = "fifo",
       .measure = &measure_channel<StreamChannel<fifos>>,
       .batches = true,
       .facts = kStream},
      {.name = "io_uring",
       .measure = &measure_channel<StreamChannel<pair_of_sockets, IoUring>>,
       .batches = true,
       .facts = kStream},
      {.name = "splice",
       .measure = &measure_channel<StreamChannel<pipes, Vmsplice>>,
       .batches = true,
       .facts = kStream},
  };
}

}  // namespace leat::bench::ipc
