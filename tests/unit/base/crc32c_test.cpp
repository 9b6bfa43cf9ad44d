// The checksum of everything on disk: right values, and the same from the processor's instruction and from
// the table. If this failed, files written on one machine would look damaged on another.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "leat/base/crc32c.hpp"
#include "support/random.hpp"

namespace leat::testing {
namespace {

using Data = std::vector<unsigned char>;

std::uint32_t sum_of(const Data& data) { return detail::crc32c(0, data.data(), data.size()); }

// RFC 3720, B.4.
TEST(Crc32c, HasTheValuesOfTheStandard) {
  EXPECT_EQ(sum_of(Data(32, 0)), 0x8a91'36aaU);
  EXPECT_EQ(sum_of(Data(32, 0xff)), 0x62a8'ab43U);
  Data rising(32);
  std::iota(rising.begin(), rising.end(), static_cast<unsigned char>(0));
  EXPECT_EQ(sum_of(rising), 0x46dd'794eU);
  EXPECT_EQ(sum_of({rising.rbegin(), rising.rend()}), 0x113f'db5cU);
  EXPECT_EQ(detail::crc32c(0, "123456789", 9), 0xe306'9283U);
  EXPECT_EQ(detail::crc32c(0, "", 0), 0U);
}

TEST(Crc32c, InstructionAndTableAgreeOnEveryLengthAndAlignment) {
  Random random{1};
  Data data(7000);
  for (unsigned char& byte : data) byte = static_cast<unsigned char>(random());
  for (std::size_t size = 0; size + 16 < data.size(); size += size < 4000 ? 1 : 97) {
    const std::size_t from = size % 16;
    ASSERT_EQ(detail::crc32c(0, data.data() + from, size),
              detail::crc32c_by_table(0, data.data() + from, size))
        << size;
  }
}

TEST(Crc32c, GoesOnWhereItEnded) {
  Data data(5000);
  std::iota(data.begin(), data.end(), static_cast<unsigned char>(3));
  const std::uint32_t whole = sum_of(data);
  for (std::size_t split = 0; split <= data.size(); split += 113) {
    const std::uint32_t first = detail::crc32c(0, data.data(), split);
    EXPECT_EQ(detail::crc32c(first, data.data() + split, data.size() - split), whole) << split;
  }
}

TEST(Crc32c, EveryFlippedBitChangesIt) {
  Data data(600, 0x5a);
  const std::uint32_t whole = sum_of(data);
  for (std::size_t bit = 0; bit < 8 * data.size(); ++bit) {
    data[bit / 8] ^= static_cast<unsigned char>(1U << bit % 8);
    EXPECT_NE(sum_of(data), whole) << bit;
    data[bit / 8] ^= static_cast<unsigned char>(1U << bit % 8);
  }
}

}  // namespace
}  // namespace leat::testing
