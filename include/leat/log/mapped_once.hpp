// A mapping that the first thread which needs it makes, without a lock: see log/known_groups.hpp. If two threads make it at
// once, one of the two mappings is dropped.
//
//     const Mapping* mapping = once.get();
//     if (mapping == nullptr) mapping = &once.keep(std::move(made));
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "leat/base/atomic.hpp"
#include "leat/os/file.hpp"

namespace leat::inline v0::detail {

class MappedOnce {
 public:
  MappedOnce() = default;
  MappedOnce(const MappedOnce&) = delete;
  MappedOnce& operator=(const MappedOnce&) = delete;
  ~MappedOnce() { delete pointer(load_relaxed<Why::own>(mapping_)); }  // No users are left.

  // Null until it is made.
  const Mapping* get() const noexcept {
    // [mapped_once] acquire: the mapping was made before.
    return pointer(load_acquire<Edge::mapped_once>(mapping_));
  }

  // Keeps a mapping, or the one that another thread has made meanwhile.
  const Mapping& keep(Mapping made) {
    auto mine = std::make_unique<const Mapping>(std::move(made));
    std::uint64_t kept = 0;
    const auto own = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(mine.get()));
    // [mapped_once] seq_cst: behind what the mapping says; if it fails, the other one is read.
    if (compare_exchange<Edge::mapped_once>(mapping_, kept, own)) return *mine.release();
    return *pointer(kept);
  }

 private:
  static const Mapping* pointer(std::uint64_t word) noexcept {
    return reinterpret_cast<const Mapping*>(static_cast<std::uintptr_t>(word));
  }

  std::uint64_t mapping_ = 0;  // A const Mapping*.
};

}  // namespace leat::inline v0::detail
