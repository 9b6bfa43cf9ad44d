// A mapping that the first thread which needs it makes, without a lock: see log/known_groups.hpp. If two threads make it at
// once, one of the two mappings is dropped.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "leat/os/file.hpp"

namespace leat::inline v0::detail {

class MappedOnce {
 public:
  MappedOnce() = default;
  MappedOnce(const MappedOnce&) = delete;
  MappedOnce& operator=(const MappedOnce&) = delete;
  ~MappedOnce() { delete mapping_.load(std::memory_order_relaxed); }  // No users are left.

  // Null until it is made.
  // acquire; pairs with the swap in keep(): the mapping was filled in before.
  const Mapping* get() const noexcept { return mapping_.load(std::memory_order_acquire); }

  // Keeps a mapping, or the one that another thread has made meanwhile.
  const Mapping& keep(Mapping made) {
    auto mine = std::make_unique<const Mapping>(std::move(made));
    const Mapping* kept = nullptr;
    // seq_cst; pairs with the acquire in get().
    if (mapping_.compare_exchange_strong(kept, mine.get())) return *mine.release();
    return *kept;
  }

 private:
  std::atomic<const Mapping*> mapping_ = nullptr;
};

}  // namespace leat::inline v0::detail
