// If this failed, killing readers or writers of a CSimpleIPC connection point could lose written
// blocks, deliver some twice, or make others wait forever.
//
// Readers and writers are killed at any moment, again and again. Only blocks that a killed reader
// held may be delivered twice.
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <memory>
#include <random>

#include "compat/simple_ipc_testing.hpp"

namespace leat {
namespace {

constexpr std::uint32_t kWriters = 60;  // One after the other; two are alive at a time.
constexpr std::uint32_t kMostEach = 100'000;

struct KilledTally {
  std::array<std::atomic<std::uint32_t>, kWriters> written;  // Counts writes that have returned.
  std::array<std::array<std::atomic<std::uint8_t>, kMostEach>, kWriters> read;
  std::atomic<std::uint32_t> wrong;

  static KilledTally* map() {
    void* at = ::mmap(nullptr, sizeof(KilledTally), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) throw std::runtime_error{"no memory for the tally"};
    return static_cast<KilledTally*>(at);  // The memory is zero; so are the atomics.
  }
  static void unmap(KilledTally* tally) { ::munmap(tally, sizeof(KilledTally)); }
};

struct KilledBlock {
  std::uint32_t writer = 0;
  std::uint32_t number = 0;
  std::uint64_t check = 0;
  std::uint64_t right_check() const { return ~(std::uint64_t{writer} << 32 | number); }
};

int write_until_killed(KilledTally& tally, std::uint32_t writer) {
  CSimpleIPC ipc;
  if (!ipc.attachToConnectionPoint("point")) return 1;
  KilledBlock block{.writer = writer};
  for (; block.number < kMostEach; ++block.number) {
    block.check = block.right_check();
    if (block.number % 2 == 0) {
      if (!ipc.write(&block, sizeof(block))) return 2;
    } else {
      BlockWriteDescriptor place;
      if (ipc.acquireBlock(place) == nullptr) return 3;
      std::memcpy(place.result, &block, sizeof(block));
      if (!ipc.releaseLockedBlock(place)) return 4;
    }
    tally.written[writer] = block.number + 1;
  }
  ::pause();
  return 0;
}

// Reads until no block arrives within the timeout.
int read_until_empty(KilledTally& tally, CSimpleIPC& ipc, std::uint32_t timeout) {
  while (true) {
    BlockReadDescriptor place;
    if (ipc.acquireBlock(place, timeout) == nullptr) return last_error() == Errc::timeout ? 0 : 5;
    KilledBlock block;
    std::memcpy(&block, place.result, sizeof(block));
    if (place.size != sizeof(block) || block.check != block.right_check() ||
        block.writer >= kWriters || block.number >= kMostEach) {
      ++tally.wrong;
      return 6;
    }
    ++tally.read[block.writer][block.number];
    if (!ipc.releaseLockedBlock(place)) return 7;
  }
}

class SimpleIpcKilled : public SimpleIpcTest {};

TEST_F(SimpleIpcKilled, NothingIsLostAndNobodyWaitsForEver) {
  const std::unique_ptr<KilledTally, decltype(&KilledTally::unmap)> tally{KilledTally::map(),
                                                                          &KilledTally::unmap};
  CSimpleIPC ipc;
  ASSERT_TRUE(ipc.createConnectionPoint(sizeof(KilledBlock), 16, 2, false, 0, "point"));
  std::mt19937_64 random{test_seed()};
  std::uint32_t next_writer = 0;
  std::uint32_t killed_readers = 0;
  const auto new_writer = [&] {
    return std::make_unique<Child>(
        [&, writer = next_writer++] { return write_until_killed(*tally, writer); });
  };
  const auto new_reader = [&] {
    return std::make_unique<Child>([&] {
      CSimpleIPC mine;
      return mine.attachToConnectionPoint("point") ? read_until_empty(*tally, mine, INFINITE) : 1;
    });
  };
  std::array<std::unique_ptr<Child>, 2> writers{new_writer(), new_writer()};
  std::array<std::unique_ptr<Child>, 2> readers{new_reader(), new_reader()};
  while (next_writer < kWriters) {
    std::this_thread::sleep_for(std::chrono::microseconds{random() % 10'000});
    const std::size_t which = random() % 2;
    if (random() % 2 == 0) {
      EXPECT_EQ(writers[which]->kill(SIGKILL), -SIGKILL);
      writers[which] = new_writer();
    } else {
      EXPECT_EQ(readers[which]->kill(SIGKILL), -SIGKILL);
      readers[which] = new_reader();
      ++killed_readers;
    }
    // Sometimes checks that blocks still get through, so nobody is left waiting.
    if (random() % 8 == 0) {
      const std::uint32_t last = next_writer - 1;
      const std::uint32_t before = tally->written[last];
      const auto until = std::chrono::steady_clock::now() + 20s;
      while (tally->written[last] == before && before < kMostEach &&
             std::chrono::steady_clock::now() < until)
        std::this_thread::sleep_for(1ms);
      ASSERT_TRUE(tally->written[last] != before || before == kMostEach) << "stuck at " << before;
    }
  }
  for (auto& writer : writers) EXPECT_EQ(writer->kill(SIGKILL), -SIGKILL);
  for (auto& reader : readers) EXPECT_EQ(reader->kill(SIGKILL), -SIGKILL);
  killed_readers += 2;
  EXPECT_EQ(read_until_empty(*tally, ipc, 500), 0);

  EXPECT_EQ(tally->wrong, 0u);
  std::uint64_t total = 0;
  std::uint64_t twice = 0;
  for (std::uint32_t writer = 0; writer < kWriters; ++writer) {
    const std::uint32_t written = tally->written[writer];
    total += written;
    for (std::uint32_t number = 0; number < kMostEach; ++number) {
      const std::uint32_t times = tally->read[writer][number];
      if (times > 1) twice += times - 1;
      if (number < written) {
        ASSERT_GE(times, 1u) << "writer " << writer << " lost block " << number << " of "
                             << written;
      } else if (number > written) {  // The block that it was just writing may have arrived.
        ASSERT_EQ(times, 0u);
      }
    }
  }
  EXPECT_LE(twice, killed_readers);
  EXPECT_GT(total, 1000u);
}

}  // namespace
}  // namespace leat
