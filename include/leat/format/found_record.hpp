// Reading and validating a record header: other processes may write anything there.
#pragma once

#include <cstdint>

#include "leat/base/atomic.hpp"
#include "leat/format/layout.hpp"

namespace leat::inline v0::detail {

// A header's values, copied to private memory.
struct FoundRecord {
  std::uint64_t kind = 0;  // RecordKind
  std::uint64_t granules = 0;
  std::uint64_t records = 1;
  std::uint32_t detail = 0;
  std::uint64_t length() const noexcept { return detail & kDetailLength; }
  bool has_payload() const noexcept {
    return kind <= static_cast<std::uint64_t>(RecordKind::batch);
  }
  bool fits() const noexcept { return kRecordHeaderSize + length() <= granules * kGranule; }
};

// Reads and checks a header whose tag was found (`found.kind` is set), with `granules_left`
// granules up to the end of the segment. False if no publisher can have written it.
[[gnu::always_inline]] inline bool examine_record(const RecordHeader& header,
                                                  std::uint64_t granules_left,
                                                  FoundRecord& found) noexcept {
  // relaxed, all: stored before the commit word, which the caller loaded with acquire.
  const std::uint32_t claim = load_relaxed<Why::stored_before>(header.claim);
  found.detail = load_relaxed<Why::stored_before>(header.detail);
  found.granules = claim & kClaimGranules;
  const auto& batch = *reinterpret_cast<const BatchHeader*>(&header + 1);
  if (found.granules == 0 || found.granules > granules_left) [[unlikely]]
    return false;
  if (found.kind == static_cast<std::uint64_t>(RecordKind::data)) [[likely]] {
    return (claim & kBatchClaim) == 0 && found.fits();
  }
  if ((claim & kBatchClaim) != 0) {
    if (found.granules < 2) return false;
    found.records = load_relaxed<Why::stored_before>(batch.count);
    if (found.records == 0 || found.records > 2 * found.granules) return false;
  }
  if (found.kind == static_cast<std::uint64_t>(RecordKind::batch)) {
    if (!found.fits() || found.length() < sizeof(BatchHeader)) return false;
    return load_relaxed<Why::stored_before>(batch.flags) == 0;
  }
  return found.kind >= static_cast<std::uint64_t>(RecordKind::aborted) &&
         found.kind <= static_cast<std::uint64_t>(RecordKind::revoked);
}

}  // namespace leat::inline v0::detail
