// Frames: sealing one before it is written, and telling whether bytes are one.
#pragma once

#include <cstring>
#include <span>

#include "leat/base/crc32c.hpp"
#include "leat/format/layout.hpp"
#include "leat/format/store_layout.hpp"
#include "leat/store/file_names.hpp"

namespace leat::inline v0::detail {

// The file that frames belong to. Their checksums start with it, so that bytes which are a frame of
// one file are none in another file, at another place, or in a payload.
struct FramesOf {
  std::uint64_t salt = 0;  // ManifestTopic::salt
  std::uint64_t generation = 0;
  std::uint64_t base_offset = 0;

  FramesOf() noexcept = default;
  FramesOf(std::uint64_t topic_salt, const SegmentName& name) noexcept
      : salt{topic_salt}, generation{name.generation}, base_offset{name.base_offset} {}

  std::uint32_t header_checksum(FrameHeader header, std::uint64_t at) const noexcept {
    const std::uint64_t place[] = {salt, generation, base_offset, at};
    header.header_crc = 0;
    return crc32c(crc32c(0, place, sizeof(place)), &header, sizeof(header));
  }
};

// The checksum of log bytes, and of the zeros that fill them up to the next frame.
inline std::uint32_t payload_checksum(std::span<const std::byte> bytes) noexcept {
  static constexpr std::byte kZeros[kFrameAlignment]{};
  const std::size_t total = padded_frame(bytes.size()) - sizeof(FrameHeader);
  return crc32c(crc32c(0, bytes.data(), bytes.size()), kZeros, total - bytes.size());
}

// Copies the header of a frame at place `at` of a file. False if there is none.
inline bool read_frame_header(const FramesOf& file, const std::byte* bytes, std::uint64_t at,
                              FrameHeader& header) noexcept {
  std::memcpy(&header, bytes, sizeof(header));
  return header.magic == kFrameMagic && header.header_crc == file.header_checksum(header, at) &&
         header.bytes != 0 && header.bytes <= kMaxFrame && header.bytes % kGranule == 0 &&
         header.offsets != 0 && header.records <= header.offsets &&
         header.first_offset >= file.base_offset && header.first_offset <= kMaxStoredOffset;
}

// Whether a frame's payload (`bytes` log bytes and what fills them up) is what was written.
inline bool is_payload_whole(const FrameHeader& header, const std::byte* payload) noexcept {
  return crc32c(0, payload, padded_frame(header.bytes) - sizeof(FrameHeader)) == header.payload_crc;
}

inline std::uint64_t end_offset(const FrameHeader& header) noexcept {
  return header.first_offset + header.offsets;
}

}  // namespace leat::inline v0::detail
