#include "crowd.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "bench/harness/one_way.hpp"

namespace leat::bench::broker {
namespace {

constexpr std::uint32_t kIdleTopics = 100;
constexpr std::uint32_t kActiveTopics = 10;
constexpr std::size_t kSize = 100;
constexpr std::chrono::seconds kTopicIdleTime{10};  // Of the broker's defaults.
constexpr std::uint64_t kWarmUp = kCrowdRate / 10;  // Messages.
constexpr int kTurns = 5;
constexpr double kShortestTurn = 1;      // Seconds.
constexpr std::size_t kAtOnce = 1;       // Byte after which a client sends what it collects.
constexpr std::size_t kSmallRead = 256;  // Thousands of clients have a buffer.
constexpr std::uint64_t kDescriptorsForOthers = 1000;  // Ports, topics, clients.
constexpr std::chrono::seconds kPatience{120};

void sleep_until(std::uint64_t due_ns) {
  const timespec due{static_cast<time_t>(due_ns / 1'000'000'000),
                     static_cast<long>(due_ns % 1'000'000'000)};
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, nullptr) == EINTR) {
  }
}

// How many connections the broker, and one process beside it, may have.
std::uint32_t most_connections(std::uint32_t wanted) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) throw system_failure("cannot tell the limits");
  const std::uint64_t most =
      limit.rlim_max > kDescriptorsForOthers ? limit.rlim_max - kDescriptorsForOthers : 0;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(wanted, most));
}

void allow_many_descriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) throw system_failure("cannot tell the limits");
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) throw system_failure("cannot raise a limit");
}

// --- Clients that send and get messages ----------------------------------------------------------

using Clients = std::vector<std::unique_ptr<RawSocket>>;

// One for each pair, on the topics in turn.
Clients connect(const std::vector<Endpoint>& topics) {
  Clients clients;
  for (std::uint32_t i = 0; i < kCrowdPairs; ++i)
    clients.push_back(raw_client(topics[i % topics.size()], kAtOnce));
  return clients;
}

std::vector<pollfd> poll_items(const Clients& clients) {
  std::vector<pollfd> items;
  for (const auto& client : clients)
    items.push_back({.fd = client->fd(), .events = POLLIN, .revents = 0});
  return items;
}

void send_all(const Clients& producers, std::uint64_t count, const Schedule& schedule) {
  ::prctl(PR_SET_TIMERSLACK, 1);
  std::array<std::byte, kSize> message{};
  for (std::uint64_t i = 0; i < count; ++i) {
    sleep_until(schedule.due_ns(i));
    std::memcpy(message.data(), &i, sizeof i);
    producers[i % producers.size()]->send(message);
  }
}

// Returns how late the messages were, without the first ones.
std::vector<std::uint64_t> receive_all(const Clients& pullers, std::uint64_t count,
                                       const Schedule& schedule) {
  auto items = poll_items(pullers);
  std::vector<std::uint64_t> samples_ns;
  std::vector<bool> seen(count);
  const auto note = [&](std::span<const std::byte> message, std::uint64_t at_ns) {
    std::uint64_t number = count;
    if (message.size() == kSize) std::memcpy(&number, message.data(), sizeof number);
    if (number >= count || seen[number]) throw Failure("a message is wrong, or came twice");
    seen[number] = true;
    const std::uint64_t due_ns = schedule.due_ns(number);
    if (number >= kWarmUp) samples_ns.push_back(at_ns > due_ns ? at_ns - due_ns : 0);
  };
  for (std::uint64_t received = 0; received < count;) {
    const int ready = ::poll(items.data(), items.size(), 20'000);
    if (ready == 0) throw Failure(fmt::format("only {} of {} messages came", received, count));
    for (std::size_t i = 0; ready > 0 && i < items.size(); ++i) {
      if (items[i].revents == 0) continue;
      while (const auto message = pullers[i]->next({})) {
        note(*message, now_ns());
        ++received;
      }
    }
  }
  return samples_ns;
}

// --- The crowd -----------------------------------------------------------------------------------

// Clients of their own process, which have joined and wait.
class IdleClients {
 public:
  IdleClients(const std::vector<Endpoint>& topics, std::uint32_t count,
              const SignalScope& signals) {
    child_ = std::make_unique<Child>("process with idle clients", kAnyCpu, [&] {
      allow_many_descriptors();
      Clients clients;
      for (std::uint32_t i = 0; i < count; ++i) {
        clients.push_back(raw_client(topics[i % topics.size()], kAtOnce, kSmallRead));
        connected_->fetch_add(1);
      }
      wait_in_vain(clients);
    });
    wait_until(signals, kPatience, "not all idle clients are connected", [&] {
      check();
      return connected_->load() == count;
    });
  }

  void check() const {
    if (child_->has_ended()) child_->check_end();
  }

 private:
  [[noreturn]] static void wait_in_vain(const Clients& clients) {
    auto items = poll_items(clients);
    while (::poll(items.data(), items.size(), -1) < 0) {
    }
    throw Failure("an idle client got something, or was closed");
  }

  Shared<std::atomic<std::uint32_t>> connected_{0u};
  std::unique_ptr<Child> child_;
};

// A process that guesses: passwords of a topic, names of topics, and tokens. It has begun.
class WrongLogins {
 public:
  WrongLogins(const ServedBroker& broker, const std::string& topic, const Endpoint& endpoint,
              const SignalScope& signals) {
    child_ = std::make_unique<Child>("process that guesses passwords", kAnyCpu, [&] {
      // It stands for strangers on other machines: it must not take the CPUs of the clients that are measured.
      const sched_param none{};
      (void)::sched_setscheduler(0, SCHED_IDLE, &none);
      guess(broker, topic, {endpoint.uri, "", R"({"type": "pull", "token": "guessed"})"});
    });
    wait_until(signals, kPatience, "no wrong login is answered", [this] {
      check();
      return answered() != 0;
    });
  }

  std::uint64_t answered() const { return answered_->load(); }
  void check() const {
    if (child_->has_ended()) child_->check_end();
  }

 private:
  [[noreturn]] void guess(const ServedBroker& broker, const std::string& topic,
                          const Endpoint& endpoint) {
    Administration administration{broker};
    const Schedule schedule{now_ns(), static_cast<std::uint64_t>(kWrongLoginRate)};
    for (std::uint64_t i = 0;; ++i) {
      sleep_until(schedule.due_ns(i));
      const bool is_in = i % 3 == 2   ? is_let_in(endpoint)
                         : i % 3 == 1 ? administration.lets_in("no-" + topic, "guessed")
                                      : administration.lets_in(topic, fmt::format("guess {}", i));
      if (is_in) throw Failure("a wrong login was right");
      answered_->fetch_add(1);
    }
  }
  static bool is_let_in(const Endpoint& endpoint) {
    try {
      (void)raw_client(endpoint, kAtOnce, kSmallRead);
      return true;
    } catch (const Refused&) {
      return false;
    }
  }

  Shared<std::atomic<std::uint64_t>> answered_{0u};
  std::unique_ptr<Child> child_;
};

// --- The measurement -----------------------------------------------------------------------------

class Measurement {
 public:
  Measurement(const Places& places, const CrowdLoad& load)
      : load_{load}, broker_{places}, idle_connections_{most_connections(load.idle)} {
    Administration administration{broker_};
    for (std::uint32_t i = 0; i < kActiveTopics; ++i) {
      const std::string topic = fmt::format("active-{}", i);
      administration.create_topic(topic, "queue");
      pullers_.push_back(administration.join(topic, "pull", true));
      producers_.push_back(administration.join(topic, "pub", true));
    }
    for (std::uint32_t i = 0; i < std::min(kIdleTopics, idle_connections_); ++i) {
      const std::string topic = fmt::format("idle-{}", i);
      administration.create_topic(topic, "queue");
      idle_.push_back(administration.join(topic, "pull", true));
    }
    // Nobody uses these topics yet. Closing them takes the broker a moment each, and is not what is measured.
    std::this_thread::sleep_for(kTopicIdleTime + std::chrono::seconds{1});
  }

  CrowdCost run(const SignalScope& signals) {
    CrowdCost cost;
    cost.idle_connections = idle_connections_;
    (void)latency();  // The topics' first pages are new.
    std::vector<Latency> alone, beside_wrong_logins, beside_idle;
    std::uint64_t answered = 0, guessed_ns = 0;
    for (int turn = 0; turn < kTurns; ++turn) {
      alone.push_back(latency());
      const WrongLogins guesses{broker_, "active-0", pullers_.front(), signals};
      const std::uint64_t before = guesses.answered();
      const std::uint64_t before_ns = now_ns();
      beside_wrong_logins.push_back(latency());
      guesses.check();
      answered += guesses.answered() - before;
      guessed_ns += now_ns() - before_ns;
    }
    const IdleClients idle{idle_, idle_connections_, signals};
    cost.idle_memory = broker_.memory();
    for (int turn = 0; turn < kTurns; ++turn) beside_idle.push_back(latency());
    cost.memory = broker_.memory();
    idle.check();
    cost.alone = median_turn(std::move(alone));
    cost.beside_wrong_logins = median_turn(std::move(beside_wrong_logins));
    cost.beside_idle = median_turn(std::move(beside_idle));
    cost.wrong_logins_per_second =
        static_cast<double>(answered) * 1e9 / static_cast<double>(guessed_ns);
    return cost;
  }

 private:
  // A hypervisor that takes the CPUs away for a few milliseconds makes the p99 of one turn, but not of most.
  static Latency median_turn(std::vector<Latency> turns) {
    const auto middle = turns.begin() + kTurns / 2;
    std::ranges::nth_element(turns, middle, {}, &Latency::p99);
    return *middle;
  }

  Latency latency() const {
    const double seconds = std::max(load_.seconds / kTurns, kShortestTurn);
    const std::uint64_t count = kWarmUp + static_cast<std::uint64_t>(seconds * kCrowdRate);
    struct Board {
      std::uint64_t start_ns = 0;  // Written before a barrier, read after it.
      Latency latency;
    };
    const Shared<Board> board;
    run_roles({{"pullers", kAnyCpu,
                [&](Barrier& barrier) {
                  const Clients pullers = connect(pullers_);
                  barrier.meet();
                  barrier.meet();
                  auto samples_ns = receive_all(pullers, count, {board->start_ns, kCrowdRate});
                  board->latency = latency_of(samples_ns);
                  barrier.meet();
                }},
               {"producers", kAnyCpu,
                [&](Barrier& barrier) {
                  const Clients producers = connect(producers_);
                  barrier.meet();
                  board->start_ns = now_ns() + 1'000'000;
                  barrier.meet();
                  send_all(producers, count, {board->start_ns, kCrowdRate});
                  barrier.meet();  // Nobody closes its end before all are done.
                }}},
              kPatience + std::chrono::seconds{count / kCrowdRate});
    return board->latency;
  }

  const CrowdLoad load_;
  const ServedBroker broker_;
  const std::uint32_t idle_connections_;
  std::vector<Endpoint> pullers_, producers_, idle_;  // Of the topics.
};

}  // namespace

CrowdCost measure_crowd(const Places& places, const CrowdLoad& load, const SignalScope& signals) {
  return Measurement{places, load}.run(signals);
}

}  // namespace leat::bench::broker
