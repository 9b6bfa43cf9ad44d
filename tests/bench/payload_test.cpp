// If this failed, a benchmark would count torn or stale records as received.
#include "bench/harness/payload.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace leat::bench {
namespace {

constexpr std::size_t kSizes[] = {0, 1, 7, 8, 9, 15, 16, 17, 31, 32, 100, 1024};

std::vector<std::byte> written(const Payload& payload, std::uint64_t sequence) {
  std::vector<std::byte> bytes(payload.size());
  payload.write(bytes.data(), sequence);
  return bytes;
}

TEST(CopyBytes, CopiesExactlyTheBytesOfEverySize) {
  for (std::size_t size = 0; size <= 200; ++size) {
    std::vector<std::byte> from(size), to(size + 2, std::byte{0xee});
    for (std::size_t i = 0; i < size; ++i) from[i] = static_cast<std::byte>(i + 1);
    copy_bytes(to.data() + 1, from.data(), size);
    EXPECT_TRUE(std::equal(from.begin(), from.end(), to.begin() + 1)) << size;
    EXPECT_EQ(to.front(), std::byte{0xee}) << size;
    EXPECT_EQ(to.back(), std::byte{0xee}) << size;
  }
}

TEST(Payload, IsRecognisedInAnotherProcessOfTheSameSettings) {
  for (const Verify verify : {Verify::ends, Verify::full}) {
    for (const std::size_t size : kSizes) {
      const Payload writer(size, verify), reader(size, verify);
      const auto bytes = written(writer, 77);
      EXPECT_TRUE(reader.check(bytes.data(), 77)) << size;
      if (size != 0) {
        EXPECT_FALSE(reader.check(bytes.data(), 78)) << size;
      }
    }
  }
}

TEST(Payload, EndsCatchARecordOfWhichHalfIsOlder) {
  for (const std::size_t size : {16u, 17u, 100u, 1024u}) {
    const Payload payload(size, Verify::ends);
    auto torn = written(payload, 2);
    const auto older = written(payload, 1);
    std::copy(older.begin() + static_cast<std::ptrdiff_t>(size / 2), older.end(),
              torn.begin() + static_cast<std::ptrdiff_t>(size / 2));
    EXPECT_FALSE(payload.check(torn.data(), 2)) << size;
  }
}

TEST(Payload, FullCatchesEveryChangedByte) {
  const Payload payload(100, Verify::full);
  const auto bytes = written(payload, 5);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    auto changed = bytes;
    changed[i] ^= std::byte{1};
    EXPECT_FALSE(payload.check(changed.data(), 5)) << i;
  }
}

TEST(Payload, RewritingGivesTheSameAsWriting) {
  for (const Verify verify : {Verify::ends, Verify::full}) {
    for (const std::size_t size : kSizes) {
      const Payload payload(size, verify);
      auto bytes = written(payload, 3);
      payload.rewrite(bytes.data(), 4);
      EXPECT_EQ(bytes, written(payload, 4)) << size;
    }
  }
}

TEST(OutgoingPayloads, FollowTheirSequence) {
  for (const Verify verify : {Verify::ends, Verify::full}) {
    const Payload payload(100, verify);
    OutgoingPayloads outgoing(payload, 3, 4);
    for (std::uint64_t i = 0; i < 100; ++i) {
      const auto value = outgoing.next();
      ASSERT_EQ(value.size(), 100u);
      EXPECT_TRUE(payload.check(value.data(), 3 + 4 * i)) << i;
    }
  }
}

}  // namespace
}  // namespace leat::bench
