// Who owns a wait descriptor (log/wait_fd.hpp), without what it is made of.
#pragma once

#include <memory>

namespace leat::inline v0::detail {

class WaitFd;
struct DeleteWaitFd {
  void operator()(WaitFd* wait_fd) const noexcept;
};
using WaitHandle = std::unique_ptr<WaitFd, DeleteWaitFd>;

}  // namespace leat::inline v0::detail
