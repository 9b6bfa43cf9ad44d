// The segment that a writer, reader or scanner is in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "leat/format/layout.hpp"

namespace leat::inline v0::detail {

// Where a segment's bytes are, and the offset of its first record.
struct SegmentPlace {
  std::uint64_t number = 0;
  std::uint64_t physical = 0;
  std::uint64_t base_offset = 0;
};

// `Byte` is std::byte for writers, const std::byte for readers.
template <class Byte>
struct CurrentSegment {
  using Header = std::conditional_t<std::is_const_v<Byte>, const RecordHeader, RecordHeader>;

  std::uint64_t number = 0;  // 0: none yet
  Byte* data = nullptr;
  std::uint64_t position = 0;  // of its first granule, counted over the life of the partition
  std::uint64_t base_offset = 0;

  // `records` points to the partition's first segment.
  void enter(const SegmentPlace& place, Byte* records, const Geometry& geometry) noexcept {
    number = place.number;
    data = records + place.physical * geometry.segment_size;
    position = place.number * geometry.segment_granules;
    base_offset = place.base_offset;
  }

  Header& header(std::uint64_t granule) const noexcept {
    return *reinterpret_cast<Header*>(data + granule * kGranule);
  }
  std::uint64_t tag(std::uint64_t granule, std::uint64_t key) const noexcept {
    return position_tag(position + granule, key);
  }
  // What is committed at a granule; see is_record_kind().
  std::uint64_t kind(std::uint64_t granule, std::uint64_t key) const noexcept {
    // [record-ready] acquire: header and payload were written before.
    return load_acquire<Edge::record_ready>(header(granule).commit) ^ tag(granule, key);
  }
};

}  // namespace leat::inline v0::detail
