// If this failed, keys would be in different partitions than in Kafka, so
// that a topic could not be moved between the two.
#include "leat/log/partitioner.hpp"

#include "testing.hpp"

namespace leat {
namespace {

std::int32_t hash(std::string_view key) {
  return static_cast<std::int32_t>(detail::murmur2(Bytes{key}));
}

// The expected values are from the tests of Kafka's Java client.
TEST(Partitioner, HashesAsKafkasJavaClient) {
  EXPECT_EQ(hash("21"), -973932308);
  EXPECT_EQ(hash("foobar"), -790332482);
  EXPECT_EQ(hash("a-little-bit-long-string"), -985981536);
  EXPECT_EQ(hash("a-little-bit-longer-string"), -1486304829);
  EXPECT_EQ(hash("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8"), -58897971);
  EXPECT_EQ(hash("abc"), 479470107);
}

TEST(Partitioner, NegativeHashesLoseTheirSignAsInKafka) {
  for (const std::uint32_t partitions : {1U, 2U, 3U, 7U, 1024U}) {
    for (const char* key : {"21", "foobar", "abc", ""}) {
      const std::uint32_t positive = static_cast<std::uint32_t>(hash(key)) & 0x7fff'ffff;
      EXPECT_EQ(detail::partition_for_key(Bytes{key}, partitions), positive % partitions) << key;
    }
  }
}

TEST(Partitioner, ReadsNothingBeyondTheKey) {
  const std::string text = "0123456789abcdef";
  for (std::size_t size = 0; size < text.size(); ++size) {
    const std::vector<std::byte> exact{Bytes{text}.begin(),
                                       Bytes{text}.begin() + static_cast<std::ptrdiff_t>(size)};
    EXPECT_EQ(detail::murmur2(exact), detail::murmur2(Bytes{text}.first(size))) << size;
  }
}

}  // namespace
}  // namespace leat
