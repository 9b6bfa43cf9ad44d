// The locks of a topic's data directory: which processes have the topic open, close it, or are its archiver.
#pragma once

#include <memory>
#include <utility>

#include "leat/deadline.hpp"
#include "leat/format/durable_layout.hpp"
#include "leat/os/lock_file.hpp"
#include "leat/store/file_names.hpp"

namespace leat::inline v0::detail {

inline Result<LockFile> open_data_lock(int directory) {
  return LockFile::open(directory, kDataLock, O_RDWR);
}

// Locks a byte, waiting until the deadline.
//   busy   somebody else holds it
inline Result<void> lock_until(LockFile& file, std::int64_t byte, LockKind kind,
                               const Deadline& deadline) {
  for (;; sleep_a_millisecond()) {
    auto locked = file.try_lock(byte, kind);
    if (!locked) return locked.error();
    if (*locked) return {};
    if (deadline.passed()) return Errc::busy;
  }
}

}  // namespace leat::inline v0::detail
