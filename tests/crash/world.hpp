// A topic of a few 4 KiB segments, a victim that dies or stops at a labelled
// step, and the survivors, which must continue: a publisher, a gating and a
// lossy subscriber, and participants that join later.
//
//     World world{{.segments = 4}};
//     Child victim = world.start([&]() -> int {…}, {"claim:won", 1, SIGKILL});
//     victim.wait();
//     world.expect_progress();
//
// The survivors take turns in the thread of the test, so that failures are reproducible.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "leat/leat.hpp"
#include "support/process.hpp"
#include "support/trail.hpp"

namespace leat::testing {

using Ledger = LedgerOf<6, 3000>;

// Numbers of the publishers in the ledger.
inline constexpr std::uint32_t kSurvivor = 0;
inline constexpr std::uint32_t kVictim = 1;
inline constexpr std::uint32_t kNewcomer = 2;
inline constexpr std::uint32_t kEarlierVictim = 3;
inline constexpr std::uint32_t kStopped = 4;

struct WorldOptions {
  std::uint32_t segments = 4;
  std::uint32_t participants = 8;
  std::chrono::nanoseconds revoke_after{0};
  bool exclusive = false;         // Exclusive publishers; the survivor's joins after the victim.
  bool gating_from_start = true;  // If false, the gating subscriber joins after the victim.
  std::uint32_t grow_to = 0;      // Segments; if not 0, the policy is grow.
};

// A child sends itself `signal` the `nth` time it reaches `step`.
struct Blow {
  std::string step;
  int nth = 1;
  int signal = SIGKILL;
  std::mutex* turn = nullptr;  // If not null, the thread has it when the signal comes.
};

// Sets this process up for the blow. Only for children.
inline void arm(const Blow& blow) {
  static Blow armed;
  static int passed;
  armed = blow;
  passed = 0;
  detail::crash_point_hook = [](const char* name) {
    if (armed.step != name || ++passed != armed.nth) return;
    std::unique_lock<std::mutex> turn;
    if (armed.turn != nullptr) turn = std::unique_lock{*armed.turn};
    ::raise(armed.signal);
  };
}

class World {
 public:
  static constexpr std::size_t kSegment = 4096;

  explicit World(const WorldOptions& options = {}) : options_{options} {
    auto created =
        Topic::create("topic", {.capacity_bytes = options.segments * kSegment,
                                .segment_bytes = kSegment,
                                .policy = options.grow_to != 0 ? Policy::grow : Policy::block,
                                .max_capacity_bytes = options.grow_to * kSegment,
                                .revoke_after = options.revoke_after,
                                .participants = options.participants,
                                .directory = directory_.path()});
    if (!created) {
      ADD_FAILURE() << "create: " << describe(created.error());
      std::abort();
    }
    topic_.emplace(std::move(*created));
    lossy_.emplace(subscriber({.from = From::beginning, .gating = false}, lossy_trail_));
    if (options.gating_from_start) join_gating();
    if (!options.exclusive) join_publisher();
  }

  Topic& topic() noexcept { return *topic_; }
  Ledger& ledger() noexcept { return *ledger_; }
  const std::string& directory() const noexcept { return directory_.path(); }
  const WorldOptions& options() const noexcept { return options_; }
  Publisher& publisher() noexcept { return *publisher_; }
  Trail& gating_trail() noexcept { return gating_trail_; }
  Trail& lossy_trail() noexcept { return lossy_trail_; }
  std::uint64_t end() const { return topic_->info().partitions.at(0).end; }

  // ---- In children ------------------------------------------------------------------------------

  // A child that runs `body` with this blow.
  Child start(const std::function<int()>& body, const Blow& blow) {
    return Child{[&] {
      arm(blow);
      return body();
    }};
  }
  // Keeps the child in its current state until the end.
  void keep(Child child) { kept_.push_back(std::move(child)); }
  // Opens the child's own handle; it must not use what it inherited.
  Topic open() const {
    auto opened = Topic::open("topic", Deadline::immediate(), directory_.path());
    CHILD_CHECK_OK(opened);
    return std::move(*opened);
  }

  // ---- Publishing, noted in the ledger ------------------------------------------------------------

  Result<std::uint64_t> publish(Publisher& publisher, std::uint32_t id, std::size_t size,
                                const Deadline& deadline = Deadline::immediate()) {
    const Mark mark = ledger_->begin(id);
    const auto message = make_message(mark, size);
    auto offset = publisher.publish(message, deadline);
    if (!offset && offset.error().code == Errc::full) {
      ledger_->take_back(mark);
    } else {
      ledger_->end(mark, offset);
    }
    return offset;
  }
  Result<std::uint64_t> publish_batch(Publisher& publisher, std::uint32_t id,
                                      const std::vector<std::size_t>& sizes) {
    auto batch = publisher.batch();
    if (!batch) return batch.error();
    std::vector<Mark> marks;
    for (const std::size_t size : sizes) {
      marks.push_back(ledger_->begin(id));
      if (auto added = batch->add(make_message(marks.back(), size)); !added) return added.error();
    }
    auto first = batch->commit(Deadline::immediate());
    for (std::size_t i = 0; i < marks.size(); ++i) {
      ledger_->end(marks[i], first ? Result<std::uint64_t>{*first + i} : first.error());
    }
    return first;
  }

  // ---- The survivors ----------------------------------------------------------------------------

  void join_publisher() {
    auto joined = topic_->publisher({.exclusive = options_.exclusive});
    ASSERT_TRUE(joined) << describe(joined.error());
    publisher_.emplace(std::move(*joined));
  }
  void join_gating() { gating_.emplace(subscriber({.from = From::beginning}, gating_trail_)); }

  // Reads what is available. With `wait`, waits up to 3 ms for more; a wait also repairs holes.
  std::size_t read_some(bool wait) {
    std::size_t count = 0;
    for (auto [reader, trail] : {std::pair{&gating_, &gating_trail_}, {&lossy_, &lossy_trail_}}) {
      if (!*reader) continue;
      const std::uint64_t before = trail->next();
      if (wait) (void)(*reader)->wait(3ms);
      auto polled = (*reader)->poll(1000, [&](const Record& record) { trail->on_record(record); });
      if (!polled) {
        ADD_FAILURE() << trail->name() << ": " << describe(polled.error());
        reader->reset();
        continue;
      }
      count += trail->next() - before;
    }
    return count;
  }

  // Publishes `count` records of various sizes while the subscribers read;
  // false if that gets stuck.
  bool publish_and_read(int count, std::chrono::milliseconds patience = kPatience) {
    return publish_and_read(*publisher_, kSurvivor, count, patience);
  }
  bool publish_and_read(Publisher& publisher, std::uint32_t id, int count,
                        std::chrono::milliseconds patience = kPatience) {
    const Deadline late{patience};
    for (int done = 0; done < count;) {
      const std::size_t size = kMinMessage + (ledger_->count[id] * 379U) % 1900;
      auto offset = publish(publisher, id, size);
      if (offset) {
        ++done;
      } else if (offset.error().code != Errc::full) {
        ADD_FAILURE() << "publish: " << describe(offset.error());
        return false;
      } else {
        if (late.passed()) return false;
        read_some(true);
      }
    }
    return true;
  }
  // Reads until the readers have everything that was claimed; false if they get stuck.
  bool read_to_end(std::chrono::milliseconds patience = kPatience) {
    const Deadline late{patience};
    const auto at_end = [&] {
      const std::uint64_t n = end();
      return (!gating_ || gating_trail_.next() >= n) && (!lossy_ || lossy_trail_.next() >= n);
    };
    while (!at_end()) {
      if (late.passed()) return false;
      read_some(true);
    }
    return true;
  }

  // The others continue whatever happened to the victim: they publish and read several laps of all
  // segments, newcomers join and leave, and what arrived agrees with the ledger.
  void expect_progress() {
    if (!publisher_) join_publisher();
    if (!gating_) join_gating();
    ASSERT_FALSE(::testing::Test::HasFatalFailure());
    EXPECT_TRUE(publish_and_read(60)) << "the publisher is stuck at offset " << end();
    EXPECT_TRUE(read_to_end()) << stuck();
    expect_newcomers();
    expect_consistent();
  }
  void expect_newcomers() {
    if (!options_.exclusive) {
      auto writer = topic_->publisher();
      ASSERT_TRUE(writer) << describe(writer.error());
      EXPECT_TRUE(publish_and_read(*writer, kNewcomer, 3)) << "the new publisher is stuck";
    }
    Trail trail{"newcomer"};
    {
      Subscriber reader = subscriber({.from = From::beginning}, trail);
      const std::uint64_t n = end();
      EXPECT_TRUE(eventually([&] {
        (void)reader.wait(3ms);
        (void)reader.poll(1000, [&](const Record& record) { trail.on_record(record); });
        return trail.next() >= n;
      })) << "the newcomer is stuck at offset "
          << trail.next() << " of " << n;
    }
    EXPECT_EQ(compare(*ledger_, trail), std::vector<std::string>{});
    expect_counted(trail);
    EXPECT_TRUE(read_to_end()) << stuck();
    EXPECT_LE(topic_->info().participants.size(), options_.participants);
  }
  // Nobody publishes meanwhile.
  void expect_counted(const Trail& trail) {
    const auto records = std::count_if(trail.steps().begin(), trail.steps().end(),
                                       [](const Trail::Step& step) { return !step.is_gap; });
    EXPECT_EQ(topic_->info().partitions.at(0).count_from(trail.first()),
              static_cast<std::uint64_t>(records));
  }
  void expect_consistent() {
    EXPECT_EQ(compare(*ledger_, gating_trail_), std::vector<std::string>{});
    EXPECT_EQ(compare(*ledger_, lossy_trail_), std::vector<std::string>{});
  }
  std::string stuck() const {
    return "stuck: gating at " + std::to_string(gating_trail_.next()) + ", lossy at " +
           std::to_string(lossy_trail_.next()) + " of " + std::to_string(end());
  }

  // A subscriber that reports its gaps to the trail.
  Subscriber subscriber(const SubscriberOptions& options, Trail& trail) {
    auto joined = topic_->subscriber(options);
    if (!joined) {
      ADD_FAILURE() << "subscriber: " << describe(joined.error());
      std::abort();
    }
    joined->on_event([&trail](const Event& event) { trail.on_event(event); });
    return std::move(*joined);
  }

 private:
  TemporaryDirectory directory_;
  WorldOptions options_;
  Shared<Ledger> ledger_;
  Trail gating_trail_{"gating"};
  Trail lossy_trail_{"lossy"};
  std::optional<Topic> topic_;
  std::optional<Publisher> publisher_;
  std::optional<Subscriber> gating_;
  std::optional<Subscriber> lossy_;
  std::vector<Child> kept_;
};

}  // namespace leat::testing
