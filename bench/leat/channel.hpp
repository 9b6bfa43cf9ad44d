// Leat as a channel: two topics, one for each direction, each with an exclusive publisher.
//
//     LogChannel<TopicReceiver> channel(load, WhenEmpty::poll_again);
//     Measured measured = measure_round_trip(channel, load, placement);
#pragma once

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "bench/harness/round_trip.hpp"
#include "topic_ends.hpp"

namespace leat::bench {

// A member of a group, in place of a subscriber.
class GroupReceiver {
 public:
  GroupReceiver(const Topic& topic, WhenEmpty when_empty)
      : when_empty_{when_empty}, member_{topic, kName, adapted(when_empty, MemberOptions{}), 0} {}

  template <class Visit>
  std::size_t receive(std::size_t at_most, const Visit& visit) {
    while (true) {
      if (const std::size_t count = member_.take(visit, at_most); count != 0) return count;
      if (when_empty_ == WhenEmpty::sleep) {
        (void)member_.wait();
      } else {
        spin_.once();
      }
    }
  }

  // Once, before the processes start.
  static void prepare(const Topic& topic) {
    value_of(topic.group(kName, {.from = From::beginning}), "make the group");
  }

 private:
  static constexpr char kName[] = "group";

  WhenEmpty when_empty_;
  TopicMember member_;
  Spin spin_;
};

template <class Receiver>
class LogChannel {
 public:
  LogChannel(const Load& load, WhenEmpty when_empty) : load_{load}, when_empty_{when_empty} {
    const bool answers = load.pattern == Pattern::pingpong;
    const TopicOptions there = options_for(load);
    const TopicOptions back = answers ? there : options_for({});
    for (const auto& [name, options] : {std::pair{kThere, there}, std::pair{kBack, back}}) {
      topics_.create(name, options);
      if constexpr (requires { &Receiver::prepare; }) {
        Receiver::prepare(open(name));
      }
    }
  }

  class Side {
   public:
    Side(const LogChannel& channel, End end)
        : sender_{channel.open(end == End::sender ? kThere : kBack), Mode::exclusive},
          receiver_{channel.open(end == End::sender ? kBack : kThere), channel.when_empty_} {
      if (channel.load_.batch > 1) batch_.emplace(sender_);
    }

    void send(Bytes message) {
      if (batch_) {
        batch_->send(message);
      } else {
        sender_.send(message);
      }
    }
    void flush() { batch_->flush(); }  // Only with a batch.
    template <class Visit>
    std::size_t receive(std::size_t at_most, const Visit& visit) {
      return receiver_.receive(at_most, visit);
    }

   private:
    TopicSender sender_;
    std::optional<TopicBatch> batch_;
    Receiver receiver_;
  };

 private:
  static constexpr char kThere[] = "there";
  static constexpr char kBack[] = "back";

  Topic open(const char* name) const { return open_topic(topics_.directory(), name); }

  // Eight segments, 8 MiB or more: a segment holds two of the largest records, or batches.
  static TopicOptions options_for(const Load& load) {
    constexpr std::uint64_t kMaxSegmentBytes = 256u << 20;
    constexpr std::uint64_t kOverhead = 16;  // Of a record.
    const std::uint64_t wanted = 2 * (load.size + kOverhead) * load.batch;
    std::uint64_t segment_bytes = 1u << 20;
    while (segment_bytes < wanted) segment_bytes *= 2;
    if (segment_bytes > kMaxSegmentBytes) {
      throw NotSupported(
          fmt::format("{} messages of {} bytes at a time would take a topic of {} MiB", load.batch,
                      load.size, 8 * segment_bytes >> 20));
    }
    return {.capacity_bytes = 8 * segment_bytes};
  }

  const Load& load_;
  WhenEmpty when_empty_;
  TemporaryTopics topics_;
};

}  // namespace leat::bench
