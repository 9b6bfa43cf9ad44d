// Atomic access to words in shared memory, and the names of the edges between them.
//
// Shared layouts contain plain integers, so that every language sees the same struct; all access
// goes through the functions below. Every ordered operation names its edge: the pair (or group) of
// operations that make each other's writes visible. docs/internals/memory-model.md explains each
// edge; grep for the name to find its ends.
//
//     store_release<Edge::record_ready>(header.commit, word);    // publisher
//     load_acquire<Edge::record_ready>(header.commit);           // subscriber
//
// With LEAT_MODEL defined, every operation goes to the deterministic scheduler of tests/interleave,
// which can weaken a named edge and explores what goes wrong without it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "leat/base/config.hpp"

#if defined(__SANITIZE_THREAD__)
#define LEAT_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define LEAT_THREAD_SANITIZER 1
#endif
#endif
#ifndef LEAT_THREAD_SANITIZER
#define LEAT_THREAD_SANITIZER 0
#endif
#if LEAT_THREAD_SANITIZER
extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
}
#endif

namespace leat::inline v0::detail {

// `A, then B -> C`: C, if it sees B, also sees A. `A, then B <-> C, then D`: of two sides running
// at the same time, at least one sees the other's first step.
enum class Edge : std::uint8_t {
  record_ready,     // header and payload, then the commit word -> readers that find the tag
  claim,            // the announcement and all earlier claims, then the claim word -> its readers
  intent,           // a slot's claim facts, then its phase -> repairers, publishers reusing room
  withdraw,         // claim marked, then `withdrawn` read <-> `withdrawn` set, then the mark read
  segment_map,      // a segment's base, then its map word -> threads that enter the segment
  segment_open,     // the segment's setup, then claim and current -> publishers that claim in it
  retire,           // cursor or pin, then oldest_segment read <-> the latter moved, then cursors
  overwrite,        // oldest_segment moved, then bytes overwritten -> a lossy reader's check
  slot,             // a slot's fields, then its state -> scans of the participants
  sleeping,         // sleeping bit set, then a last check <-> new data or room, then the bit read
  cursor,           // reads of a segment, then the cursor leaves it -> reuse of the segment
  exclusive,        // exclusive word set, then slots read <-> slot taken, then the word read
  group,            // group file, then its number -> publishers; `closed` <-> a seat or an entry
  group_cursor,     // entries, then the cursor passes their records -> publishers, other members
  in_flight,        // an entry's fields, then its state; reads of a record, then its entry freed
  in_flight_place,  // reads of a record, then its entry gets another record -> publishers
  key_slot,         // an entry, then its key's slot -> members that then scan that slot's entries
  archiver,  // frames on disk, then `written`; a handover, then the epoch -> readers, publishers, archivers
  sync,  // a request, then `archiver_wake` -> the archiver; `durable`, then a wake-up -> waiting threads
  segment_memory,  // segment marked kNoMemory, then choices read <-> a choice, then the mark read
  topic_state,     // deletion number, then slots and locks read <-> slot or lock, then the number
  mapped_once,     // a mapping is made, then its pointer -> other threads of this process
  known_group,  // a thread counted, then a group's view read <-> the view replaced, then the count
};

// Why an access needs no order, for example load_relaxed<Why::hint>(word).
enum class Why : std::uint8_t {
  own,              // only the caller writes it, or wrote it last
  swap_checks,      // a compare-and-swap that follows fails if the value is stale
  published_later,  // a later ordered store, or the kernel, makes this store visible
  stored_before,    // stored before something that the caller has already read with acquire
  constant,         // does not change while others can see it
  rechecked,        // the value is discarded if a later check fails
  hint,             // any past value will do: informational, or only decides when to check again
  test,             // tests only
};

#ifdef LEAT_MODEL
// Implemented by tests/interleave. `size` is 1, 2, 4 or 8.
namespace model {
std::uint64_t load(const void* word, std::size_t size, std::memory_order order, int edge) noexcept;
void store(void* word, std::size_t size, std::uint64_t value, std::memory_order order,
           int edge) noexcept;
bool compare_exchange(void* word, std::size_t size, std::uint64_t& expected, std::uint64_t desired,
                      int edge) noexcept;  // seq_cst
std::uint64_t exchange(void* word, std::size_t size, std::uint64_t value, int edge) noexcept;
std::uint64_t fetch_add(void* word, std::size_t size, std::uint64_t value, int edge) noexcept;
std::uint64_t fetch_or(void* word, std::size_t size, std::uint64_t value, int edge) noexcept;
bool compare_exchange_pair(std::uint64_t* pair, const std::uint64_t (&expected)[2],
                           const std::uint64_t (&desired)[2], int edge) noexcept;
void fence(std::memory_order order, int edge) noexcept;
// The model tracks only the first and last bytes of a payload; `step` is the number of
// bytes between.
inline bool is_middle(std::size_t at, std::size_t size, std::size_t& step) noexcept {
  if (at != 16 || size < 48) return false;
  step = (size - 32) & ~std::size_t{7};
  return true;
}
}  // namespace model
inline constexpr int kNoEdge = -1;
#endif

template <class T>
concept SharedWord = std::is_integral_v<T> && std::atomic_ref<T>::is_always_lock_free;

template <SharedWord T>
[[gnu::always_inline]] inline T load(const T& word, std::memory_order order,
                                     [[maybe_unused]] int edge) noexcept {
#ifdef LEAT_MODEL
  return static_cast<T>(model::load(&word, sizeof(T), order, edge));
#else
  return std::atomic_ref<T>(const_cast<T&>(word)).load(order);
#endif
}

template <SharedWord T>
[[gnu::always_inline]] inline void store(T& word, T value, std::memory_order order,
                                         [[maybe_unused]] int edge) noexcept {
#ifdef LEAT_MODEL
  model::store(&word, sizeof(T), static_cast<std::uint64_t>(value), order, edge);
#else
  std::atomic_ref<T>(word).store(value, order);
#endif
}

template <Why W = Why::test, SharedWord T>
[[gnu::always_inline]] inline T load_relaxed(const T& word) noexcept {
  return load(word, std::memory_order_relaxed, -1);
}
template <Why W = Why::test, SharedWord T>
[[gnu::always_inline]] inline void store_relaxed(T& word, std::type_identity_t<T> value) noexcept {
  store(word, value, std::memory_order_relaxed, -1);
}

template <Edge E, SharedWord T>
[[gnu::always_inline]] inline T load_acquire(const T& word) noexcept {
  return load(word, std::memory_order_acquire, static_cast<int>(E));
}
template <Edge E, SharedWord T>
[[gnu::always_inline]] inline void store_release(T& word, std::type_identity_t<T> value) noexcept {
  store(word, value, std::memory_order_release, static_cast<int>(E));
}
template <Edge E, SharedWord T>
[[gnu::always_inline]] inline T load_seq_cst(const T& word) noexcept {
  return load(word, std::memory_order_seq_cst, static_cast<int>(E));
}

// Read-modify-write operations are sequentially consistent: on x86 they cost the same as any other
// order, and each one is a full fence that the store-then-load edges rely on.
template <Edge E, SharedWord T>
[[gnu::always_inline]] inline bool compare_exchange(T& word, T& expected,
                                                    std::type_identity_t<T> desired) noexcept {
#ifdef LEAT_MODEL
  std::uint64_t wide = expected;
  const bool done = model::compare_exchange(
      &word, sizeof(T), wide, static_cast<std::uint64_t>(desired), static_cast<int>(E));
  expected = static_cast<T>(wide);
  return done;
#else
  // Not atomic_ref::compare_exchange_strong, which compilers do not always inline.
  return __atomic_compare_exchange_n(&word, &expected, desired, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST);
#endif
}
template <Edge E, SharedWord T>
[[gnu::always_inline]] inline T exchange(T& word, std::type_identity_t<T> value) noexcept {
#ifdef LEAT_MODEL
  return static_cast<T>(
      model::exchange(&word, sizeof(T), static_cast<std::uint64_t>(value), static_cast<int>(E)));
#else
  return std::atomic_ref<T>(word).exchange(value, std::memory_order_seq_cst);
#endif
}
template <Edge E, SharedWord T>
[[gnu::always_inline]] inline T fetch_add(T& word, std::type_identity_t<T> value) noexcept {
#ifdef LEAT_MODEL
  return static_cast<T>(
      model::fetch_add(&word, sizeof(T), static_cast<std::uint64_t>(value), static_cast<int>(E)));
#else
  return std::atomic_ref<T>(word).fetch_add(value, std::memory_order_seq_cst);
#endif
}
template <Edge E, SharedWord T>
[[gnu::always_inline]] inline T fetch_or(T& word, std::type_identity_t<T> value) noexcept {
#ifdef LEAT_MODEL
  return static_cast<T>(
      model::fetch_or(&word, sizeof(T), static_cast<std::uint64_t>(value), static_cast<int>(E)));
#else
  return std::atomic_ref<T>(word).fetch_or(value, std::memory_order_seq_cst);
#endif
}

// Compares and swaps two adjacent words at once; `pair` must be 16-byte aligned. Used once per
// segment (or per claim of a group), where a 64-bit word has no room for a number that never
// repeats. All other accesses to the two words are 64 bits wide; x86-64 keeps them coherent with
// the 128-bit one.
#ifdef LEAT_MODEL
template <Edge E>
inline bool compare_exchange_pair(std::uint64_t* pair, const std::uint64_t (&expected)[2],
                                  const std::uint64_t (&desired)[2]) noexcept {
  return model::compare_exchange_pair(pair, expected, desired, static_cast<int>(E));
}
#elif defined(__x86_64__)
// Assembly, because GCC and clang agree on no intrinsic without a compiler flag or libatomic.
template <Edge E>
inline bool compare_exchange_pair(std::uint64_t* pair, const std::uint64_t (&expected)[2],
                                  const std::uint64_t (&desired)[2]) noexcept {
  std::uint64_t low = expected[0];
  std::uint64_t high = expected[1];
  bool done = false;
#if LEAT_THREAD_SANITIZER
  // The sanitizer does not see the order that the assembly provides, so it is told.
  for (std::uint64_t* word : {pair, pair + 1}) __tsan_release(word);
#endif
  __asm__ __volatile__("lock cmpxchg16b (%[pair])"
                       : "=@ccz"(done), "+a"(low), "+d"(high)
                       : [pair] "r"(pair), "b"(desired[0]), "c"(desired[1])
                       : "memory");
#if LEAT_THREAD_SANITIZER
  for (std::uint64_t* word : {pair, pair + 1}) __tsan_acquire(word);
#endif
  return done;
}
#else
#error "Leat needs a 16-byte compare-and-swap that keeps 8-byte accesses coherent: x86-64 so far."
#endif

// Returns `copy`, a value that was read from memory which another process may overwrite. Keeps the
// compiler from reading the memory again after the copy was checked.
template <SharedWord T>
[[gnu::always_inline]] inline T as_copied(T copy) noexcept {
  __asm__("" : "+r"(copy));
  return copy;
}

// Fences order plain payload bytes against words of another object. The thread sanitizer does not
// support fences; under it, the bytes concerned are accessed atomically.
template <Edge E>
[[gnu::always_inline]] inline void fence_release() noexcept {
#ifdef LEAT_MODEL
  model::fence(std::memory_order_release, static_cast<int>(E));
#elif !LEAT_THREAD_SANITIZER
  std::atomic_thread_fence(std::memory_order_release);
#endif
}
template <Edge E>
[[gnu::always_inline]] inline void fence_acquire() noexcept {
#ifdef LEAT_MODEL
  model::fence(std::memory_order_acquire, static_cast<int>(E));
#elif !LEAT_THREAD_SANITIZER
  std::atomic_thread_fence(std::memory_order_acquire);
#endif
}

// Copies payload bytes into a record: plain stores, except under the model, which
// sees single words.
[[gnu::always_inline]] inline void copy_in(std::byte* to, const void* from,
                                           std::size_t size) noexcept {
#ifdef LEAT_MODEL
  for (std::size_t i = 0, step = 0; i < size; i += step) {
    if (model::is_middle(i, size, step)) {
      std::memcpy(to + i, static_cast<const std::byte*>(from) + i, step);
      continue;
    }
    step = size - i >= 8 && reinterpret_cast<std::uintptr_t>(to + i) % 8 == 0 ? 8 : 1;
    std::uint64_t value = 0;
    std::memcpy(&value, static_cast<const std::byte*>(from) + i, step);
    model::store(to + i, step, value, std::memory_order_relaxed, kNoEdge);
  }
#elif LEAT_THREAD_SANITIZER
  // A lossy reader may be reading the old bytes (copy_racing): no data race if both
  // sides are atomic.
  const auto* source = static_cast<const std::byte*>(from);
  for (std::size_t i = 0; i < size;) {
    if (size - i >= 8 && reinterpret_cast<std::uintptr_t>(to + i) % 8 == 0) {
      std::uint64_t word = 0;
      std::memcpy(&word, source + i, sizeof(word));
      store_relaxed<Why::published_later>(*reinterpret_cast<std::uint64_t*>(to + i), word);
      i += sizeof(word);
    } else {
      store_relaxed<Why::published_later>(*reinterpret_cast<std::uint8_t*>(to + i),
                                          std::to_integer<std::uint8_t>(source[i]));
      ++i;
    }
  }
#else
  // Small sizes without a function call: two moves that may overlap.
  const auto* source = static_cast<const std::byte*>(from);
  if (size > 32) {
    std::memcpy(to, from, size);
  } else if (size >= 16) {
    std::memcpy(to, from, 16);
    std::memcpy(to + size - 16, source + size - 16, 16);
  } else if (size >= 8) {
    std::memcpy(to, from, 8);
    std::memcpy(to + size - 8, source + size - 8, 8);
  } else {
    for (std::size_t i = 0; i < size; ++i) to[i] = source[i];
  }
#endif
}

// Copies bytes that may be overwritten at the same time, with atomic word loads; the caller
// discards the copy if its check afterwards fails. `from` is 8-byte aligned and readable up to the
// next multiple of 8 (records are padded to 16).
inline void copy_racing(std::byte* to, const std::byte* from, std::size_t size) noexcept {
#ifdef LEAT_MODEL
  for (std::size_t i = 0, step = 0; i < size; i += step) {
    if (model::is_middle(i, size, step)) {
      std::memcpy(to + i, from + i, step);
      continue;
    }
    step = size - i >= 8 ? 8 : 1;
    const std::uint64_t value = model::load(from + i, step, std::memory_order_relaxed, kNoEdge);
    std::memcpy(to + i, &value, step);
  }
#else
  for (std::size_t i = 0; i < size; i += 8) {
    // fence_acquire<Edge::overwrite> and the check of `oldest_segment` follow.
    const std::uint64_t word =
        load_relaxed<Why::rechecked>(*reinterpret_cast<const std::uint64_t*>(from + i));
    std::memcpy(to + i, &word, size - i < 8 ? size - i : 8);
  }
#endif
}

// While it exists, the thread sanitizer bears that this thread reads bytes which are being overwritten:
// what was made of them does not count if the check afterwards fails.
class RacingReads {
 public:
#if LEAT_THREAD_SANITIZER
  RacingReads() noexcept { AnnotateIgnoreReadsBegin(__FILE__, __LINE__); }
  ~RacingReads() { AnnotateIgnoreReadsEnd(__FILE__, __LINE__); }
#else
  RacingReads() noexcept {}  // NOLINT(modernize-use-equals-default): then it would be unused.
#endif
  RacingReads(const RacingReads&) = delete;
  RacingReads& operator=(const RacingReads&) = delete;
};

// Tells the CPU that this is a spin loop.
inline void spin_pause() noexcept {
#if defined(LEAT_MODEL)
  model::fence(std::memory_order_relaxed, kNoEdge);  // A scheduling point.
#elif defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace leat::inline v0::detail
