// The groups of a topic that this process has mapped, without a lock.
//
//     KnownGroups::Looking looking{topic.known_groups()};      // while it exists, no view is freed
//     auto group = topic.look_at_group(slot, looking);
//
// Publishers look at all groups whenever they need room. A lock would be copied by a fork, held, and make the child wait for
// ever; and it would make a signal handler that publishes wait for the thread that it interrupted. So a view is replaced
// by a swap. It is freed once nobody looks at groups: any number of threads may look, and nobody waits for them.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

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
  class Looking {
   public:
    explicit Looking(KnownGroups& groups) noexcept : groups_{groups} {
      std::uint64_t seen = groups_.lookers_.load();
      // seq_cst: counted before any view is read; see free_replaced(). A child's threads begin anew: those of its parent that
      // looked during the fork never end here.
      while (!groups_.lookers_.compare_exchange_weak(
          seen, (seen >> kCountBits == generation_ ? seen : generation_ << kCountBits) + 1)) {
      }
    }
    Looking(const Looking&) = delete;
    Looking& operator=(const Looking&) = delete;
    ~Looking() {
      if (generation_ != fork_generation()) return;  // A handler that ran meanwhile has forked.
      groups_.lookers_.fetch_sub(1);
      if (has_replaced_) groups_.free_replaced();
    }

   private:
    friend class KnownGroups;
    KnownGroups& groups_;
    const std::uint64_t generation_ = fork_generation();
    bool has_replaced_ = false;
  };

  KnownGroups() = default;
  KnownGroups(const KnownGroups&) = delete;
  KnownGroups& operator=(const KnownGroups&) = delete;
  ~KnownGroups() {
    for (const auto& one : known_) delete one.load();
    free_all(replaced_.load());
  }

  // What is known of a slot; null if nothing is.
  Known* at(std::uint32_t slot, const Looking&) const noexcept { return known_[slot].load(); }

  // Puts `view` (null: nothing) in the place of `known`. Null if another thread did so first.
  Known* replace(std::uint32_t slot, Known* known, std::shared_ptr<GroupView> view,
                 Looking& looking) {
    std::unique_ptr<Known> made;
    if (view != nullptr) made.reset(new Known{std::move(view)});
    if (!known_[slot].compare_exchange_strong(known, made.get())) return nullptr;
    if (known != nullptr) put_back(known, known);
    looking.has_replaced_ = looking.has_replaced_ || known != nullptr;
    return made.release();
  }

 private:
  static constexpr unsigned kCountBits = 32;

  // Frees what was replaced, unless somebody looks: then who replaces a view next does it.
  void free_replaced() noexcept {
    Known* const first = replaced_.exchange(nullptr);
    if (first == nullptr) return;
    // seq_cst: these were replaced before. A thread that has one of them was counted before it read it.
    const std::uint64_t lookers = lookers_.load();
    if (lookers >> kCountBits != fork_generation() || lookers << kCountBits == 0)
      return free_all(first);
    Known* last = first;
    while (last->next != nullptr) last = last->next;
    put_back(first, last);
  }
  void put_back(Known* first, Known* last) noexcept {
    last->next = replaced_.load();
    while (!replaced_.compare_exchange_weak(last->next, first)) {
    }
  }
  static void free_all(Known* first) noexcept {
    while (first != nullptr) delete std::exchange(first, first->next);
  }

  std::array<std::atomic<Known*>, kMaxGroups> known_{};
  std::atomic<Known*> replaced_ = nullptr;
  std::atomic<std::uint64_t> lookers_ = 0;  // fork generation << 32 | threads that look
};

}  // namespace leat::inline v0::detail
