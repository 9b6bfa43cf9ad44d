// If this failed, a CSimpleIPC connection point with many readers and writers could lose a block,
// deliver one twice, or let somebody wait forever. All waits are infinite.
//
// LEAT_SOAK_BLOCKS sets a larger number of blocks (tools/soak.sh).
#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <thread>

#include "leat/compat/simple_ipc.hpp"
#include "testing.hpp"

namespace leat {
namespace {

std::uint64_t blocks_to_send() {
  if (const char* given = std::getenv("LEAT_SOAK_BLOCKS"); given != nullptr)
    return std::strtoull(given, nullptr, 10);
#if LEAT_TEST_SANITIZED
  return 100'000;
#else
  return 1'000'000;
#endif
}

constexpr std::uint64_t kEnd = ~0ULL;  // The number that tells a reader to end.

struct NumberedBlock {
  std::uint64_t writer = 0;
  std::uint64_t number = 0;
  std::uint64_t check = 0;  // Checksum of the other two.

  std::uint64_t right_check() const { return (writer << 48 ^ number) * 0x9e37'79b9'7f4a'7c15ULL; }
};

// One bit for each block, in memory that children share.
class Tally {
 public:
  explicit Tally(std::uint64_t blocks) : words_{blocks / 64 + 1} {
    void* at =
        ::mmap(nullptr, words_ * 8, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw std::runtime_error{"no memory for the tally"};
    bits_ = static_cast<std::uint64_t*>(at);
  }
  Tally(const Tally&) = delete;
  Tally& operator=(const Tally&) = delete;
  ~Tally() { ::munmap(bits_, words_ * 8); }

  // Returns whether the block came for the first time.
  bool note(std::uint64_t block) {
    const std::uint64_t bit = 1ULL << block % 64;
    return (std::atomic_ref{bits_[block / 64]}.fetch_or(bit) & bit) == 0;
  }
  std::uint64_t count() const {
    std::uint64_t count = 0;
    for (std::uint64_t i = 0; i < words_; ++i)
      count += static_cast<std::uint64_t>(std::popcount(bits_[i]));
    return count;
  }

 private:
  std::uint64_t words_;
  std::uint64_t* bits_;
};

struct Shape {
  std::uint64_t writers;
  std::uint64_t readers;
};

class SimpleIpcMany : public ::testing::TestWithParam<Shape> {
 protected:
  SimpleIpcMany() { ::setenv("LEAT_DIR", directory_.path().c_str(), 1); }
  ~SimpleIpcMany() override { ::unsetenv("LEAT_DIR"); }

  const Shape shape_ = GetParam();
  const std::uint64_t each_ = blocks_to_send() / shape_.writers;
  Tally tally_{each_ * shape_.writers};

  // These return 0, or print what was wrong and return another number.
  int write_all(CSimpleIPC& ipc, std::uint64_t writer) const {
    NumberedBlock block{.writer = writer};
    for (; block.number < each_; ++block.number) {
      block.check = block.right_check();
      if (block.number % 16 == 0) {  // Some blocks are written in place.
        BlockWriteDescriptor place;
        if (ipc.acquireBlock(place) == nullptr) return failed("acquire");
        std::memcpy(place.result, &block, sizeof(block));
        if (!ipc.releaseLockedBlock(place)) return failed("release");
      } else if (!ipc.write(&block, sizeof(block))) {
        return failed("write");
      }
    }
    return 0;
  }
  int read_all(CSimpleIPC& ipc) {
    std::vector<std::uint64_t> next(shape_.writers, 0);  // Each writer's blocks come in order.
    for (std::uint64_t turn = 0;; ++turn) {
      NumberedBlock block;
      if (turn % 16 == 0) {
        BlockReadDescriptor place;
        if (ipc.acquireBlock(place) == nullptr || place.size != sizeof(block))
          return failed("acquire");
        std::memcpy(&block, place.result, sizeof(block));
        if (!ipc.releaseLockedBlock(place)) return failed("release");
      } else if (!ipc.read(&block, sizeof(block)) || CSimpleIPC::lastReadSize() != sizeof(block)) {
        return failed("read");
      }
      if (block.number == kEnd) return 0;
      if (block.check != block.right_check() || block.writer >= shape_.writers ||
          block.number >= each_)
        return failed("content");
      if (block.number < next[block.writer]) return failed("order");
      next[block.writer] = block.number + 1;
      if (!tally_.note(block.writer * each_ + block.number)) return failed("twice");
    }
  }
  void let_readers_go(CSimpleIPC& ipc) const {
    const NumberedBlock end{.number = kEnd};
    for (std::uint64_t i = 0; i < shape_.readers; ++i) ASSERT_TRUE(ipc.write(&end, sizeof(end)));
  }
  void expect_everything_came(CSimpleIPC& ipc) const {
    EXPECT_EQ(tally_.count(), each_ * shape_.writers);
    NumberedBlock block;
    EXPECT_FALSE(ipc.read(&block, sizeof(block), 0));
  }

 private:
  static int failed(const char* what) {
    std::fprintf(stderr, "%s: %s\n", what, CSimpleIPC::lastErrorText().c_str());
    return 1;
  }

  TestDirectory directory_;
};

TEST_P(SimpleIpcMany, ThreadsThatShareAnInstance) {
  CSimpleIPC ipc;
  ASSERT_TRUE(ipc.createConnectionPoint(sizeof(NumberedBlock), 64, 4));
  {
    std::vector<std::jthread> readers;
    for (std::uint64_t i = 0; i < shape_.readers; ++i)
      readers.emplace_back([&] { EXPECT_EQ(read_all(ipc), 0); });
    std::vector<std::jthread> writers;
    for (std::uint64_t i = 0; i < shape_.writers; ++i)
      writers.emplace_back([&, i] { EXPECT_EQ(write_all(ipc, i), 0); });
    writers.clear();
    let_readers_go(ipc);
  }
  expect_everything_came(ipc);
}

TEST_P(SimpleIpcMany, Processes) {
  CSimpleIPC ipc;
  ASSERT_TRUE(ipc.createConnectionPoint(sizeof(NumberedBlock), 256, 4, true));
  const std::string name = ipc.getConnectionPointName();
  std::vector<std::unique_ptr<Child>> readers;
  std::vector<std::unique_ptr<Child>> writers;
  for (std::uint64_t i = 0; i < shape_.readers; ++i) {
    readers.push_back(std::make_unique<Child>([&] {
      CSimpleIPC mine;
      mine.doSingleThread(true);
      return mine.attachToConnectionPoint(name) ? read_all(mine) : 2;
    }));
  }
  for (std::uint64_t i = 0; i < shape_.writers; ++i) {
    writers.push_back(std::make_unique<Child>([&] {
      CSimpleIPC mine;
      mine.doSingleThread(true);
      return mine.attachToConnectionPoint(name) ? write_all(mine, i) : 2;
    }));
  }
  for (const auto& writer : writers) EXPECT_EQ(writer->join(), 0);
  let_readers_go(ipc);
  for (const auto& reader : readers) EXPECT_EQ(reader->join(), 0);
  expect_everything_came(ipc);
}

INSTANTIATE_TEST_SUITE_P(Shapes, SimpleIpcMany,
                         ::testing::Values(Shape{1, 1}, Shape{4, 4}, Shape{8, 8}),
                         [](const auto& test) {
                           return std::to_string(test.param.writers) + "x" +
                                  std::to_string(test.param.readers);
                         });

// Bug 2 of the article that describes SimpleIPC: the writer did not always wake the reader, which
// then waited forever for the last block. Here every block is the last one. Only the wait that
// detects the bug has a deadline.
class SimpleIpcLastBlock : public ::testing::TestWithParam<int> {};

TEST_P(SimpleIpcLastBlock, WakesItsReader) {
  const TestDirectory directory;
  ::setenv("LEAT_DIR", directory.path().c_str(), 1);
  constexpr std::uint64_t kRounds = 20'000;
  CSimpleIPC there;
  CSimpleIPC back;
  for (CSimpleIPC* ipc : {&there, &back}) {
    ipc->setMaxSpinLocksCount(0);  // Sleeps without spinning.
    ASSERT_TRUE(ipc->createConnectionPoint(8, 4));
  }
  std::vector<std::jthread> readers;
  for (int i = 0; i < GetParam(); ++i) {
    readers.emplace_back([&] {
      std::uint64_t number = 0;
      while (there.read(&number, sizeof(number)) && number != kEnd)
        EXPECT_TRUE(back.write(&number, sizeof(number)));
    });
  }
  std::mt19937_64 random{test_seed()};
  for (std::uint64_t i = 0; i < kRounds; ++i) {
    for (auto spins = random() % 400; spins > 0; --spins) detail::spin_pause();
    std::uint64_t answer = kEnd;
    EXPECT_TRUE(there.write(&i, sizeof(i)));
    EXPECT_TRUE(back.read(&answer, sizeof(answer), 20'000)) << CSimpleIPC::lastErrorText();
    if (answer == i) continue;
    ADD_FAILURE() << "round " << i << ": " << answer;
    there.requestStopCommunications();  // Makes the readers end.
    break;
  }
  for (int i = 0; i < GetParam(); ++i) (void)there.write(&kEnd, sizeof(kEnd), 1000);
  readers.clear();
  ::unsetenv("LEAT_DIR");
}

INSTANTIATE_TEST_SUITE_P(Readers, SimpleIpcLastBlock, ::testing::Values(1, 3));

}  // namespace
}  // namespace leat
