#include "idle.hpp"

#include <fmt/format.h>

#include <atomic>
#include <ctime>
#include <memory>

#include "topics.hpp"

namespace leat::bench {
namespace {

constexpr char kTopic[] = "idle";
constexpr std::chrono::seconds kPatience{30};

// CPU time that a child has used, all its threads together.
std::uint64_t cpu_ns_of(const Child& child) {
  clockid_t clock{};
  timespec time{};
  if (::clock_getcpuclockid(child.pid(), &clock) != 0 || ::clock_gettime(clock, &time) != 0) {
    throw system_failure("cannot read the CPU time of a subscriber");
  }
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(time.tv_nsec);
}

class Idlers {
 public:
  Idlers(const IdleOptions& options, const std::vector<int>& cpus) : options_{options} {
    topics_.create(kTopic, {.capacity_bytes = 1u << 20});
    const Placement placement{cpus};
    for (std::uint32_t i = 0; i < options.subscribers; ++i) {
      children_.push_back(std::make_unique<Child>("subscriber", placement.cpu(i), [this] {
        const Topic topic = open_topic(topics_.directory(), kTopic);
        Subscriber subscriber = value_of(topic.subscriber(), "open a subscriber");
        waiting_->fetch_add(1);
        (void)value_of(subscriber.receive(), "wait for a record");
      }));
    }
  }

  // CPU time of all subscribers together while they wait.
  std::uint64_t measure(const SignalScope& signals) {
    wait_until(signals, kPatience, "not all subscribers wait in time",
               [&] { return waiting_->load() == options_.subscribers; });
    const auto check = [this] { check_children(); };
    wait_for(signals, 0.1, check);  // They spin for some microseconds before they sleep.
    const std::uint64_t before_ns = cpu_ns();
    wait_for(signals, options_.seconds, check);
    const std::uint64_t used_ns = cpu_ns() - before_ns;
    wake(signals);
    return used_ns;
  }

 private:
  std::uint64_t cpu_ns() const {
    std::uint64_t sum_ns = 0;
    for (const auto& child : children_) sum_ns += cpu_ns_of(*child);
    return sum_ns;
  }

  // Shows that all have waited for a record until now: one is published, and all get it.
  void wake(const SignalScope& signals) {
    children_.push_back(std::make_unique<Child>("publisher", kAnyCpu, [this] {
      const Topic topic = open_topic(topics_.directory(), kTopic);
      Publisher publisher = value_of(topic.publisher(), "open a publisher");
      (void)value_of(publisher.publish("at last"), "publish");
    }));
    wait_until(signals, kPatience, "not all subscribers receive the record in time", [&] {
      std::erase_if(children_, [](const auto& child) { return ended_well(*child); });
      return children_.empty();
    });
  }

  static bool ended_well(Child& child) {
    if (!child.has_ended()) return false;
    child.check_end();
    return true;
  }

  void check_children() const {
    for (const auto& child : children_) {
      if (ended_well(*child)) throw Failure("a subscriber ended, though there was no record");
    }
  }

  const IdleOptions options_;
  TemporaryTopics topics_;
  Shared<std::atomic<std::uint32_t>> waiting_{0u};
  std::vector<std::unique_ptr<Child>> children_;
};

}  // namespace

std::uint64_t measure_idle(const IdleOptions& options, const std::vector<int>& cpus,
                           const SignalScope& signals) {
  return Idlers(options, cpus).measure(signals);
}

}  // namespace leat::bench
