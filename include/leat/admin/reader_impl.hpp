// FilesReader of leat/admin.hpp.
#pragma once

#include <memory>
#include <utility>

#include "leat/admin.hpp"
#include "leat/admin/files_scan.hpp"

namespace leat::inline v0 {

LEAT_INLINE Result<FilesReader> TopicFiles::reader() const {
  auto scan = detail::FilesScan::open(directory_.get());
  if (!scan) return scan.error();
  return FilesReader{std::move(*scan)};
}

LEAT_INLINE FilesReader::FilesReader(std::unique_ptr<detail::FilesScan> scan) noexcept
    : scan_{std::move(scan)} {}
LEAT_INLINE FilesReader::FilesReader(FilesReader&& other) noexcept = default;
LEAT_INLINE FilesReader& FilesReader::operator=(FilesReader&& other) noexcept = default;
LEAT_INLINE FilesReader::~FilesReader() = default;

LEAT_INLINE Result<void> FilesReader::seek(std::uint32_t partition, std::uint64_t offset) {
  return scan_->seek(partition, offset);
}

LEAT_INLINE Result<bool> FilesReader::next(FilesEntry& entry) {
  detail::StoredEntry found;
  auto more = scan_->next(found);
  if (!more || !*more) return more;
  entry.is_record = found.is_record;
  if (found.is_record)
    entry.record = found.record;
  else
    entry.gap = found.gap;
  return true;
}

}  // namespace leat::inline v0
