// Reads records of a durable topic that a member has taken, each by its offset.
#pragma once

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "leat/format/wire.hpp"
#include "leat/group/member_place.hpp"

namespace leat::inline v0::detail {

// A copy of a record, whose views point into `buffer`. The bytes lie there as in the log: from the value
// alone, the C interface finds what lies before it.
inline Record copy_of(const Record& record, std::vector<std::byte>& buffer) {
  const Bytes headers = record.headers.encoded();
  const bool has_timestamp = record.timestamp_ms != -1;
  const std::size_t before =
      (has_timestamp ? 8 : 0) + (record.has_key ? 4 : 0) + (headers.empty() ? 0 : 4);
  const std::size_t size = before + record.key.size() + headers.size() + record.value.size();
  buffer.reserve(std::max<std::size_t>(size, 1));  // An empty record has an address, too.
  buffer.resize(size);
  std::byte* at = buffer.data();
  if (has_timestamp) put(at, &record.timestamp_ms, sizeof(record.timestamp_ms));
  if (record.has_key) put_u32(at, record.key.size());
  if (!headers.empty()) put_u32(at, headers.size());
  Record copy = record;
  const auto append = [&at](const Bytes& bytes) {
    const std::byte* begin = at;
    put(at, bytes.data(), bytes.size());
    return Bytes{begin, bytes.size()};
  };
  copy.key = append(record.key);
  copy.headers = Headers{append(headers)};
  copy.value = append(record.value);
  return copy;
}

class StoredFetch {
 public:
  enum class Found : std::uint8_t { record, gone, on_disk };

  explicit StoredFetch(const MemberPlace& place) noexcept : place_{place} {}

  void reserve() {  // Throws bad_alloc.
    if (place_.topic.durable() == nullptr) return;
    for (std::uint32_t i = 0; i < place_.geometry().partition_count; ++i)
      readers_.emplace_back(place_.stored_place(i));
    copies_.resize(place_.geometry().in_flight_limit);
  }

  // Memory for the copy of an entry's record, until let_go(). Throws bad_alloc.
  std::vector<std::byte>& copy(InFlightRef ref) {
    return ref.row() == place_.seat ? copies_[ref.index()] : other_copies_[ref.word()];
  }
  // The record is settled, so that its user must not read it any more.
  void let_go(InFlightRef ref) noexcept {
    constexpr std::size_t kKept = 4096;  // bytes
    if (ref.row() != place_.seat) {
      other_copies_.erase(ref.word());
    } else if (copies_[ref.index()].capacity() > kKept) {
      copies_[ref.index()] = std::vector<std::byte>{};  // `= {}` would keep the memory.
    }
  }

  // See Member::read_memory_only(); whether the last read() returned `on_disk`.
  void read_memory_only(bool is_on) noexcept {
    for (OffsetReader& reader : readers_) reader.read_memory_only(is_on);
    is_on_disk_ = false;
  }
  bool next_is_on_disk() const noexcept { return is_on_disk_; }

  // Calls on_record(record) for the record with this offset. `gone` if it can no longer be read, for this
  // `reason`; `on_disk` if it would have to be read from there, but must not be.
  //   no_memory  on_record, or the reader, had no memory
  //   others     as those of a subscriber
  template <class OnRecord>
  Result<Found> read(std::uint32_t partition, std::uint64_t offset, GapReason& reason,
                     OnRecord&& on_record) noexcept {
    OffsetReader& reader = readers_[partition];
    is_on_disk_ = false;
    try {
      if (auto there = reader.go_to(offset); !there) return there.error();
      bool is_there = false;
      bool is_gone = false;
      do {
        auto polled = reader.poll(
            1,
            [&](const Record& record) {
              is_there = record.offset == offset;
              if (is_there) on_record(record);
            },
            [&](const Event& event) {
              if (event.first > offset || offset - event.first >= event.count) return;
              reason = event.reason;
              is_gone = true;
            });
        if (!polled) return polled.error();
        if (is_there || is_gone) return is_there ? Found::record : Found::gone;
        if (*polled != 0) break;  // Already past it, and nothing says what happened to it.
        if (reader.next_is_on_disk()) {
          is_on_disk_ = true;
          return Found::on_disk;
        }
      } while (reader.is_ready());
      reader.forget();
      return Errc::corrupt;
    } catch (const std::bad_alloc&) {
      reader.forget();
      return Error{Errc::no_memory};
    }
  }

 private:
  const MemberPlace& place_;
  std::vector<OffsetReader> readers_;  // By partition; none unless the topic is durable.
  // Copies of records in the user's hands: of the own row by index, of other rows by entry.
  std::vector<std::vector<std::byte>> copies_;
  std::unordered_map<std::uint64_t, std::vector<std::byte>> other_copies_;
  bool is_on_disk_ = false;
};

}  // namespace leat::inline v0::detail
