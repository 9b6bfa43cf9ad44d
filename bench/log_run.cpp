#include "log_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

#include "log_roles.hpp"
#include "topics.hpp"

namespace leat::bench {
namespace {

std::uint64_t records_of_each(const LogOptions& options) {
  return (options.records + options.publishers - 1) / options.publishers;
}

// So many that every page of the topic was used twice.
std::uint64_t warm_up_of_each(const LogOptions& options) {
  const std::uint64_t at_least = (options.size + 16) / 16 * 16;
  return 2 * kLogCapacityBytes / at_least / options.publishers + 1;
}

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
    throw Failure(kExitUsage, fmt::format("at most {} of each", kMaxRoles));
  }
  const TemporaryTopics topics;
  topics.create(kLogTopic, {.capacity_bytes = kLogCapacityBytes, .policy = Policy::block});
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
