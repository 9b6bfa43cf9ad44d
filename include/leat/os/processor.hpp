// CPUs: how many there are for a thread, yielding one, keeping one from running ahead, and emptying its caches.
#pragma once

#include <cpuid.h>
#include <sched.h>

#include <cstddef>
#include <cstdint>

#include "leat/base/atomic.hpp"

namespace leat::inline v0::detail {

// Lets another runnable thread have the CPU, if there is one; about 0.3 us otherwise.
inline void yield_processor() noexcept {
#ifdef LEAT_MODEL
  spin_pause();
#else
  ::sched_yield();
#endif
}

// Keeps the CPU from running ahead: nothing behind this begins before all loads before it have their values. A loop
// that polls a word without this has read it several times ahead, in vain, when another CPU changes it.
inline void finish_loads() noexcept { __builtin_ia32_lfence(); }

// How many CPUs the calling thread may use: taskset, or a container's cpuset, may allow it fewer than there are. 0 if
// that is unknown.
inline int usable_processors() noexcept {
  ::cpu_set_t sets[8];  // The kernel has at most 8,192 CPUs.
  return ::sched_getaffinity(0, sizeof(sets), sets) == 0 ? CPU_COUNT_S(sizeof(sets), sets) : 0;
}

// Whether the CPU has the instruction of flush_lines(): Intel's since 2015, AMD's since 2017.
inline bool can_flush_lines() noexcept {
  static const bool can = [] {
    constexpr unsigned kClflushopt = 1u << 23;
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (ebx & kClflushopt) != 0;
  }();
  return can;
}

// Moves the cache lines in [from, to) from the caches of all CPUs to memory; about 3 ns for each. A line that
// begins before `from` is included, one that ends after `to` is not. Contents stay as they are.
inline void flush_lines(const std::byte* from, const std::byte* to) noexcept {
  constexpr std::size_t kCacheLine = 64;  // bytes
  from -= reinterpret_cast<std::uintptr_t>(from) % kCacheLine;
  for (; from + kCacheLine <= to; from += kCacheLine)
    __asm__ __volatile__("clflushopt %0" ::"m"(*from));
}

}  // namespace leat::inline v0::detail
