// Leat as a rival: a topic for each channel, read by a subscriber or by the members of a group.
#include "leat/leat.hpp"

#include <optional>

#include "peer.hpp"

namespace leat::peers {
namespace {

constexpr std::size_t kCapacityBytes = 8u << 20;  // As in `leat bench log`.
constexpr std::size_t kPollLimit = 1000;          // In a round trip, 1.
constexpr char kGroup[] = "workers";

template <class T>
void check(const Result<T>& result, const char* what) {
  if (!result) [[unlikely]]
    throw std::runtime_error(std::string("cannot ") + what + ": " + describe(result.error()));
}

template <class T>
T value_of(Result<T> result, const char* what) {
  check(result, what);
  return std::move(*result);
}

// A reader that does not spin sleeps at once, also after a streak of records.
template <class ReaderOptions>
ReaderOptions with_patience(ReaderOptions reader, const Options& options) {
  if (!options.spin) reader.spin = reader.patience = std::chrono::nanoseconds{0};
  return reader;
}

struct Log {
  class Receiver {
   public:
    Receiver(const Options& options, const std::string& channel)
        : spins_{options.spin},
          takes_one_{options.batch == 1},
          limit_{options.is_round_trip() ? 1 : kPollLimit},
          topic_{value_of(Topic::open_or_create(channel, {.capacity_bytes = kCapacityBytes,
                                                          .policy = Policy::block,
                                                          .directory = options.directory}),
                          "make the topic")} {
      if (options.is_group()) {
        group_ = value_of(topic_.group(kGroup, {.from = From::beginning}), "make the group");
        member_ = value_of(group_->join(with_patience(MemberOptions{}, options)), "join the group");
      } else {
        subscriber_ = value_of(
            topic_.subscriber(with_patience(SubscriberOptions{.from = From::beginning}, options)),
            "subscribe");
      }
    }

    template <class OnRecord>
    std::size_t poll(const OnRecord& on_record) {
      return member_ ? poll(*member_, on_record) : poll(*subscriber_, on_record);
    }

   private:
    template <class OnRecord>
    std::size_t poll(Subscriber& subscriber, const OnRecord& on_record) const {
      const std::size_t count = value_of(
          subscriber.poll(limit_, [&](const Record& record) { on_record(record.value); }), "read");
      if (count == 0 && !spins_) check(subscriber.wait(), "wait");
      return count;
    }

    template <class OnRecord>
    std::size_t poll(Member& member, const OnRecord& on_record) const {
      const std::size_t count = takes_one_
                                    ? take_one(member, on_record)
                                    : value_of(member.poll(limit_,
                                                           [&](const Delivery& delivery) {
                                                             on_record(delivery.record.value);
                                                           }),
                                               "take");
      if (count != 0) return count;
      if (auto waited = member.wait(kIdle); !is_nothing(waited)) check(waited, "wait");
      return 0;
    }

    template <class OnRecord>
    static std::size_t take_one(Member& member, const OnRecord& on_record) {
      const auto delivery = member.receive(Deadline::immediate());
      if (is_nothing(delivery)) return 0;
      check(delivery, "take");
      on_record(delivery->record.value);
      check(member.acknowledge(*delivery), "acknowledge");
      return 1;
    }

    template <class T>
    static bool is_nothing(const Result<T>& result) {
      return !result && result.error().code == Errc::timeout;
    }

    bool spins_;
    bool takes_one_;
    std::size_t limit_;
    Topic topic_;
    std::optional<Subscriber> subscriber_;
    std::optional<Group> group_;
    std::optional<Member> member_;
  };

  class Sender {
   public:
    Sender(const Options& options, const std::string& channel)
        : batch_{options.batch},
          topic_{value_of(Topic::open(channel, Deadline::immediate(), options.directory),
                          "open the topic")},
          publisher_{value_of(topic_.publisher({.exclusive = is_the_only_one(options)}),
                              "become a publisher")},
          held_{value_of(publisher_.batch(), "open a batch")} {}

    void send(std::span<const std::byte> record) {
      if (batch_ > 1) [[unlikely]]
        return hold(record);
      if (auto offset = publisher_.publish(record); !offset) [[unlikely]]
        check(offset, "publish");
    }

    void flush() {
      if (count_held_ == 0) return;
      check(held_.commit(), "publish a batch");
      count_held_ = 0;
    }

   private:
    void hold(std::span<const std::byte> record) {
      if (auto added = held_.add(record); !added) [[unlikely]]
        check(added, "add to a batch");
      if (++count_held_ == batch_) flush();
    }

    static bool is_the_only_one(const Options& options) {
      return !options.is_group() && options.role != "victim" && options.role != "survivor";
    }

    std::uint64_t batch_;
    Topic topic_;
    Publisher publisher_;
    Batch held_;
    std::uint64_t count_held_ = 0;
  };
};

}  // namespace
}  // namespace leat::peers

int main(int argc, char** argv) { return leat::peers::run_peer<leat::peers::Log>(argc, argv); }
