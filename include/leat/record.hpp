// Records as users see them: to publish, and as delivered.
//
//     for (leat::Header header : record.headers) …
//     std::string_view text = record.text();
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/atomic.hpp"

namespace leat::inline v0 {

// A read-only view of bytes, which it does not own. Made from a span, a string, a literal, a vector
// of bytes, or a pointer and a size.
class Bytes : public std::span<const std::byte> {
 public:
  Bytes() noexcept = default;
  template <std::size_t kExtent>
  Bytes(std::span<const std::byte, kExtent> bytes) noexcept : span{bytes} {}
  template <std::size_t kExtent>
  Bytes(std::span<std::byte, kExtent> bytes) noexcept : span{bytes} {}
  Bytes(const std::vector<std::byte>& bytes) noexcept : span{bytes} {}
  Bytes(std::string_view text) noexcept
      : span{reinterpret_cast<const std::byte*>(text.data()), text.size()} {}
  Bytes(const std::string& text) noexcept : Bytes{std::string_view{text}} {}
  Bytes(const char* text) noexcept : Bytes{std::string_view{text}} {}
  Bytes(const void* data, std::size_t size) noexcept
      : span{static_cast<const std::byte*>(data), size} {}

  std::string_view text() const noexcept { return {reinterpret_cast<const char*>(data()), size()}; }
};

// A named value that travels with a record. Names need not be unique.
struct Header {
  std::string_view name;
  Bytes value;
};

// A record to publish, for publish() and Batch::add(). All views must stay valid during the call.
struct NewRecord {
  std::optional<Bytes> key = {};  // also selects the partition
  std::span<const Header> headers = {};
  Bytes value = {};
  std::optional<std::uint32_t> partition = {};  // overrides the partition that the key selects
};

// The headers of a delivered record, in place. Valid as long as the record.
class Headers {
 public:
  class Iterator {
   public:
    Iterator(const std::byte* at, const std::byte* end) noexcept : at_{at}, end_{end} { parse(); }
    Header operator*() const noexcept {
      const std::byte* name = at_ + 8;
      return {{reinterpret_cast<const char*>(name), name_size_},
              Bytes{name + name_size_, value_size_}};
    }
    Iterator& operator++() noexcept {
      at_ += 8 + std::size_t{name_size_} + value_size_;
      parse();
      return *this;
    }
    bool operator==(const Iterator& other) const noexcept { return at_ == other.at_; }

   private:
    friend class Headers;
    // Copies the sizes of the header at `at_` and checks the copies, so that nothing beyond the
    // end is read even if another process overwrites the memory later. An incomplete header
    // ends the list.
    void parse() noexcept {
      const auto left = static_cast<std::size_t>(end_ - at_);
      if (left == 0) return;
      if (left >= 8) {
        name_size_ = size_at(at_);
        value_size_ = size_at(at_ + 4);
        if (std::size_t{name_size_} + value_size_ <= left - 8) return;
      }
      is_cut_ = true;
      at_ = end_;
    }
    static std::uint32_t size_at(const std::byte* at) noexcept {
      std::uint32_t size = 0;
      std::memcpy(&size, at, sizeof(size));
      return detail::as_copied(size);
    }

    const std::byte* at_;
    const std::byte* end_;
    std::uint32_t name_size_ = 0;
    std::uint32_t value_size_ = 0;
    bool is_cut_ = false;
  };

  Headers() noexcept = default;
  explicit Headers(Bytes encoded) noexcept : encoded_{encoded} {}
  Iterator begin() const noexcept { return {encoded_.data(), encoded_.data() + encoded_.size()}; }
  Iterator end() const noexcept {
    const std::byte* end = encoded_.data() + encoded_.size();
    return {end, end};
  }
  bool empty() const noexcept { return encoded_.empty(); }
  // The bytes that they are read from, which can be copied.
  Bytes encoded() const noexcept { return encoded_; }
  // Whether the bytes consist of complete headers only.
  bool is_well_formed() const noexcept {
    Iterator at = begin();
    while (at != end()) ++at;
    return !at.is_cut_;
  }

 private:
  Bytes encoded_;
};

// A record as delivered. Its views point into the log (for a lossy subscriber, into the
// subscriber's buffer). They are valid during the callback of poll(), or until the next call on the
// subscriber; for members of a group see Delivery.
struct Record {
  std::uint64_t offset = 0;
  std::uint32_t partition = 0;
  bool has_key = false;
  Bytes value;
  Bytes key;
  Headers headers;
  std::int64_t timestamp_ms = -1;  // when it was published, milliseconds since 1970; -1: none

  std::string_view text() const noexcept { return value.text(); }
};

// How far a record has come.
//   committed   subscribers can see it
//   durable     durable topics: it is on stable storage, and survives a failure of the machine
enum class Stage : std::uint8_t { committed, durable };

// Why offsets hold no record for a subscriber.
enum class GapReason : std::uint8_t {
  aborted = 1,      // the publisher aborted its claim
  died = 2,         // the publisher died between claim and commit
  revoked = 3,      // the publisher did not run for longer than the topic's revoke_after
  overwritten = 4,  // the subscriber is lossy and was overtaken, or began below the oldest record
  damaged = 5,      // durable topics: a checksum on disk does not match
  lost = 6,         // durable topics: the machine failed before these records were on disk
};

// The reason's name, as in the enumeration.
inline const char* name_of(GapReason reason) noexcept {
  switch (reason) {
    case GapReason::aborted: return "aborted";
    case GapReason::died: return "died";
    case GapReason::revoked: return "revoked";
    case GapReason::overwritten: return "overwritten";
    case GapReason::damaged: return "damaged";
    case GapReason::lost: return "lost";
  }
  return "unknown";
}

// A gap: `count` offsets from `first` on, in one partition, that will not be delivered.
struct Event {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  GapReason reason = GapReason::aborted;
  std::uint32_t partition = 0;
};

}  // namespace leat::inline v0
