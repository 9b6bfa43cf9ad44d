// If these failed, subscribers that read nothing could fill the broker's memory, or those that read would lose messages for
// them.
#include "broker/delivery/backlog.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <vector>

namespace leat::broker {
namespace {

constexpr std::size_t kChunk = 1000;

class StoppedReader final : public Backlogged {
 public:
  explicit StoppedReader(Backlog& backlog) : backlog_{backlog} {}
  ~StoppedReader() override { backlog_.remove(*this); }

  void take(std::shared_ptr<const Chunk> chunk) {
    waiting.push_back(std::move(chunk));
    backlog_.add(*this);
  }
  std::uint64_t oldest() const override { return waiting.front()->number; }
  std::size_t give_up() override {
    ++times;
    if (!is_willing) return 0;
    waiting.clear();
    backlog_.remove(*this);
    return 0;
  }

  std::deque<std::shared_ptr<const Chunk>> waiting;
  bool is_willing = true;
  int times = 0;

 private:
  Backlog& backlog_;
};

std::shared_ptr<Chunk> chunk_of(Backlog& backlog) {
  auto chunk = std::make_shared<Chunk>();
  chunk->bytes.resize(kChunk);
  backlog.count(*chunk);
  return chunk;
}

TEST(Backlog, CountsAChunkOnceHoweverManyHaveIt) {
  Backlog backlog;
  StoppedReader one{backlog}, other{backlog};
  {
    const auto chunk = chunk_of(backlog);
    one.take(chunk);
    other.take(chunk);
  }
  EXPECT_GE(backlog.bytes(), kChunk);
  EXPECT_LT(backlog.bytes(), 2 * kChunk);
  one.waiting.clear();
  EXPECT_GE(backlog.bytes(), kChunk);
  other.waiting.clear();
  EXPECT_EQ(backlog.bytes(), 0U);
}

// Each stops when the one before it has ten chunks, which nobody else has any more.
TEST(Backlog, ThoseWithTheOldestGiveUp) {
  Backlog backlog{100 * (kChunk + 8)};
  std::vector<std::unique_ptr<StoppedReader>> all;
  for (int i = 0; i < 100; ++i) {
    all.push_back(std::make_unique<StoppedReader>(backlog));
    for (int j = 0; j < 10; ++j) all.back()->take(chunk_of(backlog));
    backlog.trim();
    EXPECT_LE(backlog.bytes(), 100 * (kChunk + 8) + 10 * (kChunk + 8));
    EXPECT_FALSE(all.back()->waiting.empty()) << "it has the newest";
  }
  EXPECT_TRUE(all.front()->waiting.empty());
}

// Producers wait for such subscribers.
TEST(Backlog, ThoseThatCannotGiveUpAreNotAskedForEachChunk) {
  Backlog backlog{100 * (kChunk + 8)};
  StoppedReader one{backlog};
  one.is_willing = false;
  for (int i = 0; i < 1000; ++i) {
    one.take(chunk_of(backlog));
    backlog.trim();
  }
  EXPECT_TRUE(backlog.is_full());
  EXPECT_LE(one.times, 900 / 6 + 1);
}

}  // namespace
}  // namespace leat::broker
