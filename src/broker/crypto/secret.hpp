// Text that is wiped from memory when it is no longer used: a password.
//
//     Secret password{json["password"].get_ref<std::string&>()};
//     wipe(request);                               // the text that it came in
//     worker.check(std::move(password), …);
//
// It has one copy, on the heap: a std::string would leave its short texts behind wherever it was moved from.
// What the operating system writes to a swap file, or to a core file, is not prevented.
#pragma once

#include <sodium.h>

#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "leat/os/os.hpp"

namespace leat::broker {

class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string_view text) : bytes_{new char[text.size()]}, size_{text.size()} {
    if (!text.empty()) std::memcpy(bytes_.get(), text.data(), text.size());
  }
  Secret(Secret&& other) noexcept
      : bytes_{std::move(other.bytes_)}, size_{std::exchange(other.size_, 0)} {}
  Secret& operator=(Secret&& other) noexcept { return os::replace(*this, other); }
  ~Secret() {
    if (bytes_ != nullptr) sodium_memzero(bytes_.get(), size_);
  }

  Secret copy() const { return Secret{text()}; }
  std::string_view text() const noexcept { return {bytes_.get(), size_}; }

 private:
  std::unique_ptr<char[]> bytes_;  // Null once moved from.
  std::size_t size_ = 0;
};

// Overwrites and empties a text that contained a password.
inline void wipe(std::string& text) noexcept {
  sodium_memzero(text.data(), text.size());
  text.clear();
}

}  // namespace leat::broker
