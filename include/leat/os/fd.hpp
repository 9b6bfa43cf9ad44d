// Owns a file descriptor and closes it.
#pragma once

#include <unistd.h>

#include <utility>

#include "leat/base/replace.hpp"

namespace leat::inline v0::detail {

class Fd {
 public:
  Fd() noexcept = default;
  explicit Fd(int number) noexcept : number_{number} {}
  Fd(Fd&& other) noexcept : number_{std::exchange(other.number_, -1)} {}
  Fd& operator=(Fd&& other) noexcept { return replace(*this, other); }
  ~Fd() {
    if (number_ >= 0) ::close(number_);
  }
  int get() const noexcept { return number_; }
  explicit operator bool() const noexcept { return number_ >= 0; }
  // Releases ownership without closing.
  int release() noexcept { return std::exchange(number_, -1); }

 private:
  int number_ = -1;
};

}  // namespace leat::inline v0::detail
