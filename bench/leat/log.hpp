// One measurement of a topic's log: publishers and subscribers in pinned processes of their own, each of
// which opens the topic itself.
//
//     MessageCost cost = measure_log({.size = 100, .records = 5'000'000}, {0, 1});
//
// The topic blocks when full; every subscriber is a gating one and reads from the
// beginning. As a warm-up, twice the topic's capacity passes through it. Every record is verified;
// throws Failure if one was wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/harness/one_way.hpp"
#include "bench/harness/round_trip.hpp"
#include "topic_ends.hpp"

namespace leat::bench {

inline constexpr std::uint64_t kLogCapacityBytes = 8u << 20;  // A topic's default.
inline constexpr char kLogTopic[] = "log";

struct LogOptions {
  std::size_t size = 100;
  std::uint64_t records = 1'000'000;  // By all publishers together.
  std::uint32_t publishers = 1;
  std::uint32_t subscribers = 1;
  Mode mode = Mode::exclusive;
  std::uint32_t batch = 1;  // Records that become visible at a time.
  std::uint64_t rate = 0;   // Records per second and publisher; 0: as fast as possible.
  std::uint64_t capacity_bytes = kLogCapacityBytes;
  Verify verify = Verify::ends;

  friend bool operator==(const LogOptions&, const LogOptions&) = default;
};

// CPU time is summed over the publishers; over the subscribers it is their mean.
MessageCost measure_log(const LogOptions& options, const std::vector<int>& cpus);

// A round trip through two topics of 8 MiB. The answerer publishes what it reads, straight from the
// log. Spinning, both sides poll without a pause; blocking, they sleep without spinning first.
RoundTrip log_round_trip(const Load& load, const Placement& placement);

// The ends of the topic.
struct LogSender : TopicSender {
  LogSender(const std::string& directory, Mode mode)
      : TopicSender{open_topic(directory, kLogTopic), mode} {}
};
struct LogReceiver : TopicReceiver {
  explicit LogReceiver(const std::string& directory)
      : TopicReceiver{open_topic(directory, kLogTopic), WhenEmpty::pause} {}
};

// So many messages of each publisher that every page of the topic is used twice.
std::uint64_t warm_up_of_log(std::size_t size, std::uint32_t publishers,
                             std::uint64_t capacity_bytes = kLogCapacityBytes);

}  // namespace leat::bench
