#include "log_round_trip.hpp"

#include "topics.hpp"

namespace leat::bench {
namespace {

constexpr std::chrono::seconds kTimeLimit{300};
constexpr char kThere[] = "there";
constexpr char kBack[] = "back";

// One process's ends of the two topics.
class Peer {
 public:
  Peer(const std::string& directory, const char* to, const char* from, Waiting waiting)
      : waiting_{waiting},
        to_{open_topic(directory, to)},
        from_{open_topic(directory, from)},
        publisher_{value_of(to_.publisher({.exclusive = true}), "open a publisher")},
        subscriber_{value_of(from_.subscriber(options_for(waiting)), "open a subscriber")} {}

  void send(Bytes value) {
    if (auto offset = publisher_.publish(value); !offset) [[unlikely]]
      throw topic_failure("publish", offset.error());
  }

  // Waits for one record and hands its value over, valid during the call.
  template <class OnValue>
  void receive(const OnValue& on_value) {
    if (waiting_ == Waiting::sleeping) {
      const auto record = subscriber_.receive();
      if (!record) throw topic_failure("read", record.error());
      on_value(record->value);
      return;
    }
    while (true) {
      const auto count = subscriber_.poll(1, [&](const Record& record) { on_value(record.value); });
      if (!count) [[unlikely]]
        throw topic_failure("read", count.error());
      if (*count == 1) return;
      spin_.once_without_pause();
    }
  }

 private:
  static SubscriberOptions options_for(Waiting waiting) {
    SubscriberOptions options{.from = From::beginning};
    if (waiting == Waiting::sleeping) options.spin = std::chrono::nanoseconds{0};
    return options;
  }

  Waiting waiting_;
  Topic to_;
  Topic from_;
  Publisher publisher_;
  Subscriber subscriber_;
  Spin spin_;
};

class Caller {
 public:
  Caller(Peer& peer, const Payload& payload) : peer_{peer}, payload_{payload} {
    for (auto& question : questions_) question.resize(payload.size());
    payload_.write(questions_[1].data(), 1);
  }

  void call() {
    const std::uint64_t sequence = next_++;
    peer_.send(questions_[sequence % 2]);
    payload_.write(questions_[next_ % 2].data(), next_);  // While the answer is on its way.
    bool is_right = false;
    peer_.receive([&](Bytes value) {
      is_right = value.size() == payload_.size() && payload_.check(value.data(), sequence);
    });
    if (!is_right) throw Failure("an answer has the wrong content");
  }

 private:
  Peer& peer_;
  const Payload& payload_;
  std::vector<std::byte> questions_[2];  // The one to send, and the one after it.
  std::uint64_t next_ = 1;
};

}  // namespace

RoundTrip log_round_trip(const RoundTripOptions& options, Waiting waiting,
                         const Placement& placement) {
  const TemporaryTopics topics;
  for (const char* name : {kThere, kBack}) topics.create(name, {.capacity_bytes = 8u << 20});
  const Shared<RoundTrip> result;
  run_roles({{"caller", placement.cpu(0),
              [&](Barrier& barrier) {
                const Payload payload(options.size, options.verify);
                Peer peer(topics.directory(), kThere, kBack, waiting);
                Caller caller(peer, payload);
                auto samples_ns = empty_samples(options.count);
                barrier.meet();
                *result = time_calls(samples_ns, [&] { caller.call(); });
              }},
             {"answerer", placement.cpu(1),
              [&](Barrier& barrier) {
                Peer peer(topics.directory(), kBack, kThere, waiting);
                barrier.meet();
                for (std::uint64_t left = all_calls(options.count); left != 0; --left) {
                  peer.receive([&](Bytes value) { peer.send(value); });
                }
              }}},
            kTimeLimit);
  return *result;
}

}  // namespace leat::bench
