// Memory for hashes, kept from one to the next.
//
//     HashMemory memory;
//     if (memory.reserve(bytes)) check_password(password, verifier, memory.bytes());
//     memory.release();                             // Nobody has logged in for a while.
//
// New pages cost as much as the hash itself, in the kernel, where the thread cannot give way to others. So all of them
// are made by reserve(), on the thread that calls it.
#pragma once

#include <cstddef>
#include <span>

namespace leat::broker {

class HashMemory {
 public:
  HashMemory() = default;
  HashMemory(const HashMemory&) = delete;
  HashMemory& operator=(const HashMemory&) = delete;
  ~HashMemory() { release(); }

  // At least so many bytes; what was there before is lost if it was less. False without memory.
  bool reserve(std::size_t size) noexcept;
  void release() noexcept;
  std::span<std::byte> bytes() const noexcept { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

}  // namespace leat::broker
