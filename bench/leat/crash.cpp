#include "crash.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <thread>

#include "bench/harness/clock.hpp"
#include "bench/harness/processes.hpp"
#include "bench/harness/spin.hpp"
#include "leat/log/directory.hpp"
#include "leat/log/participants.hpp"
#include "topics.hpp"

namespace leat::bench {
namespace {

constexpr char kTopic[] = "crash";
constexpr std::chrono::seconds kPatience{10};
constexpr std::chrono::seconds kTimeLimit{120};
constexpr std::size_t kRecordBytes = 64;

struct Moments {
  std::atomic<bool> victim_is_ready{false};
  std::atomic<bool> is_over{false};  // The survivor has gone on.
  std::uint64_t killed_ns = 0;
  std::uint64_t released_ns = 0;
  std::uint64_t progress_ns = 0;
};

// Asks the kernel whether a participant of the topic is dead, as the library does.
class LifeProbe {
 public:
  LifeProbe(const std::string& directory, pid_t pid) {
    const auto parent = value_of(detail::open_directory(directory, false), "open the directory");
    topic_ = value_of(detail::attach_files(parent, kTopic), "attach to the topic");
    for (std::uint32_t i = 0; i < topic_->participant_high(); ++i) {
      const detail::ParticipantSlot& slot = topic_->participant(i);
      // The victim joined before it said that it is ready.
      const std::uint64_t state = detail::load_acquire<detail::Edge::slot>(slot.state);
      const std::uint32_t owner = detail::load_relaxed<detail::Why::stored_before>(slot.pid);
      if (owner == static_cast<std::uint32_t>(pid)) state_ = state;
    }
    if (state_ == 0) throw Failure("the victim does not take part in the topic");
  }

  bool is_dead() const noexcept { return detail::is_dead(*topic_, state_); }

 private:
  std::unique_ptr<detail::MappedTopic> topic_;
  std::uint64_t state_ = 0;
};

// CPUs: one for the victim alone, the rest for the others.
struct CrashPlacement {
  explicit CrashPlacement(const std::vector<int>& cpus) : cpus_{cpus} {}
  int victim() const { return cpus_.front(); }
  int survivor() const { return of(1); }
  int killer() const { return of(2); }
  int other() const { return of(3); }

 private:
  int of(std::size_t index) const { return cpus_[std::min(index, cpus_.size() - 1)]; }
  std::vector<int> cpus_;
};

class Crash {
 public:
  Crash(const KillOptions& options, const std::vector<int>& cpus)
      : options_{options}, placement_{cpus} {
    topics_.create(kTopic, {.capacity_bytes = 256u << 10});
  }

  Recovery run() {
    std::vector<Role> roles{
        {"killer", placement_.killer(), [this](Barrier& barrier) { kill_one(barrier); }},
        {"survivor", placement_.survivor(), [this](Barrier& barrier) {
           if (options_.survivor == Survivor::publisher) {
             publish_again(barrier);
           } else {
             read_on(barrier);
           }
         }}};
    if (options_.survivor == Survivor::beside_publisher) {
      roles.push_back({"other publisher", placement_.other(),
                       [this](Barrier& barrier) { keep_publishing(barrier); }});
    }
    run_roles(roles, kTimeLimit);
    const auto us = [](std::uint64_t from_ns, std::uint64_t to_ns) {
      // The survivor may notice before the killer, which checks every 10 us.
      return to_ns > from_ns ? static_cast<double>(to_ns - from_ns) / 1000 : 0;
    };
    return {us(moments_->killed_ns, moments_->released_ns),
            us(moments_->released_ns, moments_->progress_ns)};
  }

 private:
  Topic topic() const { return open_topic(topics_.directory(), kTopic); }

  [[noreturn]] void be_victim() {
    const std::vector<std::byte> resident(options_.resident_bytes, std::byte{1});
    const Topic topic = this->topic();
    std::optional<Publisher> publisher;
    std::optional<Claim> claim;
    std::optional<Subscriber> subscriber;
    if (options_.survivor == Survivor::publisher) {
      subscriber = value_of(topic.subscriber({.from = From::beginning}), "open a subscriber");
    } else {
      publisher = value_of(topic.publisher(), "open a publisher");
      claim.emplace(value_of(publisher->try_claim(kRecordBytes), "claim"));
      std::memset(claim->payload().data(), 1, kRecordBytes / 2);
    }
    moments_->victim_is_ready.store(true, std::memory_order_release);
    while (true) ::pause();
  }

  void kill_one(Barrier& barrier) {
    ::prctl(PR_SET_TIMERSLACK, 1);  // Otherwise the kernel may add 50 us to each short sleep.
    Child victim("victim", placement_.victim(), [this] { be_victim(); });
    while (!moments_->victim_is_ready.load(std::memory_order_acquire)) {
      if (victim.has_ended()) victim.check_end();
      std::this_thread::sleep_for(std::chrono::microseconds{100});
    }
    const LifeProbe probe(topics_.directory(), victim.pid());
    barrier.meet();  // The victim's hole, or its cursor, is there.
    barrier.meet();  // The survivor starts to wait.
    std::this_thread::sleep_for(std::chrono::microseconds{options_.delay_us});

    moments_->killed_ns = now_ns();
    victim.kill(SIGKILL);
    while (!probe.is_dead()) std::this_thread::sleep_for(std::chrono::microseconds{10});
    moments_->released_ns = now_ns();
  }

  void read_on(Barrier& barrier) {
    const Topic topic = this->topic();
    const bool sleeps = options_.survivor == Survivor::asleep;
    SubscriberOptions how{.from = From::beginning};
    if (sleeps) how.spin = std::chrono::nanoseconds{0};
    Subscriber subscriber = value_of(topic.subscriber(how), "open a subscriber");
    bool has_gap = false;
    bool is_over = false;
    const auto note_progress = [&] {
      if (!is_over) moments_->progress_ns = now_ns();
      is_over = true;
    };
    subscriber.on_event([&](const Event& event) {
      if (event.first != 0 || event.count != 1 || event.reason != GapReason::died) {
        throw Failure(fmt::format("an unexpected gap: {}, {}", event.first, name_of(event.reason)));
      }
      has_gap = true;
      if (options_.survivor != Survivor::beside_publisher) note_progress();
    });
    barrier.meet();
    barrier.meet();
    Spin spin;
    const Deadline deadline{kPatience};
    while (!is_over) {
      const auto polled = subscriber.poll(1, [&](const Record&) {
        if (!has_gap) throw Failure("a record came before the gap");
        note_progress();
      });
      if (!polled) throw topic_failure("read", polled.error());
      if (is_over || *polled != 0) break;
      if (sleeps) {
        value_of(subscriber.wait(deadline), "wait");
      } else {
        if (deadline.passed()) throw Failure("no progress within 10 s of the kill");
        spin.once();
      }
    }
    moments_->is_over.store(true, std::memory_order_release);
  }

  void publish_again(Barrier& barrier) {
    const Topic topic = this->topic();
    Publisher publisher = value_of(topic.publisher(), "open a publisher");
    const std::vector<std::byte> value(kRecordBytes);
    barrier.meet();
    auto last = publisher.publish(value, Deadline::immediate());
    while (last) last = publisher.publish(value, Deadline::immediate());
    if (last.error().code != Errc::full) throw topic_failure("publish", last.error());
    barrier.meet();
    (void)value_of(publisher.publish(value, kPatience), "publish after the kill");
    moments_->progress_ns = now_ns();
  }

  void keep_publishing(Barrier& barrier) {
    const Topic topic = this->topic();
    Publisher publisher = value_of(topic.publisher(), "open a publisher");
    const std::vector<std::byte> value(kRecordBytes);
    barrier.meet();
    barrier.meet();
    while (!moments_->is_over.load(std::memory_order_acquire)) {
      (void)value_of(publisher.publish(value, kPatience), "publish");
      std::this_thread::sleep_for(std::chrono::microseconds{100});
    }
  }

  KillOptions options_;
  CrashPlacement placement_;
  TemporaryTopics topics_;
  Shared<Moments> moments_;
};

}  // namespace

Recovery measure_kill(const KillOptions& options, const std::vector<int>& cpus) {
  return Crash(options, cpus).run();
}

}  // namespace leat::bench
