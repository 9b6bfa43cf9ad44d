// A named pipe. One write(2) for each record, or for each batch.
#include <poll.h>
#include <sys/stat.h>

#include <cerrno>
#include <system_error>

#include "peer.hpp"

namespace leat::peers {
namespace {

std::system_error failure(const std::string& what) {
  return {std::error_code(errno, std::generic_category()), what};
}

std::string path_of(const Options& options, const std::string& channel) {
  return options.directory + "/" + channel;
}

struct Pipe {
  class Receiver {
   public:
    Receiver(const Options& options, const std::string& channel)
        : size_{options.size},
          is_shared_{options.is_group()},
          spins_{options.spin},
          // A worker reads one record at a time and leaves the rest to the others.
          read_bytes_{is_shared_ ? size_ : std::max(kReadBytes, size_)},
          buffer_(size_ + read_bytes_) {
      const std::string path = path_of(options, channel);
      if (::mkfifo(path.c_str(), 0600) != 0 && errno != EEXIST)
        throw failure("cannot make " + path);
      // Opened for writing, too: without a writer, reads would return end of file.
      file_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC | (is_shared_ || spins_ ? O_NONBLOCK : 0));
      if (file_ < 0) throw failure("cannot open " + path);
      (void)::fcntl(file_, F_SETPIPE_SZ, kPipeBytes);  // If not permitted, the default stays.
    }
    Receiver(const Receiver&) = delete;
    Receiver& operator=(const Receiver&) = delete;
    ~Receiver() { ::close(file_); }

    template <class OnRecord>
    std::size_t poll(const OnRecord& on_record) {
      const ssize_t got = ::read(file_, buffer_.data() + filled_, read_bytes_);
      if (got < 0) {
        if (errno == EAGAIN)
          wait();
        else if (errno != EINTR)
          throw failure("cannot read");
        return 0;
      }
      filled_ += static_cast<std::size_t>(got);
      std::size_t count = 0;
      std::size_t taken = 0;
      for (; filled_ - taken >= size_; taken += size_, ++count) {
        on_record(std::span<const std::byte>(buffer_.data() + taken, size_));
      }
      std::memmove(buffer_.data(), buffer_.data() + taken, filled_ - taken);
      filled_ -= taken;
      return count;
    }

   private:
    static constexpr std::size_t kReadBytes = 64u << 10;
    static constexpr int kPipeBytes = 1 << 20;

    void wait() const {
      if (spins_) return;
      pollfd one{file_, POLLIN, 0};
      (void)::poll(&one, 1, static_cast<int>(kIdle.count()));
    }

    std::size_t size_;
    bool is_shared_;
    bool spins_;
    std::size_t read_bytes_;
    std::vector<std::byte> buffer_;
    std::size_t filled_ = 0;
    int file_ = -1;
  };

  class Sender {
   public:
    Sender(const Options& options, const std::string& channel)
        : batch_bytes_{options.size * options.batch} {
      const std::string path = path_of(options, channel);
      file_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
      if (file_ < 0) throw failure("cannot open " + path);
      held_.reserve(batch_bytes_);
    }
    Sender(const Sender&) = delete;
    Sender& operator=(const Sender&) = delete;
    ~Sender() { ::close(file_); }

    void send(std::span<const std::byte> record) {
      if (record.size() == batch_bytes_) {
        write(record);
        return;
      }
      held_.insert(held_.end(), record.begin(), record.end());
      if (held_.size() >= batch_bytes_) flush();
    }

    void flush() {
      if (held_.empty()) return;
      write(held_);
      held_.clear();
    }

   private:
    void write(std::span<const std::byte> bytes) const {
      while (!bytes.empty()) {
        const ssize_t written = ::write(file_, bytes.data(), bytes.size());
        if (written >= 0)
          bytes = bytes.subspan(static_cast<std::size_t>(written));
        else if (errno != EINTR)
          throw failure("cannot write");
      }
    }

    std::size_t batch_bytes_;
    std::vector<std::byte> held_;
    int file_ = -1;
  };
};

}  // namespace
}  // namespace leat::peers

int main(int argc, char** argv) { return leat::peers::run_peer<leat::peers::Pipe>(argc, argv); }
