// The processor that the calling thread runs on.
#pragma once

#include <sched.h>

#include "leat/base/atomic.hpp"

namespace leat::inline v0::detail {

// Lets another thread that is ready have the processor, if there is one. About 0.3 us if not.
inline void yield_processor() noexcept {
#ifdef LEAT_MODEL
  spin_pause();
#else
  ::sched_yield();
#endif
}

}  // namespace leat::inline v0::detail
