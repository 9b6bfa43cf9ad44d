// The groups of a topic that this process has mapped, without a lock.
//
//     KnownGroups::LookupGuard guard{topic.known_groups()};      // while it exists, no view is freed
//     auto group = topic.known_group_at(slot, guard);
//
// Publishers read all groups whenever they need room. If this took a lock, a fork could copy the locked lock, and the
// child would wait for ever; and a signal handler that publishes would wait for the thread that it interrupted. So a
// view is replaced by a swap, and the old one is freed once no thread reads groups. Any number of threads may read at
// once, and nobody waits for them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "leat/base/atomic.hpp"
#include "leat/log/group_view.hpp"
#include "leat/os/fork.hpp"

namespace leat::inline v0::detail {

class KnownGroups {
 public:
  struct Known {
    std::shared_ptr<GroupView> view;
    Known* next = nullptr;  // In replaced_.
  };

  // Keeps views from being freed.
  class LookupGuard {
   public:
    explicit LookupGuard(KnownGroups& groups) noexcept : groups_{groups} {
      std::uint64_t seen = load_relaxed<Why::swap_checks>(groups_.readers_);
      // [known_group] seq_cst: counted before any view is read; see free_replaced(). A child begins to count anew:
      // threads of its parent that were reading during the fork are never uncounted here.
      while (!compare_exchange<Edge::known_group>(groups_.readers_, seen, one_more_than(seen))) {
      }
    }
    LookupGuard(const LookupGuard&) = delete;
    LookupGuard& operator=(const LookupGuard&) = delete;
    ~LookupGuard() {
      if (generation_ != fork_generation()) return;  // A signal handler has forked meanwhile.
      // [known_group] seq_cst: uncounted after all reads of views.
      fetch_add<Edge::known_group>(groups_.readers_, ~std::uint64_t{0});
      if (has_replaced_) groups_.free_replaced();
    }

   private:
    friend class KnownGroups;
    std::uint64_t one_more_than(std::uint64_t readers) const noexcept {
      return (readers >> kCountBits == generation_ ? readers : generation_ << kCountBits) + 1;
    }
    KnownGroups& groups_;
    const std::uint64_t generation_ = fork_generation();
    bool has_replaced_ = false;
  };

  KnownGroups() = default;
  KnownGroups(const KnownGroups&) = delete;
  KnownGroups& operator=(const KnownGroups&) = delete;
  ~KnownGroups() {
    // relaxed: no users are left.
    for (const std::uint64_t& one : known_) delete pointer(load_relaxed<Why::own>(one));
    free_all(pointer(load_relaxed<Why::own>(replaced_)));
  }

  // What is known of a slot; null if nothing is.
  Known* at(std::uint32_t slot, const LookupGuard&) const noexcept {
    // [known_group] seq_cst: after this thread was counted.
    return pointer(load_seq_cst<Edge::known_group>(known_[slot]));
  }

  // Puts `view` (null: nothing) in the place of `known`. Null if another thread did so first.
  Known* replace(std::uint32_t slot, Known* known, std::shared_ptr<GroupView> view,
                 LookupGuard& guard) {
    std::unique_ptr<Known> made;
    if (view != nullptr) made.reset(new Known{std::move(view)});
    std::uint64_t expected = word(known);
    // [known_group] seq_cst: the view was made before, and is read by threads that find it.
    if (!compare_exchange<Edge::known_group>(known_[slot], expected, word(made.get())))
      return nullptr;
    if (known != nullptr) put_back(known, known);
    guard.has_replaced_ = guard.has_replaced_ || known != nullptr;
    return made.release();
  }

 private:
  static constexpr unsigned kCountBits = 32;

  // Frees replaced views, unless a thread still reads groups: then the next thread that replaces a view does it.
  void free_replaced() noexcept {
    Known* const first = pointer(exchange<Edge::known_group>(replaced_, 0));
    if (first == nullptr) return;
    // [known_group] seq_cst: these were replaced before. A thread that has one of them was counted before it read it.
    const std::uint64_t readers = load_seq_cst<Edge::known_group>(readers_);
    if (readers >> kCountBits != fork_generation() || readers << kCountBits == 0)
      return free_all(first);
    Known* last = first;
    while (last->next != nullptr) last = last->next;
    put_back(first, last);
  }
  void put_back(Known* first, Known* last) noexcept {
    std::uint64_t seen = load_relaxed<Why::swap_checks>(replaced_);
    do {
      last->next = pointer(seen);
    } while (!compare_exchange<Edge::known_group>(replaced_, seen, word(first)));
  }
  static void free_all(Known* first) noexcept {
    while (first != nullptr) delete std::exchange(first, first->next);
  }

  static Known* pointer(std::uint64_t word) noexcept {
    return reinterpret_cast<Known*>(static_cast<std::uintptr_t>(word));
  }
  static std::uint64_t word(const Known* known) noexcept {
    return reinterpret_cast<std::uintptr_t>(known);
  }

  std::array<std::uint64_t, kMaxGroups> known_{};  // A Known* each, as is the next.
  std::uint64_t replaced_ = 0;
  std::uint64_t readers_ = 0;  // fork generation << 32 | threads that read groups
};

}  // namespace leat::inline v0::detail
