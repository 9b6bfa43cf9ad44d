// A full memory barrier on every running thread of all registered processes, paid for by the caller
// alone (membarrier(2), global expedited). It lets a publisher store a commit word and read the
// sleeping bit without a fence of its own: the thread that goes to sleep runs the barrier for both.
#pragma once

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace leat::inline v0::detail {

#ifdef LEAT_MODEL
namespace model {
bool membarrier() noexcept;
}
#endif

// Registers this process as a target of membarrier_all(). False if the kernel refuses.
inline bool membarrier_register() noexcept {
#ifdef LEAT_MODEL
  return true;
#else
  return ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
#endif
}

// False if the kernel refuses: the caller must then not rely on a barrier.
inline bool membarrier_all() noexcept {
#ifdef LEAT_MODEL
  return model::membarrier();
#else
  return ::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0;
#endif
}

}  // namespace leat::inline v0::detail
