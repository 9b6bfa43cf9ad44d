// Reads the frames of one segment file. Every frame is checked before anything in it is used.
//
// What the disk does not return (os/disk.hpp, is_unreadable) is treated like damage: the frames there are not whole,
// and has_hidden() says why.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "leat/os/disk.hpp"
#include "leat/store/frame.hpp"

namespace leat::inline v0::detail {

// A whole frame. `payload` is aligned to 16 bytes and valid until the next call on the reader.
struct Frame {
  FrameHeader header{};
  std::uint64_t at = 0;  // place in the file
  const std::byte* payload = nullptr;

  std::uint64_t end() const noexcept { return at + padded_frame(header.bytes); }
};

class SegmentReader {
 public:
  static Result<SegmentReader> open(Disk& disk, int directory, const SegmentName& name,
                                    std::uint64_t salt) {
    const std::string text = name.text();
    auto file = disk.open(directory, text.c_str(), O_RDONLY, 0);
    if (!file && is_unreadable(file.error()))
      file = disk.open(directory, text.c_str(), O_RDONLY, 0);
    if (!file && !is_unreadable(file.error())) return file.error();
    SegmentReader reader{disk, file ? std::move(*file) : Fd{}, name, salt};
    reader.has_hidden_ = !file;
    return reader;
  }

  // A reader without a file: every call fails.
  SegmentReader() noexcept = default;

  const SegmentName& name() const noexcept { return name_; }
  // -1 if the disk does not even return what is needed to open it.
  int file() const noexcept { return file_.get(); }
  bool is_open() const noexcept { return disk_ != nullptr; }
  Result<std::uint64_t> size() const noexcept {
    if (!is_open()) return Errc::not_found;
    return file_ ? disk_->size(file_.get()) : Result<std::uint64_t>{std::uint64_t{0}};
  }

  // Whether the file may have frames that cannot be read: a block that was wanted is unreadable, or header() has
  // found that of another partition. Then nobody may cut, rename or delete the file because of what is not in it.
  bool has_hidden() const noexcept { return has_hidden_; }
  // Whether header() has found that of another partition. Frames do not name theirs, so none is read.
  bool is_of_other_partition() const noexcept { return is_of_other_partition_; }

  // Drops bytes read ahead: needed before reading what was written since.
  void forget() noexcept { held_ = 0; }

  // The file's header; nothing if it is damaged or belongs to another file.
  //   wrong_format  it is whole, but of another version
  Result<std::optional<SegmentHeader>> header() {
    if (!is_open()) return Errc::not_found;
    SegmentHeader header{};
    auto read = read_around(reinterpret_cast<std::byte*>(&header), sizeof(header), 0);
    if (!read) return read.error();
    if (*read < sizeof(header)) return std::optional<SegmentHeader>{};
    if (is_sealed(header) && header.partition != name_.partition)
      has_hidden_ = is_of_other_partition_ = true;
    if (!is_whole(header)) return std::optional<SegmentHeader>{};
    if (header.version != kStoreVersion) return Errc::wrong_format;
    return std::optional{header};
  }

  // Whether bytes of an earlier file may be here: its header says so, or it still has that file's header,
  // because the power failed before its own was on stable storage.
  Result<bool> is_recycled() {
    SegmentHeader header{};
    auto read = read_around(reinterpret_cast<std::byte*>(&header), sizeof(header), 0);
    if (!read) return read.error();
    if (*read < sizeof(header) || !is_sealed(header)) return false;
    return (header.flags & kRecycled) != 0 || header.generation != name_.generation ||
           header.base_offset != name_.base_offset;
  }

  // The frame at place `at`; nothing if there is no whole one.
  Result<std::optional<Frame>> read(std::uint64_t at) {
    Frame frame;
    frame.at = at;
    auto has_header = read_header(at, frame.header);
    if (!has_header) return has_header.error();
    if (!*has_header) return std::optional<Frame>{};
    auto bytes = get(at, padded_frame(frame.header.bytes));
    if (!bytes) return bytes.error();
    if (bytes->size() < padded_frame(frame.header.bytes)) return std::optional<Frame>{};
    frame.payload = bytes->data() + sizeof(FrameHeader);
    if (!is_payload_whole(frame.header, frame.payload)) return std::optional<Frame>{};
    return std::optional{frame};
  }

  // The first whole frame at `at` or behind it.
  Result<std::optional<Frame>> find(std::uint64_t at) {
    for (;;) {
      auto place = find_header(at, ~std::uint64_t{0});
      if (!place) return place.error();
      if (!*place) return std::optional<Frame>{};
      auto frame = read((*place)->at);
      if (!frame || *frame) return frame;
      at = (*place)->at + kFrameAlignment;
    }
  }

  // The first frame header at `at` or behind it, and before `limit`. Its payload is not read.
  Result<std::optional<Frame>> find_header(std::uint64_t at, std::uint64_t limit) {
    at = (at + kFrameAlignment - 1) / kFrameAlignment * kFrameAlignment;
    for (; at < limit; at += kFrameAlignment) {
      if (!holds(at, sizeof(FrameHeader))) at = next_data(at);
      if (at >= limit) break;
      auto bytes = get(at, sizeof(FrameHeader));
      if (!bytes) return bytes.error();
      if (bytes->size() < sizeof(FrameHeader)) break;
      Frame frame;
      frame.at = at;
      if (read_frame_header(frames_, bytes->data(), at, frame.header)) return std::optional{frame};
    }
    return std::optional<Frame>{};
  }

  // Where the last byte that is not zero ends, or `from` if there is none behind.
  Result<std::uint64_t> end_of_data(std::uint64_t from) {
    std::uint64_t end = from;
    for (std::uint64_t at = from;;) {
      at = next_data(at);
      auto bytes = get(at, kReadAhead);
      if (!bytes) return bytes.error();
      if (bytes->empty()) return end;
      for (std::size_t i = bytes->size(); i > 0; --i) {
        if ((*bytes)[i - 1] == std::byte{0}) continue;
        end = at + i;
        break;
      }
      at += bytes->size();
    }
  }

 private:
  static constexpr std::size_t kReadAhead = std::size_t{1} << 20;

  SegmentReader(Disk& disk, Fd file, const SegmentName& name, std::uint64_t salt) noexcept
      : disk_{&disk}, file_{std::move(file)}, name_{name}, frames_{salt, name} {}

  bool is_sealed(const SegmentHeader& header) const noexcept {
    SegmentHeader unsealed = header;
    unsealed.crc = 0;
    return header.magic == kSegmentMagic && header.crc == crc32c(0, &unsealed, sizeof(unsealed)) &&
           header.salt == frames_.salt;
  }
  bool is_whole(const SegmentHeader& header) const noexcept {
    return is_sealed(header) && header.generation == name_.generation &&
           header.base_offset == name_.base_offset && header.partition == name_.partition &&
           header.previous_end <= header.base_offset;
  }

  Result<bool> read_header(std::uint64_t at, FrameHeader& header) {
    if (at % kFrameAlignment != 0) return false;
    auto bytes = get(at, sizeof(FrameHeader));
    if (!bytes) return bytes.error();
    return bytes->size() == sizeof(FrameHeader) &&
           read_frame_header(frames_, bytes->data(), at, header);
  }

  bool holds(std::uint64_t at, std::uint64_t size) const noexcept {
    return at >= held_at_ && at + size <= held_at_ + held_;
  }
  // A file may have blocks for all its frames, perhaps a terabyte. What nobody has written is not read.
  std::uint64_t next_data(std::uint64_t at) noexcept {
    if (!file_) return at;
    return std::max(at, disk_->next_data(file_.get(), at) / kFrameAlignment * kFrameAlignment);
  }

  Result<std::size_t> read_around(std::byte* to, std::size_t size, std::uint64_t at) noexcept {
    if (!file_) return std::size_t{0};
    bool is_whole = true;
    auto read = disk_->read_around(file_.get(), to, size, at, is_whole);
    has_hidden_ = has_hidden_ || !is_whole;
    return read;
  }

  // Up to `size` bytes from `at` on; fewer at the end of the file. Reads ahead. `at` is a multiple
  // of kFrameAlignment.
  Result<std::span<const std::byte>> get(std::uint64_t at, std::uint64_t size) {
    if (!is_open()) return Errc::not_found;
    if (!file_ || is_of_other_partition_) return std::span<const std::byte>{};
    if (!holds(at, size)) {
      // A damaged size must not make us ask for more memory than the file has bytes.
      const std::uint64_t wanted = std::max<std::uint64_t>(size, kReadAhead);
      if (wanted > kReadAhead) {
        auto all = disk_->size(file_.get());
        if (!all) return all.error();
        if (at + size > *all) return std::span<const std::byte>{};
      }
      auto filled = fill(at, wanted);
      if (!filled) return filled.error();
    }
    const std::size_t from = at - held_at_;
    return std::span<const std::byte>{buffer_.get() + from,
                                      std::min<std::uint64_t>(size, held_ - from)};
  }

  // Reads `wanted` bytes from `at` on. What was held of them already is kept: without that, the part
  // of a frame at the end of what was read ahead would be read twice.
  Result<void> fill(std::uint64_t at, std::uint64_t wanted) {
    const std::uint64_t held_end = held_at_ + held_;
    std::size_t kept = at >= held_at_ && at < held_end ? held_end - at : 0;
    if (capacity_ < wanted) {
      // Not zeroed: most files that are opened only to look at their begin never touch its pages.
      buffer_ = std::make_unique_for_overwrite<std::byte[]>(wanted);
      capacity_ = wanted;
      kept = 0;
    }
    if (kept != 0) std::memmove(buffer_.get(), buffer_.get() + (at - held_at_), kept);
    held_ = 0;
    auto read = read_around(buffer_.get() + kept, wanted - kept, at + kept);
    if (!read) return read.error();
    held_at_ = at;
    held_ = kept + *read;
    return {};
  }

  Disk* disk_ = nullptr;
  Fd file_;
  SegmentName name_;
  FramesOf frames_;
  bool has_hidden_ = false;
  bool is_of_other_partition_ = false;
  std::unique_ptr<std::byte[]> buffer_;
  std::size_t capacity_ = 0;
  std::uint64_t held_at_ = 0;  // The buffer has the file's bytes from here on,
  std::uint64_t held_ = 0;     // that many.
};

}  // namespace leat::inline v0::detail
