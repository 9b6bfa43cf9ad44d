#include "log_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>

#include "statistics.hpp"
#include "topics.hpp"

namespace leat::bench {
namespace {

constexpr char kTopic[] = "log";
constexpr std::size_t kPollLimit = 1000;
constexpr std::size_t kMaxRoles = 256;  // As many participants as a topic has by default.

// At a rate, this many records are published in a row, when the last of them is due: reading the
// clock around each would cost more than publishing it.
constexpr std::uint64_t kPacedGroup = 16;
// A group that took this long has waited, for room or for its CPU; publishing one takes about 1 us.
constexpr std::uint64_t kLongGroupNs = 50'000;

// What a role leaves behind.
struct RoleTimes {
  std::uint64_t started_ns = 0;
  std::uint64_t ended_ns = 0;
  std::uint64_t cpu_ns = 0;
  std::uint64_t wait_ns = 0;
};

std::uint64_t records_of_each(const LogOptions& options) {
  return (options.records + options.publishers - 1) / options.publishers;
}

// So many that every page of the topic was used twice.
std::uint64_t warm_up_of_each(const LogOptions& options) {
  const std::uint64_t at_least = (options.size + 16) / 16 * 16;
  return 2 * kLogCapacityBytes / at_least / options.publishers + 1;
}

// What reading the clock twice adds to the time between.
std::uint64_t clock_cost_ns() {
  std::vector<double> costs_ns;
  for (int i = 0; i < 1001; ++i) {
    const std::uint64_t before_ns = now_ns();
    costs_ns.push_back(static_cast<double>(now_ns() - before_ns));
  }
  return static_cast<std::uint64_t>(median(std::move(costs_ns)));
}

class LogPublisher {
 public:
  LogPublisher(const LogOptions& options, const std::string& directory, std::uint64_t index)
      : options_{options},
        payload_{options.size, options.verify},
        outgoing_{payload_, index, std::uint64_t{1} << publisher_bits(options.publishers)},
        topic_{open_topic(directory, kTopic)},
        publisher_{value_of(topic_.publisher({.exclusive = options.mode == Mode::exclusive}),
                            "open a publisher")},
        batch_{value_of(publisher_.batch(), "open a batch")} {}

  void publish(std::uint64_t count) {
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

  // A publisher that finds no room sleeps, and sleeping takes no CPU time: so that is the time the
  // publishing took, and the rest of the time it waited. (On a busy machine: also for its CPU.)
  void measure(std::uint64_t count, RoleTimes& times) {
    times.started_ns = now_ns();
    const std::uint64_t cpu_before_ns = thread_cpu_ns();
    publish(count);
    times.cpu_ns = thread_cpu_ns() - cpu_before_ns;
    times.ended_ns = now_ns();
    const std::uint64_t elapsed_ns = times.ended_ns - times.started_ns;
    times.wait_ns = elapsed_ns > times.cpu_ns ? elapsed_ns - times.cpu_ns : 0;
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
  const LogOptions& options_;
  Payload payload_;
  OutgoingPayloads outgoing_;
  Topic topic_;
  Publisher publisher_;
  Batch batch_;
};

class LogSubscriber {
 public:
  LogSubscriber(const LogOptions& options, const std::string& directory)
      : payload_{options.size, options.verify},
        topic_{open_topic(directory, kTopic)},
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

std::chrono::seconds time_limit(const LogOptions& options) {
  constexpr std::uint64_t kSlowestPerSecond = 50'000;
  const std::uint64_t slowest =
      options.rate == 0 ? kSlowestPerSecond : std::min(options.rate, kSlowestPerSecond);
  return std::chrono::seconds{120 + records_of_each(options) / slowest};
}

LogCost summarise(const LogOptions& options, const RoleTimes* publishers,
                  const RoleTimes* subscribers) {
  std::uint64_t started_ns = UINT64_MAX;
  std::uint64_t ended_ns = 0;
  double publisher_cpu_ns = 0, publisher_wait_ns = 0, subscriber_cpu_ns = 0;
  for (std::uint32_t i = 0; i < options.publishers; ++i) {
    started_ns = std::min(started_ns, publishers[i].started_ns);
    publisher_cpu_ns += static_cast<double>(publishers[i].cpu_ns);
    publisher_wait_ns += static_cast<double>(publishers[i].wait_ns);
  }
  for (std::uint32_t i = 0; i < options.subscribers; ++i) {
    ended_ns = std::max(ended_ns, subscribers[i].ended_ns);
    subscriber_cpu_ns += static_cast<double>(subscribers[i].cpu_ns);
  }
  const auto records = static_cast<double>(records_of_each(options) * options.publishers);
  return {.ns_per_record = static_cast<double>(ended_ns - started_ns) / records,
          .publisher_cpu_ns_per_record = publisher_cpu_ns / records,
          .publisher_wait_ns_per_record = publisher_wait_ns / records,
          .subscriber_cpu_ns_per_record = subscriber_cpu_ns / options.subscribers / records};
}

}  // namespace

unsigned publisher_bits(std::uint32_t publishers) noexcept {
  return static_cast<unsigned>(std::bit_width(publishers - 1));
}

LogPlacement place_log(const std::vector<int>& cpus, std::uint32_t publishers,
                       std::uint32_t subscribers) {
  if (cpus.size() < 2) return {{cpus}, {cpus}};
  // What the subscribers leave, but at least half; and no more than there are publishers.
  const std::size_t left = cpus.size() - std::min<std::size_t>(subscribers, cpus.size() - 1);
  const std::size_t split = std::min<std::size_t>(publishers, std::max(left, cpus.size() / 2));
  const auto middle = cpus.begin() + static_cast<std::ptrdiff_t>(split);
  return {{{cpus.begin(), middle}}, {{middle, cpus.end()}}};
}

LogCost measure_log(const LogOptions& options, const std::vector<int>& cpus) {
  if (options.publishers > kMaxRoles || options.subscribers > kMaxRoles) {
    throw Failure(kExitBadUsage, fmt::format("at most {} of each", kMaxRoles));
  }
  const TemporaryTopics topics;
  topics.create(kTopic, {.capacity_bytes = kLogCapacityBytes, .policy = Policy::block});
  const Shared<std::array<RoleTimes, kMaxRoles>> publishers;
  const Shared<std::array<RoleTimes, kMaxRoles>> subscribers;
  const LogPlacement placement = place_log(cpus, options.publishers, options.subscribers);
  const std::uint64_t each = records_of_each(options);
  const std::uint64_t warm_up = warm_up_of_each(options);

  std::vector<Role> roles;
  for (std::uint32_t i = 0; i < options.publishers; ++i) {
    roles.push_back({"publisher", placement.publishers.cpu(i), [&, i](Barrier& barrier) {
                       LogPublisher publisher(options, topics.directory(), i);
                       barrier.meet();  // All are there: nothing is reused before it was read.
                       publisher.publish(warm_up);
                       barrier.meet();
                       if (options.rate == 0) {
                         publisher.measure(each, (*publishers)[i]);
                       } else {
                         publisher.measure_at_rate(each, (*publishers)[i]);
                       }
                     }});
  }
  for (std::uint32_t i = 0; i < options.subscribers; ++i) {
    roles.push_back({"subscriber", placement.subscribers.cpu(i), [&, i](Barrier& barrier) {
                       LogSubscriber subscriber(options, topics.directory());
                       barrier.meet();
                       subscriber.receive(warm_up * options.publishers);
                       barrier.meet();
                       const std::uint64_t cpu_before_ns = thread_cpu_ns();
                       subscriber.receive(each * options.publishers);
                       RoleTimes& times = (*subscribers)[i];
                       times.ended_ns = now_ns();
                       times.cpu_ns = thread_cpu_ns() - cpu_before_ns;
                     }});
  }
  run_roles(roles, time_limit(options));
  return summarise(options, publishers->data(), subscribers->data());
}

}  // namespace leat::bench
