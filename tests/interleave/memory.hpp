// The memory of the model: what a load may return when threads run on a machine that promises no
// more than C++ (release/acquire with views), so also every store buffer of x86.
//
// Each 8-byte word keeps its last stores in modification order. A thread has a view: for each half
// word the oldest store it may still read. A load picks any store that is not older; a release store
// carries the writer's view along; an acquire load that reads it joins that view to the reader's.
// Half words, because 32-bit neighbours in one word are independent; stores of 1 byte share the view
// of their half, which only payload bytes do.
//
// Sequentially consistent stores, updates and fences are full fences, as on x86, and take a place in
// one total order as they run. A sequentially consistent load takes its place anywhere behind what
// happened before it, also earlier than operations that ran already; so it may be stale where
// nothing forbids it, but no two threads see the order differently.
//
// Memory that was written without the model (a new file, a plain memset) is taken as it is and as
// seen by everybody. Real memory always holds the latest value.
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

  std::uint64_t sc_place = 0;  // The last place in the total order that happened before.

 private:
  std::vector<std::uint32_t> seen_;  // Index: 2 * location + half.
};
using SharedView = std::shared_ptr<const View>;  // Null: empty.

struct ThreadView {
  View now;
  View pending;         // What relaxed loads have met; an acquire fence joins it to `now`.
  SharedView released;  // `now` at the last release fence; relaxed stores carry it.
};

class Memory {
 public:
  // Picks the age of the store that a load returns: 0 = latest, up to count - 1.
  explicit Memory(std::function<std::size_t(std::size_t count)> choose_age)
      : choose_age_{std::move(choose_age)} {}

  void reset();

  // All sizes are 1, 2, 4 or 8 and do not cross a word.
  std::uint64_t load(ThreadView& thread, const void* address, std::size_t size,
                     std::memory_order order);
  void store(ThreadView& thread, void* address, std::size_t size, std::uint64_t value,
             std::memory_order order);
  // Read-modify-write: reads the latest value; `change` returns the new one, or nothing to leave it.
  std::uint64_t update(ThreadView& thread, void* address, std::size_t size, std::memory_order order,
                       const std::function<std::optional<std::uint64_t>(std::uint64_t)>& change);
  bool compare_exchange_pair(ThreadView& thread, std::uint64_t* pair,
                             const std::uint64_t (&expected)[2], const std::uint64_t (&desired)[2],
                             std::memory_order order);
  void fence(ThreadView& thread, std::memory_order order);
  // What a clock's tick long after all stores would make visible.
  void see_everything(ThreadView& thread);

  // The latest value, as the kernel reads a futex.
  std::uint64_t latest(const void* address, std::size_t size);
  std::size_t last_age() const noexcept { return last_age_; }  // Of the last load; for traces.

  // One file may be mapped at several addresses; all are one memory.
  void add_mapping(const void* data, std::size_t size, int fd);
  bool remove_mapping(const void* data);
  void unmap_all();                           // What the dead left behind.
  std::uint64_t key_of(const void* address);  // The same for all addresses of one byte.
  std::uint64_t key_of_file(int fd);          // Of its first byte.

 private:
  struct Message {
    std::uint64_t value;  // Of the whole word once this store is done.
    std::uint8_t bytes;   // Which of them it stored.
    SharedView view;
    std::uint64_t sc_place;  // In the total order; 0 if it was not sequentially consistent.
  };
  struct Location {
    std::vector<Message> history;
    std::uint32_t first = 0;  // Time of history[0].
    std::uint32_t floor[2] = {0,
                              0};  // Nobody reads older: the memory was written outside the model.
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
  View seq_cst_;  // What full fences pass on.
  std::uint64_t sc_last_place_ = 0;
  std::vector<Location> locations_;
  std::size_t used_ = 0;  // Of locations_; the rest keep their allocations for the next execution.
  std::vector<std::pair<std::uint64_t, std::size_t>>
      table_;  // key + 1 -> location; open addressing.
  std::vector<Range> ranges_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> files_;  // device, inode
};

}  // namespace leat::inline v0::detail::model
