// The power fails at any moment of a durable topic's life, and any part of what was not synced may be on
// disk. What was acknowledged as durable is there, nothing is there that was not published, and no offset
// is given out twice. If this failed, `fsync` would not mean what it says.
// The seed is printed; LEAT_SEED=seed repeats a run. LEAT_SOAK makes it 10,000 failures.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "leat/leat.hpp"
#include "support/one_of.hpp"
#include "support/process.hpp"
#include "support/store_world.hpp"
#include "testing.hpp"

namespace leat::testing {
namespace {

struct SystemDisk {
  explicit SystemDisk(detail::Disk& disk) { detail::Disk::replace_system(&disk); }
  ~SystemDisk() { detail::Disk::replace_system(nullptr); }
};

// A topic that lives for a while, with its archiver's thread, on a recorded disk.
class PoweredTopic {
 public:
  PoweredTopic(Durability durable, Random& random)
      : durable_{durable},
        retention_bytes_{below(random, 2) == 0 ? 0U : 64U << 10},
        disk_{std::make_unique<RecordedDisk>(data_.path)} {
    const SystemDisk use{*disk_};
    for (int life = 0; life < 2; ++life) live(random);
  }

  std::size_t calls() const { return disk_->calls(); }
  std::size_t created() const { return created_; }

  // What is wrong after a failure behind so many calls; empty if nothing is.
  std::string judge(std::size_t cut, Random& random) const {
    const ScratchDirectory data;
    const ScratchDirectory topics;
    disk_->replay(cut, random, data.path);
    auto topic = Topic::open("d", kPatience, topics.path, {}, data.path);
    if (!topic) return "open: " + describe(topic.error());
    auto subscriber = topic->subscriber({.from = From::beginning});
    if (!subscriber) return "subscriber: " + describe(subscriber.error());
    std::map<std::uint64_t, std::string> found;
    std::string complaint;
    std::uint64_t next = 0;
    subscriber->on_event([&](const Event& event) {
      if (event.reason != GapReason::lost) complaint = std::string{"gap "} + name_of(event.reason);
      next = event.first + event.count;
    });
    const std::uint64_t end = topic->info().partitions[0].end;
    while (subscriber->offset() < end) {
      auto polled = subscriber->poll(100, [&](const Record& record) {
        if (record.offset < next) complaint = "offset " + std::to_string(record.offset) + " again";
        found[record.offset] = record.text();
        next = record.offset + 1;
      });
      if (!polled) return "poll: " + describe(polled.error());
    }
    for (const auto& [offset, text] : found) {
      const auto published = texts_.find(offset);
      if (published == texts_.end() || published->second != text)
        return "never published: " + std::to_string(offset);
    }
    std::uint64_t below = 0;
    std::uint64_t taken = 0;
    for (const Moment& moment : moments_) {
      if (moment.calls > cut) break;
      below = std::max(below, moment.durable);
      taken = std::max(taken, moment.end);
    }
    const std::uint64_t start = topic->info().partitions[0].start;
    for (std::uint64_t offset = retention_bytes_ != 0 ? start : 0; offset < below; ++offset)
      if (!found.contains(offset)) return "durable, but lost: " + std::to_string(offset);
    auto publisher = topic->publisher();
    if (!publisher) return "publisher: " + describe(publisher.error());
    auto offset = publisher->publish("goes on", kPatience);
    if (!offset) return "publish: " + describe(offset.error());
    if (*offset < taken) return "offset given out twice: " + std::to_string(*offset);
    return complaint;
  }

 private:
  // After so many calls of the disk, everything below `durable` was said to be durable, and everything
  // below `end` was given out.
  struct Moment {
    std::size_t calls;
    std::uint64_t durable;
    std::uint64_t end;
  };

  void live(Random& random) {
    auto topic =
        Topic::open_or_create("d", {.capacity_bytes = 64 << 10,
                                    .segment_bytes = 8 << 10,
                                    .directory = topics_.path,
                                    .durable = durable_,
                                    .sync_interval = durable_ == Durability::interval ? 1ms : 0ms,
                                    .file_bytes = 64 << 10,
                                    .data_directory = data_.path,
                                    .retention_bytes = retention_bytes_});
    ASSERT_TRUE(topic) << describe(topic.error());
    if (created_ == 0) created_ = disk_->calls();
    auto publisher = topic->publisher();
    ASSERT_TRUE(publisher);
    // With retention, so many that files are used again; with `os`, that several wait for the disk.
    const std::uint64_t most = retention_bytes_ == 0 && durable_ != Durability::os ? 60 : 300;
    for (std::uint64_t left = 10 + below(random, most); left > 0; --left) {
      std::uint64_t end = publish(*publisher, random);
      if (below(random, 10) == 0) {
        ASSERT_TRUE(publisher->flush(kPatience));
      }
      if (durable_ != Durability::fsync && below(random, 10) == 0)
        std::this_thread::sleep_for(300us);
      const std::uint64_t durable = publisher->durable_offset();
      if (durable_ == Durability::fsync) {
        ASSERT_GE(durable, end);
      }
      moments_.push_back({disk_->calls(), durable, end});
    }
  }

  // Returns the offset behind what it published.
  std::uint64_t publish(Publisher& publisher, Random& random) {
    const auto text = [&] {
      std::string made = std::to_string(texts_.size()) + ' ' + std::to_string(random());
      made.resize(made.size() + below(random, 1900), 'x');  // Two fill a batch.
      return made;
    };
    std::vector<std::string> texts{text()};
    Result<std::uint64_t> first = Errc::closed;
    if (below(random, 4) == 0) {
      texts.push_back(text());
      auto batch = publisher.batch();
      for (const std::string& one : texts) EXPECT_TRUE(batch->add(one));
      first = batch->commit(kPatience);
    } else {
      first = publisher.publish(texts[0], kPatience);
    }
    EXPECT_TRUE(first) << describe(first.error());
    for (std::size_t i = 0; first && i < texts.size(); ++i) texts_[*first + i] = texts[i];
    return first ? *first + texts.size() : 0;
  }

  Durability durable_;
  std::uint64_t retention_bytes_;
  ScratchDirectory data_;
  ScratchDirectory topics_;
  std::unique_ptr<RecordedDisk> disk_;
  std::size_t created_ = 0;
  std::map<std::uint64_t, std::string> texts_;
  std::vector<Moment> moments_;
};

TEST(DurablePower, TakesNothingThatWasAcknowledgedAsDurable) {
  const std::uint64_t failures =
      std::getenv("LEAT_SOAK") != nullptr ? 10'000 : 1000 / testing::kOneOf;
  Random random{test_seed()};
  std::uint64_t done = 0;
  while (done < failures && !HasFailure()) {
    for (const Durability durable : {Durability::os, Durability::interval, Durability::fsync}) {
      const PoweredTopic topic{durable, random};
      for (int i = 0; i < 20 && !HasFailure(); ++i, ++done) {
        const std::size_t cut =
            topic.created() + below(random, topic.calls() - topic.created() + 1);
        EXPECT_EQ(topic.judge(cut, random), "") << "after call " << cut << " of " << topic.calls()
                                                << ", durability " << static_cast<int>(durable);
      }
    }
  }
}

}  // namespace
}  // namespace leat::testing
