// The processes of a measurement of the log: what publishes, and what subscribes and verifies.
//
//     LogPublisher publisher(options, topics.directory(), 0);  // the first of options.publishers
//     publisher.measure(count, times);
//
//     LogSubscriber subscriber(options, topics.directory());
//     subscriber.receive(count);
//
// Each is made in the process (and thread) that uses it. Both throw Failure.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "log_run.hpp"
#include "round_trip.hpp"
#include "topics.hpp"

namespace leat::bench {

inline constexpr char kLogTopic[] = "log";
inline constexpr std::size_t kMaxRoles = 256;  // As many participants as a topic has by default.

// What a role leaves behind.
struct RoleTimes {
  std::uint64_t started_ns = 0;
  std::uint64_t ended_ns = 0;
  std::uint64_t cpu_ns = 0;
  std::uint64_t wait_ns = 0;
};

// A publisher that finds no room sleeps, and sleeping takes no CPU time: so that is the time the
// publishing took, and the rest of the time it waited. (On a busy machine: also for its CPU.)
template <class Publish>
void measure_publishing(RoleTimes& times, const Publish& publish) {
  times.started_ns = now_ns();
  const std::uint64_t cpu_before_ns = thread_cpu_ns();
  publish();
  times.cpu_ns = thread_cpu_ns() - cpu_before_ns;
  times.ended_ns = now_ns();
  const std::uint64_t elapsed_ns = times.ended_ns - times.started_ns;
  times.wait_ns = elapsed_ns > times.cpu_ns ? elapsed_ns - times.cpu_ns : 0;
}

class LogPublisher {
 public:
  LogPublisher(const LogOptions& options, const std::string& directory, std::uint64_t index)
      : options_{options},
        payload_{options.size, options.verify},
        outgoing_{payload_, index, std::uint64_t{1} << publisher_bits(options.publishers)},
        topic_{open_topic(directory, kLogTopic)},
        publisher_{value_of(topic_.publisher({.exclusive = options.mode == Mode::exclusive}),
                            "open a publisher")},
        batch_{value_of(publisher_.batch(), "open a batch")} {}

  void publish(std::uint64_t count) {
    if (options_.keys != 0) return publish_keyed(count);
    if (options_.batch == 1) {
      for (std::uint64_t i = 0; i < count; ++i) {
        if (auto offset = publisher_.publish(outgoing_.next()); !offset) [[unlikely]]
          throw topic_failure("publish", offset.error());
      }
      return;
    }
    for (std::uint64_t left = count; left != 0;) {
      const std::uint64_t now = std::min<std::uint64_t>(left, options_.batch);
      for (std::uint64_t i = 0; i < now; ++i) {
        if (auto added = batch_.add(outgoing_.next()); !added) [[unlikely]]
          throw topic_failure("add to a batch", added.error());
      }
      if (auto offset = batch_.commit(); !offset) [[unlikely]]
        throw topic_failure("publish a batch", offset.error());
      left -= now;
    }
  }

  // Keys in no order that is like that of the records.
  void publish_keyed(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      random_ = random_ * 6'364'136'223'846'793'005ULL + 1'442'695'040'888'963'407ULL;
      const std::uint64_t key = (random_ >> 33) % options_.keys;
      const NewRecord record{.key = Bytes{reinterpret_cast<const std::byte*>(&key), sizeof key},
                             .value = outgoing_.next()};
      if (auto offset = publisher_.publish(record); !offset) [[unlikely]]
        throw topic_failure("publish", offset.error());
    }
  }

  void measure(std::uint64_t count, RoleTimes& times) {
    measure_publishing(times, [&] { publish(count); });
  }

  // Each record has a time when it is to be sent; a late one is sent at once. Waiting for that time
  // is spinning, so here CPU time says nothing: instead the clock is read around each group, and
  // what reading it costs is taken off.
  void measure_at_rate(std::uint64_t count, RoleTimes& times) {
    const std::uint64_t clock_ns = clock_cost_ns();
    const double interval_ns = 1e9 / static_cast<double>(options_.rate);
    Spin spin;
    times.started_ns = now_ns();
    for (std::uint64_t sent = 0; sent < count;) {
      const std::uint64_t group = std::min(count - sent, kPacedGroup);
      const auto due_ns = times.started_ns + static_cast<std::uint64_t>(
                                                 static_cast<double>(sent + group) * interval_ns);
      while (now_ns() < due_ns) spin.once();
      const std::uint64_t before_ns = now_ns();
      publish(group);
      const std::uint64_t took_ns = now_ns() - before_ns;
      (took_ns < kLongGroupNs ? times.cpu_ns : times.wait_ns) +=
          took_ns > clock_ns ? took_ns - clock_ns : 0;
      sent += group;
    }
    times.ended_ns = now_ns();
  }

 private:
  // At a rate, this many records are published in a row, when the last of them is due: reading the
  // clock around each would cost more than publishing it.
  static constexpr std::uint64_t kPacedGroup = 16;
  // A group that took this long has waited, for room or for its CPU; publishing one takes about 1 us.
  static constexpr std::uint64_t kLongGroupNs = 50'000;

  const LogOptions& options_;
  Payload payload_;
  OutgoingPayloads outgoing_;
  Topic topic_;
  Publisher publisher_;
  std::uint64_t random_ = 1;
  Batch batch_;
};

class LogSubscriber {
 public:
  LogSubscriber(const LogOptions& options, const std::string& directory)
      : payload_{options.size, options.verify},
        topic_{open_topic(directory, kLogTopic)},
        subscriber_{value_of(topic_.subscriber({.from = From::beginning}), "open a subscriber")},
        bits_{publisher_bits(options.publishers)},
        next_(options.publishers) {
    for (std::size_t i = 0; i < next_.size(); ++i) next_[i] = i;
    subscriber_.on_event([](const Event& event) {
      throw Failure(fmt::format("offset {}: a gap of {} records ({})", event.first, event.count,
                                name_of(event.reason)));
    });
  }

  // So many records, each verified.
  void receive(std::uint64_t count) {
    if (bits_ == 0) {
      std::uint64_t next = next_[0];  // A copy: the compiler keeps it in a register.
      poll_all(count, [&](Bytes value) {
        return value.size() == payload_.size() && payload_.check(value.data(), next++);
      });
      next_[0] = next;
    } else {
      poll_all(count, [&](Bytes value) { return is_next_of_its_publisher(value); });
    }
  }

 private:
  static constexpr std::size_t kPollLimit = 1000;

  template <class IsRight>
  void poll_all(std::uint64_t count, const IsRight& is_right) {
    for (std::uint64_t left = count; left != 0;) {
      bool all_right = true;
      const auto polled =
          subscriber_.poll(std::min<std::uint64_t>(left, kPollLimit),
                           [&](const Record& record) { all_right &= is_right(record.value); });
      if (!polled) throw topic_failure("read", polled.error());
      if (!all_right) {
        throw Failure(fmt::format("a record before offset {} is not the one that was published",
                                  subscriber_.offset()));
      }
      left -= *polled;
      if (*polled == 0) spin_.once();
    }
  }

  bool is_next_of_its_publisher(Bytes value) {
    std::uint64_t sequence = 0;
    if (value.size() != payload_.size() || value.size() < sizeof sequence) return false;
    std::memcpy(&sequence, value.data(), sizeof sequence);
    const std::uint64_t publisher = sequence & ((std::uint64_t{1} << bits_) - 1);
    if (publisher >= next_.size() || sequence != next_[publisher]) return false;
    next_[publisher] += std::uint64_t{1} << bits_;
    return payload_.check(value.data(), sequence);
  }

  Payload payload_;
  Topic topic_;
  Subscriber subscriber_;
  unsigned bits_;
  std::vector<std::uint64_t> next_;  // By publisher.
  Spin spin_;
};

}  // namespace leat::bench
