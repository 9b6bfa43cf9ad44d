// How key, headers and timestamp are encoded in a record's payload.
//
// Payload of a record with extensions (flags in RecordHeader::detail; absent fields take no room):
//
//   | timestamp_ms 8 | key_size 4 | headers_size 4 | key | headers | value |
//   headers: | name_size 4 | value_size 4 | name | value | … without gaps, in the order given
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "leat/base/clock.hpp"
#include "leat/format/layout.hpp"
#include "leat/record.hpp"

namespace leat::inline v0::detail {

// The sum of sizes that a caller gave. Those that are too large to add stay too large for any topic.
constexpr std::uint64_t add_sizes(std::uint64_t one, std::uint64_t other) noexcept {
  return one + other < one ? ~std::uint64_t{0} : one + other;
}

struct ExtensionSizes {
  std::uint32_t flags = 0;
  std::uint64_t headers = 0;  // encoded size, bytes
  std::uint64_t total = 0;    // everything before the value, bytes

  std::uint64_t with_value(std::uint64_t size) const noexcept { return add_sizes(total, size); }
};

inline ExtensionSizes extension_sizes(const NewRecord& record, bool timestamp) noexcept {
  ExtensionSizes sizes;
  if (timestamp) {
    sizes.flags |= kHasTimestamp;
    sizes.total += 8;
  }
  if (record.key) {
    sizes.flags |= kHasKey;
    sizes.total = add_sizes(sizes.total + 4, record.key->size());
  }
  if (!record.headers.empty()) {
    sizes.flags |= kHasHeaders;
    for (const Header& header : record.headers)
      sizes.headers = add_sizes(add_sizes(add_sizes(sizes.headers, 8), header.name.size()),
                                header.value.size());
    sizes.total = add_sizes(add_sizes(sizes.total, 4), sizes.headers);
  }
  return sizes;
}

// Writes one field and advances `at`.
inline void put(std::byte*& at, const void* from, std::size_t size) noexcept {
  copy_in(at, from, size);
  at += size;
}
inline void put_u32(std::byte*& at, std::size_t value) noexcept {
  const auto narrow = static_cast<std::uint32_t>(value);
  put(at, &narrow, sizeof(narrow));
}

// Writes everything before the value; returns where the value goes.
inline std::byte* write_extension(std::byte* at, const NewRecord& record,
                                  const ExtensionSizes& sizes) noexcept {
  if ((sizes.flags & kHasTimestamp) != 0) {
    const std::int64_t now = wall_clock_ms();
    put(at, &now, sizeof(now));
  }
  if (record.key) put_u32(at, record.key->size());
  if (!record.headers.empty()) put_u32(at, sizes.headers);
  if (record.key) put(at, record.key->data(), record.key->size());
  for (const Header& header : record.headers) {
    put_u32(at, header.name.size());
    put_u32(at, header.value.size());
    put(at, header.name.data(), header.name.size());
    put(at, header.value.data(), header.value.size());
  }
  return at;
}

// Decodes a payload into `record`, except offset and partition. False if it is malformed.
[[gnu::noinline]] inline bool read_extension(std::uint32_t flags, Bytes payload,
                                             Record& record) noexcept {
  const std::byte* at = payload.data();
  std::size_t left = payload.size();
  const auto take = [&](void* to, std::size_t size) {
    if (left < size) return false;
    std::memcpy(to, at, size);
    at += size;
    left -= size;
    return true;
  };
  std::uint32_t key_size = 0;
  std::uint32_t headers_size = 0;
  if ((flags & kHasTimestamp) != 0 && !take(&record.timestamp_ms, 8)) return false;
  if ((flags & kHasKey) != 0 && !take(&key_size, 4)) return false;
  if ((flags & kHasHeaders) != 0 && !take(&headers_size, 4)) return false;
  key_size = as_copied(key_size);
  headers_size = as_copied(headers_size);
  if (std::uint64_t{key_size} + headers_size > left) return false;
  record.has_key = (flags & kHasKey) != 0;
  record.key = Bytes{at, key_size};
  record.headers = Headers{Bytes{at + key_size, headers_size}};
  record.value = Bytes{at + key_size + headers_size, left - key_size - headers_size};
  return record.headers.is_well_formed();
}
[[gnu::always_inline]] inline bool read_payload(std::uint32_t flags, Bytes payload,
                                                Record& record) noexcept {
  if ((flags & kHasExtension) != 0) [[unlikely]]
    return read_extension(flags, payload, record);
  record.value = payload;
  return true;
}

}  // namespace leat::inline v0::detail
