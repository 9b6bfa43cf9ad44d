// Leat's own log in the rivals' places. run.py has it die only: one publisher is killed, another one
// goes on. Everything else of ours is measured by `leat bench`.
#include "leat/leat.hpp"

#include "peer.hpp"

namespace leat::peers {
namespace {

constexpr std::size_t kCapacityBytes = 8u << 20;  // As in `leat bench log`.
constexpr std::size_t kPollLimit = 1000;

template <class T>
T value_of(Result<T> result, const std::string& what) {
  if (!result) throw std::runtime_error("cannot " + what + ": " + describe(result.error()));
  return std::move(*result);
}

struct Log {
  class Receiver {
   public:
    Receiver(const Options& options, const std::string& channel)
        : topic_{value_of(Topic::open_or_create(channel, {.capacity_bytes = kCapacityBytes,
                                                          .policy = Policy::block,
                                                          .directory = options.directory}),
                          "make the topic")},
          subscriber_{value_of(topic_.subscriber({.from = From::beginning}), "subscribe")} {}

    template <class OnRecord>
    std::size_t poll(const OnRecord& on_record) {
      const auto count =
          subscriber_.poll(kPollLimit, [&](const Record& record) { on_record(record.value); });
      if (!count) throw std::runtime_error("cannot read: " + describe(count.error()));
      return *count;
    }

   private:
    Topic topic_;
    Subscriber subscriber_;
  };

  class Sender {
   public:
    Sender(const Options& options, const std::string& channel)
        : topic_{value_of(Topic::open(channel, Deadline::immediate(), options.directory),
                          "open the topic")},
          // Of a victim and its survivor both publish.
          publisher_{value_of(topic_.publisher({.exclusive = options.role != "victim" &&
                                                             options.role != "survivor"}),
                              "become a publisher")} {}

    void send(std::span<const std::byte> record) {
      if (auto offset = publisher_.publish(record); !offset) [[unlikely]] {
        throw std::runtime_error("cannot publish: " + describe(offset.error()));
      }
    }
    void flush() {}

   private:
    Topic topic_;
    Publisher publisher_;
  };
};

}  // namespace
}  // namespace leat::peers

int main(int argc, char** argv) { return leat::peers::run_peer<leat::peers::Log>(argc, argv); }
