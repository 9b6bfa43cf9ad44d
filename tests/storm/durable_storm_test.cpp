// A storm over a durable topic: publishers, subscribers and archivers are killed and stopped at random, all
// at once now and then. Nothing that was acknowledged may be missing on disk, come twice, or come out
// of order. If this failed, a crash of processes could lose records that were promised to survive it.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "leat/leat.hpp"
#include "support/process.hpp"
#include "support/random.hpp"

namespace leat::testing {
namespace {

constexpr std::size_t kPublishers = 3;
constexpr std::size_t kMost = 2'000'000;  // records of a publisher
constexpr std::uint64_t kReservedOffsets = 1 << 24;  // docs/internals/store.md, "Reserved offsets"

struct Ledger {
  struct Publisher {
    std::atomic<std::uint64_t> begun;
    std::array<std::atomic<std::uint8_t>, kMost> acknowledged;
  };
  std::array<Publisher, kPublishers> publishers;
  std::atomic<std::uint32_t> complaints;
};

TopicOptions options(const TemporaryDirectory& temp, Durability durable = Durability::os) {
  return {.capacity_bytes = 16 * 4096,
          .segment_bytes = 2 * 4096,
          .partitions = 1,
          .directory = temp.path() + "/topics",
          .durable = durable,
          .sync_interval = durable == Durability::interval ? 20ms : 0ms,
          .file_bytes = 256 << 10,
          .data_directory = temp.path() + "/data"};
}

int publish(const TemporaryDirectory& temp, Ledger& ledger, std::size_t own) {
  auto topic =
      Topic::open("d", kPatience, options(temp).directory, {}, options(temp).data_directory);
  CHILD_CHECK_OK(topic);
  auto publisher = topic->publisher();
  CHILD_CHECK_OK(publisher);
  Ledger::Publisher& mine = ledger.publishers[own];
  for (std::uint64_t i = mine.begun++; i < kMost; i = mine.begun++) {
    std::string text = std::to_string(own) + ' ' + std::to_string(i);
    text.resize(text.size() + i % 61, '.');
    auto published = publisher->publish(text, kPatience);
    CHILD_CHECK_OK(published);
    mine.acknowledged[i] = 1;
    if (i % 500 == 0) ::usleep(1000);
  }
  return 0;
}

struct Mark {
  std::size_t publisher;
  std::uint64_t sequence;
};
std::optional<Mark> mark_of(std::string_view text) {
  Mark mark{};
  const char* const end = text.data() + text.size();
  auto first = std::from_chars(text.data(), end, mark.publisher);
  if (first.ec != std::errc{} || first.ptr == end || mark.publisher >= kPublishers) return {};
  auto second = std::from_chars(first.ptr + 1, end, mark.sequence);
  if (second.ec != std::errc{} || mark.sequence >= kMost) return {};
  return mark;
}

// Reads from the beginning to the end, or until it is stopped; checks order and offsets.
class Reading {
 public:
  explicit Reading(Subscriber subscriber) : subscriber_{std::move(subscriber)} {
    subscriber_.on_event([this](const Event& event) {
      const bool is_fine = event.first == next_ && event.reason == GapReason::died;
      if (!is_fine) {
        complain("gap " + std::to_string(event.first) + '+' + std::to_string(event.count) + ' ' +
                 name_of(event.reason) + " at " + std::to_string(next_));
      }
      next_ = event.first + event.count;
    });
  }
  // False after an error.
  Result<std::size_t> poll() {
    return subscriber_.poll(1000, [this](const Record& record) {
      // Who was killed while it opened a topic without a window has reserved offsets for nothing.
      const bool is_first = next_ == 0 && record.offset % kReservedOffsets == 0;
      if (record.offset != next_ && !is_first)
        complain("offset " + std::to_string(record.offset) + " after " + std::to_string(next_));
      next_ = record.offset + 1;
      const auto mark = mark_of(record.text());
      if (!mark) return complain("no mark: " + std::string{record.text()});
      std::vector<bool>& seen = seen_[mark->publisher];
      if (seen.size() > mark->sequence)
        return complain("twice, or out of order: " + std::string{record.text()});
      seen.resize(mark->sequence);
      seen.push_back(true);
    });
  }
  std::uint64_t next() const noexcept { return next_; }
  const std::vector<std::string>& complaints() const noexcept { return complaints_; }
  void expect_all(const Ledger& ledger) {
    for (std::size_t i = 0; i < kPublishers; ++i) {
      const std::uint64_t begun = std::min<std::uint64_t>(ledger.publishers[i].begun, kMost);
      for (std::uint64_t k = 0; k < begun; ++k) {
        if (ledger.publishers[i].acknowledged[k] != 0 && (k >= seen_[i].size() || !seen_[i][k]))
          complain("missing: " + std::to_string(i) + ' ' + std::to_string(k));
      }
    }
  }

 private:
  void complain(std::string text) {
    if (complaints_.size() < 10) complaints_.push_back(std::move(text));
  }
  Subscriber subscriber_;
  std::uint64_t next_ = 0;
  std::array<std::vector<bool>, kPublishers> seen_;
  std::vector<std::string> complaints_;
};

int subscribe(const TemporaryDirectory& temp, Ledger& ledger) {
  auto topic =
      Topic::open("d", kPatience, options(temp).directory, {}, options(temp).data_directory);
  CHILD_CHECK_OK(topic);
  auto subscriber = topic->subscriber({.from = From::beginning});
  CHILD_CHECK_OK(subscriber);
  Reading reading{std::move(*subscriber)};
  for (;;) {
    CHILD_CHECK_OK(reading.poll());
    for (const std::string& one : reading.complaints())
      std::fprintf(stderr, "subscriber: %s\n", one.c_str());
    if (!reading.complaints().empty()) {
      ++ledger.complaints;
      return 1;
    }
  }
}

// Without what is in memory.
void expect_all_on_disk(const TemporaryDirectory& temp, const Ledger& ledger) {
  const auto open = [&] {
    return Topic::open("d", kPatience, options(temp).directory, {}, options(temp).data_directory);
  };
  // The next open writes the rest, and closing it leaves nothing in memory.
  { ASSERT_TRUE(open()); }
  std::filesystem::remove_all(options(temp).directory);
  std::filesystem::create_directories(options(temp).directory);
  auto topic = open();
  ASSERT_TRUE(topic) << describe(topic.error());
  auto subscriber = topic->subscriber({.from = From::beginning});
  ASSERT_TRUE(subscriber) << describe(subscriber.error());
  Reading reading{std::move(*subscriber)};
  const std::uint64_t end = topic->info().partitions[0].end;
  while (reading.next() < end) {
    auto polled = reading.poll();
    ASSERT_TRUE(polled) << describe(polled.error());
  }
  reading.expect_all(ledger);
  EXPECT_EQ(reading.complaints(), std::vector<std::string>{});
  ::testing::Test::RecordProperty("records", static_cast<int>(reading.next()));
}

class DurableStorm : public ::testing::TestWithParam<Durability> {};

TEST_P(DurableStorm, LosesNothingThatWasAcknowledged) {
  const char* const wanted = std::getenv("LEAT_ROUNDS");
  const int rounds = wanted != nullptr ? std::atoi(wanted) : 40;
  const char* const seed_text = std::getenv("LEAT_SEED");
  const std::uint64_t seed =
      seed_text != nullptr ? std::strtoull(seed_text, nullptr, 10) : std::random_device{}();
  SCOPED_TRACE("LEAT_SEED=" + std::to_string(seed));
  Random random{seed};
  TemporaryDirectory temp;
  Shared<Ledger> ledger;
  std::filesystem::create_directories(temp.path() + "/topics");
  { ASSERT_TRUE(Topic::create("d", options(temp, GetParam()))); }
  std::vector<std::optional<Child>> children(kPublishers + 2);
  const auto start = [&](std::size_t i) {
    children[i].emplace([&, i]() -> int {
      return i < kPublishers ? publish(temp, *ledger, i) : subscribe(temp, *ledger);
    });
  };
  const auto kill = [&](std::size_t i) {
    children[i]->signal(SIGCONT);
    children[i]->signal(SIGKILL);
    children[i].reset();
  };
  for (std::size_t i = 0; i < children.size(); ++i) start(i);
  for (int round = 0; round < rounds && ledger->complaints == 0; ++round) {
    ::usleep(static_cast<useconds_t>(below(random, 30'000)));
    const std::size_t victim = below(random, children.size());
    switch (below(random, 8)) {
      case 0:  // Everybody dies at once.
        for (auto& child : children) child->signal(SIGKILL);
        for (std::size_t i = 0; i < children.size(); ++i) start(i);
        break;
      case 1:
      case 2:  // One stops, the archiver perhaps, and others take over.
        children[victim]->signal(SIGSTOP);
        ::usleep(static_cast<useconds_t>(below(random, 250'000)));
        children[victim]->signal(SIGCONT);
        break;
      case 3: {  // One stops while another one dies.
        const std::size_t other = below(random, children.size());
        children[victim]->signal(SIGSTOP);
        if (other != victim) {
          kill(other);
          start(other);
        }
        ::usleep(static_cast<useconds_t>(below(random, 250'000)));
        children[victim]->signal(SIGCONT);
        break;
      }
      default: kill(victim); start(victim);
    }
  }
  for (auto& child : children) child->signal(SIGKILL);
  for (auto& child : children) child.reset();
  EXPECT_EQ(ledger->complaints, 0U);
  expect_all_on_disk(temp, *ledger);
}

std::string name_of_storm(const ::testing::TestParamInfo<Durability>& one) {
  if (one.param == Durability::os) return "os";
  return one.param == Durability::interval ? "interval" : "fsync";
}
INSTANTIATE_TEST_SUITE_P(All, DurableStorm,
                         ::testing::Values(Durability::os, Durability::interval, Durability::fsync),
                         name_of_storm);

}  // namespace
}  // namespace leat::testing
