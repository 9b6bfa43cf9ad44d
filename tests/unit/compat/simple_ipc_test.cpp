#include "leat/compat/simple_ipc.hpp"

#include <sys/eventfd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <thread>

#include "testing.hpp"

namespace leat {
namespace {

using compat::BlockStatus;

class SimpleIpcTest : public testing::Test {
 protected:
  SimpleIpcTest() { ::setenv("LEAT_DIR", directory_.path().c_str(), 1); }
  ~SimpleIpcTest() override { ::unsetenv("LEAT_DIR"); }
  const TestDirectory& directory() const { return directory_; }

  // An instance attached to the point of another one.
  struct Attached : CSimpleIPC {
    explicit Attached(const CSimpleIPC& other) {
      EXPECT_TRUE(attachToConnectionPoint(other.getConnectionPoint())) << lastErrorText();
    }
  };

 private:
  TestDirectory directory_;
};

bool write_number(CSimpleIPC& ipc, std::uint64_t number, std::uint32_t timeout = 0,
                  const CSimpleIPC::StopOn& stop = {}) {
  return ipc.write(&number, sizeof(number), timeout, stop);
}
// The next number, or ~0.
std::uint64_t read_number(CSimpleIPC& ipc, std::uint32_t timeout = 0,
                          const CSimpleIPC::StopOn& stop = {}) {
  std::uint64_t number = 0;
  return ipc.read(&number, sizeof(number), timeout, stop) ? number : ~0ULL;
}
Errc last_error() { return CSimpleIPC::lastError().code; }

// How many blocks can be written without a reader.
std::uint64_t fill_up(CSimpleIPC& ipc) {
  std::uint64_t count = 0;
  while (write_number(ipc, count)) ++count;
  EXPECT_EQ(last_error(), Errc::timeout) << CSimpleIPC::lastErrorText();
  return count;
}

// Calls `call` on another thread, `end` once it surely waits, and returns what the call did.
template <class Call, class End>
auto ended_by(Call call, End end) {
  decltype(call()) result{};
  Errc error = Errc::ok;
  std::jthread waiter{[&] {
    result = call();
    error = last_error();
  }};
  std::this_thread::sleep_for(30ms);
  end();
  waiter.join();
  return std::pair{result, error};
}

// C1
TEST_F(SimpleIpcTest, HoldsBlocksOfAllExpansionsAndNotOneMore) {
  CSimpleIPC ipc;
  ASSERT_TRUE(ipc.createConnectionPoint(8, 256, 4, false, 16)) << CSimpleIPC::lastErrorText();
  for (std::uint64_t i = 0; i < 1024; ++i) ASSERT_TRUE(write_number(ipc, i)) << i;
  EXPECT_FALSE(write_number(ipc, 1024));
  EXPECT_EQ(last_error(), Errc::timeout);
  EXPECT_FALSE(write_number(ipc, 1024, 20));
  EXPECT_EQ(last_error(), Errc::timeout);
  // It waits for a reader.
  const auto [written, error] = ended_by([&] { return write_number(ipc, 1024, INFINITE); },
                                         [&] { EXPECT_EQ(read_number(ipc), 0u); });
  EXPECT_TRUE(written);
  EXPECT_FALSE(write_number(ipc, 1025));
  for (std::uint64_t i = 1; i <= 1024; ++i) ASSERT_EQ(read_number(ipc), i);
  EXPECT_EQ(read_number(ipc), ~0ULL);
  EXPECT_EQ(last_error(), Errc::timeout);
  EXPECT_EQ(fill_up(ipc), 1024u);
}

TEST_F(SimpleIpcTest, CountsBlocksExactlyWhateverTheirSize) {
  for (const std::uint32_t size : {8U, 100U, 4096U, 1U << 20}) {
    for (const auto& [count, expansions] :
         {std::pair{1U, 1U}, std::pair{1U, 5U}, std::pair{7U, 3U}, std::pair{20U, 1U}}) {
      CSimpleIPC ipc;
      ASSERT_TRUE(ipc.createConnectionPoint(size, count, expansions))
          << CSimpleIPC::lastErrorText();
      EXPECT_EQ(fill_up(ipc), count * expansions) << size;
      EXPECT_EQ(read_number(ipc), 0u);
      EXPECT_EQ(fill_up(ipc), 1u);
    }
  }
}

TEST_F(SimpleIpcTest, WritersThatRaceForTheLastBlocksFillItExactly) {
  CSimpleIPC ipc;
  ASSERT_TRUE(ipc.createConnectionPoint(8, 100, 10));
  for (int round = 0; round < 20; ++round) {
    std::atomic<std::uint64_t> written = 0;
    {
      std::vector<std::jthread> writers;
      for (int i = 0; i < 4; ++i) {
        writers.emplace_back([&] {
          while (write_number(ipc, 1)) ++written;
        });
      }
    }
    ASSERT_EQ(written, 1000u);
    for (int i = 0; i < 1000; ++i) ASSERT_EQ(read_number(ipc), 1u);
    ASSERT_EQ(read_number(ipc), ~0ULL);
  }
}

// A queue of at most 30 blocks, of which the readers hold up to 6 in place.
TEST_F(SimpleIpcTest, BehavesLikeAModel) {
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
        ASSERT_EQ(ipc.acquireBlock(held[which], 0) != nullptr, !queue.empty()) << step;
        if (queue.empty()) break;
        held_text[which] = queue.front();
        queue.pop_front();
        ++holding;
    }
  }
}

// C2
TEST_F(SimpleIpcTest, AttachWaitsUntilThePointAppears) {
  CSimpleIPC early;
  EXPECT_FALSE(early.attachToConnectionPoint("point", 0));
  EXPECT_EQ(last_error(), Errc::not_found);
  EXPECT_FALSE(early.attachToConnectionPoint(L"point", 50));
  EXPECT_EQ(last_error(), Errc::not_found);
  CSimpleIPC creator;
  const auto [attached, error] =
      ended_by([&] { return early.attachToConnectionPoint("point", INFINITE); },
               [&] { ASSERT_TRUE(creator.createConnectionPoint(8, 10, 1, false, 0, "point")); });
  EXPECT_TRUE(attached);
  EXPECT_TRUE(write_number(creator, 7));
  EXPECT_EQ(read_number(early), 7u);
}

TEST_F(SimpleIpcTest, NameIsEnoughToFindEverything) {
  CSimpleIPC creator;
  ASSERT_TRUE(creator.createConnectionPoint(24, 100, 3, true, 10));
  Attached other{creator};
  EXPECT_EQ(other.settings(), (compat::BlockSettings{.block_size = 24,
                                                     .block_count = 100,
                                                     .max_expansions = 3,
                                                     .min_expansion_distance = 10,
                                                     .pre_allocate = 1}));
  EXPECT_EQ(other.getConnectionPoint(), creator.getConnectionPoint());
  CSimpleIPC third;
  EXPECT_TRUE(third.attachToConnectionPoint(creator.getConnectionPointName()));
  EXPECT_EQ(fill_up(third), 300u);
  CSimpleIPC another;
  ASSERT_TRUE(another.createConnectionPoint(8, 1));
  EXPECT_NE(another.getConnectionPoint(), creator.getConnectionPoint());
}

// C3
TEST_F(SimpleIpcTest, OthersGoOnWhenTheCreatorIsGone) {
  {
    Child creator{[] {
      CSimpleIPC ipc;
      if (!ipc.createConnectionPoint(8, 10, 2, false, 0, "there")) return 1;
      if (!ipc.createConnectionPoint(8, 10) && last_error() != Errc::busy) return 2;
      return read_number(ipc, INFINITE) == 1 ? 0 : 3;  // Stays until somebody writes.
    }};
    Child echo{[] {
      CSimpleIPC there;
      CSimpleIPC back;
      if (!there.attachToConnectionPoint("there")) return 1;
      if (!back.attachToConnectionPoint("back")) return 2;
      for (std::uint64_t i = 0; i < 1000; ++i) {
        if (read_number(there, INFINITE) != i || !write_number(back, i + 1, INFINITE)) return 3;
      }
      return 0;
    }};
    CSimpleIPC there;
    CSimpleIPC back;
    ASSERT_TRUE(there.attachToConnectionPoint("there"));
    ASSERT_TRUE(write_number(there, 1));
    ASSERT_EQ(creator.join(), 0);
    ASSERT_TRUE(back.createConnectionPoint(8, 10, 1, false, 0, "back"));
    for (std::uint64_t i = 0; i < 1000; ++i) {
      ASSERT_TRUE(write_number(there, i, INFINITE));
      ASSERT_EQ(read_number(back, INFINITE), i + 1);
    }
    EXPECT_EQ(echo.join(), 0);
  }
  EXPECT_TRUE(directory().is_empty());  // Removed by the last one.
}

TEST_F(SimpleIpcTest, LeavesNothingBehindEvenIfNobodyUsedIt) {
  {
    CSimpleIPC creator;
    ASSERT_TRUE(creator.createConnectionPoint(8, 10));
    EXPECT_FALSE(directory().is_empty());
    const Attached other{creator};
  }
  EXPECT_TRUE(directory().is_empty());
}

// C4
TEST_F(SimpleIpcTest, InfiniteReadIsEndedByAWrite) {
  CSimpleIPC ipc;
  ASSERT_TRUE(ipc.createConnectionPoint(8, 10));
  const auto [number, error] = ended_by([&] { return read_number(ipc, INFINITE); },
                                        [&] { EXPECT_TRUE(write_number(ipc, 5)); });
  EXPECT_EQ(number, 5u);
}

TEST_F(SimpleIpcTest, RequestedStopEndsAllInfiniteWaitsOfTheInstance) {
  CSimpleIPC full;
  ASSERT_TRUE(full.createConnectionPoint(8, 10));
  fill_up(full);
  CSimpleIPC empty;
  ASSERT_TRUE(empty.createConnectionPoint(8, 10));
  Attached other{empty};
  std::atomic<int> ended = 0;
  {
    std::vector<std::jthread> waiters;
    for (int i = 0; i < 3; ++i) {
      waiters.emplace_back([&] {
        EXPECT_FALSE(write_number(full, 1, INFINITE));
        EXPECT_EQ(last_error(), Errc::stopped);
        ++ended;
      });
      waiters.emplace_back([&] {
        EXPECT_EQ(read_number(empty, INFINITE), ~0ULL);
        EXPECT_EQ(last_error(), Errc::stopped);
        ++ended;
      });
      waiters.emplace_back([&] {
        BlockReadDescriptor block;
        EXPECT_EQ(empty.acquireBlock(block, INFINITE), nullptr);
        EXPECT_EQ(block.status, BlockStatus::failed);
        EXPECT_EQ(block.error.code, Errc::stopped);
        ++ended;
      });
    }
    // Another instance of the same point is not concerned.
    std::jthread undisturbed{[&] { EXPECT_EQ(read_number(other, INFINITE), 9u); }};
    std::this_thread::sleep_for(50ms);
    EXPECT_EQ(ended, 0);
    full.requestStopCommunications();
    empty.requestStopCommunications();
    for (auto& waiter : waiters) waiter.join();
    EXPECT_EQ(ended, 9);
    EXPECT_TRUE(write_number(empty, 9));
  }
}

TEST_F(SimpleIpcTest, StoppedInstanceWorksWithoutWaiting) {
  CSimpleIPC ipc;
  ASSERT_TRUE(ipc.createConnectionPoint(8, 2));
  EXPECT_FALSE(ipc.isCommunicationStopped());
  ipc.requestStopCommunications();
  EXPECT_TRUE(ipc.isCommunicationStopped());
  EXPECT_EQ(read_number(ipc, INFINITE), ~0ULL);
  EXPECT_EQ(last_error(), Errc::stopped);
  EXPECT_TRUE(write_number(ipc, 1, INFINITE));
  EXPECT_TRUE(write_number(ipc, 2, INFINITE));
  EXPECT_FALSE(write_number(ipc, 3, INFINITE));
  EXPECT_EQ(last_error(), Errc::stopped);
  EXPECT_EQ(read_number(ipc, INFINITE), 1u);
  CSimpleIPC late;
  late.requestStopCommunications();
  EXPECT_FALSE(late.attachToConnectionPoint("nothing", INFINITE));
  EXPECT_EQ(last_error(), Errc::stopped);

  ipc.requestResumeCommunications();
  EXPECT_FALSE(ipc.isCommunicationStopped());
  EXPECT_EQ(read_number(ipc, INFINITE), 2u);
  const auto [number, error] = ended_by([&] { return read_number(ipc, INFINITE); },
                                        [&] { EXPECT_TRUE(write_number(ipc, 4)); });
  EXPECT_EQ(number, 4u);
}

TEST_F(SimpleIpcTest, StopThatIsResumedAtOnceStillEndsTheWait) {
  CSimpleIPC ipc;
  ASSERT_TRUE(ipc.createConnectionPoint(8, 2));
  for (int i = 0; i < 50; ++i) {
    const auto [number, error] = ended_by([&] { return read_number(ipc, INFINITE); },
                                          [&] {
                                            ipc.requestStopCommunications();
                                            ipc.requestResumeCommunications();
                                          });
    ASSERT_EQ(number, ~0ULL);
    ASSERT_EQ(error, Errc::stopped);
  }
}

// The article's bug 1.
TEST_F(SimpleIpcTest, StopOnEndsAnInfiniteWait) {
  CSimpleIPC empty;
  ASSERT_TRUE(empty.createConnectionPoint(8, 1));
  CSimpleIPC full;
  ASSERT_TRUE(full.createConnectionPoint(8, 1));
  fill_up(full);
  const detail::Fd event{::eventfd(0, EFD_CLOEXEC)};
  std::stop_source source;
  const std::uint64_t one = 1;
  const auto signal = [&] { ASSERT_EQ(::write(event.get(), &one, sizeof(one)), 8); };
  const auto stop = [&] { source.request_stop(); };
  const auto expect_stopped = [](auto ended) {
    EXPECT_EQ(ended.second, Errc::stopped);
    EXPECT_TRUE(ended.first == ~0ULL || ended.first == 0);
  };
  const auto read_until = [&](const CSimpleIPC::StopOn& on) {
    return [&, on] { return read_number(empty, INFINITE, on); };
  };
  const auto write_until = [&](const CSimpleIPC::StopOn& on) {
    return [&, on]() -> std::uint64_t { return write_number(full, 1, INFINITE, on); };
  };
  expect_stopped(ended_by(read_until(source.get_token()), stop));
  expect_stopped(ended_by(read_until(event.get()), signal));
  std::uint64_t count = 0;
  ASSERT_EQ(::read(event.get(), &count, sizeof(count)), 8);
  source = {};
  expect_stopped(ended_by(write_until(source.get_token()), stop));
  expect_stopped(ended_by(write_until(event.get()), signal));
  // They concern that wait only, and a call that need not wait does not notice.
  EXPECT_TRUE(write_number(empty, 3, INFINITE, event.get()));
  EXPECT_EQ(read_number(empty, INFINITE, source.get_token()), 3u);
  EXPECT_EQ(read_number(full, INFINITE, nullptr), 0u);
}

struct Measurement {
  explicit Measurement(int first) : values{first, first + 1} {}
  int values[2];
  double sum() const { return values[0] + values[1]; }
};

// C6
TEST_F(SimpleIpcTest, ObjectIsConstructedAndReadInPlace) {
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
  EXPECT_EQ(read_number(ipc), ~0ULL);  // Not before it is released.
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

TEST_F(SimpleIpcTest, BlockHeldInPlaceCountsUntilItIsReleased) {
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
  EXPECT_EQ(read_number(ipc), 0u);  // Destroyed without a release: the next reader gets it.
  EXPECT_EQ(fill_up(ipc), 3u);
}

TEST_F(SimpleIpcTest, BlockThatIsNotReleasedByItsWriterIsNotDelivered) {
  CSimpleIPC ipc;
  ASSERT_TRUE(ipc.createConnectionPoint(8, 3));
  {
    BlockWriteDescriptor dropped;
    ASSERT_NE(ipc.acquireBlock(dropped), nullptr);
    EXPECT_TRUE(write_number(ipc, 1));  // Behind it.
    EXPECT_EQ(read_number(ipc), ~0ULL);
  }
  EXPECT_EQ(read_number(ipc), 1u);
  EXPECT_EQ(fill_up(ipc), 3u);
}

TEST_F(SimpleIpcTest, BlockIsReleasedByAnyThread) {
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

TEST_F(SimpleIpcTest, KilledWriterDropsItsBlockAndTheQueueGoesOn) {
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
    EXPECT_EQ(read_number(ipc, 20), ~0ULL);  // Everything waits for the open block,
    EXPECT_EQ(writer.kill(SIGKILL), -SIGKILL);
    EXPECT_EQ(read_number(ipc, INFINITE), 100u);  // until its writer is dead.
    EXPECT_EQ(read_number(ipc, INFINITE), round);
    EXPECT_EQ(read_number(ipc), ~0ULL);
  }
}

TEST_F(SimpleIpcTest, KilledReaderGivesItsBlockToAnother) {
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

// C7
TEST_F(SimpleIpcTest, ExpansionsAreChangedForAllInstances) {
  CSimpleIPC ipc;
  ASSERT_TRUE(ipc.createConnectionPoint(8, 10, 4));
  Attached other{ipc};
  EXPECT_EQ(fill_up(other), 40u);
  ASSERT_TRUE(ipc.setMaxExpansionsCount(2)) << CSimpleIPC::lastErrorText();
  EXPECT_EQ(other.settings().max_expansions, 2u);
  EXPECT_EQ(read_number(other), 0u);
  EXPECT_FALSE(write_number(other, 40));  // 39 are there, 20 may be.
  for (int i = 1; i <= 20; ++i) EXPECT_EQ(read_number(other), static_cast<std::uint64_t>(i));
  EXPECT_EQ(fill_up(other), 1u);
  ASSERT_TRUE(other.setMaxExpansionsCount(3));
  EXPECT_EQ(fill_up(ipc), 10u);
  // Also for a writer that waits already.
  const auto [written, error] = ended_by([&] { return write_number(other, 1, INFINITE); },
                                         [&] { EXPECT_TRUE(ipc.setMaxExpansionsCount(4)); });
  EXPECT_TRUE(written);
  EXPECT_EQ(fill_up(ipc), 9u);
}

TEST_F(SimpleIpcTest, ExpansionsAreFixedWithPreAllocate) {
  CSimpleIPC ipc;
  ASSERT_TRUE(ipc.createConnectionPoint(8, 10, 2, true));
  EXPECT_FALSE(ipc.setMaxExpansionsCount(1));
  EXPECT_EQ(last_error(), Errc::not_allowed);
  EXPECT_EQ(fill_up(ipc), 20u);
}

TEST_F(SimpleIpcTest, SingleThreadAndSpinCountsMayBeSetAtAnyTime) {
  CSimpleIPC ipc;
  ipc.doSingleThread(true);
  ipc.setMaxSpinLocksCount();
  ASSERT_TRUE(ipc.createConnectionPoint(8, 10));
  for (const bool single : {true, false, true}) {
    ipc.doSingleThread(single);
    ipc.setMaxSpinLocksCount(single ? 0 : 100, 1);
    BlockReadDescriptor seen;
    for (std::uint64_t i = 0; i < 10; ++i) ASSERT_TRUE(write_number(ipc, i));
    ASSERT_NE(ipc.acquireBlock(seen), nullptr);
    for (std::uint64_t i = 1; i < 10; ++i) ASSERT_EQ(read_number(ipc, INFINITE), i);
    ASSERT_TRUE(ipc.releaseLockedBlock(seen));
    EXPECT_EQ(read_number(ipc, 1), ~0ULL);
  }
}

TEST_F(SimpleIpcTest, BadCallsSayWhatWasWrong) {
  CSimpleIPC none;
  std::uint64_t number = 0;
  const auto expect = [](bool ok, Errc code) {
    EXPECT_FALSE(ok);
    EXPECT_EQ(last_error(), code);
    EXPECT_NE(CSimpleIPC::lastErrorText(), "");
  };
  BlockWriteDescriptor to_write;
  BlockReadDescriptor to_read;
  expect(none.write(&number, 8), Errc::not_found);
  expect(none.read(&number, 8), Errc::not_found);
  expect(none.acquireBlock(to_write) != nullptr, Errc::not_found);
  expect(none.acquireBlock(to_read) != nullptr, Errc::not_found);
  EXPECT_EQ(to_read.status, BlockStatus::failed);
  EXPECT_EQ(to_read.error.code, Errc::not_found);
  expect(none.releaseLockedBlock(to_write), Errc::not_held);
  expect(none.releaseLockedBlock(to_read), Errc::not_held);
  expect(none.setMaxExpansionsCount(2), Errc::not_found);
  EXPECT_EQ(none.getConnectionPoint(), L"");
  EXPECT_EQ(none.settings().limit(), 0u);
  expect(none.createConnectionPoint(0, 1), Errc::invalid_argument);
  expect(none.createConnectionPoint(8, 0), Errc::invalid_argument);
  expect(none.createConnectionPoint(8, 1, 0), Errc::invalid_argument);
  expect(none.createConnectionPoint(~0U, 1), Errc::invalid_argument);
  expect(none.createConnectionPoint(1 << 20, 1 << 20, 1 << 20), Errc::invalid_argument);
  expect(none.createConnectionPoint(8, 1, 1, false, 0, "a/b"), Errc::invalid_argument);
  expect(none.attachToConnectionPoint(""), Errc::invalid_argument);
  expect(none.attachToConnectionPoint(L"gr\u00fcn"), Errc::invalid_argument);
  expect(none.attachToConnectionPoint(std::string(200, 'x')), Errc::invalid_argument);
  must(Topic::create("other"));
  expect(none.attachToConnectionPoint("other"), Errc::wrong_format);

  CSimpleIPC ipc;
  ASSERT_TRUE(ipc.createConnectionPoint(8, 2, 1, false, 0, "point"));
  EXPECT_EQ(last_error(), Errc::ok);
  expect(ipc.createConnectionPoint(8, 2), Errc::busy);
  expect(ipc.attachToConnectionPoint("point"), Errc::busy);
  expect(none.createConnectionPoint(8, 2, 1, false, 0, "point"), Errc::exists);
  expect(ipc.write(&number, 9), Errc::too_large);
  EXPECT_EQ(CSimpleIPC::lastError().system_error, 8);
  expect(ipc.write(nullptr, 8), Errc::invalid_argument);
  expect(ipc.read(nullptr, 8), Errc::invalid_argument);
  expect(ipc.setMaxExpansionsCount(0), Errc::invalid_argument);
  expect(ipc.setMaxExpansionsCount(~0U), Errc::invalid_argument);

  // A buffer that is too small leaves the block where it is.
  ASSERT_TRUE(write_number(ipc, 77));
  expect(ipc.read(&number, 7), Errc::buffer_too_small);
  EXPECT_EQ(CSimpleIPC::lastError().system_error, 8);
  EXPECT_EQ(read_number(ipc), 77u);
  EXPECT_TRUE(ipc.write(nullptr, 0));
  EXPECT_TRUE(ipc.read(nullptr, 0));
  EXPECT_EQ(CSimpleIPC::lastReadSize(), 0u);
}

TEST_F(SimpleIpcTest, DescriptorSaysWhatItHolds) {
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
  ASSERT_NE(ipc.acquireBlock(block), nullptr);  // One that failed may be used again.
  EXPECT_EQ(block.error.code, Errc::ok);
  // One that holds a block keeps it.
  EXPECT_EQ(ipc.acquireBlock(block), nullptr);
  EXPECT_EQ(last_error(), Errc::busy);
  EXPECT_EQ(block.status, BlockStatus::acquired);
  EXPECT_FALSE(other.releaseLockedBlock(block));  // It belongs to the instance that acquired it.
  EXPECT_EQ(last_error(), Errc::not_held);
  EXPECT_TRUE(ipc.releaseLockedBlock(block));
  EXPECT_FALSE(ipc.releaseLockedBlock(block));
  EXPECT_EQ(last_error(), Errc::not_held);
  EXPECT_EQ(block.status, BlockStatus::released);
  ASSERT_NE(ipc.acquireBlock(block), nullptr);  // And one that was released.
  EXPECT_TRUE(ipc.releaseLockedBlock(block));
}

TEST_F(SimpleIpcTest, InstanceInheritedByAForkIsRefusedAndAnotherOneWorks) {
  CSimpleIPC ipc;
  ASSERT_TRUE(ipc.createConnectionPoint(8, 2, 1, false, 0, "point"));
  ASSERT_TRUE(write_number(ipc, 1));
  Child child{[&] {
    if (write_number(ipc, 2) || last_error() != Errc::forked) return 1;
    CSimpleIPC mine;
    if (!mine.attachToConnectionPoint("point")) return 2;
    return read_number(mine, 1000) == 1 && write_number(mine, 2) ? 0 : 3;
  }};
  EXPECT_EQ(child.join(), 0);
  EXPECT_EQ(read_number(ipc), 2u);
}

}  // namespace
}  // namespace leat
