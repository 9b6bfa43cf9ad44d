// If this failed, a program written for ShmFifo would not compile, lose
// messages, or get another capacity.
#include "leat/compat/shm_fifo.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <map>
#include <regex>
#include <sstream>

#include "testing.hpp"

// The example's functions are called, and their output is checked, below.
#define main shm_fifo_main
#include "../../../examples/shm_fifo.cpp"
#undef main

namespace leat {
namespace {

using ccommons::shm_fifo_message;
using ccommons::ShmException;
using ccommons::ShmFifo;

constexpr int kFullSize = 1'048'000'016;  // As in ShmFifo's own programs: one million messages.
constexpr int size_for(int messages) { return messages * 1048 + 16; }
const std::string kText = text_message();

class ShmFifoTest : public ::testing::Test {
 protected:
  ShmFifoTest() { ::setenv("LEAT_DIR", directory_.path().c_str(), 1); }
  ~ShmFifoTest() override { ::unsetenv("LEAT_DIR"); }
  bool exists(const std::string& name) const { return std::filesystem::exists(directory_ / name); }

 private:
  TestDirectory directory_;
};

template <class Body>
int exception_of(Body body) {
  try {
    body();
  } catch (const ShmException& error) {
    EXPECT_STRNE(error.what(), "");
    EXPECT_EQ(error.message, error.what());
    return error.id;
  }
  return 0;
}

std::string content(const shm_fifo_message& message) {
  return {message.content, static_cast<std::size_t>(message.value_length)};
}

TEST_F(ShmFifoTest, MessageIsLaidOutAsBefore) {
  EXPECT_EQ(ccommons::SIZE_MESSAGE, 1048u);
  EXPECT_EQ(offsetof(shm_fifo_message, value_length), 0u);
  EXPECT_EQ(offsetof(shm_fifo_message, message_number), 8u);
  EXPECT_EQ(offsetof(shm_fifo_message, status), 16u);
  EXPECT_EQ(offsetof(shm_fifo_message, content), 17u);
  const shm_fifo_message fresh;
  EXPECT_EQ(fresh.value_length + fresh.message_number + fresh.status + fresh.content[1023], 0);
}

TEST_F(ShmFifoTest, HoldsExactlyAsManyAsItsSizeAllows) {
  ShmFifo fifo{"/full", kFullSize, false};
  ASSERT_EQ(kText.size(), 133u);
  for (int i = 0; i < 1'000'000; ++i) fifo.write(kText.data(), 133);
  EXPECT_EQ(exception_of([&] { fifo.write(kText.data(), 133); }), ccommons::C_COMMONS_SHM_FULL);
  EXPECT_EQ(exception_of([&] { fifo.write("", 0); }), ccommons::C_COMMONS_SHM_FULL);
  EXPECT_EQ(fifo.num_messages(), 1'000'000);
  ShmFifo late{"/full", kFullSize, true};
  EXPECT_EQ(exception_of([&] { late.write("x", 1); }), ccommons::C_COMMONS_SHM_FULL);
  shm_fifo_message message;
  for (int i = 1; i <= 1'000'000; ++i) {
    ASSERT_TRUE(late.read(message));
    ASSERT_EQ(message.message_number, i);
  }
  EXPECT_EQ(content(message), kText);
  EXPECT_FALSE(late.read(message));
}

TEST_F(ShmFifoTest, HoldsAsManyOfTheLargest) {
  for (const int messages : {1, 2, 7, 100, 12'345}) {
    ShmFifo fifo{"/large", size_for(messages), false};
    const std::string large(1024, 'x');
    for (int i = 0; i < messages; ++i) fifo.write(large.data(), 1024);
    EXPECT_EQ(exception_of([&] { fifo.write("x", 1); }), ccommons::C_COMMONS_SHM_FULL) << messages;
  }
}

TEST_F(ShmFifoTest, EveryReaderGetsAllFromTheFirstWheneverItCame) {
  ShmFifo writer{"/fifo", size_for(1000), false};
  ShmFifo early{"/fifo", size_for(1000), true};
  shm_fifo_message message;
  EXPECT_FALSE(early.read(message));
  for (int i = 1; i <= 500; ++i) writer.write(kText.data(), i % 133);
  const auto read_all = [&](ShmFifo& reader, int from, int to) {
    for (int i = from; i <= to; ++i) {
      ASSERT_TRUE(reader.read(message));
      ASSERT_EQ(message.message_number, i);
      ASSERT_EQ(content(message), kText.substr(0, static_cast<std::size_t>(i % 133)));
      ASSERT_EQ(message.status, 0);
      ASSERT_TRUE(std::all_of(message.content + message.value_length, message.content + 1024,
                              [](char c) { return c == 0; }));
    }
    // At the end a read finds nothing; it does not return the last message again.
    ASSERT_FALSE(reader.read(message));
    ASSERT_EQ(message.value_length, 0);
    ASSERT_EQ(message.message_number, 0);
    ASSERT_EQ(message.content[0], 0);
  };
  read_all(early, 1, 500);
  ShmFifo late{"/fifo", size_for(1000), true};
  read_all(late, 1, 500);
  for (int i = 501; i <= 600; ++i) writer.write(kText.data(), i % 133);
  read_all(early, 501, 600);
  read_all(late, 501, 600);
  EXPECT_EQ(late.num_messages(), 0);
  EXPECT_EQ(writer.num_messages(), 600);
}

TEST_F(ShmFifoTest, ReadIntoANewMessageSaysWhenThereIsNone) {
  ShmFifo fifo{"/fifo", size_for(10), false};
  fifo.write("hello", 5);
  shm_fifo_message& message = fifo.read();
  EXPECT_EQ(content(message), "hello");
  EXPECT_EQ(message.message_number, 1);
  delete &message;
  EXPECT_EQ(exception_of([&] { (void)fifo.read(); }), ccommons::C_COMMONS_SHM_NO_MESSAGE);
}

TEST_F(ShmFifoTest, LargerThan1024IsRefusedAndTheLogIntact) {
  ShmFifo fifo{"/fifo", size_for(10), false};
  const std::string large(2000, 'x');
  fifo.write(large.data(), 1024);
  for (const int length : {1025, 2000, -1, std::numeric_limits<int>::min()}) {
    EXPECT_EQ(exception_of([&] { fifo.write(large.data(), length); }),
              ccommons::C_COMMONS_SHM_MESSAGE_TOO_LARGE);
  }
  fifo.write("", 0);
  EXPECT_EQ(fifo.num_messages(), 2);
  shm_fifo_message message;
  ASSERT_TRUE(fifo.read(message));
  EXPECT_EQ(message.value_length, 1024);
  EXPECT_EQ(content(message), large.substr(0, 1024));
  ASSERT_TRUE(fifo.read(message));
  EXPECT_EQ(message.value_length, 0);
  EXPECT_EQ(message.message_number, 2);
  EXPECT_FALSE(fifo.read(message));
}

// A message consists of copies of this: its writer, and its number among that writer's messages.
struct Mark {
  int writer;
  int number;
};
std::string marked(Mark mark, std::size_t size = 100) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i)
    text[i] = reinterpret_cast<const char*>(&mark)[i % sizeof(mark)];
  return text;
}
Mark mark_of(const shm_fifo_message& message) {
  Mark mark{};
  std::memcpy(&mark, message.content, sizeof(mark));
  EXPECT_EQ(content(message), marked(mark));
  return mark;
}

// Kills one writer after the other at any moment; each new writer continues
// where the last one ended.
TEST_F(ShmFifoTest, KilledWritersLeaveWholeMessagesAndTheNextOneGoesOn) {
  constexpr int kWriters = 300;
  constexpr int kEach = 60;
  constexpr int kSize = size_for(kWriters * (kEach + 1));
  struct Shared {
    std::atomic<int> written[kWriters];
  };
  auto* shared = static_cast<Shared*>(
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(shared, MAP_FAILED);
  ShmFifo fifo{"/fifo", kSize, false};
  std::mt19937_64 random{test_seed()};
  for (int writer = 0; writer < kWriters; ++writer) {
    Child child{[&] {
      ShmFifo mine{"/fifo", kSize, true};
      for (int i = 0; i < kEach; ++i) {
        mine.write(marked({writer, i}).data(), 100);
        shared->written[writer] = i + 1;
      }
      ::pause();
      return 0;
    }};
    while (shared->written[writer] == 0) std::this_thread::yield();
    for (auto spins = random() % 20'000; spins > 0; --spins) detail::spin_pause();
    EXPECT_EQ(child.kill(SIGKILL), -SIGKILL);
  }
  fifo.write(marked({kWriters, 0}).data(), 100);

  shm_fifo_message message;
  std::int64_t count = 0;
  Mark last{-1, 0};
  while (fifo.read(message)) {
    ASSERT_EQ(message.message_number, ++count);
    const Mark mark = mark_of(message);
    if (mark.writer != last.writer) {
      if (last.writer >= 0) {
        ASSERT_GE(last.number + 1, shared->written[last.writer]);
      }
      ASSERT_EQ(mark.writer, last.writer + 1);
      ASSERT_EQ(mark.number, 0);
    } else {
      ASSERT_EQ(mark.number, last.number + 1);
    }
    last = mark;
  }
  EXPECT_EQ(last.writer, kWriters);
  ::munmap(shared, sizeof(Shared));
}

TEST_F(ShmFifoTest, FourWritersLoseNothingAndNumberNothingTwice) {
  constexpr int kWriters = 4;
  constexpr int kEach = 250'000;
  ShmFifo reader{"/fifo", kFullSize, false};
  {
    std::vector<std::unique_ptr<Child>> children;
    for (int writer = 0; writer < kWriters; ++writer) {
      children.push_back(std::make_unique<Child>([&, writer] {
        ShmFifo mine{"/fifo", kFullSize, true};
        for (int i = 0; i < kEach; ++i) mine.write(marked({writer, i}).data(), 100);
        return mine.num_messages() == kEach ? 0 : 1;
      }));
    }
    for (const auto& child : children) EXPECT_EQ(child->join(), 0);
  }
  shm_fifo_message message;
  int next[kWriters] = {};
  for (int i = 1; i <= kWriters * kEach; ++i) {
    ASSERT_TRUE(reader.read(message));
    ASSERT_EQ(message.message_number, i);
    const Mark mark = mark_of(message);
    ASSERT_EQ(mark.number, next[mark.writer]++);
  }
  EXPECT_FALSE(reader.read(message));
  EXPECT_EQ(exception_of([&] { reader.write("x", 1); }), ccommons::C_COMMONS_SHM_FULL);
}

TEST_F(ShmFifoTest, WritersThatRaceForTheLastPlacesFillItExactly) {
  constexpr int kPlaces = 1000;
  std::atomic<long> written = 0;
  ShmFifo reader{"/fifo", size_for(kPlaces), false};
  {
    std::vector<std::jthread> writers;
    for (int i = 0; i < 3; ++i) {
      writers.emplace_back([&] {
        ShmFifo mine{"/fifo", size_for(kPlaces), true};
        EXPECT_EQ(exception_of([&] {
                    while (true) mine.write("x", 1);
                  }),
                  ccommons::C_COMMONS_SHM_FULL);
        written += mine.num_messages();
      });
    }
  }
  EXPECT_EQ(written, kPlaces);
  shm_fifo_message message;
  for (int i = 0; i < kPlaces; ++i) ASSERT_TRUE(reader.read(message));
  EXPECT_FALSE(reader.read(message));
}

TEST_F(ShmFifoTest, ReadersOfASmallerSizeReadAll) {
  ShmFifo writer{"/fifo", size_for(100), false};
  for (int i = 0; i < 100; ++i) writer.write("x", 1);
  ShmFifo reader{"/fifo", size_for(10), true};
  shm_fifo_message message;
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(reader.read(message)) << i;
  EXPECT_FALSE(reader.read(message));
  // As in the original, the size of the object that writes counts.
  EXPECT_EQ(exception_of([&] { reader.write("y", 1); }), ccommons::C_COMMONS_SHM_FULL);
}

TEST_F(ShmFifoTest, WritersThatDieTakeNoPlaces) {
  ShmFifo fifo{"/fifo", size_for(100), false};
  fifo.write("x", 1);
  for (int i = 0; i < 300; ++i) {
    Child child{[] {
      const Topic topic = must(Topic::open("fifo"));
      auto publisher = must(topic.publisher());
      const Claim claim = must(publisher.try_claim(1024));
      ::kill(::getpid(), SIGKILL);
      return 0;
    }};
    ASSERT_EQ(child.join(), -SIGKILL);
  }
  const std::string large(1024, 'l');
  for (int i = 1; i < 100; ++i) {
    ASSERT_EQ(exception_of([&] { fifo.write(large.data(), 1024); }), 0) << i;
  }
  EXPECT_EQ(exception_of([&] { fifo.write("y", 1); }), ccommons::C_COMMONS_SHM_FULL);
  ShmFifo late{"/fifo", size_for(100), true};
  EXPECT_EQ(exception_of([&] { late.write("y", 1); }), ccommons::C_COMMONS_SHM_FULL);
  shm_fifo_message message;
  for (int i = 1; i <= 100; ++i) {
    ASSERT_TRUE(late.read(message));
    ASSERT_EQ(message.message_number, i);
  }
  EXPECT_FALSE(late.read(message));
}

TEST_F(ShmFifoTest, ExampleProgramsPrintTheLinesOfTheOriginals) {
  const auto lines_of = [](std::string role) {
    std::string program = "shm_fifo";
    std::string count = "5000";
    char* arguments[] = {program.data(), role.data(), count.data(), nullptr};
    ::testing::internal::CaptureStdout();
    EXPECT_EQ(shm_fifo_main(3, arguments), 0);
    std::fflush(stdout);
    std::istringstream output{::testing::internal::GetCapturedStdout()};
    std::vector<std::string> lines;
    for (std::string line; std::getline(output, line);) lines.push_back(line);
    return lines;
  };
  const auto expect = [](const std::vector<std::string>& lines,
                         const std::vector<std::string>& patterns) {
    ASSERT_EQ(lines.size(), patterns.size());
    for (std::size_t i = 0; i < lines.size(); ++i)
      EXPECT_TRUE(std::regex_match(lines[i], std::regex{patterns[i]})) << lines[i];
  };
  expect(lines_of("producer"), {R"(Text Message Delay: \d+)", R"(Text Object Delay: \d+)",
                                R"(Serialized Object Delay: \d+)"});
  expect(lines_of("consumer"),
         {R"(Text Object Delay: \d+)", R"(Last message read: \[5000\] content: (hola){32}adios)",
          R"(Text Object Delay: \d+)",
          R"(Last message read: \[5000\] imei: 254784512658411 - imsi: 214021245145781)"
          R"( - msisdn: 123456987412547896)"});
}

TEST_F(ShmFifoTest, IsDeletedWithItsObjectUnlessKept) {
  {
    ShmFifo fifo{"/kept", size_for(10), true};
    fifo.write("x", 1);
  }
  EXPECT_TRUE(exists("kept"));
  {
    ShmFifo again{"/kept", size_for(10), false};
    shm_fifo_message message;
    EXPECT_TRUE(again.read(message));
    EXPECT_TRUE(exists("kept"));
  }
  EXPECT_FALSE(exists("kept"));
}

TEST_F(ShmFifoTest, OthersReadOnWhenItIsDeleted) {
  auto writer = std::make_unique<ShmFifo>("/fifo", size_for(10), false);
  writer->write("a", 1);
  writer->write("b", 1);
  ShmFifo reader{"/fifo", size_for(10), true};
  shm_fifo_message message;
  ASSERT_TRUE(reader.read(message));
  writer.reset();
  ASSERT_TRUE(reader.read(message));
  EXPECT_EQ(content(message), "b");
  EXPECT_FALSE(reader.read(message));
  EXPECT_FALSE(reader.read(message));
  EXPECT_EQ(exception_of([&] { reader.write("c", 1); }), ccommons::C_COMMONS_SHM_FAILED);
}

TEST_F(ShmFifoTest, WriterThatComesLaterAppends) {
  { ShmFifo{"/fifo", size_for(10), true}.write("a", 1); }
  ShmFifo second{"/fifo", size_for(10), false};
  second.write("b", 1);
  EXPECT_EQ(second.num_messages(), 1);
  shm_fifo_message message;
  ASSERT_TRUE(second.read(message));
  EXPECT_EQ(content(message), "a");
  ASSERT_TRUE(second.read(message));
  EXPECT_EQ(content(message), "b");
}

TEST_F(ShmFifoTest, WhatCannotBeMadeIsACreationError) {
  const auto creating = [](const char* name, int size) {
    return exception_of([&] { const ShmFifo fifo(name, size); });
  };
  EXPECT_EQ(creating("/a/b", size_for(1)), ccommons::C_COMMONS_SHM_CREATION_ERROR);
  EXPECT_EQ(creating("", size_for(1)), ccommons::C_COMMONS_SHM_CREATION_ERROR);
  EXPECT_EQ(creating("/", size_for(1)), ccommons::C_COMMONS_SHM_CREATION_ERROR);
  EXPECT_EQ(creating("/small", 1047), ccommons::C_COMMONS_SHM_CREATION_ERROR);
  EXPECT_EQ(creating("/negative", -1), ccommons::C_COMMONS_SHM_CREATION_ERROR);
  EXPECT_EQ(creating("/one", 1048), 0);
}

}  // namespace
}  // namespace leat
