// Boost.Interprocess message_queue: one queue in shared memory, a mutex and two conditions.
#include <boost/date_time/posix_time/posix_time.hpp>
#include <boost/interprocess/ipc/message_queue.hpp>
#include <optional>

#include "peer.hpp"

namespace leat::peers {
namespace {

namespace interprocess = boost::interprocess;
using interprocess::message_queue;

constexpr unsigned kPriority = 0;  // The same for all: first in, first out.

// Queue names are global to the machine; the driver removes queues that are left behind.
std::string name_of(const Options& options, const std::string& channel) {
  const std::size_t last = options.directory.find_last_of('/');
  return options.directory.substr(last + 1) + "." + channel;
}

struct BoostQueue {
  class Receiver {
   public:
    Receiver(const Options& options, const std::string& channel)
        : spins_{options.spin},
          gives_up_{options.is_group()},
          queue_{interprocess::open_or_create, name_of(options, channel).c_str(), kQueueRecords,
                 options.size, interprocess::permissions(0600)},
          buffer_(options.size) {}

    template <class OnRecord>
    std::size_t poll(const OnRecord& on_record) {
      message_queue::size_type size = 0;
      unsigned priority = 0;
      if (spins_) {
        if (!queue_.try_receive(buffer_.data(), buffer_.size(), size, priority)) return 0;
      } else if (!gives_up_) {
        queue_.receive(buffer_.data(), buffer_.size(), size, priority);
      } else if (!queue_.try_receive(buffer_.data(), buffer_.size(), size, priority) &&
                 !queue_.timed_receive(buffer_.data(), buffer_.size(), size, priority,
                                       boost::posix_time::microsec_clock::universal_time() +
                                           boost::posix_time::milliseconds(kIdle.count()))) {
        return 0;
      }
      on_record(std::span<const std::byte>(buffer_.data(), size));
      return 1;
    }

   private:
    bool spins_;
    bool gives_up_;
    message_queue queue_;
    std::vector<std::byte> buffer_;
  };

  class Sender {
   public:
    Sender(const Options& options, const std::string& channel)
        : spins_{options.spin},
          queue_{interprocess::open_only, name_of(options, channel).c_str()} {}

    void send(std::span<const std::byte> record) {
      if (!spins_) {
        queue_.send(record.data(), record.size(), kPriority);
        return;
      }
      while (!queue_.try_send(record.data(), record.size(), kPriority)) relax();
    }
    void flush() {}

   private:
    bool spins_;
    message_queue queue_;
  };
};

}  // namespace
}  // namespace leat::peers

int main(int argc, char** argv) {
  return leat::peers::run_peer<leat::peers::BoostQueue>(argc, argv);
}
