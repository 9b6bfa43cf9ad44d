// A storm over the acknowledgements of a group on a durable topic: archivers, members and publishers are killed and
// stopped at random, and now and then the machine fails: all processes die, and what is in memory is lost. If this failed,
// a failure of the machine could forget more acknowledgements than those of the last second and of the time while
// archivers took over from each other.
//
// SOAK_SECONDS makes it longer. LEAT_SEED=seed repeats it as far as the scheduler permits.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "leat/leat.hpp"
#include "leat/log/directory.hpp"
#include "leat/log/mapped_topic.hpp"
#include "stormed_topic.hpp"
#include "support/process.hpp"
#include "support/random.hpp"

namespace leat::testing {
namespace {

// The first process publishes, some are members of the group, and the others only keep the topic.
constexpr std::size_t kMembers = 2;
constexpr std::size_t kProcesses = 1 + kMembers + 4;
constexpr std::size_t kMostRecords = 1'000'000;
constexpr std::size_t kMostFailures = 10'000;
constexpr std::int64_t kMs = 1'000'000;

struct Failure {
  std::atomic<std::int64_t> at_ns;
  std::atomic<std::int64_t> kept_until_ns;  // What was acknowledged before must not be forgotten.
};
// In a calm, acknowledgements come for seconds after the last claim.
enum class Weather : std::uint8_t {
  storm,
  draining,  // Nothing is published, and members acknowledge at once.
  calm,      // Some records are published, and acknowledged slowly.
};
struct Account {
  std::atomic<Weather> weather;
  std::atomic<std::uint64_t> begun;
  std::atomic<std::uint64_t> acknowledged;
  std::atomic<std::uint64_t> forgotten;
  // When a record was acknowledged; 0: not since it was delivered last.
  std::atomic<std::int64_t> acknowledged_ns[kMostRecords];
  std::atomic<std::uint32_t> failures;
  Failure failure[kMostFailures];
  std::atomic<std::uint32_t> complaints;
};

// How long the window had an archiver that could save, as seen by a process that checks every millisecond.
class ArchiverWatch {
 public:
  // `is_running`: whether the process with this pid is running.
  template <class IsRunning>
  void poll(const std::string& topics, const IsRunning& is_running) {
    const std::int64_t now = detail::now_ns();
    const bool is_kept = inspect_window(topics, now, is_running) || now - hit_ns_ > kLongest;
    if (is_kept && was_kept_) {
      if (!kept_.empty() && kept_.back().end == checked_ns_)
        kept_.back().end = now;
      else
        kept_.push_back({checked_ns_, now});
    }
    was_kept_ = is_kept;
    checked_ns_ = now;
  }
  // The archiver, or everybody, is killed or stopped: others may take their time to take over.
  void hit() noexcept {
    hit_ns_ = detail::now_ns();
    was_kept_ = false;
  }
  void hit(::pid_t pid) noexcept {
    if (pid == static_cast<::pid_t>(pid_)) hit();
  }
  void lose_window() noexcept { topic_.reset(); }
  // The moment since which an archiver had one second for saving.
  std::int64_t second_began_ns() const noexcept {
    std::int64_t left = kSecond;
    for (auto one = kept_.rbegin(); one != kept_.rend(); ++one) {
      if (one->end - one->begin >= left) return one->end - left;
      left -= one->end - one->begin;
    }
    return 0;
  }
  std::uint32_t archiver_pid() const noexcept { return pid_; }

 private:
  struct Span {
    std::int64_t begin;
    std::int64_t end;
  };
  // A second, and the time for a save.
  static constexpr std::int64_t kSecond = 1250 * kMs;
  // An archiver that does not get a processor does not count while it does not move,
  static constexpr std::int64_t kSilence = 300 * kMs;
  // also one that only looks for acknowledgements, once a second,
  static constexpr std::int64_t kCalmSilence = 1300 * kMs;
  // and neither does a take-over, up to this long: 5 s are promised, and the machine may be busy.
  static constexpr std::int64_t kLongest = 7000 * kMs;

  template <class IsRunning>
  bool inspect_window(const std::string& topics, std::int64_t now, const IsRunning& is_running) {
    if (topic_ == nullptr) {
      auto directory = detail::open_directory_path(topics, false, false);
      if (!directory) return false;
      auto found = detail::attach_files(*directory, "d");
      if (!found) return false;
      topic_ = std::move(*found);
    }
    const detail::DurableHeader& header = topic_->durable()->header();
    using detail::Why;
    pid_ = detail::load_relaxed<Why::hint>(header.archiver_pid);
    const std::uint64_t epoch = topic_->durable()->epoch();
    const std::uint32_t beats = detail::load_relaxed<Why::hint>(header.beats);
    if (epoch != epoch_) hit();
    if (epoch != epoch_ || beats != beats_) beat_ns_ = now;
    epoch_ = epoch;
    beats_ = beats;
    const std::uint32_t groups = detail::load_relaxed<Why::hint>(header.groups);
    const std::int64_t silence = groups == detail::kGroupsUnsettled ? kCalmSilence : kSilence;
    return is_running(pid_) && (groups == 0 || now - beat_ns_ < silence);
  }

  std::unique_ptr<detail::MappedTopic> topic_;
  std::vector<Span> kept_;
  std::int64_t checked_ns_ = 0;
  std::int64_t hit_ns_ = 0;
  std::int64_t beat_ns_ = 0;
  std::uint64_t epoch_ = 0;
  std::uint32_t beats_ = 0;
  std::uint32_t pid_ = 0;
  bool was_kept_ = false;
};

class ForgottenStorm {
 public:
  explicit ForgottenStorm(std::uint64_t seed) : random_{seed} {
    Child first{[&]() -> int {
      CHILD_CHECK_OK(topic_.create().group("g", {.from = From::beginning}));
      return 0;
    }};
    first.wait();
    EXPECT_TRUE(first.succeeded()) << first.describe();
  }

  void run(std::chrono::seconds duration) {
    for (std::size_t i = 0; i < kProcesses; ++i) start(i);
    const Deadline deadline{duration};
    fail_in_calm();
    while (!deadline.passed() && account_->complaints == 0 && account_->failures < kMostFailures) {
      watch(below(random_, 3) == 0 ? 1000 : 60);
      const std::size_t victim = below(random_, 3) != 0 ? archiver() : below(random_, kProcesses);
      switch (below(random_, 12)) {
        case 0:
        case 1: kill_all(true); break;
        case 2: kill_all(false); break;
        case 3: stop_for_a_while(victim); break;
        case 4:  // One archiver after the other.
          kill_archivers();
          break;
        case 5: fail_in_calm(); break;
        default: restart(victim);
      }
    }
    kill_all(true);
    watch(1000, 1000);  // What was forgotten in the end is delivered.
    for (auto& child : children_) child.reset();
    EXPECT_EQ(account_->complaints, 0U);
    EXPECT_GT(account_->acknowledged, 0U);
    std::printf("%llu records acknowledged, %llu of them forgotten, in %u failures\n",
                static_cast<unsigned long long>(account_->acknowledged),
                static_cast<unsigned long long>(account_->forgotten), account_->failures.load());
  }

 private:
  // ---- In children ------------------------------------------------------------------------------

  // Now and then nothing is published, so that acknowledgements alone keep an archiver awake.
  int publish(Random random) {
    const Topic topic = topic_.open();
    auto publisher = topic.publisher();
    CHILD_CHECK_OK(publisher);
    for (;;) {
      const Weather weather = account_->weather;
      std::uint64_t left = weather == Weather::storm  ? below(random, 100)
                           : weather == Weather::calm ? 100
                                                      : 0;
      for (; left != 0; --left) {
        const std::uint64_t number = account_->begun++;
        if (number >= kMostRecords) return 0;
        CHILD_CHECK_OK(publisher->publish(std::to_string(number), kPatience));
      }
      if (weather == Weather::storm) ::usleep(static_cast<useconds_t>(below(random, 500'000)));
      while (weather != Weather::storm && account_->weather == weather) ::usleep(1000);
    }
  }

  void note(std::size_t number) {
    CHILD_CHECK(number < kMostRecords);
    const std::int64_t acknowledged = account_->acknowledged_ns[number].exchange(0);
    if (acknowledged == 0) return;
    ++account_->forgotten;
    for (std::uint32_t i = 0; i < account_->failures; ++i) {
      const Failure& failure = account_->failure[i];
      if (failure.at_ns < acknowledged) continue;
      if (failure.kept_until_ns <= acknowledged) return;
      std::fprintf(stderr,
                   "failure %u: record %zu, acknowledged %lld ms before, was forgotten; only the "
                   "last %lld ms may be\n",
                   i, number, static_cast<long long>((failure.at_ns - acknowledged) / kMs),
                   static_cast<long long>((failure.at_ns - failure.kept_until_ns) / kMs));
      ++account_->complaints;
      return;
    }
    std::fprintf(stderr, "record %zu was acknowledged, and delivered again without a failure\n",
                 number);
    ++account_->complaints;
  }

  // Acknowledges slowly: most acknowledgements come long after the claims.
  int work(Random random) {
    const Topic topic = topic_.open();
    auto group = topic.find_group("g");
    for (const Deadline deadline{kPatience};
         !group && group.error() == Errc::busy && !deadline.passed();)
      group = topic.find_group("g");
    CHILD_CHECK_OK(group);
    auto member = group->join({.spin = 0ns});
    CHILD_CHECK_OK(member);
    for (;;) {
      std::vector<std::pair<Delivery, std::size_t>> held;
      for (std::uint64_t left = 1 + below(random, 100); left != 0; --left) {
        auto taken = member->receive(Deadline{held.empty() ? 100ms : 0ms});
        if (!taken && taken.error() == Errc::timeout) break;
        CHILD_CHECK_OK(taken);
        std::size_t number = 0;
        const std::string_view text = taken->record.text();
        std::from_chars(text.data(), text.data() + text.size(), number);
        note(number);
        held.emplace_back(*taken, number);
      }
      for (const auto& [delivery, number] : held) {
        CHILD_CHECK_OK(member->acknowledge(delivery));
        account_->acknowledged_ns[number] = detail::now_ns();
        ++account_->acknowledged;
        const Weather weather = account_->weather;
        if (weather == Weather::storm) ::usleep(static_cast<useconds_t>(below(random, 20'000)));
        if (weather == Weather::calm) ::usleep(100'000);
      }
    }
  }

  // ---- In the test ------------------------------------------------------------------------------

  // Watches the archiver for a random time, in milliseconds.
  void watch(std::uint64_t most) { watch(0, most); }
  void watch(std::uint64_t least, std::uint64_t most) {
    const Deadline deadline{std::chrono::milliseconds{least + below(random_, most - least + 1)}};
    do {
      watch_.poll(topic_.directory(), [this](std::uint32_t pid) {
        return std::ranges::any_of(children_, [pid](const auto& child) {
          return child && child->pid() == static_cast<::pid_t>(pid);
        });
      });
      ::usleep(1000);
    } while (!deadline.passed());
  }

  std::size_t archiver() {
    for (std::size_t i = 0; i < kProcesses; ++i)
      if (children_[i]->pid() == static_cast<::pid_t>(watch_.archiver_pid())) return i;
    return below(random_, kProcesses);
  }

  void start(std::size_t i) {
    const std::uint64_t seed = random_();
    children_[i].emplace([&, i, seed]() -> int {
      if (i == 0) return publish(Random{seed});
      if (i <= kMembers) return work(Random{seed});
      const Topic topic = topic_.open();
      for (;;) ::pause();
    });
  }
  void restart(std::size_t i) {
    // It ends by itself only if something is wrong.
    if (children_[i]->poll() == Child::State::exited) ++account_->complaints;
    watch_.hit(children_[i]->pid());
    children_[i].reset();
    start(i);
  }
  // Others take over if it is the archiver.
  void stop_for_a_while(std::size_t i) {
    watch_.hit(children_[i]->pid());
    children_[i]->signal(SIGSTOP);
    auto stopped = std::exchange(children_[i], std::nullopt);
    watch(1000);
    children_[i] = std::move(stopped);
    children_[i]->signal(SIGCONT);
  }
  // One after the other, perhaps before it has saved anything.
  void kill_archivers() {
    for (std::uint64_t left = 1 + below(random_, 8); left != 0; --left) {
      restart(archiver());
      watch(40);
    }
  }
  void fail_in_calm() {
    account_->weather = Weather::draining;
    watch(400, 400);
    account_->weather = Weather::calm;
    watch(200, 1200);
    kill_archivers();
    watch(3500, 4500);
    kill_all(true);
    account_->weather = Weather::storm;
  }
  void kill_all(bool fails) {
    const std::int64_t kept_until = watch_.second_began_ns();
    watch_.hit();
    for (auto& child : children_) {
      if (child->poll() == Child::State::exited) ++account_->complaints;
      child->signal(SIGKILL);
    }
    for (auto& child : children_) child.reset();
    if (fails) {
      Failure& failure = account_->failure[account_->failures];
      failure.at_ns = detail::now_ns();
      failure.kept_until_ns = kept_until;
      ++account_->failures;
      watch_.lose_window();
      topic_.lose_window();
    }
    for (std::size_t i = 0; i < kProcesses; ++i) start(i);
  }

  Random random_;
  const StormedTopic topic_{Durability::os};
  Shared<Account> account_;
  ArchiverWatch watch_;
  std::array<std::optional<Child>, kProcesses> children_;
};

TEST(ForgottenStorm, OnlyTheLastSecondAndTakeOversAreForgotten) {
  const char* const wanted = std::getenv("SOAK_SECONDS");
  const std::chrono::seconds duration{wanted != nullptr ? std::atoi(wanted) : 6};
  const char* const seed_text = std::getenv("LEAT_SEED");
  const std::uint64_t seed =
      seed_text != nullptr ? std::strtoull(seed_text, nullptr, 10) : std::random_device{}();
  SCOPED_TRACE("LEAT_SEED=" + std::to_string(seed));
  ForgottenStorm{seed}.run(duration);
}

}  // namespace
}  // namespace leat::testing
