// Maps keys to partitions: murmur2 of the key, as in Kafka's Java client, so that keys stay in
// their partitions when a topic moves to Kafka.
//
// The hash is Austin Appleby's MurmurHash2 (32 bit, public domain) with Kafka's seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace leat::inline v0::detail {

inline std::uint32_t murmur2(std::span<const std::byte> key) noexcept {
  constexpr std::uint32_t kMultiplier = 0x5bd1e995;
  constexpr std::uint32_t kSeed = 0x9747b28c;
  std::uint32_t hash = kSeed ^ static_cast<std::uint32_t>(key.size());
  std::size_t i = 0;
  for (; i + 4 <= key.size(); i += 4) {
    std::uint32_t word = 0;
    std::memcpy(&word, key.data() + i, 4);  // Little endian, like the whole format.
    word *= kMultiplier;
    word ^= word >> 24;
    hash = (hash * kMultiplier) ^ (word * kMultiplier);
  }
  const std::size_t rest = key.size() - i;
  for (std::size_t byte = rest; byte > 0; --byte) {
    hash ^= std::to_integer<std::uint32_t>(key[i + byte - 1]) << (8 * (byte - 1));
  }
  if (rest != 0) hash *= kMultiplier;
  hash = (hash ^ (hash >> 13)) * kMultiplier;
  return hash ^ (hash >> 15);
}

inline std::uint32_t partition_for_key(std::span<const std::byte> key,
                                       std::uint32_t partitions) noexcept {
  return (murmur2(key) & 0x7fff'ffff) % partitions;
}

}  // namespace leat::inline v0::detail
