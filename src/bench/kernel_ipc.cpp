#include "kernel_ipc.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <vector>

#include "leat/os/file.hpp"

namespace leat::bench {
namespace {

constexpr std::chrono::seconds kTimeLimit{120};
constexpr std::size_t kReadBytes = 64u << 10;

// One process's side of a connection.
class Endpoint {
 public:
  Endpoint(int in, int out) noexcept : in_{in}, out_{out} {}

  // One write(2), unless the kernel takes only a part.
  void send(std::span<const std::byte> message) const {
    while (!message.empty()) {
      const ssize_t written = ::write(out_, message.data(), message.size());
      if (written >= 0) {
        message = message.subspan(static_cast<std::size_t>(written));
      } else if (errno != EINTR) {
        throw system_failure("cannot write to the peer");
      }
    }
  }

  // Waits for bytes, takes those that fit and returns their number, at least 1.
  std::size_t receive_some(std::span<std::byte> room) const {
    while (true) {
      const ssize_t got = ::read(in_, room.data(), room.size());
      if (got > 0) return static_cast<std::size_t>(got);
      if (got == 0) throw Failure("the peer closed its side too early");
      if (errno != EINTR) throw system_failure("cannot read from the peer");
    }
  }

  void receive_all(std::span<std::byte> room) const {
    while (!room.empty()) room = room.subspan(receive_some(room));
  }

 private:
  int in_;
  int out_;
};

// Both directions between two processes, made before the fork. All of them keep all ends open, so
// that a side never sees its peer's end as a closed file or SIGPIPE: run_roles ends it then.
class Connection {
 public:
  explicit Connection(KernelChannel channel) {
    if (channel == KernelChannel::pipe) {
      make_pipe(callers_.out, answerers_.in);
      make_pipe(answerers_.out, callers_.in);
    } else {
      make_sockets();
    }
  }

  Endpoint caller() const noexcept { return callers_.endpoint(); }
  Endpoint answerer() const noexcept { return answerers_.endpoint(); }

 private:
  struct Side {
    detail::Fd in;  // Of a socket: both directions, and `out` is empty.
    detail::Fd out;
    Endpoint endpoint() const noexcept { return {in.get(), out ? out.get() : in.get()}; }
  };

  static void make_pipe(detail::Fd& from, detail::Fd& to) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw system_failure("cannot make a pipe");
    to = detail::Fd{ends[0]};
    from = detail::Fd{ends[1]};
  }

  void make_sockets() {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
      throw system_failure("cannot make a pair of Unix sockets");
    }
    callers_.in = detail::Fd{ends[0]};
    answerers_.in = detail::Fd{ends[1]};
  }

  Side callers_;
  Side answerers_;
};

class Writer {
 public:
  Writer(const Endpoint& peer, const Payload& payload)
      : peer_{peer}, payload_{payload}, message_(payload.size()) {
    payload_.write(message_.data(), 0);
  }

  void write(std::uint64_t count) {
    for (const std::uint64_t end = next_ + count; next_ < end; ++next_) {
      payload_.rewrite(message_.data(), next_);
      peer_.send(message_);
    }
  }

 private:
  Endpoint peer_;
  const Payload& payload_;
  std::vector<std::byte> message_;
  std::uint64_t next_ = 0;
};

class Reader {
 public:
  Reader(const Endpoint& peer, const Payload& payload)
      : peer_{peer}, payload_{payload}, buffer_(payload.size() + kReadBytes) {}

  void read(std::uint64_t count) {
    for (const std::uint64_t end = next_ + count; next_ < end;) {
      filled_ += peer_.receive_some(std::span(buffer_).subspan(filled_, kReadBytes));
      take_messages();
    }
  }

 private:
  // Checks all whole messages and moves what is left, the beginning of the next one, to the front.
  void take_messages() {
    std::size_t taken = 0;
    for (; filled_ - taken >= payload_.size(); taken += payload_.size(), ++next_) {
      if (!payload_.check(buffer_.data() + taken, next_)) {
        throw Failure(fmt::format("message {} has the wrong content", next_));
      }
    }
    filled_ -= taken;
    std::memmove(buffer_.data(), buffer_.data() + taken, filled_);
  }

  Endpoint peer_;
  const Payload& payload_;
  std::vector<std::byte> buffer_;  // Room for a part of one message and for one read behind it.
  std::size_t filled_ = 0;
  std::uint64_t next_ = 0;
};

class Caller {
 public:
  Caller(const Endpoint& peer, const Payload& payload)
      : peer_{peer}, payload_{payload}, question_(payload.size()), answer_(payload.size()) {
    payload_.write(question_.data(), 0);
  }

  // One question and its answer.
  void call() {
    payload_.rewrite(question_.data(), next_);
    peer_.send(question_);
    peer_.receive_all(answer_);
    if (!payload_.check(answer_.data(), next_++)) throw Failure("an answer has the wrong content");
  }

 private:
  Endpoint peer_;
  const Payload& payload_;
  std::vector<std::byte> question_;
  std::vector<std::byte> answer_;
  std::uint64_t next_ = 0;
};

// Sends back what it gets.
void answer_all(const Endpoint& peer, std::size_t size, std::uint64_t count) {
  std::vector<std::byte> message(size);
  for (std::uint64_t i = 0; i < count; ++i) {
    peer.receive_all(message);
    peer.send(message);
  }
}

const char* name_of(KernelChannel channel) {
  return channel == KernelChannel::pipe ? "pipe" : "Unix socket";
}

}  // namespace

double kernel_ns_per_record(KernelChannel channel, const KernelStreamOptions& options,
                            const Placement& placement) {
  const Connection connection(channel);
  const std::uint64_t warm_up = options.records / 10 + 1;
  const Shared<std::uint64_t> started_ns(0u);
  const Shared<std::uint64_t> ended_ns(0u);

  run_roles({{fmt::format("writer of the {}", name_of(channel)), placement.cpu(0),
              [&](Barrier& barrier) {
                const Payload payload(options.size, Verify::ends);
                Writer writer(connection.caller(), payload);
                writer.write(warm_up);
                barrier.meet();
                *started_ns = now_ns();
                writer.write(options.records);
              }},
             {fmt::format("reader of the {}", name_of(channel)), placement.cpu(1),
              [&](Barrier& barrier) {
                const Payload payload(options.size, Verify::ends);
                Reader reader(connection.answerer(), payload);
                reader.read(warm_up);
                barrier.meet();
                reader.read(options.records);
                *ended_ns = now_ns();
              }}},
            kTimeLimit);
  return static_cast<double>(*ended_ns - *started_ns) / static_cast<double>(options.records);
}

RoundTrip kernel_round_trip(KernelChannel channel, const RoundTripOptions& options,
                            const Placement& placement) {
  const Connection connection(channel);
  const Shared<RoundTrip> result;

  run_roles({{fmt::format("caller by {}", name_of(channel)), placement.cpu(0),
              [&](Barrier& barrier) {
                const Payload payload(options.size, options.verify);
                Caller caller(connection.caller(), payload);
                auto samples_ns = empty_samples(options.count);
                barrier.meet();
                *result = time_calls(samples_ns, [&] { caller.call(); });
              }},
             {fmt::format("answerer by {}", name_of(channel)), placement.cpu(1),
              [&](Barrier& barrier) {
                barrier.meet();
                answer_all(connection.answerer(), options.size, all_calls(options.count));
              }}},
            kTimeLimit);
  return *result;
}

}  // namespace leat::bench
