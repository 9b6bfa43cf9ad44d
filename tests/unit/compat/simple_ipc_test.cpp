// If this failed, a program written for CSimpleIPC would get another capacity, not find its
// connection point, or wait forever.
#include <sys/eventfd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <thread>

#include "compat/simple_ipc_testing.hpp"

namespace leat {
namespace {

TEST_F(SimpleIpcTest, HoldsBlocksOfAllExpansionsAndNotOneMore) {
  CSimpleIPC ipc;
  ASSERT_TRUE(ipc.createConnectionPoint(8, 256, 4, false, 16)) << CSimpleIPC::lastErrorText();
  for (std::uint64_t i = 0; i < 1024; ++i) ASSERT_TRUE(write_number(ipc, i)) << i;
  EXPECT_FALSE(write_number(ipc, 1024));
  EXPECT_EQ(last_error(), Errc::timeout);
  EXPECT_FALSE(write_number(ipc, 1024, 20));
  EXPECT_EQ(last_error(), Errc::timeout);
  // The next write waits for a reader.
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

TEST_F(SimpleIpcTest, OthersGoOnWhenTheCreatorIsGone) {
  {
    Child creator{[] {
      CSimpleIPC ipc;
      if (!ipc.createConnectionPoint(8, 10, 2, false, 0, "there")) return 1;
      if (!ipc.createConnectionPoint(8, 10) && last_error() != Errc::busy) return 2;
      return read_number(ipc, INFINITE) == 1 ? 0 : 3;  // Waits until somebody writes.
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
  EXPECT_TRUE(directory().is_empty());  // The last user has removed it.
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

TEST_F(SimpleIpcTest, NameOfACreatorThatDiedHalfwayIsFree) {
  must(Topic::create("point.settings"));
  CSimpleIPC ipc;
  ASSERT_TRUE(ipc.createConnectionPoint(8, 10, 1, false, 0, "point"))
      << CSimpleIPC::lastErrorText();
  EXPECT_EQ(fill_up(ipc), 10u);
}

TEST_F(SimpleIpcTest, RemovalByForceEndsInfiniteWaits) {
  for (const bool is_full : {false, true}) {
    CSimpleIPC ipc;
    ASSERT_TRUE(ipc.createConnectionPoint(8, 10));
    if (is_full) fill_up(ipc);
    const auto [number, error] = ended_by(
        [&] { return is_full ? write_number(ipc, 1, INFINITE) : read_number(ipc, INFINITE); },
        [&] { must(Topic::delete_topic(ipc.getConnectionPointName(), {.force = true})); });
    EXPECT_EQ(error, Errc::deleted);
  }
}

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
    // Another instance of the same connection point is not affected.
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

// Bug 1 of the article that describes SimpleIPC: an infinite wait could not be ended.
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
  // A stop affects only the wait it was given to, and not a call that need not wait.
  EXPECT_TRUE(write_number(empty, 3, INFINITE, event.get()));
  EXPECT_EQ(read_number(empty, INFINITE, source.get_token()), 3u);
  EXPECT_EQ(read_number(full, INFINITE, nullptr), 0u);
}

TEST_F(SimpleIpcTest, ExpansionsAreChangedForAllInstances) {
  CSimpleIPC ipc;
  ASSERT_TRUE(ipc.createConnectionPoint(8, 10, 4));
  Attached other{ipc};
  EXPECT_EQ(fill_up(other), 40u);
  ASSERT_TRUE(ipc.setMaxExpansionsCount(2)) << CSimpleIPC::lastErrorText();
  EXPECT_EQ(other.settings().max_expansions, 2u);
  EXPECT_EQ(read_number(other), 0u);
  EXPECT_FALSE(write_number(other, 40));  // There are 39 blocks; 20 are allowed.
  for (int i = 1; i <= 20; ++i) EXPECT_EQ(read_number(other), static_cast<std::uint64_t>(i));
  EXPECT_EQ(fill_up(other), 1u);
  ASSERT_TRUE(other.setMaxExpansionsCount(3));
  EXPECT_EQ(fill_up(ipc), 10u);
  // It takes effect for a writer that is already waiting, too.
  const auto [written, error] = ended_by([&] { return write_number(other, 1, INFINITE); },
                                         [&] { EXPECT_TRUE(ipc.setMaxExpansionsCount(4)); });
  EXPECT_TRUE(written);
  EXPECT_EQ(fill_up(ipc), 9u);
  // Far more than it was created with.
  ASSERT_TRUE(ipc.setMaxExpansionsCount(400)) << CSimpleIPC::lastErrorText();
  EXPECT_EQ(fill_up(other), 3960u);
}

TEST_F(SimpleIpcTest, FewerExpansionsCountAtOnceForWritersThatHadRoom) {
  CSimpleIPC ipc;
  ASSERT_TRUE(ipc.createConnectionPoint(8, 256, 4, false, 16));
  Attached other{ipc};
  ASSERT_TRUE(write_number(ipc, 0));
  ASSERT_TRUE(write_number(other, 1));  // Both instances know the limit of 1024.
  ASSERT_TRUE(ipc.setMaxExpansionsCount(1));
  EXPECT_EQ(fill_up(other), 254u);
  EXPECT_EQ(fill_up(ipc), 0u);
}

TEST_F(SimpleIpcTest, TakesMemoryForExpansionsAsTheyAreNeeded) {
  constexpr std::uint64_t kMiB = 1 << 20;
  CSimpleIPC ipc;
  ASSERT_TRUE(ipc.createConnectionPoint(4000, 256, 64, false, 16));
  const Topic topic = must(Topic::open(ipc.getConnectionPointName()));
  EXPECT_LE(topic.info().capacity_bytes, 3 * kMiB);
  const std::string block(4000, 'x');
  std::uint64_t count = 0;
  while (ipc.write(block.data(), block.size(), 0)) ++count;
  EXPECT_EQ(count, 64 * 256u);
  const std::uint64_t full = topic.info().capacity_bytes;
  EXPECT_GE(full, 62 * kMiB);
  EXPECT_LE(full, 66 * kMiB);
  // It takes no more memory, however many blocks go through.
  std::string read(4000, '\0');
  for (std::uint64_t i = 0; i < count; ++i) {
    ASSERT_TRUE(ipc.read(read.data(), read.size(), 0));
    ASSERT_EQ(read, block);
    ASSERT_TRUE(ipc.write(block.data(), block.size(), 0));
  }
  EXPECT_LE(topic.info().capacity_bytes, full + 2 * kMiB);
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
  expect(none.releaseLockedBlock(to_write), Errc::not_in_flight);
  expect(none.releaseLockedBlock(to_read), Errc::not_in_flight);
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

  // If the buffer is too small, the block stays in the queue.
  ASSERT_TRUE(write_number(ipc, 77));
  expect(ipc.read(&number, 7), Errc::buffer_too_small);
  EXPECT_EQ(CSimpleIPC::lastError().system_error, 8);
  EXPECT_EQ(read_number(ipc), 77u);
  EXPECT_TRUE(ipc.write(nullptr, 0));
  EXPECT_TRUE(ipc.read(nullptr, 0));
  EXPECT_EQ(CSimpleIPC::lastReadSize(), 0u);
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
