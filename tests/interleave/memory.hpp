// The memory of the model: decides what a load may return on a machine that
// guarantees no more than C++ does (release/acquire with views). This
// includes everything that x86 store buffers make possible.
//
// Each 8-byte word keeps its latest stores in modification order. Each thread has a view: for each
// half word, the oldest store that it may still read. A load picks any store that is not older. A
// release store carries the writer's view, and an acquire load that reads it merges that view into
// the reader's. Views are per half word because two 32-bit halves of a word are independent; 1-byte
// stores, which only payloads use, share the view of their half.
//
// Sequentially consistent stores, updates and fences are full fences, as on x86, and take a place
// in one total order when they run. A sequentially consistent load may take its place anywhere
// after what happened before it, even before operations that have already run. So it may be stale
// where nothing forbids that, but no two threads see different orders.
//
// Memory that is written without the model (a new file, a plain memset) counts as seen by
// everybody. Real memory always holds the latest value.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace leat::inline v0::detail::model {

class View {
 public:
  std::uint32_t at(std::size_t half) const noexcept {
    return half < seen_.size() ? seen_[half] : 0;
  }
  void raise(std::size_t half, std::uint32_t time);
  void join(const View& other);

  std::uint64_t sc_place = 0;  // The last place in the total order that is visible.

 private:
  std::vector<std::uint32_t> seen_;  // Index: 2 * location + half.
};
using SharedView = std::shared_ptr<const View>;  // Null means empty.

struct ThreadView {
  View now;
  View pending;         // Views read by relaxed loads; an acquire fence merges it into `now`.
  SharedView released;  // `now` at the last release fence; relaxed stores carry it.
};

class Memory {
 public:
  // `choose_age` picks the store that a load returns: from 0, the latest, to count - 1.
  explicit Memory(std::function<std::size_t(std::size_t count)> choose_age)
      : choose_age_{std::move(choose_age)} {}

  void reset();

  // Sizes are 1, 2, 4 or 8; no access crosses a word boundary.
  std::uint64_t load(ThreadView& thread, const void* address, std::size_t size,
                     std::memory_order order);
  void store(ThreadView& thread, void* address, std::size_t size, std::uint64_t value,
             std::memory_order order);
  // Read-modify-write of the latest value. `change` returns the new value, or
  // nothing to keep the old.
  std::uint64_t update(ThreadView& thread, void* address, std::size_t size, std::memory_order order,
                       const std::function<std::optional<std::uint64_t>(std::uint64_t)>& change);
  bool compare_exchange_pair(ThreadView& thread, std::uint64_t* pair,
                             const std::uint64_t (&expected)[2], const std::uint64_t (&desired)[2],
                             std::memory_order order);
  void fence(ThreadView& thread, std::memory_order order);
  // Makes all stores visible to the thread, as after a long time.
  void see_everything(ThreadView& thread);

  // The latest value, as the kernel reads a futex.
  std::uint64_t latest(const void* address, std::size_t size);
  std::size_t last_age() const noexcept { return last_age_; }  // Of the last load; for traces.

  // A file may be mapped at several addresses; all of them are the same memory.
  void add_mapping(const void* data, std::size_t size, int fd);
  bool remove_mapping(const void* data);
  void unmap_all();                           // For the mappings of dead threads.
  std::uint64_t key_of(const void* address);  // The same for all addresses of one byte.
  std::uint64_t key_of_file(int fd);          // The key of its first byte.

 private:
  struct Message {
    std::uint64_t value;  // The whole word after this store.
    std::uint8_t bytes;   // The bytes that it stored, as a bit mask.
    SharedView view;
    std::uint64_t sc_place;  // Place in the total order; 0 if it is not sequentially consistent.
  };
  struct Location {
    std::vector<Message> history;
    std::uint32_t first = 0;  // Time of history[0].
    // Nobody reads an older store, because the memory was written outside the model since.
    std::uint32_t floor[2] = {0, 0};
    std::uint32_t last() const noexcept {
      return first + static_cast<std::uint32_t>(history.size()) - 1;
    }
    Message& at(std::uint32_t time) noexcept { return history[time - first]; }
  };
  struct Access {  // One location and some bytes of it.
    std::size_t location;
    unsigned shift;
    std::uint8_t bytes;
    std::uint64_t value_mask;
    std::uint64_t extract(std::uint64_t word) const noexcept {
      return (word >> shift) & value_mask;
    }
  };
  struct Range {
    std::uintptr_t begin, end;
    std::uint64_t file;
  };

  std::uint64_t number_of_file(int fd);
  Access find(const void* address, std::size_t size);
  std::size_t location_of(std::uint64_t key, std::uint64_t initial);
  std::uint32_t oldest_for(const ThreadView& thread, const Access& access, bool seq_cst) const;
  void enter_sc_order(ThreadView& thread);
  void see(View& view, const Access& access, std::uint32_t time);
  void meet(View& view, const Access& access, std::uint32_t time);
  std::uint32_t read_latest(ThreadView& thread, const Access& access, bool acquire);
  void append(const Access& access, std::uint64_t value, SharedView view, std::uint64_t sc_place);
  SharedView view_for_store(ThreadView& thread, const Access* accesses, std::size_t count,
                            bool release, bool continues);

  static constexpr std::size_t kHistory = 16;

  std::function<std::size_t(std::size_t)> choose_age_;
  std::size_t last_age_ = 0;
  View seq_cst_;  // Passed from each full fence to the next ones.
  std::uint64_t sc_last_place_ = 0;
  std::vector<Location> locations_;
  std::size_t used_ = 0;  // Of locations_; the others keep their allocations for later use.
  // key + 1 -> location, with open addressing.
  std::vector<std::pair<std::uint64_t, std::size_t>> table_;
  std::vector<Range> ranges_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> files_;  // device, inode
};

}  // namespace leat::inline v0::detail::model
