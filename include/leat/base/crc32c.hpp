// CRC32C (Castagnoli), the checksum of everything that Leat writes to disk.
//
//     std::uint32_t sum = crc32c(0, data, size);
//     sum = crc32c(sum, more, more_size);   // the sum of both, one after the other
//
// With SSE4.2 it runs three chains at once and joins them, because the instruction takes three
// cycles but one can start in each. The joining is multiplication by a power of x, as in Mark
// Adler's crc32c.c; other processors use a table of 256 words.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "leat/base/config.hpp"

namespace leat::inline v0::detail {

inline constexpr std::uint32_t kCrcPolynomial = 0x82f6'3b78;  // bits reversed

using CrcTable = std::array<std::uint32_t, 256>;

// The effect of one byte.
inline constexpr CrcTable kCrcOfByte = [] {
  CrcTable table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t sum = byte;
    for (int bit = 0; bit < 8; ++bit) sum = (sum >> 1) ^ ((sum & 1) != 0 ? kCrcPolynomial : 0);
    table[byte] = sum;
  }
  return table;
}();

inline std::uint32_t crc32c_by_table(std::uint32_t sum, const void* data,
                                     std::size_t size) noexcept {
  const auto* at = static_cast<const unsigned char*>(data);
  sum = ~sum;
  for (; size > 0; --size) sum = (sum >> 8) ^ kCrcOfByte[(sum ^ *at++) & 0xff];
  return ~sum;
}

// Advances a sum over a fixed number of zero bytes with four lookups.
struct CrcShift {
  std::array<CrcTable, 4> tables{};

  static constexpr CrcShift over(std::size_t zeros) noexcept {
    // What the shift does to each bit of a sum; the rest follows because it is linear.
    std::array<std::uint32_t, 32> bits{};
    for (unsigned bit = 0; bit < 32; ++bit) {
      std::uint32_t sum = std::uint32_t{1} << bit;
      for (std::size_t i = 0; i < zeros; ++i) sum = (sum >> 8) ^ kCrcOfByte[sum & 0xff];
      bits[bit] = sum;
    }
    CrcShift shift;
    for (unsigned table = 0; table < 4; ++table) {
      for (std::uint32_t byte = 0; byte < 256; ++byte) {
        for (unsigned bit = 0; bit < 8; ++bit)
          if ((byte >> bit & 1) != 0) shift.tables[table][byte] ^= bits[8 * table + bit];
      }
    }
    return shift;
  }
  std::uint32_t apply(std::uint64_t sum) const noexcept {
    return tables[0][sum & 0xff] ^ tables[1][sum >> 8 & 0xff] ^ tables[2][sum >> 16 & 0xff] ^
           tables[3][sum >> 24 & 0xff];
  }
};

#if defined(__x86_64__)
inline constexpr std::size_t kCrcLane = 512;  // bytes of each of the three chains
inline constexpr CrcShift kCrcSkipLane = CrcShift::over(kCrcLane);

[[gnu::target("sse4.2")]] inline std::uint32_t crc32c_by_instruction(std::uint32_t start,
                                                                     const void* data,
                                                                     std::size_t size) noexcept {
  const auto* at = static_cast<const unsigned char*>(data);
  std::uint64_t sum = ~start;
  const auto word = [](const unsigned char* from) {
    std::uint64_t value = 0;
    std::memcpy(&value, from, sizeof(value));
    return value;
  };
  for (; size >= 3 * kCrcLane; size -= 3 * kCrcLane, at += 3 * kCrcLane) {
    std::uint64_t second = 0;
    std::uint64_t third = 0;
    for (std::size_t line = 0; line < kCrcLane; line += 64) {
      // What comes next: three short chains at once are more than a processor foresees. What another
      // CPU wrote is summed twice as fast.
      for (std::size_t i = 0; i < 3; ++i)
        __builtin_prefetch(at + 3 * kCrcLane + 3 * line + 64 * i);
      for (std::size_t i = line; i < line + 64; i += 8) {
        sum = __builtin_ia32_crc32di(sum, word(at + i));
        second = __builtin_ia32_crc32di(second, word(at + kCrcLane + i));
        third = __builtin_ia32_crc32di(third, word(at + 2 * kCrcLane + i));
      }
    }
    sum = kCrcSkipLane.apply(sum) ^ second;
    sum = kCrcSkipLane.apply(sum) ^ third;
  }
  for (; size >= 8; size -= 8, at += 8) sum = __builtin_ia32_crc32di(sum, word(at));
  auto narrow = static_cast<std::uint32_t>(sum);
  for (; size > 0; --size) narrow = __builtin_ia32_crc32qi(narrow, *at++);
  return ~narrow;
}

inline bool has_crc_instruction() noexcept {
  static const bool has = __builtin_cpu_supports("sse4.2") != 0;
  return has;
}
#endif

// Continues `sum`, which is 0 at the start.
inline std::uint32_t crc32c(std::uint32_t sum, const void* data, std::size_t size) noexcept {
#if defined(__x86_64__)
  if (has_crc_instruction()) [[likely]]
    return crc32c_by_instruction(sum, data, size);
#endif
  return crc32c_by_table(sum, data, size);
}

}  // namespace leat::inline v0::detail
