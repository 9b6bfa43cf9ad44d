// If this failed, a program that writes and reads blocks of CSimpleIPC in place could lose one, get
// one that is not finished, or wait forever after the holder of a block was killed.
#include <array>
#include <cstring>
#include <deque>
#include <random>
#include <thread>

#include "compat/simple_ipc_testing.hpp"

namespace leat {
namespace {

class SimpleIpcBlocks : public SimpleIpcTest {};

// A queue of at most 30 blocks, of which readers hold up to 6 in place;
// compared with a naive model.
TEST_F(SimpleIpcBlocks, BehavesLikeAModel) {
  std::mt19937_64 random{test_seed()};
  constexpr std::size_t kLimit = 30;
  constexpr std::size_t kSize = 900;
  CSimpleIPC ipc;
  ASSERT_TRUE(ipc.createConnectionPoint(kSize, 10, 3, false, 2));
  std::deque<std::string> queue;
  std::array<BlockReadDescriptor, 6> held;
  std::array<std::string, held.size()> held_text;
  std::size_t holding = 0;
  for (int step = 0; step < 30'000; ++step) {
    const std::size_t which = random() % held.size();
    switch (random() % 8) {
      case 0:
      case 1:
      case 2: {
        const std::string text(random() % (kSize + 1), static_cast<char>('a' + random() % 26));
        const bool has_room = queue.size() + holding < kLimit;
        ASSERT_EQ(ipc.write(text.data(), text.size(), 0), has_room) << step;
        if (has_room) queue.push_back(text);
        break;
      }
      case 3: {
        BlockWriteDescriptor block;
        const bool has_room = queue.size() + holding < kLimit;
        ASSERT_EQ(ipc.acquireBlock(block, 0) != nullptr, has_room) << step;
        if (!has_room) break;
        std::memset(block.result, 'A', block.size);
        ASSERT_TRUE(ipc.releaseLockedBlock(block));
        queue.emplace_back(kSize, 'A');
        break;
      }
      case 4:
      case 5: {
        char buffer[kSize];
        ASSERT_EQ(ipc.read(buffer, kSize, 0), !queue.empty()) << step;
        if (queue.empty()) break;
        ASSERT_EQ(std::string(buffer, CSimpleIPC::lastReadSize()), queue.front());
        queue.pop_front();
        break;
      }
      case 6:
        if (held[which].status == BlockStatus::acquired) {
          const std::string text{static_cast<const char*>(held[which].result), held[which].size};
          ASSERT_EQ(text, held_text[which]);
          ASSERT_TRUE(ipc.releaseLockedBlock(held[which]));
          --holding;
        }
        break;
      default:
        if (held[which].status == BlockStatus::acquired) break;
        ASSERT_EQ(ipc.acquireBlock(held[which], 0) != nullptr, !queue.empty())
            << step << CSimpleIPC::lastErrorText();
        if (queue.empty()) break;
        held_text[which] = queue.front();
        queue.pop_front();
        ++holding;
    }
  }
}

struct Measurement {
  explicit Measurement(int first) : values{first, first + 1} {}
  int values[2];
  double sum() const { return values[0] + values[1]; }
};

TEST_F(SimpleIpcBlocks, ObjectIsConstructedAndReadInPlace) {
  CSimpleIPC ipc;
  ASSERT_TRUE(ipc.createConnectionPoint(sizeof(Measurement), 2));
  BlockWriteDescriptor block;
  EXPECT_EQ(block.status, BlockStatus::empty);
  void* place = ipc.acquireBlock(block);
  ASSERT_NE(place, nullptr);
  EXPECT_EQ(place, block.result);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(place) % 16, 0u);
  EXPECT_EQ(block.size, sizeof(Measurement));
  EXPECT_EQ(block.status, BlockStatus::acquired);
  new (place) Measurement{20};
  EXPECT_EQ(read_number(ipc), ~0ULL);  // Nothing before the block is released.
  ASSERT_TRUE(ipc.releaseLockedBlock(block));
  EXPECT_EQ(block.result, nullptr);
  EXPECT_EQ(block.status, BlockStatus::released);

  BlockReadDescriptor seen;
  const void* there = ipc.acquireBlock(seen);
  ASSERT_NE(there, nullptr);
  EXPECT_EQ(there, seen.result);
  EXPECT_EQ(seen.size, sizeof(Measurement));
  EXPECT_EQ(static_cast<const Measurement*>(there)->sum(), 41);
  EXPECT_EQ(read_number(ipc), ~0ULL);  // Nobody else gets it.
  ASSERT_TRUE(ipc.releaseLockedBlock(seen));
  EXPECT_EQ(seen.status, BlockStatus::released);
  EXPECT_EQ(read_number(ipc), ~0ULL);
}

TEST_F(SimpleIpcBlocks, BlockHeldInPlaceCountsUntilItIsReleased) {
  CSimpleIPC ipc;
  ASSERT_TRUE(ipc.createConnectionPoint(8, 3));
  fill_up(ipc);
  {
    BlockReadDescriptor first;
    BlockReadDescriptor second;
    ASSERT_NE(ipc.acquireBlock(first), nullptr);
    ASSERT_NE(ipc.acquireBlock(second), nullptr);
    EXPECT_FALSE(write_number(ipc, 10));
    ASSERT_TRUE(ipc.releaseLockedBlock(second));
    EXPECT_TRUE(write_number(ipc, 10));
    EXPECT_FALSE(write_number(ipc, 11));
    EXPECT_EQ(read_number(ipc), 2u);
    EXPECT_EQ(read_number(ipc), 10u);
  }
  EXPECT_EQ(read_number(ipc), 0u);  // Its reader ended without a release: the next reader gets it.
  EXPECT_EQ(fill_up(ipc), 3u);
}

TEST_F(SimpleIpcBlocks, ReaderThatHoldsBlocksHoldsUpNobody) {
  CSimpleIPC ipc;
  ASSERT_TRUE(ipc.createConnectionPoint(8, 60));
  std::deque<BlockReadDescriptor> held;
  for (std::uint64_t round = 0; round < 50; ++round) {
    ASSERT_TRUE(write_number(ipc, round));
    ASSERT_NE(ipc.acquireBlock(held.emplace_back(), 0), nullptr);
    for (std::uint64_t i = 0; i < 200; ++i) {  // More than one segment.
      ASSERT_TRUE(write_number(ipc, i)) << round << ' ' << i;
      ASSERT_EQ(read_number(ipc), i);
    }
  }
  EXPECT_EQ(fill_up(ipc), 10u);
  for (std::uint64_t round = 0; round < 50; ++round) {
    ASSERT_EQ(std::memcmp(held[round].result, &round, sizeof(round)), 0);
    ASSERT_TRUE(ipc.releaseLockedBlock(held[round]));
  }
  EXPECT_EQ(fill_up(ipc), 50u);
}

TEST_F(SimpleIpcBlocks, BlockThatIsNotReleasedByItsWriterIsNotDelivered) {
  CSimpleIPC ipc;
  ASSERT_TRUE(ipc.createConnectionPoint(8, 3));
  {
    BlockWriteDescriptor dropped;
    ASSERT_NE(ipc.acquireBlock(dropped), nullptr);
    EXPECT_TRUE(write_number(ipc, 1));  // Follows the open block.
    EXPECT_EQ(read_number(ipc), ~0ULL);
  }
  EXPECT_EQ(read_number(ipc), 1u);
  EXPECT_EQ(fill_up(ipc), 3u);
}

TEST_F(SimpleIpcBlocks, BlocksThatTheirWritersDropAreNotOutstanding) {
  CSimpleIPC ipc;
  ASSERT_TRUE(ipc.createConnectionPoint(8, 16, 4, false, 4));
  const auto drop = [&](int count) {
    for (int i = 0; i < count; ++i) {
      BlockWriteDescriptor dropped;
      ASSERT_NE(ipc.acquireBlock(dropped, 0), nullptr) << i << CSimpleIPC::lastErrorText();
    }
  };
  drop(200);  // There is no reader that would pass over them.
  ASSERT_TRUE(write_number(ipc, 0));
  drop(200);
  ASSERT_TRUE(write_number(ipc, 1));
  drop(200);
  EXPECT_EQ(fill_up(ipc), 62u);
  Attached other{ipc};  // It has seen none of these blocks.
  EXPECT_EQ(fill_up(other), 0u);
  EXPECT_EQ(read_number(other), 0u);
  EXPECT_EQ(read_number(other), 1u);
  drop(200);
  EXPECT_EQ(fill_up(other), 2u);
  EXPECT_EQ(fill_up(ipc), 0u);
}

TEST_F(SimpleIpcBlocks, BlocksOfKilledWritersAreNotOutstanding) {
  CSimpleIPC ipc;
  ASSERT_TRUE(ipc.createConnectionPoint(8, 8, 1, false, 0, "point"));
  for (int round = 0; round < 20; ++round) {
    Child writer{[] {
      CSimpleIPC mine;
      BlockWriteDescriptor block;
      if (!mine.attachToConnectionPoint("point")) return 1;
      if (mine.acquireBlock(block, 10'000) == nullptr) return 2;
      ::kill(::getpid(), SIGKILL);
      return 0;
    }};
    ASSERT_EQ(writer.join(), -SIGKILL);
  }
  EXPECT_EQ(fill_up(ipc), 8u);
}

TEST_F(SimpleIpcBlocks, BlockIsReleasedByAnyThread) {
  CSimpleIPC ipc;
  ASSERT_TRUE(ipc.createConnectionPoint(8, 3));
  BlockWriteDescriptor block;
  ASSERT_NE(ipc.acquireBlock(block), nullptr);
  std::memset(block.result, 0, block.size);
  std::jthread{[&] { EXPECT_TRUE(ipc.releaseLockedBlock(block)); }}.join();
  BlockReadDescriptor seen;
  ASSERT_NE(ipc.acquireBlock(seen), nullptr);
  std::jthread{[&] { EXPECT_TRUE(ipc.releaseLockedBlock(seen)); }}.join();
  EXPECT_EQ(fill_up(ipc), 3u);
}

TEST_F(SimpleIpcBlocks, KilledWriterDropsItsBlockAndTheQueueGoesOn) {
  CSimpleIPC ipc;
  ASSERT_TRUE(ipc.createConnectionPoint(8, 4, 1, false, 0, "point"));
  CSimpleIPC ready;
  ASSERT_TRUE(ready.createConnectionPoint(8, 4, 1, false, 0, "ready"));
  for (std::uint64_t round = 0; round < 10; ++round) {
    Child writer{[] {
      CSimpleIPC mine;
      CSimpleIPC tell;
      if (!mine.attachToConnectionPoint("point")) return 1;
      if (!tell.attachToConnectionPoint("ready")) return 2;
      BlockWriteDescriptor block;
      if (mine.acquireBlock(block) == nullptr) return 3;
      if (!write_number(mine, 100, INFINITE)) return 4;
      if (!write_number(tell, 0, INFINITE)) return 5;
      ::pause();
      return 0;
    }};
    ASSERT_EQ(read_number(ready, INFINITE), 0u);
    ASSERT_TRUE(write_number(ipc, round));
    EXPECT_EQ(read_number(ipc, 20), ~0ULL);  // Readers wait for the open block
    EXPECT_EQ(writer.kill(SIGKILL), -SIGKILL);
    EXPECT_EQ(read_number(ipc, INFINITE), 100u);  // until its writer is dead.
    EXPECT_EQ(read_number(ipc, INFINITE), round);
    EXPECT_EQ(read_number(ipc), ~0ULL);
  }
}

TEST_F(SimpleIpcBlocks, KilledReaderGivesItsBlockToAnother) {
  CSimpleIPC ipc;
  ASSERT_TRUE(ipc.createConnectionPoint(8, 4, 1, false, 0, "point"));
  CSimpleIPC ready;
  ASSERT_TRUE(ready.createConnectionPoint(8, 4, 1, false, 0, "ready"));
  for (std::uint64_t round = 0; round < 10; ++round) {
    ASSERT_TRUE(write_number(ipc, round));
    Child reader{[round] {
      CSimpleIPC mine;
      CSimpleIPC tell;
      if (!mine.attachToConnectionPoint("point")) return 1;
      if (!tell.attachToConnectionPoint("ready")) return 2;
      BlockReadDescriptor block;
      if (mine.acquireBlock(block) == nullptr) return 3;
      if (std::memcmp(block.result, &round, sizeof(round)) != 0) return 4;
      if (!write_number(tell, round, INFINITE)) return 5;
      ::pause();
      return 0;
    }};
    ASSERT_EQ(read_number(ready, INFINITE), round);
    EXPECT_EQ(read_number(ipc, 20), ~0ULL);
    EXPECT_EQ(reader.kill(SIGKILL), -SIGKILL);
    EXPECT_EQ(read_number(ipc, INFINITE), round);
    EXPECT_EQ(read_number(ipc), ~0ULL);
  }
}

TEST_F(SimpleIpcBlocks, DescriptorSaysWhatItHolds) {
  CSimpleIPC ipc;
  ASSERT_TRUE(ipc.createConnectionPoint(8, 2));
  Attached other{ipc};
  BlockReadDescriptor block;
  EXPECT_EQ(ipc.acquireBlock(block, 0), nullptr);
  EXPECT_EQ(block.status, BlockStatus::failed);
  EXPECT_EQ(block.error.code, Errc::timeout);
  EXPECT_EQ(block.result, nullptr);
  ASSERT_TRUE(write_number(ipc, 1));
  ASSERT_TRUE(write_number(ipc, 2));
  ASSERT_NE(ipc.acquireBlock(block), nullptr);  // A descriptor may be used again after a failure.
  EXPECT_EQ(block.error.code, Errc::ok);
  // A descriptor that holds a block keeps it.
  EXPECT_EQ(ipc.acquireBlock(block), nullptr);
  EXPECT_EQ(last_error(), Errc::busy);
  EXPECT_EQ(block.status, BlockStatus::acquired);
  EXPECT_FALSE(other.releaseLockedBlock(block));  // It belongs to the instance that acquired it.
  EXPECT_EQ(last_error(), Errc::not_in_flight);
  EXPECT_TRUE(ipc.releaseLockedBlock(block));
  EXPECT_FALSE(ipc.releaseLockedBlock(block));
  EXPECT_EQ(last_error(), Errc::not_in_flight);
  EXPECT_EQ(block.status, BlockStatus::released);
  ASSERT_NE(ipc.acquireBlock(block), nullptr);  // It may be used again after a release.
  EXPECT_TRUE(ipc.releaseLockedBlock(block));
}

}  // namespace
}  // namespace leat
