#include "message_queues.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <mqueue.h>
#include <unistd.h>

#include <algorithm>
#include <boost/interprocess/ipc/message_queue.hpp>
#include <cerrno>
#include <ctime>
#include <fstream>
#include <limits>
#include <string>

#include "leat/os/file.hpp"

namespace leat::bench {
namespace {

namespace interprocess = boost::interprocess;

constexpr std::uint64_t kBoostDepth = 1024;       // As many as a member of a group may hold.
constexpr std::uint64_t kBoostBytes = 64u << 20;  // At most: all its memory is allocated at once.
constexpr std::uint64_t kUsualMqDepth = 10;
constexpr unsigned kPriority = 0;  // All alike: first in, first out.

// Different for each queue: only one thread of the process makes them.
std::string new_name() {
  static int count = 0;
  return fmt::format("leat-bench-{}-{}", ::getpid(), ++count);
}

// No queue accepts a null pointer, not even for an empty message.
template <class Byte>
Byte* address_of(std::span<Byte> bytes) {
  static std::byte nothing{};
  return bytes.empty() ? &nothing : bytes.data();
}

class BoostQueue final : public MessageQueue {
 public:
  explicit BoostQueue(std::size_t size) : BoostQueue{new_name(), size} {}

  void send(std::span<const std::byte> record) override {
    queue_.send(address_of(record), record.size(), kPriority);
  }

  std::size_t receive(std::span<std::byte> buffer) override {
    interprocess::message_queue::size_type received = 0;
    unsigned priority = 0;
    queue_.receive(address_of(buffer), buffer.size(), received, priority);
    return received;
  }

  bool try_send(std::span<const std::byte> record) override {
    return queue_.try_send(address_of(record), record.size(), kPriority);
  }

  std::optional<std::size_t> try_receive(std::span<std::byte> buffer) override {
    interprocess::message_queue::size_type received = 0;
    unsigned priority = 0;
    if (!queue_.try_receive(address_of(buffer), buffer.size(), received, priority)) return {};
    return received;
  }

  std::uint64_t depth() const noexcept override { return queue_.get_max_msg(); }

  static std::uint64_t depth_for(std::size_t size) noexcept {
    return std::clamp<std::uint64_t>(kBoostBytes / std::max<std::size_t>(size, 1), 1, kBoostDepth);
  }

 private:
  BoostQueue(const std::string& name, std::size_t size)
      : queue_{interprocess::create_only, name.c_str(), depth_for(size), size,
               interprocess::permissions(0600)} {
    interprocess::message_queue::remove(name.c_str());
  }

  interprocess::message_queue queue_;
};

// Unprivileged processes get no deeper queues.
std::uint64_t mq_depth() {
  std::uint64_t depth = 0;
  std::ifstream("/proc/sys/fs/mqueue/msg_max") >> depth;
  return depth != 0 ? depth : kUsualMqDepth;
}

class PosixQueue final : public MessageQueue {
 public:
  explicit PosixQueue(std::size_t size) : depth_{mq_depth()} {
    const std::string name = fmt::format("/{}", new_name());
    ::mq_attr attributes{};
    attributes.mq_maxmsg = static_cast<long>(depth_);
    attributes.mq_msgsize = static_cast<long>(size);
    queue_ = detail::Fd{
        ::mq_open(name.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600, &attributes)};
    if (!queue_) {
      // EMFILE here means that the user's queues take too much memory, which its text does not say.
      if (errno == EMFILE) errno = ENOMEM;
      throw system_failure(fmt::format(
          "cannot make a POSIX message queue of {} records of {} bytes (ulimit -q limits them)",
          depth_, size));
    }
    ::mq_unlink(name.c_str());
  }

  void send(std::span<const std::byte> record) override { send_until(record, kNever); }

  std::size_t receive(std::span<std::byte> buffer) override {
    return *receive_until(buffer, kNever);
  }

  bool try_send(std::span<const std::byte> record) override { return send_until(record, kPast); }

  std::optional<std::size_t> try_receive(std::span<std::byte> buffer) override {
    return receive_until(buffer, kPast);
  }

  std::uint64_t depth() const noexcept override { return depth_; }

 private:
  // Deadlines.
  static constexpr timespec kPast{};
  static constexpr timespec kNever{std::numeric_limits<std::time_t>::max(), 0};

  bool send_until(std::span<const std::byte> record, const timespec& deadline) {
    const auto* const bytes = reinterpret_cast<const char*>(address_of(record));
    while (::mq_timedsend(queue_.get(), bytes, record.size(), kPriority, &deadline) != 0) {
      if (errno == ETIMEDOUT) return false;
      if (errno != EINTR) throw system_failure("cannot send to a POSIX message queue");
    }
    return true;
  }

  std::optional<std::size_t> receive_until(std::span<std::byte> buffer, const timespec& deadline) {
    auto* const bytes = reinterpret_cast<char*>(address_of(buffer));
    while (true) {
      const ssize_t received =
          ::mq_timedreceive(queue_.get(), bytes, buffer.size(), nullptr, &deadline);
      if (received >= 0) return static_cast<std::size_t>(received);
      if (errno == ETIMEDOUT) return {};
      if (errno != EINTR) throw system_failure("cannot receive from a POSIX message queue");
    }
  }

  std::uint64_t depth_;
  detail::Fd queue_;  // On Linux a message queue is a descriptor.
};

}  // namespace

const char* name_of(QueueKind kind) noexcept {
  return kind == QueueKind::boost_mq ? "boost-mq" : "mq-posix";
}

std::unique_ptr<MessageQueue> make_queue(QueueKind kind, std::size_t size) {
  if (kind == QueueKind::mq_posix) return std::make_unique<PosixQueue>(size);
  try {
    return std::make_unique<BoostQueue>(size);
  } catch (const interprocess::interprocess_exception& error) {
    throw Failure(fmt::format("cannot make a Boost message queue of {} records of {} bytes: {}",
                              BoostQueue::depth_for(size), size, error.what()));
  }
}

}  // namespace leat::bench
